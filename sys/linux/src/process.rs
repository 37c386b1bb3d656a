//! Making, becoming and reaping processes.
//!
//! Sources: clone(2) (`clone3`), fork(2), execve(2), wait4(2), close_range(2),
//! unshare(2), kill(2).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

/// New user, mount, pid, network, IPC and UTS namespaces, for
/// [`clone_into`]. The cgroup namespace is made later, inside the cgroup.
pub const NEW_NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// Which of the two processes the caller is, after a call that made one.
#[derive(Debug)]
pub enum Forked<T> {
    /// The new process.
    Child,
    /// The old process, and what it knows of the new one.
    Parent(T),
}

/// A new process as its parent sees it.
#[derive(Debug)]
pub struct Child {
    /// Its process id.
    pub pid: i32,
    /// A descriptor that names it for as long as it is held.
    pub pidfd: OwnedFd,
}

/// The number of threads in this process.
///
/// # Errors
///
/// If `/proc` cannot be read.
pub fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Refuses to copy a process with several threads: in the copy only one goes
/// on, and a lock that another held would stay locked for ever.
fn require_one_thread() -> io::Result<()> {
    match thread_count()? {
        1 => Ok(()),
        n => Err(io::Error::other(format!("a process with {n} threads cannot be copied safely"))),
    }
}

/// Proof that this process had one thread, so that it can be copied safely.
/// Who holds it must start no thread.
#[derive(Clone, Copy, Debug)]
pub struct SingleThreaded(());

impl SingleThreaded {
    /// Checks that this process has one thread.
    ///
    /// # Errors
    ///
    /// If it has several, or `/proc` cannot be read.
    pub fn check() -> io::Result<Self> {
        require_one_thread().map(|()| Self(()))
    }
}

/// Makes a copy of this process in namespaces of its own; `flags` are
/// `CLONE_NEW*` bits. With `cgroup`, a cgroup v2 directory, it starts in there.
///
/// # Errors
///
/// The kernel's, as clone(2) lists them.
pub fn clone_into(
    _proof: SingleThreaded,
    flags: i32,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Forked<Child>> {
    let mut pidfd: RawFd = -1;
    // SAFETY: `clone_args` is plain data for which all zeroes is valid.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from((flags | libc::CLONE_PIDFD).cast_unsigned());
    args.pidfd = (&raw mut pidfd).addr() as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    if let Some(cgroup) = cgroup {
        // The constant is wider than an i32.
        args.flags |= 0x2_0000_0000;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY:
    // 1. `args` lives across the call and its size is given; without `CLONE_VM`
    //    the child gets a copy of memory and so a stack of its own.
    // 2. `_proof` says that this process has one thread, so no lock is held by a
    //    thread that the child lacks.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone3, &raw mut args, std::mem::size_of::<libc::clone_args>())
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => {
            // SAFETY: the kernel stored a new descriptor there that nobody else owns.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Forked::Parent(Child { pid: i32::try_from(pid).unwrap_or(-1), pidfd }))
        }
    }
}

/// Makes a copy of this process. The parent learns its process id.
///
/// # Errors
///
/// The kernel's, as fork(2) lists them.
pub fn fork(_proof: SingleThreaded) -> io::Result<Forked<i32>> {
    // SAFETY: `_proof` says that this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// Becomes the program at `path`. Returns only if it could not.
#[must_use]
pub fn execve(path: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: all three are NUL-terminated, the arrays end with a null pointer,
    // and what they point to outlives the call.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends this process at once: no destructor, no exit handler, no buffer is
/// flushed. For a copied process, which must not do its parent's work twice.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no precondition.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from `first` up, but for `keep`.
///
/// The caller must not use what it closed: dropping an [`OwnedFd`] of them
/// later would close another's. It is for a process that is about to forget
/// all it had.
///
/// # Errors
///
/// The kernel's, as close_range(2) lists them.
pub fn close_all_but(first: RawFd, keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<RawFd> = keep.iter().copied().filter(|fd| *fd >= first).collect();
    keep.sort_unstable();
    let mut from = first.cast_unsigned();
    for fd in keep {
        let fd = fd.cast_unsigned();
        if fd > from {
            close_range(from, fd - 1)?;
        }
        from = fd + 1;
    }
    close_range(from, libc::c_uint::MAX)
}

fn close_range(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: closing descriptors touches no memory. That nobody uses them
    // afterwards is what the callers' contract says.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A child that has ended, as [`reap`] found it.
#[derive(Clone, Copy, Debug)]
pub struct Reaped {
    /// Its process id.
    pub pid: i32,
    /// Its wait status.
    pub status: i32,
    /// Processor time that it and what it had reaped used.
    pub cpu: Duration,
    /// The most memory it or one that it had reaped held, in bytes.
    pub peak: u64,
}

/// Reaps child `pid`, or any child for -1, if one has ended; does not wait.
///
/// A child may have made this process its tracer (`PTRACE_TRACEME`). Then it
/// stops here at every signal, and is let go: this process traces nobody.
///
/// # Errors
///
/// `ECHILD` if there is no such child.
pub fn reap(pid: i32) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data for which all zeroes is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        let flags = libc::WNOHANG | libc::__WALL;
        // SAFETY: both pointers are valid for writing across the call.
        match unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) } {
            -1 => return Err(io::Error::last_os_error()),
            0 => return Ok(None),
            stopped if libc::WIFSTOPPED(status) => let_go(stopped, libc::WSTOPSIG(status)),
            pid => {
                return Ok(Some(Reaped {
                    pid,
                    status,
                    cpu: time(usage.ru_utime) + time(usage.ru_stime),
                    peak: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
                }));
            }
        }
    }
}

/// Stops tracing a stopped child; it gets the signal that it stopped at. That
/// of a successful execve(2) is the tracer's only (ptrace(2)).
fn let_go(pid: i32, signal: i32) {
    let signal = if signal == libc::SIGTRAP { 0 } else { signal };
    // SAFETY: detaching writes no memory of either process. A child that is gone
    // meanwhile is an error that nobody needs.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, pid, 0, signal) };
}

fn time(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.try_into().unwrap_or(0))
        + Duration::from_micros(time.tv_usec.try_into().unwrap_or(0))
}

/// How a wait status says that a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// Reads a wait status; wait(2).
#[must_use]
pub fn ending(status: i32) -> Ending {
    if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Code(libc::WEXITSTATUS(status))
    }
}

/// Sends a signal to a process, to a group (negative), or to every process
/// that may be signalled (-1).
///
/// # Errors
///
/// The kernel's, as kill(2) lists them.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: sending a signal touches no memory of this process.
    if unsafe { libc::kill(pid, signal) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives this process a cgroup namespace rooted at the cgroup it is in.
///
/// # Errors
///
/// The kernel's, as unshare(2) lists them.
pub fn unshare_cgroup_namespace() -> io::Result<()> {
    // SAFETY: a cgroup namespace changes how paths in /proc are shown, nothing
    // that Rust relies on.
    if unsafe { libc::unshare(libc::CLONE_NEWCGROUP) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Tries to make a user namespace and says how that ended; to verify that it
/// is refused. If it is not, this process is in a new one.
///
/// # Errors
///
/// The refusal.
pub fn try_user_namespace() -> io::Result<()> {
    // SAFETY: as for any namespace, no memory is touched.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes a system call with no arguments but zeroes and says how it ended; to
/// verify that a call is refused.
///
/// # Errors
///
/// The refusal.
///
/// # Panics
///
/// If `number` is not among the calls that do nothing when all is zero.
pub fn try_harmless_call(number: i64) -> io::Result<i64> {
    const HARMLESS: [i64; 6] = [
        libc::SYS_io_uring_setup,
        libc::SYS_bpf,
        libc::SYS_keyctl,
        libc::SYS_userfaultfd,
        libc::SYS_perf_event_open,
        9999,
    ];
    assert!(HARMLESS.contains(&number), "call {number} is not known to be harmless");
    // SAFETY: with null pointers and zero sizes these calls fail before they
    // read or write memory, or (`userfaultfd`, `keyctl`) touch none.
    match unsafe { libc::syscall(number, 0, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        assert_eq!(ending(0), Ending::Code(0));
        assert_eq!(ending(3 << 8), Ending::Code(3));
        assert_eq!(ending(9), Ending::Signal(9));
        assert_eq!(ending(11 | 0x80), Ending::Signal(11), "with a core dump");
    }

    #[test]
    fn a_process_with_threads_is_not_copied() {
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || rx.recv());
        assert!(SingleThreaded::check().is_err());
        drop(tx);
        let _ = thread.join();
    }
}
