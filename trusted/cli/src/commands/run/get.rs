//! `--get`: files and directories of a sandbox for the host.
//!
//! The place on the host comes from the user's words alone, and is opened as a
//! directory before the program starts. Whatever has a file's name there, a
//! link too, is replaced and never followed. A directory is made anew, and what
//! is in it made below its descriptor, under names that were checked; links and
//! special files stay behind.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use sandbox::{EntryKind, GuestPath, Tree};

use crate::failure::Failure;

/// How often another name is tried when a temporary one is taken.
const ATTEMPTS: u32 = 16;

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Get {
    pub(super) guest: GuestPath,
    host: PathBuf,
}

/// A place on the host where a file will be.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) guest: GuestPath,
    directory: OwnedFd,
    name: OsString,
    /// For messages.
    path: PathBuf,
}

impl Get {
    /// Reads `GUEST[:HOST]`, split at the last colon. A HOST that is a
    /// directory is copied into; without one the working directory is.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (guest, host) = text.rsplit_once(':').unwrap_or((text, ""));
        let guest = GuestPath::new(guest).map_err(|error| error.to_string())?;
        let host = if host.is_empty() { "./" } else { host };
        Ok(Self { guest, host: host.into() })
    }

    /// Finds the place on the host.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        let into_directory = ends_as_directory(&self.host) || is_directory(&self.host);
        let (directory, name) = if into_directory {
            let name = self.guest.file_name();
            check_name(name).map_err(|why| Failure::new(format!("--get {}: {why}", self.guest)))?;
            (self.host.as_path(), OsString::from(name))
        } else {
            let name = self.host.file_name().ok_or_else(|| {
                Failure::new(format!("--get: {} is no name of a file", self.host.display()))
            })?;
            let parent = self.host.parent().filter(|parent| !parent.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")), name.to_owned())
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, directory, flags, Mode::empty()).map_err(|error| {
            let shown = directory.display();
            let failure = Failure::new(format!("--get: {shown} cannot be used: {error}"));
            if error == rustix::io::Errno::NOENT {
                failure.fix(format!("mkdir -p {shown}"))
            } else {
                failure
            }
        })?;
        let path = directory.join(&name);
        Ok(Target { guest: self.guest.clone(), directory: opened, name, path })
    }
}

/// Whether a path says by itself that it is a directory. A link there is
/// followed: the user meant what it leads to.
fn ends_as_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes == b"." || bytes.ends_with(b"/.") || path.file_name().is_none()
}

/// Whether there is a directory, and not a link to one.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Checks a name that is going to be one in a directory of the host.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return Err("it has no name of a file; write GUEST:HOST".into());
    }
    if name.chars().any(char::is_control) {
        return Err("its name contains control characters; write GUEST:HOST".into());
    }
    Ok(())
}

impl Target {
    /// Where that is, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts what was collected there. Returns what stayed behind, and why.
    pub(super) fn write(&self, tree: &Tree) -> io::Result<Vec<String>> {
        let mut behind = Vec::new();
        match tree {
            Tree::File(contents) => self.write_file(contents)?,
            Tree::Directory(entries) => {
                make_directory(self.directory.as_fd(), &self.name, entries, "", &mut behind)?;
            }
            // Only inside a directory.
            Tree::Other(_) => {}
        }
        Ok(behind)
    }

    /// Puts `contents` there, whole or not at all.
    fn write_file(&self, contents: &[u8]) -> io::Result<()> {
        let there = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        match there.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => return Err(io::Error::other("a directory is in the way")),
            Ok(FileType::RegularFile | FileType::Symlink) | Err(_) => {}
            // Replacing one, in /dev say, would break what uses it.
            Ok(_) => return Err(io::Error::other("a device, pipe or socket is in the way")),
        }
        let (mut file, temporary) = self.temporary()?;
        let written = file.write_all(contents).and_then(|()| {
            Ok(rustix::fs::renameat(&self.directory, &temporary, &self.directory, &self.name)?)
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.directory, &temporary, AtFlags::empty());
        }
        written
    }

    /// Makes a file beside the target, under a name that nothing has.
    fn temporary(&self) -> io::Result<(File, String)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        // As any program makes files; the umask takes its part.
        let mode = Mode::from_raw_mode(0o666);
        let begun = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().subsec_nanos();
        for attempt in 0..ATTEMPTS {
            let name = format!(".casemate-{}-{begun}-{attempt}", std::process::id());
            match rustix::fs::openat(&self.directory, &name, flags | OFlags::CLOEXEC, mode) {
                Ok(fd) => return Ok((fd.into(), name)),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("no free name for a temporary file"))
    }
}

/// Makes a directory that was not there, and all below it. `shown` is where
/// that is, for messages.
fn make_directory(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    entries: &[(String, Tree)],
    shown: &str,
    behind: &mut Vec<String>,
) -> io::Result<()> {
    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)).map_err(|error| match error {
        Errno::EXIST => io::Error::other("it is there already; name another place, or remove it"),
        error => error.into(),
    })?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    for (name, tree) in entries {
        let shown = format!("{shown}{name}");
        if let Err(why) = check_name(name) {
            behind.push(format!("`{}`: {why}", shown.escape_debug()));
            continue;
        }
        match tree {
            Tree::File(contents) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let mode = Mode::from_raw_mode(0o666);
                let file =
                    rustix::fs::openat(&directory, name.as_str(), flags | OFlags::CLOEXEC, mode)?;
                File::from(file).write_all(contents)?;
            }
            Tree::Directory(entries) => {
                let inside = format!("{shown}/");
                make_directory(directory.as_fd(), name.as_ref(), entries, &inside, behind)?;
            }
            Tree::Other(kind) => {
                let what = match kind {
                    EntryKind::Symlink => "a link",
                    EntryKind::File => "a file that could not be read",
                    EntryKind::Directory | EntryKind::Other => "no regular file",
                };
                behind.push(format!("`{}` is {what}", shown.escape_debug()));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_goes_where() {
        let cases = [
            ("out.txt", Ok(("/home/user/out.txt", "./"))),
            ("/tmp/out.txt", Ok(("/tmp/out.txt", "./"))),
            ("out.txt:here.txt", Ok(("/home/user/out.txt", "here.txt"))),
            ("a:b:", Ok(("/home/user/a:b", "./"))),
            ("a:b:c", Ok(("/home/user/a:b", "c"))),
            ("", Err(())),
            (":x", Err(())),
            ("/../etc/passwd", Err(())),
        ];
        for (text, want) in cases {
            let got = Get::parse(text).map_err(drop);
            let want = want.map(|(guest, host)| Get {
                guest: GuestPath::new(guest).unwrap(),
                host: host.into(),
            });
            assert_eq!(got, want, "{text}");
        }
    }

    /// Writes `new` to where `get` says.
    fn write(get: &str) -> Result<(), String> {
        let target = Get::parse(get)?.target().map_err(|failure| failure.to_string())?;
        let tree = Tree::File(bytes::Bytes::from_static(b"new"));
        target.write(&tree).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn directories_are_made_anew_with_checked_names() {
        let dir = tempfile::tempdir().unwrap();
        let file = |text: &'static str| Tree::File(bytes::Bytes::from_static(text.as_bytes()));
        let tree = Tree::Directory(vec![
            ("a".into(), file("a")),
            ("../out".into(), file("bad")),
            ("..".into(), file("bad")),
            ("x\u{1b}[2J".into(), file("bad")),
            ("link".into(), Tree::Other(EntryKind::Symlink)),
            ("sub".into(), Tree::Directory(vec![("b".into(), file("b"))])),
        ]);
        let get = Get::parse(&format!("d:{}/d", dir.path().display())).unwrap();
        let behind = get.target().unwrap().write(&tree).unwrap();
        assert_eq!(behind.len(), 4, "{behind:?}");
        assert!(behind.iter().all(|line| !line.contains('\u{1b}')));
        assert_eq!(fs::read(dir.path().join("d/a")).unwrap(), b"a");
        assert_eq!(fs::read(dir.path().join("d/sub/b")).unwrap(), b"b");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(dir.path().join("d")).unwrap().count(), 2);
        let again = get.target().and_then(|target| {
            target.write(&tree).map_err(|error| Failure::new(error.to_string()))
        });
        // Now the place is a directory to copy into.
        assert!(again.is_ok());
        assert!(dir.path().join("d/d/a").exists());
        let third = get.target().unwrap().write(&tree).unwrap_err().to_string();
        assert!(third.contains("already"), "{third}");
        // A link in the way is neither followed nor replaced.
        symlink("/nowhere", dir.path().join("link")).unwrap();
        let get = Get::parse(&format!("d:{}/link", dir.path().display())).unwrap();
        assert!(get.target().unwrap().write(&tree).is_err());
    }

    #[test]
    fn names_from_inside_stay_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let host = dir.path().to_str().unwrap();
        write(&format!("../../tmp/..x:{host}")).unwrap();
        assert_eq!(fs::read(dir.path().join("..x")).unwrap(), b"new");
        for guest in ["/", "/a/..", "a\nb", "a\u{1b}[2J"] {
            assert!(write(&format!("{guest}:{host}/")).is_err(), "{guest:?}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&format!("a:{host}/none/b")).unwrap_err().contains("cannot be used"));
    }

    #[test]
    fn links_are_replaced_and_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("precious"), "old").unwrap();
        fs::create_dir(at("d")).unwrap();
        fs::create_dir(at("d/sub")).unwrap();
        symlink("precious", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("d", at("dir-link")).unwrap();
        symlink("../precious", at("d/inner")).unwrap();
        fs::hard_link(at("precious"), at("hard")).unwrap();

        let host = dir.path().to_str().unwrap();
        for get in ["link:link", "x:dangling", "x:dir-link", "inner:d", "hard:hard"] {
            let (guest, name) = get.split_once(':').unwrap();
            write(&format!("{guest}:{host}/{name}")).unwrap();
        }
        assert_eq!(fs::read(at("precious")).unwrap(), b"old");
        assert!(!at("nowhere").exists());
        for name in ["link", "dangling", "dir-link", "d/inner", "hard"] {
            assert!(at(name).symlink_metadata().unwrap().is_file(), "{name}");
            assert_eq!(fs::read(at(name)).unwrap(), b"new", "{name}");
        }
        // Nor is a pipe a file to replace.
        let fifo = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, fifo, 0).unwrap();
        assert!(write(&format!("pipe:{host}/pipe")).unwrap_err().contains("in the way"));
        // A directory is no file to replace, and no temporary file stays.
        assert!(write(&format!("sub:{host}/d")).unwrap_err().contains("in the way"));
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 2);
    }
}
