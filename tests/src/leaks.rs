//! What is there on the host, to see what a run leaves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Waits until `holds`, at most `limit`; says whether it came to hold.
pub fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Live processes of the host with `marker` in their command line, but for
/// this one. Processes of sandboxes are seen from here too.
#[must_use]
pub fn marked_pids(marker: &str) -> Vec<u32> {
    pids_with("cmdline", marker)
}

/// Live processes of the host with `marker` in their initial environment.
#[must_use]
pub fn environment_pids(marker: &str) -> Vec<u32> {
    pids_with("environ", marker)
}

fn pids_with(file: &str, marker: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for (pid, process) in processes() {
        if pid == std::process::id() {
            continue;
        }
        if let Ok(text) = fs::read(process.join(file))
            && text.windows(marker.len()).any(|window| window == marker.as_bytes())
        {
            found.push(pid);
        }
    }
    found
}

fn processes() -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir("/proc").expect("a /proc");
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect()
}

/// What one copy of `casemate`, with its own temporary directory, has on the
/// host at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Processes: those that run the copy, and those that carry the marker.
    pub processes: BTreeSet<String>,
    /// Control groups with `casemate` in their path.
    pub cgroups: BTreeSet<String>,
    /// Mounts that the host sees, with `casemate` in them.
    pub mounts: BTreeSet<String>,
    /// Entries of temporary directories.
    pub files: BTreeSet<String>,
}

impl Snapshot {
    /// Looks now. `copy` is the executable of the runs in question, `marker` a
    /// text in the command line of what ran, `temporary` their `TMPDIR`.
    #[must_use]
    pub fn take(copy: &Path, marker: &str, temporary: &Path) -> Self {
        let mut snapshot = Self::default();
        for (pid, process) in processes() {
            let executable = fs::read_link(process.join("exe")).unwrap_or_default();
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            let marked = pid != std::process::id() && command.contains(marker);
            if executable == copy || marked {
                snapshot.processes.insert(format!("{pid} {command}"));
            }
        }
        collect_cgroups(Path::new("/sys/fs/cgroup"), 0, &mut snapshot.cgroups);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let ours = mounts.lines().filter(|line| line.contains("casemate"));
        snapshot.mounts.extend(ours.map(str::to_owned));
        collect_names(temporary, |_| true, &mut snapshot.files);
        for shared in ["/tmp", "/dev/shm", "/run", "/var/tmp"] {
            let ours = |name: &str| name.contains("casemate");
            collect_names(Path::new(shared), ours, &mut snapshot.files);
        }
        snapshot
    }

    /// What is in `self` and was not in `earlier`, in words.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Vec<String> {
        let fresh = |now: &BTreeSet<String>, then: &BTreeSet<String>, what: &str| {
            now.difference(then).map(|entry| format!("{what}: {entry}")).collect::<Vec<_>>()
        };
        let mut all = fresh(&self.processes, &earlier.processes, "process");
        all.extend(fresh(&self.cgroups, &earlier.cgroups, "cgroup"));
        all.extend(fresh(&self.mounts, &earlier.mounts, "mount"));
        all.extend(fresh(&self.files, &earlier.files, "file"));
        all
    }

    /// Waits at most `limit` until nothing is there that was not in `self`;
    /// what remains.
    ///
    /// Other runs on the machine come and go: only what is seen each time is
    /// counted.
    #[must_use]
    pub fn left_after(
        &self,
        limit: Duration,
        copy: &Path,
        marker: &str,
        temporary: &Path,
    ) -> Vec<String> {
        let begun = Instant::now();
        let mut left = Self::take(copy, marker, temporary).since(self);
        while !left.is_empty() && begun.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(50));
            let now = Self::take(copy, marker, temporary).since(self);
            left.retain(|entry| now.contains(entry));
        }
        left
    }
}

fn collect_cgroups(directory: &Path, depth: usize, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if path.to_string_lossy().contains("casemate") {
            found.insert(path.display().to_string());
        }
        if depth < 8 {
            collect_cgroups(&path, depth + 1, found);
        }
    }
}

fn collect_names(directory: &Path, wanted: impl Fn(&str) -> bool, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        if wanted(&entry.file_name().to_string_lossy()) {
            found.insert(entry.path().display().to_string());
        }
    }
}
