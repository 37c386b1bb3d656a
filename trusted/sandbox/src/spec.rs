//! What a sandbox is made from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::Limits;

/// Names one sandbox, for its whole life and in every record of it.
///
/// Ids are UUIDs of version 7, so they sort by the time of their making.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxId(Uuid);

impl SandboxId {
    /// Makes a new id.
    #[must_use]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for SandboxId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The isolation technology around a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WallName {
    /// A virtual machine forked from a warm template.
    Fork,
    /// The host kernel, fenced.
    Jail,
    /// A full Linux virtual machine.
    Vm,
}

impl WallName {
    /// The name as users write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fork => "fork",
            Self::Jail => "jail",
            Self::Vm => "vm",
        }
    }
}

impl fmt::Display for WallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which wall a caller asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WallChoice {
    /// The strongest that works on this host.
    #[default]
    Auto,
    /// This one or none.
    #[serde(untagged)]
    Named(WallName),
}

impl FromStr for WallChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "fork" => Ok(Self::Named(WallName::Fork)),
            "jail" => Ok(Self::Named(WallName::Jail)),
            "vm" => Ok(Self::Named(WallName::Vm)),
            _ => Err(format!("no wall is called `{text}`: choose auto, fork, jail or vm")),
        }
    }
}

/// What a sandbox is to be: walls read it, callers write it.
///
/// ```
/// use sandbox::{Limits, SandboxSpec};
/// let spec = SandboxSpec { limits: Limits { cpus: 1.0, ..Limits::default() }, ..SandboxSpec::default() };
/// ```
#[derive(Clone, Debug, Default)]
pub struct SandboxSpec {
    /// The wall to build it behind.
    pub wall: WallChoice,
    /// The file system that the sandbox sees.
    pub root: Root,
    /// What it may use.
    pub limits: Limits,
    /// Variables for every process in it, on top of `PATH`, `HOME`, `USER`,
    /// `LOGNAME` and `LANG`. Nothing of the host's environment is added.
    pub env: BTreeMap<String, String>,
    /// Files to write before the first process starts.
    pub files: Vec<FileToPut>,
    /// A host folder to show inside.
    pub workspace: Option<Workspace>,
    /// What it may reach.
    pub network: NetworkPolicy,
    /// Lets processes make user namespaces of their own, as a browser's sandbox
    /// does. They gain no power over anything outside, but the host kernel
    /// shows them more of itself.
    pub allow_user_namespaces: bool,
}

/// The file system that a sandbox sees. Always read-only, but for the private
/// `/tmp`, `/dev/shm` and home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// The host's own system directories.
    #[default]
    Host,
    /// A directory that holds a root file system, or an unpacked OCI image
    /// (a bundle: `rootfs/` beside `config.json`).
    Directory(PathBuf),
}

/// A file to write into a sandbox.
#[derive(Clone, Debug)]
pub struct FileToPut {
    /// Where. Missing parent directories are made.
    pub path: GuestPath,
    /// What.
    pub contents: Contents,
    /// Permission bits.
    pub mode: u32,
}

/// The contents of a [`FileToPut`].
#[derive(Clone, Debug)]
pub enum Contents {
    /// A regular file with these bytes.
    Bytes(bytes::Bytes),
    /// A directory.
    Directory,
    /// A symbolic link with this target, resolved inside the sandbox only.
    Symlink(String),
}

/// A host folder as a sandbox sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The folder on the host.
    pub host: PathBuf,
    /// Where it appears inside.
    pub guest: GuestPath,
    /// What may be done to it.
    pub access: WorkspaceAccess,
}

/// What a sandbox may do to its workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceAccess {
    /// Writing fails with `EROFS`.
    #[default]
    ReadOnly,
    /// Writing changes a private copy that goes away with the sandbox.
    CopyOnWrite,
}

/// What a sandbox may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkPolicy {
    /// Nothing but its own loopback interface.
    #[default]
    None,
}

/// An absolute path inside a sandbox, without `.` and `..` parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct GuestPath(String);

impl GuestPath {
    /// The sandbox's home directory.
    pub const HOME: &'static str = "/home/user";

    /// Takes a path; a relative one, and one that begins with `~/`, starts from
    /// the home directory.
    ///
    /// # Errors
    ///
    /// [`GuestPathError`] if the path is empty, longer than 4095 bytes, contains
    /// a NUL, or leaves the root through `..`.
    ///
    /// ```
    /// # use sandbox::GuestPath;
    /// assert_eq!(GuestPath::new("a/../b.txt").unwrap().as_str(), "/home/user/b.txt");
    /// ```
    pub fn new(path: &str) -> Result<Self, GuestPathError> {
        if path.is_empty() {
            return Err(GuestPathError::Empty);
        }
        if path.contains('\0') {
            return Err(GuestPathError::Nul);
        }
        let full = match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", Self::HOME)
            }
            _ if path.starts_with('/') => path.to_owned(),
            _ => format!("{}/{path}", Self::HOME),
        };
        let mut parts = Vec::new();
        for part in full.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or(GuestPathError::LeavesRoot)?;
                }
                _ => parts.push(part),
            }
        }
        let path = format!("/{}", parts.join("/"));
        if path.len() > 4095 {
            return Err(GuestPathError::TooLong);
        }
        Ok(Self(path))
    }

    /// The path as text, beginning with `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part, or `/` for the root.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/")
    }

    /// The path of `name` in this directory.
    ///
    /// # Errors
    ///
    /// As [`GuestPath::new`].
    pub fn join(&self, name: &str) -> Result<Self, GuestPathError> {
        Self::new(&format!("{}/{name}", self.0))
    }
}

impl fmt::Display for GuestPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for GuestPath {
    type Err = GuestPathError;

    fn from_str(path: &str) -> Result<Self, Self::Err> {
        Self::new(path)
    }
}

/// Why a text is no path inside a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuestPathError {
    /// No text at all.
    #[error("the path is empty")]
    Empty,
    /// A NUL byte ends a path in every system call.
    #[error("the path contains a NUL byte")]
    Nul,
    /// Longer than Linux takes.
    #[error("the path is longer than 4095 bytes")]
    TooLong,
    /// More `..` than there are directories above.
    #[error("the path leaves the root directory through `..`")]
    LeavesRoot,
}

/// One entry of a directory in a sandbox. Names come from inside: they are
/// data, to be shown escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// The name in its directory, invalid UTF-8 replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Last modification, in seconds since 1970.
    pub modified: i64,
    /// Where it points, for a symbolic link.
    pub target: Option<String>,
}

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, a socket or a device.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths() {
        let long = "x".repeat(5000);
        let cases = [
            ("/a/b", Ok("/a/b")),
            ("a", Ok("/home/user/a")),
            ("~/a", Ok("/home/user/a")),
            ("~", Ok("/home/user")),
            ("~x", Ok("/home/user/~x")),
            ("//a///b/./c/", Ok("/a/b/c")),
            ("/", Ok("/")),
            ("../../etc/passwd", Ok("/etc/passwd")),
            ("/..", Err(GuestPathError::LeavesRoot)),
            ("../../../etc", Err(GuestPathError::LeavesRoot)),
            ("", Err(GuestPathError::Empty)),
            ("a\0b", Err(GuestPathError::Nul)),
            (long.as_str(), Err(GuestPathError::TooLong)),
        ];
        for (path, want) in cases {
            let got = GuestPath::new(path);
            assert_eq!(got.as_ref().map(GuestPath::as_str).map_err(|e| *e), want, "{path:?}");
        }
        assert_eq!(GuestPath::new("/").unwrap().file_name(), "/");
        assert_eq!(GuestPath::new("/a/b").unwrap().file_name(), "b");
    }

    #[test]
    fn wall_names_round_trip() {
        for name in ["auto", "fork", "jail", "vm"] {
            let choice: WallChoice = name.parse().unwrap();
            if let WallChoice::Named(wall) = choice {
                assert_eq!(wall.to_string(), name);
            }
        }
        assert!("docker".parse::<WallChoice>().is_err());
    }
}
