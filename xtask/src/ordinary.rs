//! Running a test executable as an ordinary user, when this runs as root.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::artifacts::TestTarget;
use crate::process;

/// User and group: `nobody` and `nogroup` of Debian and Ubuntu.
pub(crate) const ID: u32 = 65534;

/// Runs `test` as user [`ID`] with no other group, an empty environment and a
/// home of its own.
///
/// What it needs is copied to where that user may read it: the project may lie
/// in the home directory of root.
///
/// # Errors
///
/// If something cannot be copied, or the tests fail.
pub(crate) fn run(test: &TestTarget, casemate: &Path) -> anyhow::Result<()> {
    let stage = tempfile::Builder::new().prefix("xtask-").tempdir()?;
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755));
    open(stage.path())?;
    let copy = |from: &Path, name: &str| -> anyhow::Result<std::path::PathBuf> {
        let to = stage.path().join(name);
        fs::copy(from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
        open(&to)?;
        Ok(to)
    };
    // Not named after the program: tests look for what it leaves by that name.
    let executable = copy(&test.path, "suite")?;
    let program = copy(casemate, "casemate")?;
    let tests = stage.path().join("sources");
    copy_tree(&test.folder, &tests)?;
    let home = stage.path().join("home");
    let temporary = stage.path().join("tmp");
    for own in [&home, &temporary] {
        fs::create_dir(own)?;
        fs::set_permissions(own, Permissions::from_mode(0o700))?;
        chown(own, Some(ID), Some(ID))?;
    }
    let mut command = Command::new(executable);
    command
        .arg("--quiet")
        // Setting the user as root drops the supplementary groups too.
        .uid(ID)
        .gid(ID)
        .current_dir(&home)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
        .env("LANG", "C.UTF-8")
        .env("HOME", &home)
        .env("TMPDIR", &temporary)
        .env("CASEMATE_BIN", &program)
        .env("CASEMATE_TESTS_DIR", &tests);
    if let Some(runs) = std::env::var_os("CASEMATE_TEST_RUNS") {
        command.env("CASEMATE_TEST_RUNS", runs);
    }
    process::run(&mut command)
}

/// Copies a folder of plain files, readable by everybody.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from).with_context(|| format!("no {}", from.display()))? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
            let executable = entry.metadata()?.permissions().mode() & 0o111;
            fs::set_permissions(&target, Permissions::from_mode(0o644 | executable))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/bin/sh`, standing in for a test executable: it is given `--quiet`.
    fn run_script(script: &str) -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("script");
        fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        let test =
            TestTarget { name: "t".into(), path: path.clone(), folder: folder.path().into() };
        run(&test, &path)
    }

    #[test]
    fn it_runs_as_that_user_with_nothing_of_ours() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let checks = format!(
            r#"set -e
            test "$(id -u)" = {ID}; test "$(id -g)" = {ID}; test "$(id -G)" = {ID}
            test -z "$CARGO"; test -x "$CASEMATE_BIN"; test -r "$CASEMATE_TESTS_DIR/script"
            touch "$HOME/a" "$TMPDIR/b"; test "$PWD" = "$HOME""#
        );
        run_script(&checks).unwrap();
        assert!(run_script("exit 7").is_err(), "a failure is one");
        assert!(run_script("cat /etc/shadow").is_err(), "it is no root");
    }
}
