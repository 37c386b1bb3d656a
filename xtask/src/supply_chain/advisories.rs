//! Known weaknesses: a dated snapshot of facts from the RustSec database,
//! `rules/supply-chain/advisories.toml`.

use std::collections::BTreeSet;

use semver::VersionReq;
use serde::Deserialize;

use super::date::{self, Day};
use super::{Findings, Locked};

/// `advisories.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshot {
    /// The day of the look-ups.
    looked_up_on: String,
    /// The newest advisory of any crate that the copy of the database had.
    newest_in_copy: String,
    /// After how many days to look again.
    stale_after_days: u32,
    /// The crates that were looked up, with or without advisories.
    looked_up: BTreeSet<String>,
    #[serde(default)]
    advisory: Vec<Advisory>,
    #[serde(default)]
    ignore: Vec<Ignored>,
}

/// Facts of one advisory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    id: String,
    name: String,
    date: String,
    kind: Kind,
    /// Versions from which it is repaired.
    #[serde(default)]
    patched: Vec<VersionReq>,
    /// Versions that never had it.
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

/// What an advisory is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Can be used against us.
    Vulnerability,
    /// Safe code may do what only unsafe code should.
    Unsound,
    /// Nobody repairs what will be found.
    Unmaintained,
    /// Anything else worth knowing.
    Notice,
}

/// An advisory that does not concern us.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ignored {
    id: String,
    why: String,
}

impl Advisory {
    fn affects(&self, package: &Locked) -> bool {
        let matches = |ranges: &[VersionReq]| ranges.iter().any(|r| r.matches(&package.version));
        package.name == self.name && !matches(&self.patched) && !matches(&self.unaffected)
    }

    fn fix(&self) -> String {
        if self.patched.is_empty() {
            return "no version repairs it".into();
        }
        let ranges: Vec<_> = self.patched.iter().map(VersionReq::to_string).collect();
        format!("repaired in {}", ranges.join(" and "))
    }
}

/// Checks the lock file; says what was looked at, in a few words.
pub(super) fn check(
    snapshot: &Snapshot,
    foreign: &[Locked],
    today: Day,
    findings: &mut Findings,
) -> String {
    ignored(snapshot, foreign, findings);
    for advisory in &snapshot.advisory {
        if date::parse(&advisory.date).is_none() {
            let (id, date) = (&advisory.id, &advisory.date);
            findings.errors.push(format!("advisories.toml: {id}: `{date}` is no date"));
        }
        if snapshot.ignore.iter().any(|ignored| ignored.id == advisory.id) {
            continue;
        }
        for package in foreign.iter().filter(|package| advisory.affects(package)) {
            let (name, version) = (&package.name, &package.version);
            let (id, kind, fix) = (&advisory.id, advisory.kind, advisory.fix());
            let text = format!("{name} {version}: {id} ({kind:?}), {fix}");
            match kind {
                Kind::Notice => findings.warnings.push(text),
                _ => findings.errors.push(text),
            }
        }
    }
    age(snapshot, today, findings);

    let names: BTreeSet<&str> = foreign.iter().map(|package| package.name.as_str()).collect();
    let unknown: Vec<&str> =
        names.iter().copied().filter(|name| !snapshot.looked_up.contains(*name)).collect();
    if !unknown.is_empty() {
        let text = format!("advisories were never looked up of: {}", unknown.join(", "));
        findings.warnings.push(text);
    }
    format!(
        "advisories of {} of {} crates as of {}",
        names.len() - unknown.len(),
        names.len(),
        snapshot.looked_up_on
    )
}

/// What is ignored is argued, and there is something to ignore.
fn ignored(snapshot: &Snapshot, foreign: &[Locked], findings: &mut Findings) {
    for ignored in &snapshot.ignore {
        let id = &ignored.id;
        if ignored.why.trim().len() < 20 {
            findings.errors.push(format!("advisories.toml: {id} is ignored: say why"));
        }
        let advisory = snapshot.advisory.iter().find(|advisory| advisory.id == *id);
        match advisory {
            None => findings.errors.push(format!("advisories.toml: no {id} to ignore")),
            Some(advisory) => {
                if !foreign.iter().any(|package| advisory.affects(package)) {
                    let text = format!("{id} is ignored and affects nothing: remove that");
                    findings.warnings.push(text);
                }
            }
        }
    }
}

fn age(snapshot: &Snapshot, today: Day, findings: &mut Findings) {
    for (what, date) in
        [("looked_up_on", &snapshot.looked_up_on), ("newest_in_copy", &snapshot.newest_in_copy)]
    {
        let Some(day) = date::parse(date) else {
            findings.errors.push(format!("advisories.toml: {what}: `{date}` is no date"));
            continue;
        };
        let days = today.0 - day.0;
        if days > i64::from(snapshot.stale_after_days) {
            let text = match what {
                "looked_up_on" => format!("advisories were looked up {days} days ago"),
                _ => format!(
                    "advisories: the copy that was looked into ends {days} days ago ({date})"
                ),
            };
            findings.warnings.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::locked;
    use super::*;

    const SNAPSHOT: &str = "
        looked_up_on = '2026-01-31'
        newest_in_copy = '2026-01-30'
        stale_after_days = 60
        looked_up = ['a', 'b']
        [[advisory]]
        id = 'RUSTSEC-2026-0001'
        name = 'a'
        date = '2026-01-02'
        kind = 'vulnerability'
        patched = ['>=1.2.3, <2.0.0', '>=2.1.0']
        unaffected = ['<1.0.0']
        [[advisory]]
        id = 'RUSTSEC-2026-0002'
        name = 'b'
        date = '2026-01-03'
        kind = 'notice'
    ";

    fn found(text: &str, name: &str, version: &str, today: &str) -> Findings {
        let snapshot: Snapshot = toml::from_str(text).unwrap();
        let mut findings = Findings::default();
        let today = date::parse(today).unwrap();
        check(&snapshot, &[locked(name, version)], today, &mut findings);
        findings
    }

    #[test]
    fn affected_versions_are_found() {
        let cases = [
            ("a", "0.9.0", false),
            ("a", "1.0.0", true),
            ("a", "1.2.2", true),
            ("a", "1.2.3", false),
            ("a", "2.0.0", true),
            ("a", "2.1.0", false),
            ("b", "1.0.0", false),
        ];
        for (name, version, want) in cases {
            let findings = found(SNAPSHOT, name, version, "2026-02-01");
            assert_eq!(!findings.errors.is_empty(), want, "{name} {version}: {findings:?}");
            assert_eq!(findings.warnings.len(), usize::from(name == "b"), "{findings:?}");
        }
    }

    #[test]
    fn what_is_ignored_has_a_reason_and_a_use() {
        let ignore =
            |id: &str, why: &str| format!("{SNAPSHOT}\n[[ignore]]\nid = '{id}'\nwhy = '{why}'\n");
        let why = "that function is never called here";
        // An ignored advisory, the version of `a`, errors and warnings.
        let cases = [
            ("RUSTSEC-2026-0001", why, "1.0.0", 0, 0),
            ("RUSTSEC-2026-0001", "", "1.0.0", 1, 0),
            ("RUSTSEC-2026-0001", why, "1.2.3", 0, 1),
            ("RUSTSEC-2026-0009", why, "1.2.3", 1, 0),
        ];
        for (id, why, version, errors, warnings) in cases {
            let findings = found(&ignore(id, why), "a", version, "2026-02-01");
            let counts = (findings.errors.len(), findings.warnings.len());
            assert_eq!(counts, (errors, warnings), "{id} {version}: {findings:?}");
        }
    }

    #[test]
    fn an_old_snapshot_and_unknown_crates_are_told() {
        let findings = found(SNAPSHOT, "a", "1.2.3", "2026-06-01");
        assert_eq!(findings.warnings.len(), 2, "{findings:?}");
        let findings = found(SNAPSHOT, "new", "1.0.0", "2026-02-01");
        assert_eq!(findings.warnings, ["advisories were never looked up of: new"]);
        assert!(findings.errors.is_empty());
        let findings = found(&SNAPSHOT.replace("01-31", "13-31"), "a", "1.2.3", "2026-02-01");
        assert_eq!(findings.errors.len(), 1, "{findings:?}");
    }
}
