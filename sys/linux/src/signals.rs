//! Signal dispositions, masks and signalfd.
//!
//! Sources: sigaction(2), sigprocmask(2), signalfd(2), signal(7).

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

fn set_of(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: `sigset_t` is plain data for which all zeroes is valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for &signal in signals {
        // SAFETY: `set` is a valid set; an unknown signal is an error, no fault.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

fn set_mask(how: i32, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` is valid for reading and the old mask is not asked for.
    if unsafe { libc::sigprocmask(how, set, std::ptr::null_mut()) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A descriptor that becomes readable when a child has changed state. `SIGCHLD`
/// is blocked from then on; [`reset`] undoes that in a copied process.
#[derive(Debug)]
pub struct ChildSignals(OwnedFd);

impl ChildSignals {
    /// Blocks `SIGCHLD` and makes the descriptor.
    ///
    /// # Errors
    ///
    /// The kernel's, as signalfd(2) lists them.
    pub fn new() -> io::Result<Self> {
        let set = set_of(&[libc::SIGCHLD]);
        set_mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: `set` is valid for reading.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel returned a new descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Forgets the signals that have arrived.
    pub fn drain(&self) {
        let mut buffer = [0_u8; size_of::<libc::signalfd_siginfo>() * 8];
        loop {
            // SAFETY: the buffer is valid for writing its length.
            let n =
                unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            if n <= 0 {
                return;
            }
        }
    }
}

impl std::os::fd::AsFd for ChildSignals {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Gives every signal its default action and unblocks all, as a program expects
/// to be started.
///
/// # Errors
///
/// The kernel's, as sigprocmask(2) lists them.
pub fn reset() -> io::Result<()> {
    for signal in 1..=64 {
        // SAFETY: the default action runs no code of this process. SIGKILL,
        // SIGSTOP and the two that the C library keeps are refused: no matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    set_mask(libc::SIG_SETMASK, &set_of(&[]))
}

/// Gives `signal` its default action.
pub fn set_default(signal: i32) {
    // SAFETY: the default action runs no code of this process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Ignores `signal`.
pub fn ignore(signal: i32) {
    // SAFETY: ignoring a signal runs no code of this process.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
