//! What comes from elsewhere: under which licence, from where, and with which
//! known weaknesses. Needs no network once the dependencies are on this machine.
//!
//! What cannot be known offline: whether a version was yanked, and advisories
//! published since the snapshot in `rules/supply-chain/advisories.toml`.

mod advisories;
mod date;
mod licences;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::steps::{Context, Outcome};

/// Where the rules are, from the project's folder.
const RULES: &str = "rules/supply-chain";

/// What a check found.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    /// Broken rules.
    errors: Vec<String>,
    /// What should be looked at.
    warnings: Vec<String>,
}

/// The lock file.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

/// A package in the lock file.
#[derive(Clone, Debug, Deserialize)]
struct Locked {
    name: String,
    version: semver::Version,
    /// `None` for the workspace's own.
    source: Option<String>,
}

/// Checks everything.
pub(crate) fn step(context: &mut Context) -> anyhow::Result<Outcome> {
    let workspace = &context.workspace;
    let rules = workspace.root.join(RULES);
    let policy: licences::Policy = read(&rules.join("policy.toml"))?;
    let snapshot: advisories::Snapshot = read(&rules.join("advisories.toml"))?;
    let lock: Lock = read(&workspace.root.join("Cargo.lock"))?;
    let foreign: Vec<Locked> =
        lock.package.into_iter().filter(|package| package.source.is_some()).collect();
    let packages = workspace.packages()?;

    let mut findings = Findings::default();
    licences::check(&policy, &packages, &mut findings);
    sources(&policy.sources, &foreign, &mut findings);
    let advised = advisories::check(&snapshot, &foreign, date::today(), &mut findings);
    findings.warnings.extend(duplicates(&foreign, &policy.accepted_duplicates()));

    for error in &findings.errors {
        println!("{error}");
    }
    anyhow::ensure!(findings.errors.is_empty(), "{} broken rules", findings.errors.len());
    let used = packages.iter().filter(|package| package.source.is_some()).count();
    Ok(Outcome::Passed {
        found: format!("licences of {used} crates, {advised}"),
        warnings: findings.warnings,
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    toml::from_str(&text).with_context(|| name.into_owned())
}

/// Everything comes from where it may come from.
fn sources(allowed: &[String], foreign: &[Locked], findings: &mut Findings) {
    for package in foreign {
        let source = package.source.as_deref().unwrap_or_default();
        if !allowed.iter().any(|allowed| allowed == source) {
            let (name, version) = (&package.name, &package.version);
            findings.errors.push(format!("{name} {version}: comes from {source}"));
        }
    }
}

/// Crates that are there in versions that do not fit together.
fn duplicates(foreign: &[Locked], accepted: &BTreeMap<&str, &str>) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<(u64, u64, u64)>> = BTreeMap::new();
    for package in foreign {
        let v = &package.version;
        // Of what cargo holds for compatible, there is one at most.
        let line = match (v.major, v.minor) {
            (0, 0) => (0, 0, v.patch),
            (0, minor) => (0, minor, 0),
            (major, _) => (major, 0, 0),
        };
        versions.entry(&package.name).or_default().insert(line);
    }
    let several: BTreeSet<&str> =
        versions.iter().filter(|(_, lines)| lines.len() > 1).map(|(name, _)| *name).collect();
    let told = several.iter().filter(|name| !accepted.contains_key(**name)).map(|name| {
        let all = foreign.iter().filter(|package| package.name == **name);
        let all: Vec<_> = all.map(|package| package.version.to_string()).collect();
        format!("{name} is there more than once: {}", all.join(", "))
    });
    let idle = accepted.keys().filter(|name| !several.contains(**name)).map(|name| {
        format!("policy.toml accepts more than one {name}, and there is one at most: remove that")
    });
    told.chain(idle).collect()
}

#[cfg(test)]
fn locked(name: &str, version: &str) -> Locked {
    Locked { name: name.into(), version: version.parse().unwrap(), source: Some("registry".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_an_error() {
        let mut findings = Findings::default();
        let other =
            Locked { source: Some("git+https://example.org".into()), ..locked("b", "1.0.0") };
        sources(&["registry".into()], &[locked("a", "1.0.0"), other], &mut findings);
        assert_eq!(findings.errors, ["b 1.0.0: comes from git+https://example.org"]);
    }

    #[test]
    fn incompatible_versions_side_by_side_are_told() {
        let cases: [(&[&str], bool); 6] = [
            (&["1.0.0"], false),
            (&["1.0.0", "2.0.0"], true),
            (&["0.1.0", "0.2.0"], true),
            (&["0.1.0", "0.1.1"], false),
            (&["0.0.1", "0.0.2"], true),
            (&["0.1.0", "1.1.0"], true),
        ];
        for (versions, want) in cases {
            let all: Vec<_> = versions.iter().map(|version| locked("a", version)).collect();
            let found = duplicates(&all, &BTreeMap::new());
            assert_eq!(!found.is_empty(), want, "{versions:?}");
            let accepted = BTreeMap::from([("a", "a reason")]);
            let found = duplicates(&all, &accepted);
            assert_eq!(!found.is_empty(), !want, "{versions:?}, accepted");
        }
    }
}
