//! `--get`: files of a sandbox for the host.
//!
//! What a sandbox wrote decides bytes and nothing else: the place on the host
//! comes from the user's words alone, and is opened as a directory before the
//! program starts. Whatever has the name there, a link too, is replaced and
//! never followed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use sandbox::GuestPath;

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

    /// Puts `contents` there, whole or not at all.
    pub(super) fn write(&self, contents: &[u8]) -> io::Result<()> {
        let there = rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()) {
            return Err(io::Error::other("a directory is in the way"));
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
        target.write(b"new").map_err(|error| error.to_string())
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
        // A directory is no file to replace, and no temporary file stays.
        assert!(write(&format!("sub:{host}/d")).unwrap_err().contains("in the way"));
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 2);
    }
}
