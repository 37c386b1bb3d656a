//! Figures: samples, their medians, and a table of ratios.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::machine::Machine;
use crate::ui;

/// All figures of one bench.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Machine,
    /// What was measured, in one sentence.
    about: String,
    runs: u32,
    groups: Vec<Group>,
    /// What is missing or to be known.
    notes: Vec<String>,
}

/// Ways of doing the same thing.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    /// The thing.
    name: String,
    /// What ratios are to, by the names of ways.
    #[serde(skip)]
    peers: Vec<&'static str>,
    ways: Vec<Way>,
}

#[derive(Debug, Serialize)]
struct Way {
    name: &'static str,
    median_ms: f64,
    p99_ms: f64,
    /// The median as a multiple of each peer's.
    ratios: Vec<Ratio>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    to: &'static str,
    ratio: f64,
}

/// How long one way took, each time.
#[derive(Debug)]
pub(super) struct Samples {
    name: &'static str,
    times: Vec<Duration>,
}

impl Samples {
    pub(super) fn of(name: &'static str) -> Self {
        Self { name, times: Vec::new() }
    }

    pub(super) fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// The time, in ms, that `percent` of the times do not exceed.
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

impl Group {
    /// Figures of `samples`, as ratios to those that are among `peers`.
    pub(super) fn new(name: &str, peers: &[&'static str], samples: &[Samples]) -> Self {
        let medians: Vec<_> = samples.iter().map(|way| (way.name, way.percentile(50))).collect();
        let peers: Vec<_> =
            peers.iter().copied().filter(|peer| medians.iter().any(|way| way.0 == *peer)).collect();
        let ways = samples
            .iter()
            .map(|way| Way {
                name: way.name,
                median_ms: rounded(way.percentile(50)),
                p99_ms: rounded(way.percentile(99)),
                ratios: medians
                    .iter()
                    .filter(|(peer, _)| peers.contains(peer))
                    .map(|(to, median)| Ratio { to, ratio: rounded(way.percentile(50) / median) })
                    .collect(),
            })
            .collect();
        Self { name: name.to_owned(), peers, ways }
    }
}

fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl Report {
    pub(super) fn new(about: &str, runs: u32, groups: Vec<Group>, notes: Vec<String>) -> Self {
        Self { machine: Machine::this(), about: about.to_owned(), runs, groups, notes }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}; {} runs each, in turns\n", self.machine, self.about, self.runs)?;
        let mut rows = Vec::new();
        for group in &self.groups {
            let mut head = vec![group.name.clone(), "median".into(), "p99".into()];
            head.extend(group.peers.iter().map(|peer| format!("to {peer}")));
            rows.push(head);
            for way in &group.ways {
                let mut row = vec![format!("  {}", way.name)];
                row.extend([way.median_ms, way.p99_ms].map(|ms| format!("{ms:8.2} ms")));
                for peer in &group.peers {
                    let ratio = way.ratios.iter().find(|ratio| ratio.to == *peer);
                    row.push(ratio.map_or_else(String::new, |ratio| format!("{:.2}", ratio.ratio)));
                }
                rows.push(row);
            }
            rows.push(Vec::new());
        }
        rows.pop();
        f.write_str(&ui::columns(&rows))?;
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(name: &'static str, ms: impl IntoIterator<Item = u64>) -> Samples {
        Samples { name, times: ms.into_iter().map(Duration::from_millis).collect() }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let way = samples("a", (1..=100).rev());
        assert_eq!(way.percentile(50), 50.0);
        assert_eq!(way.percentile(99), 99.0);
        assert_eq!(samples("b", [7]).percentile(50), 7.0);
        assert_eq!(samples("b", [7]).percentile(99), 7.0);
    }

    #[test]
    fn ratios_are_to_peers_that_were_measured() {
        let ways = [samples("host", [2]), samples("jail", [5])];
        let group = Group::new("true", &["host", "bubblewrap"], &ways);
        assert_eq!(group.peers, ["host"]);
        let report = Report::new("runs", 1, vec![group], vec!["a note".into()]).to_string();
        let jail = report.lines().find(|line| line.starts_with("  jail")).unwrap();
        assert_eq!(jail.split_whitespace().last(), Some("2.50"));
        assert!(report.ends_with("\na note\n"));
    }
}
