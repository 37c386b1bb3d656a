//! Files in a sandbox, through descriptors that its init opens.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use bytes::Bytes;
use rustix::fs::FileType;
use rustix::io::Errno;
use sandbox::{Contents, EntryKind, FileEntry, FileError, FileToPut, GuestPath, SandboxError};
use wire::jail::{Entry, FromInit, ToInit};

use super::live::{Answer, Shared};

/// Copying this much into memory costs less than handing it to another thread.
const INLINE: usize = 256 * 1024;

/// Reads a regular file of at most `max` bytes.
pub(super) async fn read(shared: &Shared, path: &GuestPath, max: u64) -> Result<Bytes, FileError> {
    let asked = path.to_string();
    let file =
        opened(path, shared.ask(|seq| ToInit::OpenRead { seq, path: asked }, Vec::new()).await?)?;
    let failed = path.clone();
    let read = move || -> Result<Bytes, FileError> {
        let mut contents = Vec::new();
        // Programs may go on writing, so the size that it had says nothing.
        file.take(max.saturating_add(1))
            .read_to_end(&mut contents)
            .map_err(|error| error_for(&failed, &error))?;
        if contents.len() as u64 > max {
            return Err(FileError::TooLarge { path: failed, max });
        }
        Ok(contents.into())
    };
    blocking(read).await
}

/// Writes a file, a directory or a link.
pub(super) async fn put(shared: &Shared, file: &FileToPut) -> Result<(), FileError> {
    let (path, mode) = (file.path.to_string(), mode_of(file));
    match &file.contents {
        Contents::Directory => {
            simple(shared, &file.path, |seq| ToInit::MakeDir { seq, path, mode }).await
        }
        Contents::Symlink(target) => {
            let target = target.clone();
            simple(shared, &file.path, |seq| ToInit::Symlink { seq, path, target }).await
        }
        Contents::Bytes(bytes) => {
            let answer =
                shared.ask(|seq| ToInit::OpenWrite { seq, path, mode }, Vec::new()).await?;
            let mut out = opened(&file.path, answer)?;
            let (bytes, failed) = (bytes.clone(), file.path.clone());
            if bytes.len() <= INLINE {
                return out.write_all(&bytes).map_err(|error| error_for(&failed, &error));
            }
            blocking(move || out.write_all(&bytes).map_err(|error| error_for(&failed, &error)))
                .await
        }
    }
}

/// Does work that may take long on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(SandboxError::Failed { what: "access a file", reason: error.to_string() }.into())
    })
}

/// A request whose answer is that it was done.
pub(super) async fn simple(
    shared: &Shared,
    path: &GuestPath,
    make: impl FnOnce(u32) -> ToInit,
) -> Result<(), FileError> {
    match shared.ask(make, Vec::new()).await?.message {
        FromInit::Done { .. } => Ok(()),
        other => Err(refused(path, &other)),
    }
}

/// A request whose answer is directory entries.
pub(super) async fn entries(
    shared: &Shared,
    path: &GuestPath,
    make: impl FnOnce(u32) -> ToInit,
) -> Result<Vec<FileEntry>, FileError> {
    match shared.ask(make, Vec::new()).await?.message {
        FromInit::Entries { entries, .. } => Ok(entries.iter().map(entry).collect()),
        other => Err(refused(path, &other)),
    }
}

fn entry(entry: &Entry) -> FileEntry {
    FileEntry {
        name: String::from_utf8_lossy(&entry.name).into_owned(),
        kind: match FileType::from_raw_mode(entry.mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Other,
        },
        size: entry.size,
        mode: entry.mode & 0o7777,
        modified: entry.modified,
        target: entry.target.as_ref().map(|target| String::from_utf8_lossy(target).into_owned()),
    }
}

/// The file that came with an answer, checked again on this side: a pipe or a
/// device would block, and init is not believed.
fn opened(path: &GuestPath, mut answer: Answer) -> Result<File, FileError> {
    match answer.fds.pop() {
        Some(fd) if matches!(answer.message, FromInit::Done { .. }) => {
            if is_regular(&fd) {
                Ok(File::from(fd))
            } else {
                Err(FileError::WrongKind { path: path.clone(), wanted: "regular file" })
            }
        }
        _ => Err(refused(path, &answer.message)),
    }
}

fn is_regular(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn refused(path: &GuestPath, message: &FromInit) -> FileError {
    match message {
        FromInit::Refused { errno: 0, what, .. } => FileError::WrongKind {
            path: path.clone(),
            wanted: if what.starts_with("directory") {
                "directory with at most 100,000 entries"
            } else {
                "regular file"
            },
        },
        FromInit::Refused { errno, .. } => error_for(path, &io::Error::from_raw_os_error(*errno)),
        _ => SandboxError::Failed { what: "access a file", reason: "unexpected answer".into() }
            .into(),
    }
}

fn error_for(path: &GuestPath, error: &io::Error) -> FileError {
    let path = path.clone();
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => FileError::NotFound(path),
        Some(Errno::NOTDIR) => FileError::WrongKind { path, wanted: "directory" },
        // Opening a pipe for writing without waiting gives ENXIO.
        Some(Errno::ISDIR | Errno::NXIO) => FileError::WrongKind { path, wanted: "regular file" },
        Some(Errno::EXIST) => FileError::Exists(path),
        Some(Errno::NOSPC) => FileError::DiskFull(path),
        _ => FileError::Refused { path, reason: error.to_string() },
    }
}

/// What a directory in a [`FileToPut`] is given when it names none.
fn mode_of(file: &FileToPut) -> u32 {
    match (&file.contents, file.mode) {
        (Contents::Directory, 0) => 0o755,
        (_, mode) => mode,
    }
}
