//! Messages between Casemate's tiers: what they say, and how they are framed.
//!
//! Both ends of each connection are the same binary, so the encoding has no
//! version negotiation: [`VERSION`] heads every frame and a mismatch is an error.
//! A frame is `version: u8`, `length: u32` little-endian, then a postcard body.
//! Descriptors travel beside a frame, attached to its first byte.

#![forbid(unsafe_code)]

pub mod jail;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of all messages here.
pub const VERSION: u8 = 1;

/// The size of a frame's head in bytes.
pub const HEAD_LEN: usize = 5;

/// The largest body in bytes. A directory of 100,000 entries fits.
pub const MAX_BODY: usize = 32 << 20;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The other end speaks another version.
    #[error("message version {0}, expected {VERSION}")]
    Version(u8),
    /// The body is larger than any message is.
    #[error("message of {0} bytes; at most {MAX_BODY} are taken")]
    TooLarge(usize),
    /// The body is not what it should be.
    #[error("malformed message: {0}")]
    Malformed(String),
}

/// Encodes a message as one frame.
///
/// # Errors
///
/// [`WireError::TooLarge`].
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let frame = postcard::to_extend(message, vec![VERSION, 0, 0, 0, 0])
        .map_err(|error| WireError::Malformed(error.to_string()))?;
    let len = frame.len() - HEAD_LEN;
    let mut frame = frame;
    match u32::try_from(len) {
        Ok(short) if len <= MAX_BODY => frame[1..HEAD_LEN].copy_from_slice(&short.to_le_bytes()),
        _ => return Err(WireError::TooLarge(len)),
    }
    Ok(frame)
}

/// Reads a frame's head and returns the length of its body.
///
/// # Errors
///
/// [`WireError::Version`] or [`WireError::TooLarge`].
pub fn body_len(head: [u8; HEAD_LEN]) -> Result<usize, WireError> {
    let [version, length @ ..] = head;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    let len = u32::from_le_bytes(length) as usize;
    if len > MAX_BODY {
        return Err(WireError::TooLarge(len));
    }
    Ok(len)
}

/// Decodes a frame's body.
///
/// # Errors
///
/// [`WireError::Malformed`], also when bytes are left over.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(WireError::Malformed(format!("{} bytes left over", rest.len()))),
        Err(error) => Err(WireError::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::jail::{FromInit, ToInit};
    use super::*;

    #[test]
    fn frames_round_trip() {
        let message = ToInit::Signal { seq: 7, pid: 12, signal: 15 };
        let frame = encode(&message).unwrap();
        let (head, body) = frame.split_at(HEAD_LEN);
        assert_eq!(body_len(head.try_into().unwrap()), Ok(body.len()));
        assert_eq!(decode::<ToInit>(body), Ok(message));
    }

    #[test]
    fn bad_frames_are_refused() {
        assert_eq!(body_len([9, 0, 0, 0, 0]), Err(WireError::Version(9)));
        assert_eq!(
            body_len([VERSION, 255, 255, 255, 255]),
            Err(WireError::TooLarge(u32::MAX as usize))
        );
        let mut body = encode(&ToInit::Pause { seq: 1 }).unwrap().split_off(HEAD_LEN);
        body.push(0);
        assert!(decode::<ToInit>(&body).is_err(), "left-over bytes");
    }

    /// Whatever arrives, decoding ends in a value or an error.
    #[test]
    fn decoding_any_bytes_is_safe() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for len in 0..512 {
            let body: Vec<u8> = (0..len % 64)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state.to_le_bytes()[0]
                })
                .collect();
            let _ = decode::<ToInit>(&body);
            let _ = decode::<FromInit>(&body);
        }
    }
}
