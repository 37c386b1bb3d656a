//! What a sandbox behind the jail costs: `cargo bench -p walls`.
//!
//! Beside it, where it is installed, bubblewrap with like settings, and the bare
//! host. `casemate bench run` interleaves the same and prints ratios.

#![forbid(unsafe_code)]

use std::process::{Command, Stdio};
use std::sync::Arc;

use divan::Bencher;
use sandbox::{Job, Limits, ProcessSpec, SandboxSpec, Wall, WallChoice, run};
use tokio::runtime::Runtime;
use walls::Helper;

fn main() {
    walls::helper_main();
    divan::main();
}

const PROGRAMS: [&str; 2] = ["true", "python3"];

fn argv(program: &str) -> &'static [&'static str] {
    match program {
        "python3" => &["/usr/bin/python3", "-c", "print(1+1)"],
        _ => &["/bin/true"],
    }
}

fn open(warm: usize) -> (Runtime, Arc<dyn Wall>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let wall = runtime
        .block_on(walls::open_warm(WallChoice::Auto, &Helper::this_program(), warm))
        .expect("the jail works here");
    (runtime, wall)
}

fn spec() -> SandboxSpec {
    // Bubblewrap limits nothing, so a CPU share would make the two unlike.
    SandboxSpec { limits: Limits { cpus: 2.0, ..Limits::default() }, ..SandboxSpec::default() }
}

/// Create, run, destroy.
#[divan::bench(args = PROGRAMS)]
fn jail(bencher: Bencher<'_, '_>, program: &str) {
    let (runtime, wall) = open(0);
    bencher.bench_local(|| {
        let job = Job::new(spec(), ProcessSpec::new(argv(program).iter().copied()));
        runtime.block_on(run(&*wall, job)).expect("it runs")
    });
    runtime.block_on(wall.shutdown());
}

/// The same, from sandboxes made ahead of time.
#[divan::bench(args = PROGRAMS)]
fn jail_warm(bencher: Bencher<'_, '_>, program: &str) {
    let (runtime, wall) = open(4);
    bencher.bench_local(|| {
        let job = Job::new(spec(), ProcessSpec::new(argv(program).iter().copied()));
        runtime.block_on(run(&*wall, job)).expect("it runs")
    });
    runtime.block_on(wall.shutdown());
}

#[divan::bench(args = PROGRAMS)]
fn bubblewrap(bencher: Bencher<'_, '_>, program: &str) {
    let flags = "--unshare-all --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \
                 --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp";
    let mut command = Command::new("bwrap");
    command.args(flags.split_whitespace()).args(argv(program)).stdout(Stdio::null());
    if !command.status().is_ok_and(|status| status.success()) {
        return;
    }
    bencher.bench_local(|| command.status().expect("it runs"));
}

#[divan::bench(args = PROGRAMS)]
fn host(bencher: Bencher<'_, '_>, program: &str) {
    let argv = argv(program);
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdout(Stdio::null());
    bencher.bench_local(|| command.status().expect("it runs"));
}
