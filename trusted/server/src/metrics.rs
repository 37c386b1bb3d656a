//! Counters, in Prometheus' text format. The names after `casemate_` are those
//! of the zeroboot server, so that its dashboards need a new prefix only.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sandbox::{Limit, RunResult};

/// Upper bounds of the histograms' buckets, in milliseconds, as text and value.
const BUCKETS: [(&str, f64); 13] = [
    ("0.1", 0.1),
    ("0.25", 0.25),
    ("0.5", 0.5),
    ("1", 1.0),
    ("2.5", 2.5),
    ("5", 5.0),
    ("10", 10.0),
    ("25", 25.0),
    ("50", 50.0),
    ("100", 100.0),
    ("250", 250.0),
    ("500", 500.0),
    ("1000", 1000.0),
];

/// All counters of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    success: Counter,
    error: Counter,
    timeout: Counter,
    fork_micros: Counter,
    exec_micros: Counter,
    fork: Histogram,
    exec: Histogram,
    total: Histogram,
    cleanup_failures: Counter,
    /// Runs that a sandbox exists for, or is being made or destroyed for.
    pub(crate) live: Counter,
    /// Requests refused because all slots were taken.
    pub(crate) busy: Counter,
    /// Requests refused because their key was used too often.
    pub(crate) rate_limited: Counter,
    /// Requests refused because their key was missing or wrong.
    pub(crate) unauthorized: Counter,
    /// Runs given up because their client went away.
    pub(crate) disconnects: Counter,
}

/// A number that threads count up and down.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Counts one up until the guard is dropped.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.add(1);
        Held(self)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One, counted in a [`Counter`] for as long as this lives.
pub(crate) struct Held<'a>(&'a Counter);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Histogram {
    /// How many fell into each bucket and no lower one; the last has no bound.
    counts: [Counter; BUCKETS.len() + 1],
    sum_micros: Counter,
}

impl Histogram {
    fn observe(&self, time: Duration) {
        let millis = time.as_secs_f64() * 1e3;
        let bucket = BUCKETS.iter().position(|(_, bound)| millis <= *bound);
        self.counts[bucket.unwrap_or(BUCKETS.len())].add(1);
        self.sum_micros.add(micros(time));
    }

    fn write(&self, out: &mut String, name: &str) {
        let mut count = 0;
        let bounds = BUCKETS.iter().map(|(text, _)| *text).chain(["+Inf"]);
        for (bound, counter) in bounds.zip(&self.counts) {
            count += counter.get();
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        #[expect(clippy::cast_precision_loss, reason = "a sum of times needs no more than 53 bits")]
        let sum = self.sum_micros.get() as f64 / 1e3;
        let _ = writeln!(out, "{name}_sum {sum}\n{name}_count {count}");
    }
}

impl Metrics {
    /// Counts a run that came to a result.
    pub(crate) fn ran(&self, result: &RunResult) {
        match result.limit_hit {
            Some(Limit::WallTime) => self.timeout.add(1),
            None if result.exit.shell_code() == 0 => self.success.add(1),
            _ => self.error.add(1),
        }
        let times = &result.times;
        self.fork_micros.add(micros(times.create));
        self.exec_micros.add(micros(times.run));
        self.fork.observe(times.create);
        self.exec.observe(times.run);
        self.total.observe(times.total());
        if !result.cleanup.is_ok() {
            self.cleanup_failures.add(1);
        }
    }

    /// Counts a run that came to none.
    pub(crate) fn failed(&self) {
        self.error.add(1);
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn render(&self, waiting: usize) -> String {
        let mut out = String::with_capacity(4096);
        let executions = "casemate_total_executions";
        head(&mut out, executions, "counter", "Executions by how they ended.");
        let by_status =
            [("success", &self.success), ("error", &self.error), ("timeout", &self.timeout)];
        for (status, counter) in by_status {
            let _ = writeln!(out, "{executions}{{status=\"{status}\"}} {}", counter.get());
        }
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let plain = [
            ("concurrent_forks", "gauge", "Sandboxes now.", self.live.get()),
            ("sandboxes_live", "gauge", "Sandboxes now.", self.live.get()),
            ("queue_waiting", "gauge", "Requests waiting for a slot now.", waiting),
            (
                "fork_time_microseconds_total",
                "counter",
                "Time spent creating sandboxes.",
                self.fork_micros.get(),
            ),
            (
                "exec_time_microseconds_total",
                "counter",
                "Time programs ran.",
                self.exec_micros.get(),
            ),
            (
                "memory_usage_bytes",
                "gauge",
                "Resident memory of the server.",
                resident_memory().unwrap_or(0),
            ),
            (
                "busy_rejections_total",
                "counter",
                "Requests refused: no slot was free.",
                self.busy.get(),
            ),
            (
                "rate_limited_total",
                "counter",
                "Requests refused: key used too often.",
                self.rate_limited.get(),
            ),
            (
                "unauthorized_total",
                "counter",
                "Requests refused: key missing or wrong.",
                self.unauthorized.get(),
            ),
            (
                "client_disconnects_total",
                "counter",
                "Runs given up: client went away.",
                self.disconnects.get(),
            ),
            (
                "cleanup_failures_total",
                "counter",
                "Sandboxes of which something was left.",
                self.cleanup_failures.get(),
            ),
        ];
        for (name, kind, help, value) in plain {
            let name = format!("casemate_{name}");
            head(&mut out, &name, kind, help);
            let _ = writeln!(out, "{name} {value}");
        }
        let histograms = [
            ("fork", "Time to create a sandbox.", &self.fork),
            ("exec", "Time a program ran.", &self.exec),
            ("total", "Time from creation until nothing was left.", &self.total),
        ];
        for (name, help, histogram) in histograms {
            let name = format!("casemate_{name}_time_milliseconds");
            head(&mut out, &name, "histogram", help);
            histogram.write(&mut out, &name);
        }
        out
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What `/proc/self/status` calls `VmRSS`, in bytes.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_add_up() {
        let metrics = Metrics::default();
        for millis in [0.05, 0.1, 0.3, 7.0, 5000.0] {
            metrics.total.observe(Duration::from_secs_f64(millis / 1e3));
        }
        let text = metrics.render(3);
        let cases = [
            ("total_time_milliseconds_bucket{le=\"0.1\"}", "2"),
            ("total_time_milliseconds_bucket{le=\"0.25\"}", "2"),
            ("total_time_milliseconds_bucket{le=\"0.5\"}", "3"),
            ("total_time_milliseconds_bucket{le=\"10\"}", "4"),
            ("total_time_milliseconds_bucket{le=\"+Inf\"}", "5"),
            ("total_time_milliseconds_count", "5"),
            ("total_time_milliseconds_sum", "5007.45"),
            ("queue_waiting", "3"),
        ];
        for (name, want) in cases {
            let line = format!("casemate_{name} {want}");
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
        assert!(resident_memory().unwrap() > 1 << 20);
    }
}
