//! Licences: what may be used, by `rules/supply-chain/policy.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use super::Findings;
use crate::workspace::Package;

/// `policy.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    /// What our own crates say.
    own: String,
    /// Where crates may come from, as the lock file writes it.
    pub(super) sources: Vec<String>,
    licence: Vec<Allowed>,
    #[serde(default)]
    exception: Vec<Exception>,
    #[serde(default)]
    duplicate: Vec<Duplicate>,
}

/// A licence that any crate may have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    /// As SPDX names it, with its exception if there is one.
    id: String,
    why: String,
}

/// A crate with a licence that others may not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    name: String,
    /// The expression that it must have.
    licence: String,
    why: String,
}

/// A crate that may be there in several versions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Duplicate {
    name: String,
    why: String,
}

impl Policy {
    /// Crates that may be there in several versions, and why.
    pub(super) fn accepted_duplicates(&self) -> BTreeMap<&str, &str> {
        self.duplicate.iter().map(|each| (each.name.as_str(), each.why.as_str())).collect()
    }
}

pub(super) fn check(policy: &Policy, packages: &[Package], findings: &mut Findings) {
    let mut allowed = Vec::new();
    for licence in &policy.licence {
        match Licensee::parse(&licence.id) {
            Ok(licensee) => allowed.push(licensee),
            Err(error) => {
                findings.errors.push(format!("policy.toml: `{}`: {}", licence.id, error.reason));
            }
        }
    }
    unargued(policy, findings);

    let mut needed = BTreeSet::new();
    let mut excepted = BTreeSet::new();
    for package in packages {
        let what = format!("{} {}", package.name, package.version);
        let text = package.license.as_deref();
        if package.source.is_none() {
            if text != Some(&policy.own) {
                let own = &policy.own;
                findings.errors.push(format!("{what}: is ours, so its licence is `{own}`"));
            }
            continue;
        }
        let exception = policy.exception.iter().find(|each| each.name == package.name);
        if let Some(exception) = exception
            && text == Some(&exception.licence)
        {
            excepted.insert(exception.name.as_str());
            continue;
        }
        match judge(text, &allowed) {
            Ok(used) => needed.extend(used),
            Err(why) => {
                let file = package.license_file.as_deref();
                let file = file.map(|file| format!(" (see its {file})")).unwrap_or_default();
                findings.errors.push(format!("{what}: {why}{file}"));
            }
        }
    }
    for (licensee, licence) in allowed.iter().zip(&policy.licence) {
        if !needed.contains(&licensee.to_string()) {
            findings.warnings.push(format!("no crate needs {}: remove it", licence.id));
        }
    }
    for exception in &policy.exception {
        if !excepted.contains(exception.name.as_str()) {
            let name = &exception.name;
            findings.warnings.push(format!("the exception for {name} is for no crate: remove it"));
        }
    }
}

/// The allowed licences that an expression can be satisfied with.
fn judge(text: Option<&str>, allowed: &[Licensee]) -> Result<Vec<String>, String> {
    let text = text.ok_or("names no licence")?;
    // Old manifests separate choices with a slash.
    let expression = Expression::parse_mode(text, ParseMode::LAX)
        .map_err(|error| format!("`{text}` is no SPDX expression: {}", error.reason))?;
    let mut used = Vec::new();
    let satisfied = expression.evaluate(|requirement| {
        let found = allowed.iter().find(|licensee| licensee.satisfies(requirement));
        used.extend(found.map(Licensee::to_string));
        found.is_some()
    });
    if satisfied { Ok(used) } else { Err(format!("`{text}` is not allowed")) }
}

/// Everything in the policy has a reason.
fn unargued(policy: &Policy, findings: &mut Findings) {
    let reasons = (policy.licence.iter().map(|each| (&each.id, &each.why)))
        .chain(policy.exception.iter().map(|each| (&each.name, &each.why)))
        .chain(policy.duplicate.iter().map(|each| (&each.name, &each.why)));
    for (what, why) in reasons {
        if why.trim().len() < 10 {
            findings.errors.push(format!("policy.toml: {what}: say why"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "
        own = 'MIT'
        sources = []
        licence = [
            { id = 'MIT', why = 'asks for its text only' },
            { id = 'Apache-2.0 WITH LLVM-exception', why = 'asks for its text only' },
        ]
        exception = [{ name = 'odd', licence = 'GPL-3.0', why = 'is not in the program' }]
    ";

    fn package(name: &str, licence: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.into(),
            version: semver::Version::new(1, 0, 0),
            source: source.map(str::to_owned),
            license: licence.map(str::to_owned),
            license_file: None,
            manifest_path: "/p".into(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        }
    }

    #[test]
    fn licences_are_judged() {
        let policy: Policy = toml::from_str(POLICY).unwrap();
        let foreign = Some("registry");
        // A crate, its licence, where it is from, whether that is good.
        let cases = [
            ("a", Some("MIT"), foreign, true),
            ("a", Some("MIT OR GPL-3.0"), foreign, true),
            ("a", Some("MIT/GPL-3.0"), foreign, true),
            ("a", Some("Apache-2.0 WITH LLVM-exception"), foreign, true),
            ("a", Some("Apache-2.0"), foreign, false),
            ("a", Some("MIT AND GPL-3.0"), foreign, false),
            ("a", Some("(MIT OR GPL-3.0) AND Unicode-3.0"), foreign, false),
            ("a", Some("GPL-3.0"), foreign, false),
            ("a", Some("as you like"), foreign, false),
            ("a", None, foreign, false),
            ("odd", Some("GPL-3.0"), foreign, true),
            ("odd", Some("AGPL-3.0"), foreign, false),
            ("ours", Some("MIT"), None, true),
            ("ours", None, None, false),
        ];
        for (name, licence, source, good) in cases {
            let mut findings = Findings::default();
            check(&policy, &[package(name, licence, source)], &mut findings);
            assert_eq!(findings.errors.is_empty(), good, "{name} {licence:?}: {findings:?}");
        }
    }

    #[test]
    fn what_is_of_no_use_or_without_reason_is_told() {
        let policy: Policy = toml::from_str(POLICY).unwrap();
        let mut findings = Findings::default();
        check(&policy, &[package("a", Some("MIT"), Some("registry"))], &mut findings);
        assert_eq!(findings.warnings.len(), 2, "{findings:?}");

        let policy = POLICY.replace("asks for its text only", "");
        let policy: Policy = toml::from_str(&policy.replace("'MIT',", "'MITT',")).unwrap();
        let mut findings = Findings::default();
        check(&policy, &[], &mut findings);
        assert_eq!(findings.errors.len(), 3, "{findings:?}");
    }
}
