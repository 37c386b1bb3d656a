//! Text out of bytes that come in pieces.

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Whole characters.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
}

/// Decodes a stream chunk by chunk. A character that two chunks share is given
/// out whole, with the second; bytes that are not UTF-8 are given out as they
/// are. The pieces together are the stream, byte for byte.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The beginning of a character: at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    /// Takes the next chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Piece> {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(chunk);
        let mut pieces = Vec::new();
        if let Err(error) = std::str::from_utf8(&bytes) {
            let rest = bytes.split_off(error.valid_up_to());
            if error.error_len().is_none() {
                self.begun = rest;
            } else {
                // The rest goes out in one piece, though some of it may be
                // text: a binary stream would else become a piece a byte. The
                // beginning of a character at its end is kept back all the same.
                let end = begun_character(&rest);
                self.begun = rest[end..].to_vec();
                pieces.push(Piece::Bytes(rest[..end].to_vec()));
            }
        }
        if !bytes.is_empty() {
            // All of it is valid now, so nothing is replaced.
            let text = String::from_utf8_lossy(&bytes).into_owned();
            pieces.insert(0, Piece::Text(text));
        }
        pieces
    }

    /// Ends the stream: what was kept back is no character.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then_some(Piece::Bytes(begun))
    }
}

/// Where a character begins that `bytes` end in the middle of; else their end.
fn begun_character(bytes: &[u8]) -> usize {
    // Never the whole of `bytes`: these begin with what is no character.
    (bytes.len().saturating_sub(3).max(1)..bytes.len())
        .find(|start| {
            std::str::from_utf8(&bytes[*start..])
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    fn bytes(bytes: &[u8]) -> Piece {
        Piece::Bytes(bytes.into())
    }

    #[test]
    fn pieces() {
        type Chunks = &'static [&'static [u8]];
        let cases: [(&str, Chunks, Vec<Piece>); 8] = [
            ("plain", &[b"ab", b"c"], vec![text("ab"), text("c")]),
            ("split", &[b"\xe2\x82", b"\xac!"], vec![text("€!")]),
            ("a byte at a time", &[b"\xf0", b"\x9f", b"\x98", b"\x80"], vec![text("😀")]),
            ("text, then split", &[b"a\xc3", b"\xa9"], vec![text("a"), text("é")]),
            ("binary", &[b"a\xff\xfeb"], vec![text("a"), bytes(b"\xff\xfeb")]),
            ("binary, then split", &[b"\xff\xe2\x82", b"\xac"], vec![bytes(b"\xff"), text("€")]),
            ("never ended", &[b"a\xe2\x82"], vec![text("a"), bytes(b"\xe2\x82")]),
            ("broken off", &[b"\xe2\x82", b"a"], vec![bytes(b"\xe2\x82a")]),
        ];
        for (name, chunks, want) in cases {
            let mut decoder = Decoder::default();
            let mut got: Vec<Piece> = chunks.iter().flat_map(|c| decoder.push(c)).collect();
            got.extend(decoder.finish());
            assert_eq!(got, want, "{name}");
        }
    }

    /// Whatever the chunks, nothing is lost and no text has a replacement.
    #[test]
    fn nothing_is_lost() {
        let stream: Vec<u8> =
            [&b"a\xff\xc3\xa9"[..], "€😀x".as_bytes(), b"\xe2\x82\xf0\x9f\x80"].concat();
        for size in 1..=stream.len() {
            let mut decoder = Decoder::default();
            let mut got = Vec::new();
            let mut pieces: Vec<Piece> =
                stream.chunks(size).flat_map(|c| decoder.push(c)).collect();
            pieces.extend(decoder.finish());
            for piece in pieces {
                match piece {
                    Piece::Text(text) => got.extend_from_slice(text.as_bytes()),
                    Piece::Bytes(bytes) => got.extend_from_slice(&bytes),
                }
            }
            assert_eq!(got, stream, "chunks of {size}");
        }
    }
}
