//! Frames of `wire` over a unix stream socket, waiting in the calling thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// One end of a connection, for the single-threaded launcher and init.
pub(super) struct Link(OwnedFd);

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    pub(super) fn send<T: Serialize>(&self, message: &T, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let frame = wire::encode(message).map_err(io::Error::other)?;
        linux::scm::send_all(&self.0, &frame, fds)
    }

    /// The next message with its descriptors; `None` at the end.
    pub(super) fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut fds = Vec::new();
        let mut head = [0; wire::HEAD_LEN];
        if !linux::scm::receive_exact(&self.0, &mut head, &mut fds)? {
            return Ok(None);
        }
        let mut body = vec![0; wire::body_len(head).map_err(io::Error::other)?];
        if !linux::scm::receive_exact(&self.0, &mut body, &mut fds)? && !body.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((wire::decode(&body).map_err(io::Error::other)?, fds)))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
