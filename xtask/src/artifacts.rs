//! Building everything once, and what came of it.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;

use crate::process::cargo;
use crate::steps::{Context, Outcome};
use crate::workspace::Target;

/// The program and the tests, built.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Artifacts {
    /// The `casemate` program.
    pub(crate) casemate: PathBuf,
    /// Test targets: what tests a crate or the program from outside.
    pub(crate) tests: Vec<TestTarget>,
}

/// A test target.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TestTarget {
    /// Its name; two crates may have one of the same name.
    pub(crate) name: String,
    /// Where its executable is.
    pub(crate) path: PathBuf,
    /// The folder of its package.
    pub(crate) folder: PathBuf,
}

/// A line of cargo's JSON output.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds the program and all tests in one go, so that nothing is built twice.
pub(crate) fn step(context: &mut Context) -> anyhow::Result<Outcome> {
    let mut command = cargo(&[
        "build",
        "--workspace",
        "--locked",
        "--bins",
        "--lib",
        "--tests",
        "--message-format=json-render-diagnostics",
    ]);
    println!("$ cargo build --workspace --locked --bins --lib --tests");
    let output = command
        .current_dir(&context.workspace.root)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    anyhow::ensure!(output.status.success(), "it does not build");
    let artifacts = read(&String::from_utf8_lossy(&output.stdout))?;
    let found = format!("the program and {} test targets", artifacts.tests.len());
    context.set_artifacts(artifacts);
    Ok(Outcome::found(found))
}

/// Reads cargo's JSON output.
fn read(json: &str) -> anyhow::Result<Artifacts> {
    let mut casemate = None;
    let mut tests = Vec::new();
    for line in json.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("cargo's messages changed")?;
        if message.reason != "compiler-artifact" {
            continue;
        }
        let (Some(target), Some(profile), Some(path), Some(manifest)) =
            (message.target, message.profile, message.executable, message.manifest_path)
        else {
            continue;
        };
        let is_test = target.kind.iter().any(|kind| kind == "test");
        if !profile.test && target.name == "casemate" {
            casemate = Some(path);
        } else if profile.test && is_test {
            let folder = manifest.parent().context("a manifest is in a folder")?.to_owned();
            tests.push(TestTarget { name: target.name, path, folder });
        }
    }
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    let casemate = casemate.context("no program `casemate` was built")?;
    Ok(Artifacts { casemate, tests })
}

impl Artifacts {
    /// The test target of this name.
    ///
    /// # Errors
    ///
    /// If there is not exactly one.
    pub(crate) fn test(&self, name: &str) -> anyhow::Result<&TestTarget> {
        let mut found = self.tests.iter().filter(|test| test.name == name);
        let first = found.next().with_context(|| format!("no test target `{name}`"))?;
        anyhow::ensure!(found.next().is_none(), "more than one test target `{name}`");
        Ok(first)
    }

    /// The names of all test targets, each once.
    pub(crate) fn test_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tests.iter().map(|test| test.name.as_str()).collect();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn message(name: &str, kind: &str, test: bool, package: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/p/{package}/Cargo.toml",
            "target":{{"name":"{name}","kind":["{kind}"],"src_path":"/p/x.rs"}},
            "profile":{{"test":{test}}},"executable":"/t/{name}"}}"#
        )
        .replace('\n', "")
    }

    #[test]
    fn executables_are_told_apart() {
        let json = [
            r#"{"reason":"build-script-executed"}"#.to_owned(),
            message("server", "lib", true, "server"),
            message("api", "test", true, "server"),
            message("api", "test", true, "tests"),
            message("security", "test", true, "tests"),
            message("casemate", "bin", true, "cli"),
            message("casemate", "bin", false, "cli"),
            message("xtask", "bin", false, "xtask"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let artifacts = read(&json.join("\n")).unwrap();
        assert_eq!(artifacts.casemate, Path::new("/t/casemate"));
        assert_eq!(artifacts.test_names(), ["api", "security"]);
        assert_eq!(artifacts.test("security").unwrap().folder, Path::new("/p/tests"));
        assert!(artifacts.test("api").is_err(), "which of the two?");
        assert!(artifacts.test("programs").is_err());
        assert!(read("").is_err(), "no program");
    }
}
