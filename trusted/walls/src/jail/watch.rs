//! Watches a sandbox's limits from outside.
//!
//! Wall-clock time always. With a cgroup the kernel enforces memory, processes
//! and the CPU share, and the watcher reads its counters to name the reason and
//! end the whole. Without one it measures `/proc` itself: the memory and
//! threads of all processes, and their CPU time, by which it stops and
//! continues them to keep the share.

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
    loop {
        let tick = Instant::now() + if by_hand { TICK_PROC } else { TICK_CGROUP };
        tokio::select! {
            () = tokio::time::sleep_until(tick.min(deadline).into()) => {}
            () = &mut ended => return,
        }
        if Instant::now() >= deadline {
            shared.end_for(Limit::WallTime);
        }
        if by_hand {
            measure(&shared);
        }
        find_exceeded(&shared);
        if by_hand {
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

/// What `/proc` says of all processes.
#[derive(Default)]
struct Sum {
    cpu_us: u64,
    threads: u64,
    /// Private memory, pages shared after a fork counted in each process.
    private: u64,
}

/// Measures memory, threads and CPU time, and marks what is exceeded as a
/// cgroup's counters would.
fn measure(shared: &Shared) {
    let ended_cpu = lock(&shared.ended_cpu).as_micros();
    let files = disk(shared).map_or(0, |disk| disk.used);
    let measures = lock(&shared.measures);
    let Some(proc) = measures.as_ref().map(|measures| &measures.proc) else { return };
    let sum = sum(proc);
    let limits = &shared.limits;
    let mut memory = sum.private + files;
    if memory > limits.memory {
        // Worth the cost of counting shared pages once.
        memory = proportional(proc) + files;
    }
    let mut seen = lock(&shared.seen);
    *seen = Used {
        cpu_us: seen.cpu_us.max(sum.cpu_us + u64::try_from(ended_cpu).unwrap_or(0)),
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

fn read(process: &OwnedFd, name: &str) -> Option<String> {
    let file =
        rustix::fs::openat(process, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text).ok()?;
    Some(text)
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
        sum.threads += field(20);
        if let Some(statm) = read(&process, "statm") {
            let pages: Vec<u64> =
                statm.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
            if let [_, resident, shared, ..] = pages[..] {
                sum.private += resident.saturating_sub(shared) * 4096;
            }
        }
    }
    sum
}

/// Private memory of all processes, each shared page divided among its sharers.
fn proportional(proc: &OwnedFd) -> u64 {
    let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    processes(proc)
        .iter()
        .filter_map(|process| read(process, "smaps_rollup"))
        .filter_map(|text| text.lines().find(|line| line.starts_with("Pss_Anon:")).and_then(kib))
        .sum::<u64>()
        * 1024
}

/// Stops or continues all processes so that they keep to their CPU share.
async fn keep_share(shared: &Shared, begun: Instant, paused: bool) -> bool {
    let used = Duration::from_micros(lock(&shared.seen).cpu_us);
    let allowed = begun.elapsed().mul_f64(shared.limits.cpus) + CPU_BURST;
    match (paused, used > allowed) {
        (false, true) => shared.ask(|seq| ToInit::Pause { seq }, Vec::new()).await.is_ok(),
        (true, false) if !shared.is_paused() => {
            shared.ask(|seq| ToInit::Resume { seq }, Vec::new()).await.is_err()
        }
        (paused, _) => paused,
    }
}
