//! Watches a sandbox's limits from outside.
//!
//! Wall-clock time always. With a cgroup the kernel enforces memory, processes
//! and the CPU share, and the watcher reads its counters to name the reason and
//! end the whole. Without one it measures `/proc` itself: the memory and
//! threads of all processes, and their CPU time, by which it stops and
//! continues them to keep the share. It also does that where the cgroup only
//! counts CPU time.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags};
use sandbox::Limit;
use wire::jail::{Accounting, ToInit, Used};

use super::live::Shared;
use super::lock;

const TICK_CGROUP: Duration = Duration::from_millis(20);
const TICK_PROC: Duration = Duration::from_millis(10);

/// CPU time that a sandbox may use ahead of its share, as a cgroup's period
/// gives it.
const CPU_BURST: Duration = Duration::from_millis(50);

/// Clock ticks in `/proc/PID/stat` are hundredths of a second on every Linux
/// that Casemate runs on (`USER_HZ`).
const TICK_US: u64 = 10_000;

/// Descriptors a sandbox is measured by.
pub(super) struct Measures {
    pub(super) proc: OwnedFd,
    pub(super) disk: OwnedFd,
}

/// Runs until the sandbox has ended.
pub(super) async fn watch(shared: Arc<Shared>, accounting: Accounting) {
    let by_hand = matches!(accounting, Accounting::Rlimits(_));
    let keeps_share = by_hand || matches!(accounting, Accounting::CgroupV2 { cpu: false, .. });
    let mut ended = std::pin::pin!(shared.end.notified());
    ended.as_mut().enable();
    if shared.has_ended() {
        return;
    }
    tokio::select! {
        () = shared.first_start.notified() => {}
        () = &mut ended => return,
    }
    let begun = shared.begun.get().copied().unwrap_or_else(Instant::now);
    let deadline = begun + shared.limits.wall_time;
    let mut paused = false;
    let mut tally = Tally::default();
    loop {
        let tick = Instant::now() + if keeps_share { TICK_PROC } else { TICK_CGROUP };
        tokio::select! {
            () = tokio::time::sleep_until(tick.min(deadline).into()) => {}
            () = &mut ended => return,
        }
        if Instant::now() >= deadline {
            shared.end_for(Limit::WallTime);
        }
        if by_hand {
            measure(&shared, &mut tally);
        }
        find_exceeded(&shared);
        if keeps_share {
            paused = keep_share(&shared, begun, paused).await;
        }
    }
}

/// Names the limit that the sandbox has exceeded, if it has, and ends it.
pub(super) fn find_exceeded(shared: &Shared) {
    if shared.limit_hit.get().is_some() {
        return;
    }
    let counted = super::cgroup::used(&shared.counters);
    let seen = *lock(&shared.seen);
    let cpu = Duration::from_micros(counted.cpu_us.max(seen.cpu_us));
    let limits = &shared.limits;
    let exceeded = [
        (Limit::Memory, counted.oom_kills + seen.oom_kills > 0),
        (Limit::Processes, counted.pids_refused + seen.pids_refused > 0),
        (Limit::CpuTime, limits.cpu_time.is_some_and(|most| cpu > most)),
        (Limit::Disk, disk(shared).is_some_and(|disk| disk.full)),
    ];
    if let Some((limit, _)) = exceeded.into_iter().find(|(_, exceeded)| *exceeded) {
        shared.end_for(limit);
    }
}

struct Disk {
    used: u64,
    full: bool,
}

fn disk(shared: &Shared) -> Option<Disk> {
    let measures = lock(&shared.measures);
    let stat = rustix::fs::fstatfs(&measures.as_ref()?.disk).ok()?;
    let block = u64::try_from(stat.f_bsize).unwrap_or(4096);
    Some(Disk {
        used: (stat.f_blocks - stat.f_bfree) * block,
        full: stat.f_bavail == 0 || stat.f_ffree == 0,
    })
}

/// CPU time that processes took with them. The kernel adds it to their parent's
/// only if that waits for them.
#[derive(Default)]
struct Tally {
    /// The last reading of each process, by its id and start time.
    alive: HashMap<(u64, u64), u64>,
    gone_us: u64,
}

impl Tally {
    /// Takes all processes' own CPU time; returns that of all there ever were.
    /// What one did between the last look and its end is not known: half of the
    /// time between two looks is the fair guess.
    fn update(&mut self, now: HashMap<(u64, u64), u64>) -> u64 {
        let gone = self.alive.iter().filter(|(process, _)| !now.contains_key(process));
        let half = u64::try_from(TICK_PROC.as_micros() / 2).unwrap_or(0);
        self.gone_us += gone.map(|(_, us)| us + half).sum::<u64>();
        self.alive = now;
        self.gone_us + self.alive.values().sum::<u64>()
    }
}

/// What `/proc` says of all processes.
#[derive(Default)]
struct Sum {
    /// With that of children they have waited for.
    cpu_us: u64,
    own_cpu_us: HashMap<(u64, u64), u64>,
    threads: u64,
    /// Memory without a file, what processes share counted in each.
    memory: u64,
}

/// Measures memory, threads and CPU time, and marks what is exceeded as a
/// cgroup's counters would.
fn measure(shared: &Shared, tally: &mut Tally) {
    let ended_cpu = lock(&shared.ended_cpu).as_micros();
    let files = disk(shared).map_or(0, |disk| disk.used);
    let measures = lock(&shared.measures);
    let Some(proc) = measures.as_ref().map(|measures| &measures.proc) else { return };
    let sum = sum(proc);
    // Each way misses something that the other sees: children that end between
    // two looks, and children that nobody waits for.
    let waited = sum.cpu_us + u64::try_from(ended_cpu).unwrap_or(0);
    let cpu_us = waited.max(tally.update(sum.own_cpu_us));
    let limits = &shared.limits;
    let mut memory = sum.memory + files;
    if memory > limits.memory {
        // Worth the cost of counting what is shared once.
        memory = proportional(proc) + files;
    }
    let mut seen = lock(&shared.seen);
    *seen = Used {
        cpu_us: seen.cpu_us.max(cpu_us),
        peak: seen.peak.max(memory),
        oom_kills: seen.oom_kills + u64::from(memory > limits.memory),
        pids_refused: seen.pids_refused + u64::from(sum.threads > limits.processes.into()),
    };
}

/// The directories in `/proc` of all processes but init.
fn processes(proc: &OwnedFd) -> Vec<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(listed) = rustix::fs::openat(proc, ".", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = Dir::read_from(&listed) else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_bytes();
            name != b"1" && name.iter().all(u8::is_ascii_digit)
        })
        .filter_map(|entry| rustix::fs::openat(proc, entry.file_name(), flags, Mode::empty()).ok())
        .collect()
}

/// A file's text. Names in it are the program's choice and any bytes.
fn read(process: &OwnedFd, name: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(process, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn sum(proc: &OwnedFd) -> Sum {
    let mut sum = Sum::default();
    for process in processes(proc) {
        // The name in parentheses may contain anything, so count from its end.
        let Some(stat) = read(&process, "stat") else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let fields: Vec<u64> = rest.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        // Fields 14 to 17 (own time and that of reaped children) and 20, less
        // the two before.
        let field = |number: usize| fields.get(number - 3).copied().unwrap_or(0);
        sum.cpu_us += (14..=17).map(field).sum::<u64>() * TICK_US;
        let id = stat.split(' ').next().and_then(|pid| pid.parse().ok()).unwrap_or(0);
        // More exact, but of the first thread only.
        let first_ns = read(&process, "schedstat")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
            .unwrap_or(0);
        let own_us = ((field(14) + field(15)) * TICK_US).max(first_ns / 1000);
        sum.own_cpu_us.insert((id, field(22)), own_us);
        sum.threads += field(20);
        if let Some(status) = read(&process, "status") {
            sum.memory += kib(&status, "RssAnon:") + kib(&status, "RssShmem:");
        }
    }
    sum
}

/// The sum of a field in lines of `field  number kB`, in bytes.
fn kib(text: &str, field: &str) -> u64 {
    let number = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    text.lines().filter(|line| line.starts_with(field)).filter_map(number).sum::<u64>() * 1024
}

/// Memory without a file of all processes, each page divided among its sharers.
/// Mapped files of the sandbox's own disk are counted there.
fn proportional(proc: &OwnedFd) -> u64 {
    let mut sum = 0;
    for process in processes(proc) {
        sum += read(&process, "smaps_rollup").map_or(0, |text| kib(&text, "Pss_Anon:"));
        sum += read(&process, "smaps").map_or(0, |text| shared_anonymous(&text));
    }
    sum
}

/// The proportional size of mappings that processes share and no file backs.
fn shared_anonymous(smaps: &str) -> u64 {
    let mut inside = false;
    let mut sum = 0;
    for line in smaps.lines() {
        // A mapping's head begins with its addresses, its fields with a name.
        if line.starts_with(|c: char| c.is_ascii_digit() || ('a'..='f').contains(&c)) {
            inside = line.ends_with("/dev/zero (deleted)");
        } else if inside && line.starts_with("Pss:") {
            sum += kib(line, "Pss:");
        }
    }
    sum
}

/// Stops or continues all processes so that they keep to their CPU share.
async fn keep_share(shared: &Shared, begun: Instant, paused: bool) -> bool {
    let counted = super::cgroup::used(&shared.counters).cpu_us;
    let used = Duration::from_micros(counted.max(lock(&shared.seen).cpu_us));
    let allowed = begun.elapsed().mul_f64(shared.limits.cpus) + CPU_BURST;
    match (paused, used > allowed) {
        (false, true) => shared.ask(|seq| ToInit::Pause { seq }, Vec::new()).await.is_ok(),
        (true, false) if !shared.is_paused() => {
            shared.ask(|seq| ToInit::Resume { seq }, Vec::new()).await.is_err()
        }
        (paused, _) => paused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_processes_that_are_gone_is_kept() {
        let mut tally = Tally::default();
        let at = |processes: &[((u64, u64), u64)]| processes.iter().copied().collect();
        assert_eq!(tally.update(at(&[((2, 10), 5), ((3, 10), 1)])), 6);
        assert_eq!(tally.update(at(&[((2, 10), 7)])), 5_008, "3 is gone");
        assert_eq!(tally.update(at(&[((2, 20), 1)])), 10_009, "2 is another process");
        assert_eq!(tally.update(at(&[])), 15_009);
    }

    #[test]
    fn shared_memory_without_a_file_is_summed() {
        let smaps = "7f00-7f10 rw-s 00000000 00:01 5   /dev/zero (deleted)\n\
                     Size:  40 kB\nPss:  30 kB\nPss_Dirty:  30 kB\n\
                     7f10-7f20 rw-s 00000000 00:40 6   /dev/shm/x\nPss:  7 kB\n\
                     aa00-aa10 rw-s 00000000 00:01 7   /dev/zero (deleted)\nPss:  1 kB\n";
        assert_eq!(shared_anonymous(smaps), 31 * 1024);
        assert_eq!(kib(smaps, "Pss:"), 38 * 1024);
    }
}
