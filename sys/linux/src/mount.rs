//! Attributes of mounts; the rest of the mount interface is in rustix.
//!
//! Sources: mount_setattr(2), open_tree(2).

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// What a mount forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Writing fails with `EROFS`.
    pub read_only: bool,
    /// Device nodes cannot be opened.
    pub no_devices: bool,
    /// Programs cannot be executed.
    pub no_exec: bool,
}

impl Attributes {
    /// Writable, no devices, executable.
    pub const WRITABLE: Self = Self { read_only: false, no_devices: true, no_exec: false };
    /// Read-only, no devices, executable.
    pub const READ_ONLY: Self = Self { read_only: true, no_devices: true, no_exec: false };
    /// A single device node: it can be opened, and nothing else.
    pub const DEVICE: Self = Self { read_only: false, no_devices: false, no_exec: true };
}

/// Sets attributes of a mount, of the whole tree below it too if `recursive`.
/// Set-user-ID bits never count.
///
/// # Errors
///
/// The kernel's, as mount_setattr(2) lists them.
pub fn restrict(mount: BorrowedFd<'_>, attributes: Attributes, recursive: bool) -> io::Result<()> {
    let mut set = libc::MOUNT_ATTR_NOSUID;
    for (wanted, flag) in [
        (attributes.read_only, libc::MOUNT_ATTR_RDONLY),
        (attributes.no_devices, libc::MOUNT_ATTR_NODEV),
        (attributes.no_exec, libc::MOUNT_ATTR_NOEXEC),
    ] {
        if wanted {
            set |= flag;
        }
    }
    setattr(mount, set, 0, recursive)
}

/// Cuts all mounts below `mount` off from those they were copied from.
///
/// # Errors
///
/// The kernel's, as mount_setattr(2) lists them.
pub fn make_private(mount: BorrowedFd<'_>) -> io::Result<()> {
    setattr(mount, 0, libc::MS_PRIVATE, true)
}

fn setattr(mount: BorrowedFd<'_>, set: u64, propagation: u64, recursive: bool) -> io::Result<()> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a NUL-terminated string and `attr` is valid for its size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
