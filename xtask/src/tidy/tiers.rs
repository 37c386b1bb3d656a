//! Tiers: the first folder of a crate says with what power its code runs, and
//! so what it may use.

use std::path::Path;

use super::{Finding, Source};
use crate::workspace::Member;

/// What the crates below a folder may do.
struct Tier {
    folder: &'static str,
    /// Folders whose crates may be used, in tests too.
    uses: &'static [&'static str],
    /// Whether there may be unsafe code.
    unsafe_code: bool,
}

/// The rules. A folder that is not named here has no place in the project.
const TIERS: [Tier; 6] = [
    Tier { folder: "pure", uses: &["pure"], unsafe_code: false },
    Tier { folder: "sys", uses: &["pure", "sys"], unsafe_code: true },
    Tier { folder: "jailed", uses: &["pure", "sys", "jailed"], unsafe_code: false },
    // Not `jailed`: what reads attackers' bytes is another process, and its
    // answers come as messages of `pure/wire`.
    Tier { folder: "trusted", uses: &["pure", "sys", "trusted"], unsafe_code: false },
    // Nothing: it sees the built program only, as users do.
    Tier { folder: "tests", uses: &[], unsafe_code: false },
    Tier { folder: "xtask", uses: &["pure"], unsafe_code: false },
];

/// Crates from elsewhere that only some may use.
const RESERVED: [(&str, &[&str], &str); 5] = [
    ("anyhow", &["trusted/cli", "xtask"], "a library names its errors"),
    ("libc", &["sys"], "the rest uses what sys/linux offers, or rustix"),
    ("landlock", &["sys"], "the rest uses what sys/linux offers"),
    ("kvm-ioctls", &["sys"], "the rest uses what sys/kvm offers"),
    ("sqlx", &["trusted/server"], "storage is the server's"),
];

/// What is I/O or a clock, which `pure` has none of.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::os",
    "std::thread",
    "std::io::std",
    "SystemTime",
    "Instant::now",
];

pub(super) fn check(
    root: &Path,
    members: &[Member],
    files: &[Source],
) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in members {
        let Some(tier) = tier_of(&member.path) else {
            let folders: Vec<_> = TIERS.iter().map(|tier| tier.folder).collect();
            let what = format!("no tier: crates live below {}", folders.join(", "));
            findings.push(Finding::new(&member.path, what));
            continue;
        };
        edges(root, member, tier, &mut findings);
        inherits_lints(root, member, &mut findings)?;
        if !tier.unsafe_code {
            crate_roots(root, member, files, &mut findings);
        }
    }
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        if file.path.starts_with("pure") {
            impure(file, &mut findings);
        }
    }
    Ok(findings)
}

fn tier_of(path: &str) -> Option<&'static Tier> {
    TIERS.iter().find(|tier| Path::new(path).starts_with(tier.folder))
}

/// Who uses whom.
fn edges(root: &Path, member: &Member, tier: &Tier, findings: &mut Vec<Finding>) {
    let manifest = || format!("{}/Cargo.toml", member.path);
    for dependency in &member.package.dependencies {
        let name = &dependency.name;
        if let Some(path) = &dependency.path {
            let path = path.strip_prefix(root).unwrap_or(path);
            if !tier.uses.iter().any(|folder| path.starts_with(folder)) {
                let may = if tier.uses.is_empty() { "none" } else { &tier.uses.join(", ") };
                let what = format!(
                    "`{name}` is in {}; of our crates, {} may use: {may}",
                    path.display(),
                    tier.folder
                );
                findings.push(Finding::new(manifest(), what));
            }
        }
        for (reserved, folders, why) in RESERVED {
            let may = folders.iter().any(|folder| Path::new(&member.path).starts_with(folder));
            if name == reserved && !may {
                let what = format!("`{name}` is for {} only: {why}", folders.join(", "));
                findings.push(Finding::new(manifest(), what));
            }
        }
    }
}

/// The lints of the workspace hold for every crate.
fn inherits_lints(root: &Path, member: &Member, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&member.package.manifest_path)?;
    let manifest: toml::Table = toml::from_str(&text)?;
    let inherits = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(toml::Value::as_bool)
        .unwrap_or(false);
    if !inherits {
        let path = member.package.manifest_path.strip_prefix(root);
        let path = path.unwrap_or(&member.package.manifest_path).display();
        findings.push(Finding::new(path, "add `[lints]` with `workspace = true`"));
    }
    Ok(())
}

/// Every crate root forbids unsafe code: libraries, programs, tests, benches.
fn crate_roots(root: &Path, member: &Member, files: &[Source], findings: &mut Vec<Finding>) {
    for target in &member.package.targets {
        let path = target.src_path.strip_prefix(root).unwrap_or(&target.src_path);
        let text = files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
        if !text.is_some_and(forbids_unsafe) {
            let what = "outside sys/, a crate begins with `#![forbid(unsafe_code)]`";
            findings.push(Finding::new(path.display(), what));
        }
    }
}

/// Whether a crate root has the attribute, before anything but comments and
/// other attributes.
fn forbids_unsafe(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .take_while(|line| line.is_empty() || line.starts_with("//") || line.starts_with("#!["))
        .any(|line| line == "#![forbid(unsafe_code)]")
}

fn impure(file: &Source, findings: &mut Vec<Finding>) {
    // Tests may do as they like; they are at the end of a file.
    let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
    for (index, line) in code.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for word in IMPURE.iter().filter(|word| code.contains(*word)) {
            let what = format!("`{word}`: pure/ has no I/O and no clock");
            findings.push(Finding::at_line(&file.path, index, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;
    use crate::workspace::{Dependency, Package, Target};

    /// A crate at `path` that uses `uses`: ours if there is a slash in it.
    fn member(path: &str, uses: &[&str]) -> Member {
        let dependency = |name: &&str| Dependency {
            name: name.rsplit('/').next().unwrap_or_default().into(),
            path: name.contains('/').then(|| Path::new("/p").join(name)),
        };
        let target = Target {
            name: "t".into(),
            kind: vec!["lib".into()],
            src_path: format!("/p/{path}/src/lib.rs").into(),
        };
        let package = Package {
            name: "t".into(),
            version: semver::Version::new(0, 1, 0),
            source: None,
            license: None,
            license_file: None,
            manifest_path: format!("/p/{path}/Cargo.toml").into(),
            dependencies: uses.iter().map(dependency).collect(),
            targets: vec![target],
        };
        Member { path: path.into(), package }
    }

    #[test]
    fn edges_between_tiers() {
        // A crate, what it uses, and what is wrong with that.
        let cases: [(&str, &[&str], Option<&str>); 13] = [
            ("pure/wire", &["pure/policy", "serde"], None),
            ("pure/wire", &["sys/linux"], Some("`linux` is in sys/linux")),
            ("sys/linux", &["pure/wire", "libc"], None),
            ("sys/linux", &["trusted/sandbox"], Some("`sandbox`")),
            ("jailed/kernel", &["pure/wire", "sys/linux"], None),
            ("jailed/kernel", &["trusted/sandbox"], Some("`sandbox`")),
            ("trusted/walls", &["trusted/sandbox", "sys/linux", "pure/wire"], None),
            ("trusted/walls", &["jailed/kernel"], Some("`kernel`")),
            ("trusted/walls", &["libc"], Some("for sys only")),
            ("trusted/server", &["anyhow"], Some("names its errors")),
            ("trusted/cli", &["anyhow"], None),
            ("tests", &["trusted/sandbox"], Some("may use: none")),
            ("trustedness/x", &[], None),
        ];
        for (path, uses, want) in cases {
            let member = member(path, uses);
            let mut findings = Vec::new();
            if let Some(tier) = tier_of(path) {
                edges(Path::new("/p"), &member, tier, &mut findings);
            } else {
                assert_eq!(path, "trustedness/x", "has a tier");
            }
            match want {
                None => assert_eq!(findings, [], "{path} {uses:?}"),
                Some(want) => {
                    assert_eq!(findings.len(), 1, "{path} {uses:?}");
                    assert!(findings[0].what.contains(want), "{}", findings[0]);
                }
            }
        }
    }

    #[test]
    fn crate_roots_forbid_unsafe_code() {
        let cases = [
            ("//! Docs.\n\n#![forbid(unsafe_code)]\n\nmod a;\n", true),
            ("#![allow(dead_code)]\n#![forbid(unsafe_code)]\n", true),
            ("//! Docs.\nmod a;\n", false),
            ("// #![forbid(unsafe_code)]\nmod a;\n", false),
            ("mod a;\n#![forbid(unsafe_code)]\n", false),
            ("#![deny(unsafe_code)]\n", false),
        ];
        for (text, want) in cases {
            assert_eq!(forbids_unsafe(text), want, "{text:?}");
            let files = [source("trusted/a/src/lib.rs", text)];
            let mut findings = Vec::new();
            crate_roots(Path::new("/p"), &member("trusted/a", &[]), &files, &mut findings);
            assert_eq!(findings.is_empty(), want, "{text:?}");
        }
    }

    #[test]
    fn pure_has_no_io_and_no_clock() {
        let cases = [
            ("use std::fs::File;\n", 1),
            ("let now = std::time::Instant::now();\n", 1),
            ("// std::fs is not used\nuse std::fmt;\n", 0),
            ("use std::fmt;\n#[cfg(test)]\nmod tests { use std::fs; }\n", 0),
        ];
        for (text, want) in cases {
            let mut findings = Vec::new();
            impure(&source("pure/a/src/lib.rs", text), &mut findings);
            assert_eq!(findings.len(), want, "{text:?}");
        }
    }

    #[test]
    fn lints_are_inherited() {
        let folder = tempfile::tempdir().unwrap();
        for (text, want) in [("[lints]\nworkspace = true\n", 0), ("[package]\n", 1)] {
            let mut member = member("pure/a", &[]);
            member.package.manifest_path = folder.path().join("Cargo.toml");
            std::fs::write(&member.package.manifest_path, text).unwrap();
            let mut findings = Vec::new();
            inherits_lints(folder.path(), &member, &mut findings).unwrap();
            assert_eq!(findings.len(), want, "{text:?}");
        }
    }
}
