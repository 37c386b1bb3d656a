//! Where the program under test is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The `casemate` program: `CASEMATE_BIN`, or the one built beside the tests,
/// which is built now if it is missing.
///
/// # Panics
///
/// If there is none and it cannot be built.
pub fn casemate() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        if let Some(named) = std::env::var_os("CASEMATE_BIN") {
            let named = PathBuf::from(named);
            assert!(named.is_file(), "CASEMATE_BIN={} is no file", named.display());
            return named;
        }
        // This executable is `<target>/<profile>/deps/<name>-<hash>`.
        let tests = std::env::current_exe().expect("an executable has a path");
        let profile = tests.parent().and_then(Path::parent).expect("cargo's layout");
        let beside = profile.join("casemate");
        build(profile);
        assert!(beside.is_file(), "no casemate at {}: set CASEMATE_BIN", beside.display());
        beside
    })
}

/// Brings the program up to date. A no-op for cargo when it is.
fn build(profile: &Path) {
    let mut command = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    command.args(["build", "--quiet", "--package", "casemate", "--bin", "casemate"]);
    command.arg("--target-dir").arg(profile.parent().expect("a profile is below a target"));
    if profile.file_name().is_some_and(|name| name == "release") {
        command.arg("--release");
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Without cargo (on another machine) what is there is used.
    if let Ok(status) = command.status() {
        assert!(status.success(), "casemate does not build");
    }
}

/// Copies the program to `directory`, so that its processes can be told from
/// those of every other run by their executable.
///
/// # Panics
///
/// If it cannot be copied.
pub fn private_copy(directory: &Path) -> PathBuf {
    let copy = directory.join("casemate");
    std::fs::copy(casemate(), &copy).expect("the program can be copied");
    copy
}
