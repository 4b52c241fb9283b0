//! The SSE parser: the same bytes cut in two ways give the same items, and no item is larger than its limit allows.
//! The input's first byte is the length of the chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracejoin::sse::{Event, Item, Parser};

const LIMIT: usize = 128;

fn parse<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Item>, Option<Event>) {
    let mut parser = Parser::new(LIMIT);
    let mut items = Vec::new();
    for chunk in chunks {
        parser.push(chunk, |item| items.push(item));
    }
    (items, parser.finish())
}

fuzz_target!(|input: &[u8]| {
    let Some((&length, stream)) = input.split_first() else { return };
    let whole = parse(std::iter::once(stream));
    assert_eq!(whole, parse(stream.chunks(usize::from(length).max(1))));
    for item in whole.0 {
        match item {
            // Each byte that is not UTF-8 becomes the three of U+FFFD.
            Item::Event(event) => assert!(event.data.len() <= 3 * LIMIT),
            Item::Oversized(bytes) => assert!(bytes > LIMIT as u64),
            Item::Comment | Item::NoData => {}
        }
    }
});
