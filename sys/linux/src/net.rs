//! The loopback interface.
//!
//! Source: netdevice(7).

use std::io;
use std::os::fd::AsRawFd as _;

/// Brings the loopback interface of this network namespace up.
///
/// # Errors
///
/// The kernel's, as netdevice(7) lists them.
pub fn bring_loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: `ifreq` is plain data for which all zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    // IFF_UP is 1: it fits.
    request.ifr_ifru.ifru_flags = 1;
    // SAFETY: `request` is a valid `ifreq` with a NUL-terminated name.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
