//! Frames with descriptors over a stream socket.
//!
//! Sources: unix(7), `SCM_RIGHTS`; cmsg(3).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors that travel with one message.
pub const MAX_FDS: usize = 4;

/// Sends bytes with descriptors attached to the first of them; returns how many
/// bytes were sent.
///
/// # Errors
///
/// The kernel's, as sendmsg(2) lists them; `EINVAL` for more than [`MAX_FDS`].
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(sent)
}

/// Receives bytes, and appends descriptors that came with them, closed on exec.
/// Returns how many bytes; 0 is the end.
///
/// # Errors
///
/// The kernel's, as recvmsg(2) lists them.
pub fn receive(socket: impl AsFd, buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    Ok(received.bytes)
}

/// Sends all of a frame, waiting as needed.
///
/// # Errors
///
/// As [`send`]. After an error the stream is of no more use.
pub fn send_all(socket: impl AsFd, frame: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut sent = 0;
    while sent < frame.len() {
        let fds = if sent == 0 { fds } else { &[] };
        match send(&socket, &frame[sent..], fds) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills the whole buffer, waiting as needed. Returns false if the stream ended
/// before its first byte.
///
/// # Errors
///
/// As [`receive`]; `UnexpectedEof` if it ended within the buffer.
pub fn receive_exact(
    socket: impl AsFd,
    buffer: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match receive(&socket, &mut buffer[filled..], fds) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_travel_with_the_frame() {
        let (left, right) = UnixStream::pair().unwrap();
        let (mut from, to) = std::io::pipe().unwrap();
        send_all(&left, b"hello", &[to.as_fd()]).unwrap();
        drop(to);
        drop(left);

        let mut fds = Vec::new();
        let mut buffer = [0; 5];
        assert!(receive_exact(&right, &mut buffer, &mut fds).unwrap());
        assert_eq!((&buffer, fds.len()), (b"hello", 1));
        let mut to = std::fs::File::from(fds.remove(0));
        to.write_all(b"through").unwrap();
        drop(to);
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(!receive_exact(&right, &mut buffer, &mut fds).unwrap(), "the end is seen");
    }
}
