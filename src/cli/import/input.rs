//! A file as a stream of bytes: found, decompressed, with a progress bar.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use anyhow::Context;
use flate2::bufread::MultiGzDecoder;
use indicatif::{ProgressBar, ProgressStyle};

/// Bytes of a file, decompressed.
pub type Input = BufReader<Box<dyn Read + Send>>;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Enough to recognise any form of content, whatever compression it has.
const HEAD: u64 = 4096;
const BUFFER: usize = 256 * 1024;

/// Opens a file, or standard input for `-`. Gzip and zstd are recognised by their first bytes. The bar counts bytes as
/// they are in the file.
///
/// # Errors
/// Where it cannot be opened, or its compression cannot be started.
pub fn open(path: &Path) -> anyhow::Result<(Input, ProgressBar)> {
    let (raw, bar): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), ProgressBar::new_spinner().with_style(style("{spinner} {bytes} {msg}")?))
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let length = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        let bar = ProgressBar::new(length).with_style(style("{wide_bar} {bytes}/{total_bytes} {eta} {msg}")?);
        (Box::new(file), bar)
    };
    let counted: Box<dyn Read + Send> = Box::new(bar.wrap_read(raw));
    let input = decompress(counted).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((input, bar))
}

fn style(template: &str) -> anyhow::Result<ProgressStyle> {
    ProgressStyle::with_template(template).context("the progress bar's template is wrong")
}

fn decompress(mut raw: Box<dyn Read + Send>) -> io::Result<Input> {
    let mut head = Vec::new();
    raw.by_ref().take(HEAD).read_to_end(&mut head)?;
    let is_gzip = head.starts_with(GZIP);
    let is_zstd = head.starts_with(ZSTD);
    let whole = BufReader::with_capacity(BUFFER, io::Cursor::new(head).chain(raw));
    let plain: Box<dyn Read + Send> = match (is_gzip, is_zstd) {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::stream::read::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    };
    Ok(BufReader::with_capacity(BUFFER, plain))
}

/// Bytes as they would be in a file.
#[cfg(test)]
pub fn of_bytes(bytes: Vec<u8>) -> io::Result<Input> {
    decompress(Box::new(io::Cursor::new(bytes)))
}

/// The first bytes that are not blank, without taking them. Blank bytes before them are taken.
///
/// # Errors
/// A failure of the input.
pub fn peek(input: &mut Input) -> io::Result<&[u8]> {
    loop {
        let blank = input.fill_buf()?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if blank == 0 {
            return input.fill_buf();
        }
        input.consume(blank);
    }
}

/// The next line without its end; `None` at the end of the input. A compressed stream that breaks off ends there, and
/// what was read of its last line is given back as a line.
///
/// # Errors
/// A failure of the input.
pub fn next_line(input: &mut Input) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    match input.read_until(b'\n', &mut bytes) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Ok((!bytes.is_empty()).then_some(Line { bytes, whole: false }));
        }
        Err(error) => return Err(error),
    }
    let ended = bytes.last() == Some(&b'\n');
    bytes.truncate(bytes.trim_ascii_end().len());
    let whole = ended || is_object(&bytes);
    Ok(Some(Line { bytes, whole }))
}

/// Whether a line is an object from its first brace to its last: no part of a longer one is.
fn is_object(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Its bytes, without its end.
    pub bytes: Vec<u8>,
    /// Whether its end was there, or what it holds cannot go on.
    pub whole: bool,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn lines(bytes: Vec<u8>) -> Vec<Line> {
        let mut input = decompress(Box::new(io::Cursor::new(bytes))).expect("opened");
        std::iter::from_fn(|| next_line(&mut input).expect("read")).collect()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).expect("in memory");
        encoder.finish().expect("in memory")
    }

    fn line(text: &str, whole: bool) -> Line {
        Line { bytes: text.into(), whole }
    }

    #[test]
    fn compression_is_recognised_by_its_first_bytes() {
        let want = [line("a", true), line("b", false)];
        let zstd = zstd::encode_all(&b"a\nb"[..], 1).expect("in memory");
        for bytes in [b"a\r\nb".to_vec(), gzip("a\nb"), [gzip("a\n"), gzip("b")].concat(), zstd] {
            assert_eq!(lines(bytes), want);
        }
        assert_eq!(lines(Vec::new()), []);
    }

    #[test]
    fn a_compressed_stream_that_breaks_off_ends_there() {
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let mut bytes = gzip(&text);
        bytes.truncate(bytes.len() / 2);
        let read = lines(bytes);
        assert!(read.len() > 1_000, "{} lines", read.len());
        assert!(read[..read.len() - 1].iter().all(|line| line.whole));
    }

    #[test]
    fn an_object_needs_no_end_of_line() {
        assert_eq!(lines(b"{\"a\":1}".to_vec()), [line("{\"a\":1}", true)]);
        assert_eq!(lines(b"{\"a\":1".to_vec()), [line("{\"a\":1", false)]);
    }

    #[test]
    fn peeking_passes_over_blanks() {
        let mut input = decompress(Box::new(io::Cursor::new(b" \n\t[1]".to_vec()))).expect("opened");
        assert_eq!(peek(&mut input).expect("read"), b"[1]");
    }
}
