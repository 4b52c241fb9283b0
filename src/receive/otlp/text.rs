//! Text that is not UTF-8. One such attribute makes the decoder refuse its whole request, and with it spans that have
//! no fault, so the bytes at fault are replaced in place.

use super::NESTING;
use super::wire::{Part, next_field};

const REPLACEMENT: u8 = b'?';

/// Replaces each byte of `message` that keeps a text field from being UTF-8, and returns how many fields had any.
pub(super) fn repair(message: &mut [u8]) -> usize {
    walk(Part::Request, message, NESTING)
}

fn walk(part: Part, message: &mut [u8], depth: usize) -> usize {
    let mut repaired = 0;
    let mut offset = 0;
    while let Some((tag, field)) = next_field(message, offset) {
        offset = field.end;
        let field = &mut message[field];
        if part.is_text(tag) {
            repaired += usize::from(mend_text(field));
        } else if depth > 0
            && let Some(child) = part.child(tag)
        {
            repaired += walk(child, field, depth - 1);
        }
    }
    repaired
}

fn mend_text(text: &mut [u8]) -> bool {
    let mut start = 0;
    while let Err(fault) = std::str::from_utf8(&text[start..]) {
        let first = start + fault.valid_up_to();
        let end = fault.error_len().map_or(text.len(), |length| first + length);
        text[first..end].fill(REPLACEMENT);
        start = end;
    }
    start > 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_bytes_at_fault_are_replaced() {
        for (broken, whole) in [
            (&b"caf\xe9 au lait"[..], "caf? au lait"),
            (b"\xff\xfe", "??"),
            (b"cut off \xe2\x82", "cut off ??"),
            ("né".as_bytes(), "né"),
            (b"", ""),
        ] {
            let mut text = broken.to_vec();
            assert_eq!(mend_text(&mut text), broken != whole.as_bytes());
            assert_eq!(text, whole.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_text_becomes_utf_8_and_keeps_its_length(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut text = bytes.clone();
            mend_text(&mut text);
            prop_assert_eq!(text.len(), bytes.len());
            prop_assert!(std::str::from_utf8(&text).is_ok());
        }

        #[test]
        fn no_bytes_make_the_walk_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let mut message = bytes.clone();
            if repair(&mut message) == 0 {
                prop_assert_eq!(message, bytes);
            }
        }
    }
}
