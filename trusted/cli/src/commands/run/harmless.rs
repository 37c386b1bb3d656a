//! Output of an untrusted program, made harmless for the user's terminal.
//!
//! A terminal obeys what is written to it: it can be made to hide text, to
//! change its title, to fill the clipboard, to answer as if the user typed. A
//! program that was given no terminal has no reason to write such orders.

/// Makes control characters visible, but for those that only lay out text.
/// Works on chunks that may split a character.
#[derive(Debug, Default)]
pub(super) struct Harmless {
    /// The last byte was the first of U+0080 to U+00BF in UTF-8.
    after_c2: bool,
}

impl Harmless {
    /// The next chunk, with its control characters made visible.
    pub(super) fn pass(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(chunk.len());
        for &byte in chunk {
            if std::mem::take(&mut self.after_c2) {
                // U+0080 to U+009F are orders too: U+009B begins what ESC [ does.
                match byte {
                    0x80..=0x9f => shown.extend_from_slice(format!("\\u{{{byte:x}}}").as_bytes()),
                    _ => shown.push(0xc2),
                }
                if matches!(byte, 0x80..=0x9f) {
                    continue;
                }
            }
            match byte {
                b'\n' | b'\r' | b'\t' | b'\x08' | 0x20..=0x7e => shown.push(byte),
                0xc2 => self.after_c2 = true,
                0x80.. => shown.push(byte),
                _ => shown.extend_from_slice(format!("\\u{{{byte:x}}}").as_bytes()),
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_shown_and_text_is_left() {
        let cases: [(&[&[u8]], &str); 7] = [
            (&[b"plain\ttext\r\n"], "plain\ttext\r\n"),
            (&["ä €\u{a0}😀".as_bytes()], "ä €\u{a0}😀"),
            (&[b"\x1b]0;title\x07"], "\\u{1b}]0;title\\u{7}"),
            (&["\u{9b}2J".as_bytes()], "\\u{9b}2J"),
            (&[b"a\xc2", b"\x9b2J"], "a\\u{9b}2J"),
            (&[b"\xc2", b"\xa0"], "\u{a0}"),
            (&[b"\x00\x7f"], "\\u{0}\\u{7f}"),
        ];
        for (chunks, want) in cases {
            let mut filter = Harmless::default();
            let shown: Vec<u8> = chunks.iter().flat_map(|chunk| filter.pass(chunk)).collect();
            assert_eq!(String::from_utf8(shown).unwrap(), want, "{chunks:?}");
        }
    }
}
