use proptest::prelude::*;

use super::*;

const LIMIT: usize = 64;

fn parse(chunks: &[&[u8]]) -> (Vec<Item>, Option<Event>) {
    let mut parser = Parser::new(LIMIT);
    let mut items = Vec::new();
    for chunk in chunks {
        parser.push(chunk, |item| items.push(item));
    }
    (items, parser.finish())
}

fn items(stream: &str) -> Vec<Item> {
    parse(&[stream.as_bytes()]).0
}

fn event(name: Option<&str>, data: &str) -> Item {
    Item::Event(Event { name: name.map(str::to_owned), data: data.to_owned(), ..Event::default() })
}

#[test]
fn lines_end_with_any_of_the_three_ends() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["event: token", "data: a", "data: b", "", "data:c", "", ""].join(end);
        assert_eq!(items(&stream), [event(Some("token"), "a\nb"), event(None, "c")], "{end:?}");
    }
    assert_eq!(items("data: a\r\rdata: b\n\r\n"), [event(None, "a"), event(None, "b")], "mixed");
}

#[test]
fn a_carriage_return_completes_an_event_without_waiting_for_the_line_feed() {
    let mut parser = Parser::new(LIMIT);
    let mut found = Vec::new();
    parser.push(b"data: a\r\n\r", |item| found.push(item));
    assert_eq!(found, [event(None, "a")]);
    parser.push(b"\ndata: b\r\n\r\n", |item| found.push(item));
    assert_eq!(found, [event(None, "a"), event(None, "b")]);
}

#[test]
fn values_lose_one_space_and_nothing_else() {
    assert_eq!(items("data:  two\n\n"), [event(None, " two")]);
    assert_eq!(items("data: a: b\n\n"), [event(None, "a: b")]);
    assert_eq!(items("data\ndata\n\n"), [event(None, "\n")], "two empty lines");
    assert_eq!(items("Data: a\n data: a\nunknown: a\n\n"), [Item::NoData]);
}

#[test]
fn comments_and_blocks_without_data_are_told_apart() {
    assert_eq!(items(": ping\n\n:\n\n\n"), [Item::Comment, Item::Comment]);
    assert_eq!(items("event: ping\n\n"), [Item::NoData]);
    assert_eq!(items("data:\n\n"), [Item::NoData]);
    assert_eq!(items(": x\ndata: a\n: y\n\n"), [Item::Comment, Item::Comment, event(None, "a")]);
}

#[test]
fn a_name_lasts_for_one_event_and_an_id_until_the_next() {
    let stream = "id: 7\nevent: a\nretry: 30\ndata: 1\n\ndata: 2\n\nid\nretry: x3\ndata: 3\n\nid: a\0b\ndata: 4\n\n";
    let expected = [
        Event { name: Some("a".into()), data: "1".into(), id: Some("7".into()), retry: Some(30) },
        Event { data: "2".into(), id: Some("7".into()), ..Event::default() },
        Event { data: "3".into(), ..Event::default() },
        Event { data: "4".into(), ..Event::default() },
    ];
    assert_eq!(items(stream), expected.map(Item::Event));
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_start_only() {
    assert_eq!(items("\u{feff}data: a\n\n"), [event(None, "a")]);
    assert_eq!(items("\u{feff}\u{feff}data: a\n\n"), [Item::NoData]);
    assert_eq!(items("data: \u{feff}a\n\n"), [event(None, "\u{feff}a")]);
    let (found, _) = parse(&[b"\xef", b"\xbb", b"\xbf", b"data: a\n\n"]);
    assert_eq!(found, [event(None, "a")]);
    let (found, _) = parse(&[b"\xef", b"\xbb", b"data: a\n\ndata: b\n\n"]);
    assert_eq!(found, [Item::NoData, event(None, "b")], "half a mark is a field of no known name");
}

#[test]
fn a_huge_event_is_counted_and_the_next_is_read() {
    let huge = "x".repeat(10 * LIMIT);
    let expected = [Item::Oversized(6 + 10 * LIMIT as u64), event(None, "b")];
    assert_eq!(items(&format!("data: {huge}\n\ndata: b\n\n")), expected);
    let mut parser = Parser::new(LIMIT);
    for _ in 0..1000 {
        parser.push(b"data: 0123456789\n", |item| panic!("nothing has ended: {item:?}"));
    }
    let mut found = Vec::new();
    parser.push(b"\n", |item| found.push(item));
    assert_eq!(found, [Item::Oversized(16_000)]);
}

#[test]
fn what_the_end_leaves_unfinished_is_handed_over() {
    let unfinished = |stream: &str| parse(&[stream.as_bytes()]).1.map(|event| event.data);
    assert_eq!(unfinished("data: a\n\ndata: [DONE]").as_deref(), Some("[DONE]"));
    assert_eq!(unfinished("data: [DONE]\r\n").as_deref(), Some("[DONE]"));
    assert_eq!(unfinished("data: a\n\n"), None);
    assert_eq!(unfinished(": only a comment"), None);
    assert_eq!(unfinished(""), None);
}

/// The standard's algorithm over the stream as a whole, written without regard to chunks.
fn reference(stream: &[u8]) -> Vec<Item> {
    let text = String::from_utf8_lossy(stream).into_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let (mut found, mut id) = (Vec::new(), None);
    let (mut event, mut data, mut begun) = (Event::default(), None::<String>, false);
    for line in lines {
        if line.is_empty() {
            let block = std::mem::take(&mut event);
            match data.take().filter(|data| !data.is_empty()) {
                Some(data) => found.push(Item::Event(Event { data, id: Option::clone(&id), ..block })),
                None if begun => found.push(Item::NoData),
                None => {}
            }
            begun = false;
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        if field.is_empty() {
            found.push(Item::Comment);
            continue;
        }
        begun = true;
        match field {
            "data" => data = Some(data.map_or_else(|| value.to_owned(), |before| format!("{before}\n{value}"))),
            "event" => event.name = (!value.is_empty()).then(|| value.to_owned()),
            "id" if !value.contains('\0') => id = (!value.is_empty()).then(|| value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) => {
                event.retry = value.parse().ok().or(event.retry);
            }
            _ => {}
        }
    }
    found
}

/// Streams in which every rule is likely to matter, and bytes of any kind among them.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"data: ",
        b"data",
        b"event: ",
        b"id: ",
        b"retry: 1",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xf0\x9d",
        b"\xff",
        b"\xc3\xbc\xf0\x9d\x84\x9e",
    ];
    let pieces = prop::sample::select(PIECES);
    prop::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn it_reads_as_the_standard_does(stream in stream()) {
        let mut parser = Parser::new(usize::MAX);
        let mut found = Vec::new();
        parser.push(&stream, |item| found.push(item));
        prop_assert_eq!(found, reference(&stream));
    }

    #[test]
    fn any_chunking_gives_the_same(stream in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        let whole = parse(&[&stream]);
        prop_assert_eq!(&parse(&chunks), &whole);
        prop_assert_eq!(&parse(&bytes), &whole);
    }

    #[test]
    fn any_bytes_are_read(stream in prop::collection::vec(any::<u8>(), 0..300)) {
        parse(&[&stream]);
    }
}
