//! The project as cargo and git see it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde::Deserialize;

use crate::process::{cargo, output};

/// Where the project is.
pub(crate) struct Workspace {
    /// Its folder.
    pub(crate) root: PathBuf,
}

/// What `cargo metadata` says.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Packages: the workspace's and, if asked for, all that it needs.
    pub(crate) packages: Vec<Package>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: semver::Version,
    /// `None` for the workspace's own.
    pub(crate) source: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) license_file: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A dependency as a manifest declares it.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Where it is, for one in this workspace.
    pub(crate) path: Option<PathBuf>,
}

/// Something that cargo builds of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its folder, from the project's: `trusted/cli`.
    pub(crate) path: String,
    pub(crate) package: Package,
}

impl Workspace {
    /// The project that this program was built in.
    ///
    /// # Errors
    ///
    /// If it is no longer there.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().context("xtask lies in the project's folder")?;
        let root = root.canonicalize().with_context(|| format!("no {}", root.display()))?;
        Ok(Self { root })
    }

    /// The packages of the workspace. Works offline.
    ///
    /// # Errors
    ///
    /// If cargo cannot read the manifests.
    pub(crate) fn members(&self) -> anyhow::Result<Vec<Member>> {
        let args = ["metadata", "--format-version=1", "--no-deps", "--offline"];
        let metadata = self.metadata(&args)?;
        let mut members = Vec::new();
        for package in metadata.packages {
            let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
            let path = folder.strip_prefix(&self.root).unwrap_or(folder);
            members.push(Member { path: path.to_string_lossy().into_owned(), package });
        }
        members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(members)
    }

    /// All packages that the workspace needs on the platforms it runs on.
    ///
    /// # Errors
    ///
    /// If one is not on this machine and cannot be fetched, or the lock file is
    /// out of date.
    pub(crate) fn packages(&self) -> anyhow::Result<Vec<Package>> {
        let args = [
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform=x86_64-unknown-linux-gnu",
            "--filter-platform=aarch64-unknown-linux-gnu",
        ];
        let offline = [args.as_slice(), &["--offline"]].concat();
        let metadata = self.metadata(&offline).or_else(|_| {
            println!("not all dependencies are on this machine: asking the registry");
            self.metadata(&args)
        })?;
        Ok(metadata.packages)
    }

    fn metadata(&self, args: &[&str]) -> anyhow::Result<Metadata> {
        let json = output(cargo(args).current_dir(&self.root))?;
        serde_json::from_slice(&json).context("cargo metadata is not as expected")
    }

    /// Paths, from the project's folder, of all files that are tracked or could
    /// be: what `.gitignore` names is left out.
    ///
    /// # Errors
    ///
    /// If the folder cannot be listed.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        // A clone may belong to somebody else, as on many a CI machine.
        let safe = format!("safe.directory={}", self.root.display());
        let listed = output(
            Command::new("git")
                .args(["-c", &safe, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
                .current_dir(&self.root),
        );
        let mut files = match listed {
            Ok(names) => {
                let names = String::from_utf8(names).context("a file's name is not UTF-8")?;
                names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
            }
            // Not a clone: an unpacked archive.
            Err(_) => walk(&self.root)?,
        };
        files.retain(|path| self.root.join(path).is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// All files below `root`, but for what is built and what is hidden there.
fn walk(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = entry.file_name();
            if kind.is_dir() {
                if name != "target" && name != ".git" && name != "node_modules" {
                    folders.push(path);
                }
            } else if kind.is_file() {
                files.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_found() {
        let workspace = Workspace::find().unwrap();
        let members = workspace.members().unwrap();
        let xtask = members.iter().find(|member| member.path == "xtask").unwrap();
        assert_eq!(xtask.package.name, "xtask");
        assert!(xtask.package.source.is_none());
        assert!(workspace.files().unwrap().contains(&PathBuf::from("xtask/src/main.rs")));
    }

    #[test]
    fn an_archive_is_walked() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["a.rs", "b/c.rs", "target/d.rs", ".git/e"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut files = walk(folder.path()).unwrap();
        files.sort();
        assert_eq!(files, [PathBuf::from("a.rs"), PathBuf::from("b/c.rs")]);
    }
}
