//! Programs of this host that run inside a sandbox, or drive one.
//!
//! A sandbox sees the host's `/usr`: an interpreter elsewhere (a version
//! manager's in a home, say) is not there for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Fact, State};

const GROUP: &str = "tools";

/// Where a sandbox looks for programs.
const SANDBOX_PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

struct Tool {
    name: &'static str,
    programs: &'static [&'static str],
    package: &'static str,
    /// What a missing one means.
    without: &'static str,
}

const TOOLS: [Tool; 4] = [
    Tool {
        name: "python3",
        programs: &["python3"],
        package: "python3",
        without: "no Python in sandboxes",
    },
    Tool { name: "node", programs: &["node"], package: "nodejs", without: "no Node in sandboxes" },
    Tool { name: "bash", programs: &["bash"], package: "bash", without: "no bash in sandboxes" },
    Tool {
        name: "chromium",
        programs: &["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"],
        package: "chromium",
        without: "no link checks",
    },
];

/// Looks for each tool.
pub(super) fn facts() -> Vec<Fact> {
    TOOLS.iter().map(look_for).collect()
}

fn look_for(tool: &Tool) -> Fact {
    let install = Some(format!("apt-get install -y {}", tool.package));
    let inside = SANDBOX_PATH.iter().map(PathBuf::from);
    if let Some(path) = find(tool.programs, inside) {
        if is_snap(&path) {
            let detail = format!("{} starts a snap, which no sandbox can", path.display());
            return Fact::new(GROUP, tool.name, State::No, detail).fix(install);
        }
        return match version(&path) {
            Ok(version) => {
                let detail = format!("{version} at {}", path.display());
                Fact::new(GROUP, tool.name, State::Ok, detail)
            }
            Err(why) => {
                let detail = format!("{} does not run: {why}", path.display());
                Fact::new(GROUP, tool.name, State::No, detail).fix(install)
            }
        };
    }
    let outside = std::env::var_os("PATH").unwrap_or_default();
    let detail = match find(tool.programs, std::env::split_paths(&outside)) {
        Some(path) => format!("{} lies outside /usr, unseen by sandboxes", path.display()),
        None => format!("not installed: {}", tool.without),
    };
    Fact::new(GROUP, tool.name, State::No, detail).fix(install)
}

/// The first of `programs` in the first of `dirs` that has one.
fn find(programs: &[&str], dirs: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut candidates = dirs.flat_map(|dir| programs.iter().map(move |program| dir.join(program)));
    candidates.find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Whether a program is only a script that hands over to a snap.
fn is_snap(path: &Path) -> bool {
    // Such scripts are short; a real browser is not read whole.
    fs::metadata(path).is_ok_and(|file| file.len() < 64 << 10)
        && fs::read(path).is_ok_and(|text| text.windows(6).any(|part| part == b"/snap/"))
}

/// What `--version` says first.
fn version(path: &Path) -> Result<String, String> {
    let said = Command::new(path).arg("--version").output().map_err(|error| error.to_string())?;
    if !said.status.success() {
        return Err(said.status.to_string());
    }
    let text = String::from_utf8_lossy(&said.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_executable_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tool"), "").unwrap();
        let dirs = || std::iter::once(dir.path().to_owned());
        assert_eq!(find(&["tool"], dirs()), None);
        assert!(find(&["sh"], std::iter::once("/bin".into())).is_some());
    }
}
