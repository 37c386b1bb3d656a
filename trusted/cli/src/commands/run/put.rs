//! `--put`: files and directories of the host for a sandbox.
//!
//! Directories may hold what somebody hostile left there, so no symbolic link
//! is followed below the path that the user wrote: each is copied as a link,
//! which leads nowhere but inside. A link at its end is refused: the user means
//! a file, and who made the link may have meant another.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sandbox::{Contents, FileToPut, GuestPath};

use crate::failure::Failure;
use crate::ui;

/// How deep directories may be nested.
const MAX_DEPTH: usize = 128;

/// What to copy, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Put {
    host: PathBuf,
    guest: GuestPath,
}

impl Put {
    /// Reads `HOST[:GUEST]`, split at the last colon. A GUEST that ends with
    /// `/` is a directory to copy into; without one the home is.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (host, guest) = text.rsplit_once(':').unwrap_or((text, ""));
        if host.is_empty() {
            return Err("no file of this system is named".into());
        }
        let path = GuestPath::new(if guest.is_empty() { "~" } else { guest })
            .map_err(|error| error.to_string())?;
        let guest = if guest.is_empty() || guest.ends_with('/') {
            path.join(&own_name(Path::new(host))?).map_err(|error| error.to_string())?
        } else {
            path
        };
        Ok(Self { host: host.into(), guest })
    }

    /// Reads everything to be copied. `room` is what still fits into the
    /// sandbox, in bytes.
    pub(super) fn read(&self, room: &mut u64) -> Result<Vec<FileToPut>, Failure> {
        let mut walk = Walk { room, files: Vec::new() };
        let name = self.host.as_os_str();
        // A slash at the end would have a link followed.
        let trimmed =
            name.to_str().map(|name| name.trim_end_matches('/')).filter(|n| !n.is_empty());
        let path = trimmed.map_or(self.host.as_path(), Path::new);
        let name = rustix::path::Arg::into_c_str(path)
            .map_err(|_| Failure::new("--put: the path contains a NUL byte"))?;
        walk.entry(CWD, &name, path, self.guest.clone(), 0)?;
        Ok(walk.files)
    }
}

/// The name that a path has where it leads to: that of `.` too.
fn own_name(path: &Path) -> Result<String, String> {
    let name = match path.file_name() {
        Some(name) => name.to_owned(),
        None => path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()))?
            .file_name()
            .ok_or("the root directory has no name; write HOST:GUEST")?
            .to_owned(),
    };
    name.into_string().map_err(|_| "the name is not UTF-8; write HOST:GUEST".into())
}

struct Walk<'a> {
    room: &'a mut u64,
    files: Vec<FileToPut>,
}

impl Walk<'_> {
    /// Takes what `name` in the directory `parent` is; `path` is for messages.
    fn entry(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        guest: GuestPath,
        depth: usize,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::new(format!("--put {}: {error}", path.display()));
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| failed(error.into()))?;
        let mode = stat.st_mode & 0o777;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if depth == 0 => {
                let failure =
                    Failure::new(format!("--put {}: it is a symbolic link", path.display()));
                let target = path.canonicalize().map_err(failed)?;
                return Err(failure.fix(format!("name the file itself, {}", target.display())));
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(parent, name, Vec::new())
                    .map_err(|error| failed(error.into()))?;
                let target = target
                    .into_string()
                    .map_err(|_| failed(io::Error::other("the link's target is not UTF-8")))?;
                self.files.push(FileToPut {
                    path: guest,
                    contents: Contents::Symlink(target),
                    mode,
                });
            }
            FileType::RegularFile => {
                let (file, stat) = open(parent, name, OFlags::empty()).map_err(failed)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Err(failed(io::Error::other("it changed while it was read")));
                }
                let bytes = self.contents(file, path).map_err(failed)??;
                self.files.push(FileToPut { path: guest, contents: Contents::Bytes(bytes), mode });
            }
            FileType::Directory if depth < MAX_DEPTH => {
                let (dir, _) = open(parent, name, OFlags::DIRECTORY).map_err(failed)?;
                self.files.push(FileToPut {
                    path: guest.clone(),
                    contents: Contents::Directory,
                    mode,
                });
                self.directory(dir, path, &guest, depth)?;
            }
            FileType::Directory => {
                return Err(failed(io::Error::other("directories are nested too deeply")));
            }
            kind => {
                let what = match kind {
                    FileType::Fifo => "a pipe",
                    FileType::Socket => "a socket",
                    _ => "a device",
                };
                return Err(Failure::new(format!(
                    "--put {}: it is {what}; only files, directories and symbolic links can be put",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// Takes all entries of a directory, sorted by name.
    fn directory(
        &mut self,
        dir: OwnedFd,
        path: &Path,
        guest: &GuestPath,
        depth: usize,
    ) -> Result<(), Failure> {
        let failed = |error: Errno| Failure::new(format!("--put {}: {error}", path.display()));
        let mut names = Vec::new();
        for entry in Dir::read_from(&dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_owned();
            if name.as_bytes() != b"." && name.as_bytes() != b".." {
                names.push(name);
            }
        }
        names.sort();
        for name in names {
            let text = name.to_str().map_err(|_| {
                let name = name.to_string_lossy();
                Failure::new(format!("--put {}: the name `{name}` is not UTF-8", path.display()))
            })?;
            let inside = guest.join(text).map_err(|error| {
                Failure::new(format!("--put {}: {error}", path.join(text).display()))
            })?;
            self.entry(dir.as_fd(), &name, &path.join(text), inside, depth + 1)?;
        }
        Ok(())
    }

    /// Reads a file, but no more than fits.
    fn contents(
        &mut self,
        file: OwnedFd,
        path: &Path,
    ) -> io::Result<Result<bytes::Bytes, Failure>> {
        let mut contents = Vec::new();
        File::from(file).take(*self.room + 1).read_to_end(&mut contents)?;
        match self.room.checked_sub(contents.len() as u64) {
            Some(room) => {
                *self.room = room;
                Ok(Ok(contents.into()))
            }
            None => Ok(Err(Failure::new(format!(
                "--put {}: it does not fit any more into the sandbox's disk, of which {} are left",
                path.display(),
                ui::size(*self.room)
            ))
            .fix("raise the limit with --disk (and --memory, which counts files too)"))),
        }
    }
}

/// Opens what is there, not what a link there leads to. A pipe that took the
/// place of a file since it was looked at does not block.
fn open(parent: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<(OwnedFd, Stat)> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&fd)?;
    Ok((fd, stat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn where_things_go() {
        let cases = [
            ("a.txt", Ok(("a.txt", "/home/user/a.txt"))),
            ("dir/a.txt", Ok(("dir/a.txt", "/home/user/a.txt"))),
            ("dir/", Ok(("dir/", "/home/user/dir"))),
            ("a.txt:b.txt", Ok(("a.txt", "/home/user/b.txt"))),
            ("a.txt:/tmp/", Ok(("a.txt", "/tmp/a.txt"))),
            ("a.txt:~/x/", Ok(("a.txt", "/home/user/x/a.txt"))),
            ("a:b:", Ok(("a:b", "/home/user/a:b"))),
            ("a:b:c", Ok(("a:b", "/home/user/c"))),
            (":x", Err("named")),
            ("", Err("named")),
            ("a:/../x", Err("..")),
            ("/", Err("HOST:GUEST")),
        ];
        for (text, want) in cases {
            match (Put::parse(text), want) {
                (Ok(put), Ok((host, guest))) => {
                    assert_eq!(put.host, Path::new(host), "{text}");
                    assert_eq!(put.guest.as_str(), guest, "{text}");
                }
                (Err(error), Err(want)) => assert!(error.contains(want), "{text}: {error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        // `.` has the name of the directory it is.
        assert!(Put::parse(".").unwrap().guest.as_str().len() > "/home/user/".len());
    }

    fn read(host: &Path, room: u64) -> Result<Vec<FileToPut>, String> {
        let put = Put { host: host.into(), guest: GuestPath::new("/x").unwrap() };
        put.read(&mut room.clone()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_directory_comes_whole_and_links_stay_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("d")).unwrap();
        std::fs::create_dir(at("d/sub")).unwrap();
        std::fs::write(at("d/sub/f"), "12").unwrap();
        std::fs::write(at("secret"), "secret").unwrap();
        symlink("../secret", at("d/file-link")).unwrap();
        symlink("/", at("d/dir-link")).unwrap();
        symlink("d", at("top-link")).unwrap();

        let shown = |files: Vec<FileToPut>| -> Vec<String> {
            let show = |file: FileToPut| match file.contents {
                Contents::Bytes(bytes) => format!("{} {}", file.path, bytes.len()),
                Contents::Directory => format!("{}/", file.path),
                Contents::Symlink(target) => format!("{} -> {target}", file.path),
            };
            files.into_iter().map(show).collect()
        };
        assert_eq!(
            shown(read(&at("d"), 2).unwrap()),
            ["/x/", "/x/dir-link -> /", "/x/file-link -> ../secret", "/x/sub/", "/x/sub/f 2"]
        );
        for link in ["top-link", "top-link/"] {
            let refused = read(&at(link), 2).unwrap_err();
            assert!(refused.contains("symbolic link"), "{refused}");
        }
        assert!(read(&at("d"), 1).unwrap_err().contains("does not fit"));
        assert!(read(&at("none"), 1).unwrap_err().contains("--put"));
    }

    #[test]
    fn special_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(read(&socket, 1).unwrap_err().contains("a socket"));
        assert!(read(dir.path(), 1).unwrap_err().contains("a socket"));
        assert!(read(Path::new("/dev/null"), 1).unwrap_err().contains("a device"));
    }
}
