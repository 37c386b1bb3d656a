//! Process 1 of a sandbox: starts programs, reaps, opens files.
//!
//! Init has given up everything that its programs lack too, so a path from the
//! caller resolves here as it would for a program: what a link inside points to
//! is inside. Descriptors, not paths, go out.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use linux::process::{Forked, SingleThreaded};
use linux::signals::ChildSignals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use wire::jail::{Entry, FromInit, StartStep, ToInit};

use super::link::Link;

/// The most entries that one listing returns.
const MAX_ENTRIES: usize = 100_000;

/// Serves requests until the supervisor hangs up. Ending init ends all.
pub(super) fn serve(link: &Link, children: &ChildSignals, proof: SingleThreaded) -> io::Result<()> {
    let mut init = Init { link, proof, cpu_us: 0, peak: 0 };
    loop {
        let mut fds = [PollFd::new(link, PollFlags::IN), PollFd::new(children, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let asked = !fds[0].revents().is_empty();
        children.drain();
        init.reap()?;
        if asked {
            let Some((request, fds)) = link.receive::<ToInit>()? else { return Ok(()) };
            init.handle(request, fds)?;
        }
    }
}

struct Init<'a> {
    link: &'a Link,
    proof: SingleThreaded,
    cpu_us: u64,
    peak: u64,
}

/// Why a request was refused.
enum Refusal {
    Errno(rustix::io::Errno),
    What(&'static str),
}

impl From<rustix::io::Errno> for Refusal {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Errno(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
    }
}

impl Init<'_> {
    /// Reaps every child that has ended: started programs, and orphans.
    fn reap(&mut self) -> io::Result<()> {
        while let Ok(Some(ended)) = linux::process::reap(-1) {
            self.cpu_us += u64::try_from(ended.cpu.as_micros()).unwrap_or(0);
            self.peak = self.peak.max(ended.peak);
            let message = FromInit::Exited {
                pid: ended.pid.cast_unsigned(),
                status: ended.status,
                cpu_us: self.cpu_us,
                peak: self.peak,
            };
            self.link.send(&message, &[])?;
        }
        Ok(())
    }

    fn handle(&mut self, request: ToInit, fds: Vec<OwnedFd>) -> io::Result<()> {
        let done = |result: Result<(), Refusal>| result.map(|()| None);
        let (seq, result) = match request {
            ToInit::Start { seq, argv, env, cwd, pty } => {
                return self.start(seq, &argv, &env, &cwd, pty, &fds);
            }
            ToInit::Signal { seq, pid, signal } => (seq, done(signal_one(pid, signal))),
            ToInit::Pause { seq } => (seq, done(signal_all(rustix::process::Signal::STOP))),
            ToInit::Resume { seq } => (seq, done(signal_all(rustix::process::Signal::CONT))),
            ToInit::OpenRead { seq, path } => (seq, open_read(&path).map(Some)),
            ToInit::OpenWrite { seq, path, mode } => (seq, open_write(&path, mode).map(Some)),
            ToInit::MakeDir { seq, path, mode } => (seq, done(make_dir(&path, mode))),
            ToInit::Symlink { seq, path, target } => (seq, done(symlink(&path, &target))),
            ToInit::Remove { seq, path } => (seq, done(remove(&path))),
            ToInit::Rename { seq, from, to } => {
                (seq, done(fs::rename(from, to).map_err(Into::into)))
            }
            ToInit::List { seq, path } => return self.answer_entries(seq, list(&path)),
            ToInit::Stat { seq, path } => {
                return self
                    .answer_entries(seq, describe(Path::new(&path)).map(|entry| vec![entry]));
            }
        };
        match result {
            Ok(fd) => {
                let fds: Vec<BorrowedFd<'_>> = fd.iter().map(OwnedFd::as_fd).collect();
                self.link.send(&FromInit::Done { seq }, &fds)
            }
            Err(refusal) => self.refuse(seq, refusal),
        }
    }

    fn answer_entries(&self, seq: u32, result: Result<Vec<Entry>, Refusal>) -> io::Result<()> {
        match result {
            Ok(entries) => self.link.send(&FromInit::Entries { seq, entries }, &[]),
            Err(refusal) => self.refuse(seq, refusal),
        }
    }

    fn refuse(&self, seq: u32, refusal: Refusal) -> io::Result<()> {
        let (errno, what) = match refusal {
            Refusal::Errno(errno) => (errno.raw_os_error(), String::new()),
            Refusal::What(what) => (0, what.to_owned()),
        };
        self.link.send(&FromInit::Refused { seq, errno, what }, &[])
    }

    fn start(
        &mut self,
        seq: u32,
        argv: &[String],
        env: &[String],
        cwd: &str,
        pty: Option<(u16, u16)>,
        fds: &[OwnedFd],
    ) -> io::Result<()> {
        match self.try_start(argv, env, cwd, pty, fds) {
            Ok((pid, master)) => {
                let fds: Vec<BorrowedFd<'_>> = master.iter().map(OwnedFd::as_fd).collect();
                self.link.send(&FromInit::Started { seq, pid: pid.cast_unsigned() }, &fds)
            }
            Err((step, error)) => {
                let errno = error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error());
                self.link.send(&FromInit::NotStarted { seq, step, errno }, &[])
            }
        }
    }

    fn try_start(
        &self,
        argv: &[String],
        env: &[String],
        cwd: &str,
        pty: Option<(u16, u16)>,
        fds: &[OwnedFd],
    ) -> Result<(i32, Option<OwnedFd>), (StartStep, io::Error)> {
        let process = |error: io::Error| (StartStep::Process, error);
        let strings = |list: &[String]| -> io::Result<Vec<CString>> {
            list.iter().map(|text| Ok(CString::new(text.as_bytes())?)).collect()
        };
        let (argv, env) = (strings(argv).map_err(process)?, strings(env).map_err(process)?);
        let terminal = match pty {
            Some(size) => Some(open_terminal(size).map_err(process)?),
            None if fds.len() == 3 => None,
            None => return Err(process(io::ErrorKind::InvalidInput.into())),
        };
        // Closed by a successful exec; else it carries what failed.
        let (mut failed, report) = io::pipe().map_err(process)?;
        match linux::process::fork(self.proof).map_err(process)? {
            Forked::Child => {
                let stdio: Vec<BorrowedFd<'_>> = match &terminal {
                    Some((_, slave)) => vec![slave.as_fd(); 3],
                    None => fds.iter().map(OwnedFd::as_fd).collect(),
                };
                let (step, error) = become_program(
                    &argv,
                    &env,
                    cwd,
                    &stdio,
                    terminal.is_some(),
                    report.as_raw_fd(),
                );
                let errno = error.raw_os_error().unwrap_or(5);
                let mut message = vec![match step {
                    StartStep::Process => 0,
                    StartStep::Cwd => 1,
                    StartStep::Exec => 2_u8,
                }];
                message.extend(errno.to_le_bytes());
                let _ = io::Write::write_all(&mut &report, &message);
                linux::process::exit_now(127);
            }
            Forked::Parent(pid) => {
                drop(report);
                let mut message = Vec::new();
                io::Read::read_to_end(&mut failed, &mut message).map_err(process)?;
                match *message.as_slice() {
                    [] => Ok((pid, terminal.map(|(master, _)| master))),
                    [step, a, b, c, d] => {
                        let step = match step {
                            1 => StartStep::Cwd,
                            2 => StartStep::Exec,
                            _ => StartStep::Process,
                        };
                        Err((step, io::Error::from_raw_os_error(i32::from_le_bytes([a, b, c, d]))))
                    }
                    _ => Err(process(io::ErrorKind::InvalidData.into())),
                }
            }
        }
    }
}

/// In the new process: takes its place and executes. Returns what failed.
fn become_program(
    argv: &[CString],
    env: &[CString],
    cwd: &str,
    stdio: &[BorrowedFd<'_>],
    terminal: bool,
    report: i32,
) -> (StartStep, io::Error) {
    let prepared = (|| -> io::Result<()> {
        linux::signals::reset()?;
        rustix::process::setsid()?;
        // A descriptor below 3 would be overwritten before it is used.
        let stdio: Vec<OwnedFd> = stdio
            .iter()
            .map(|fd| Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?))
            .collect::<io::Result<_>>()?;
        rustix::stdio::dup2_stdin(&stdio[0])?;
        rustix::stdio::dup2_stdout(&stdio[1])?;
        rustix::stdio::dup2_stderr(&stdio[2])?;
        if terminal {
            rustix::process::ioctl_tiocsctty(&stdio[0])?;
        }
        rustix::process::umask(Mode::from_raw_mode(0o022));
        // The copies are closed here, so they must not be closed by a drop.
        std::mem::forget(stdio);
        linux::process::close_all_but(3, &[report])
    })();
    if let Err(error) = prepared {
        return (StartStep::Process, error);
    }
    if let Err(error) = rustix::process::chdir(cwd) {
        return (StartStep::Cwd, error.into());
    }
    (StartStep::Exec, exec(argv, env))
}

/// Executes, looking a plain name up in `PATH` as execvp(3) does.
fn exec(argv: &[CString], env: &[CString]) -> io::Error {
    let Some(program) = argv.first() else { return io::ErrorKind::InvalidInput.into() };
    if program.as_bytes().contains(&b'/') {
        return linux::process::execve(program, argv, env);
    }
    let path = env
        .iter()
        .find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/bin:/bin");
    let mut worst = io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error());
    for directory in path.split(|byte| *byte == b':').filter(|directory| !directory.is_empty()) {
        let full = [directory, b"/", program.as_bytes()].concat();
        let Ok(full) = CString::new(full) else { continue };
        let error = linux::process::execve(&full, argv, env);
        match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
            Some(rustix::io::Errno::ACCESS) => worst = error,
            _ => return error,
        }
    }
    worst
}

/// Master and slave of a new terminal.
fn open_terminal((rows, cols): (u16, u16)) -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::openat(CWD, name.as_c_str(), flags, Mode::empty())?;
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&master, size)?;
    Ok((master, slave))
}

fn signal_one(pid: u32, signal: i32) -> Result<(), Refusal> {
    // Neither init itself nor a group, which 0 and negative numbers mean.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1).ok_or(rustix::io::Errno::SRCH)?;
    Ok(linux::process::kill(pid, signal)?)
}

fn signal_all(signal: rustix::process::Signal) -> Result<(), Refusal> {
    match linux::process::kill(-1, signal.as_raw()) {
        Ok(()) => Ok(()),
        // Nobody is there to be stopped.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens without blocking on a pipe and without following a link of `/proc`'s
/// that leads to another file than its text says.
fn open(path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Refusal> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_MAGICLINKS)?;
    let stat = rustix::fs::fstat(&fd)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(rustix::io::Errno::ISDIR.into()),
        _ => return Err(Refusal::What("regular file")),
    }
    // What is regular in /proc acts on this process when it is read or written.
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    if rustix::fs::fstatfs(&fd)?.f_type == PROC_SUPER_MAGIC {
        return Err(Refusal::What("regular file"));
    }
    Ok(fd)
}

fn open_read(path: &str) -> Result<OwnedFd, Refusal> {
    open(path, OFlags::RDONLY, Mode::empty())
}

fn open_write(path: &str, mode: u32) -> Result<OwnedFd, Refusal> {
    make_parents(path)?;
    let bits = Mode::from_raw_mode(mode & 0o777);
    let fd = open(path, OFlags::WRONLY | OFlags::CREATE, bits)?;
    rustix::fs::ftruncate(&fd, 0)?;
    rustix::fs::fchmod(&fd, bits)?;
    Ok(fd)
}

fn make_parents(path: &str) -> Result<(), Refusal> {
    if let Some(parent) = Path::new(path).parent()
        && !parent.is_dir()
    {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    Ok(())
}

fn make_dir(path: &str, mode: u32) -> Result<(), Refusal> {
    make_parents(path)?;
    match fs::DirBuilder::new().mode(mode & 0o777).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Path::new(path).is_dir() => {
            Ok(())
        }
        other => Ok(other?),
    }
}

fn symlink(path: &str, target: &str) -> Result<(), Refusal> {
    make_parents(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_dir() => fs::remove_file(path)?,
        _ => {}
    }
    Ok(std::os::unix::fs::symlink(target, path)?)
}

fn remove(path: &str) -> Result<(), Refusal> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if found.is_dir() {
        fs::remove_dir_all(path)?
    } else {
        fs::remove_file(path)?
    }
    Ok(())
}

fn list(path: &str) -> Result<Vec<Entry>, Refusal> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        if entries.len() == MAX_ENTRIES {
            return Err(Refusal::What("directory with at most 100,000 entries"));
        }
        // An entry that went away in between is no error.
        if let Ok(entry) = describe(&entry?.path()) {
            entries.push(entry);
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn describe(path: &Path) -> Result<Entry, Refusal> {
    let found = fs::symlink_metadata(path)?;
    let target = if found.is_symlink() {
        Some(fs::read_link(path)?.as_os_str().as_bytes().to_vec())
    } else {
        None
    };
    Ok(Entry {
        name: path.file_name().map_or_else(|| b"/".to_vec(), |name| name.as_bytes().to_vec()),
        mode: found.mode(),
        size: found.size(),
        modified: found.mtime(),
        target,
    })
}

/// The two descriptors that the supervisor measures the sandbox by: its
/// `/proc`, and a directory on its writable file system.
pub(super) fn measures() -> io::Result<[File; 2]> {
    let open = |path: &str| -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    };
    Ok([open("/proc")?, open("/tmp")?])
}
