//! The sandbox interface, through the jail: each operation by what it does.

#![forbid(unsafe_code)]
// A skipped part of a test says so.
#![allow(clippy::print_stderr)]

use std::time::{Duration, Instant};

use bytes::Bytes;
use libtest_mimic::{Arguments, Failed, Trial};
use sandbox::{
    Contents, ControlState, CreateError, EntryKind, ExitStatus, FileError, FileToPut, GuestPath,
    Job, Limit, Limits, Pid, Process, ProcessEvent, ProcessSpec, Root, Sandbox, SandboxError,
    SandboxSpec, StartError, Stdin, Stdio, TerminalSize, Tree, Wall, WallChoice, Workspace,
    WorkspaceAccess, run,
};
use walls::Helper;

type Result = std::result::Result<(), Failed>;

fn main() {
    walls::helper_main();
    let arguments = Arguments::from_args();
    macro_rules! trials {
        ($($name:ident),* $(,)?) => { vec![$(trial(stringify!($name), async |wall| $name(wall).await)),*] };
    }
    let trials = trials![
        output_is_streamed_and_exit_comes_last,
        exit_codes_and_signals,
        a_program_that_wants_to_be_traced_runs_on,
        stdin_reaches_the_program,
        a_program_that_is_not_there,
        bad_arguments_are_named,
        several_processes_are_listed_signalled_and_attached,
        a_terminal,
        files_are_written_read_listed_renamed_removed,
        links_inside_lead_inside,
        what_is_no_regular_file_is_not_read,
        reading_is_bounded,
        pause_and_resume,
        limits_are_named,
        output_is_cut_at_its_limit,
        dropping_a_sandbox_ends_it,
        dropping_a_run_ends_it,
        a_directory_as_root,
        a_bundle_as_root,
        a_workspace_is_read_only_or_a_copy,
        user_namespaces_when_allowed,
        files_of_the_spec,
        directories_are_collected,
        warm_sandboxes_are_used_once,
        controls_are_listed,
        a_launcher_that_died_is_replaced,
        bad_specs_are_named,
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// One test with a wall and a runtime of its own.
fn trial<F>(name: &str, test: F) -> Trial
where
    F: AsyncFnOnce(&dyn Wall) -> Result + Send + 'static,
{
    Trial::test(name, move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let wall = walls::open_warm(WallChoice::Auto, &Helper::this_program(), 0).await?;
            test(&*wall).await?;
            let left = wall.shutdown().await;
            check(left.is_ok(), || left.to_string())
        })
    })
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> Result {
    check(got == want, || format!("got {got:?}, want {want:?}"))
}

fn spec() -> SandboxSpec {
    // Tests share two cores: half of one would make them slow, not safer.
    let wall_time = patience(Limits::default().wall_time);
    let limits = Limits { cpus: 2.0, wall_time, ..Limits::default() };
    SandboxSpec { limits, ..SandboxSpec::default() }
}

fn bash(script: &str) -> ProcessSpec {
    ProcessSpec::new(["bash", "-c", script])
}

fn path(text: &str) -> GuestPath {
    GuestPath::new(text).expect("a path")
}

/// A time that an emulated machine, which is slow, may take more of:
/// `CASEMATE_TEST_PATIENCE` times as much.
fn patience(time: Duration) -> Duration {
    let factor = std::env::var("CASEMATE_TEST_PATIENCE").ok().and_then(|text| text.parse().ok());
    time * factor.unwrap_or(1)
}

/// Everything a process does until it ends.
async fn watch(process: &mut Process) -> (String, ExitStatus) {
    let mut text = Vec::new();
    while let Some(event) = process.events.recv().await {
        match event {
            ProcessEvent::Stdout(bytes)
            | ProcessEvent::Stderr(bytes)
            | ProcessEvent::Pty(bytes) => {
                text.extend_from_slice(&bytes);
            }
            ProcessEvent::Exit(status) => {
                return (String::from_utf8_lossy(&text).into_owned(), status);
            }
        }
    }
    (String::from_utf8_lossy(&text).into_owned(), ExitStatus::Signal(-1))
}

async fn output_of(sandbox: &dyn Sandbox, script: &str) -> std::result::Result<String, Failed> {
    let mut process = sandbox.start(bash(script)).await?;
    Ok(watch(&mut process).await.0)
}

async fn output_is_streamed_and_exit_comes_last(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let pause = patience(Duration::from_millis(400));
    let script = format!("echo one; sleep {}; echo two >&2; exit 3", pause.as_secs_f64());
    let mut process = sandbox.start(bash(&script)).await?;
    let begun = Instant::now();
    equal(process.events.recv().await, Some(ProcessEvent::Stdout(Bytes::from_static(b"one\n"))))?;
    check(begun.elapsed() < pause * 3 / 4, || "the first line came late".into())?;
    equal(process.events.recv().await, Some(ProcessEvent::Stderr(Bytes::from_static(b"two\n"))))?;
    equal(process.events.recv().await, Some(ProcessEvent::Exit(ExitStatus::Code(3))))?;
    equal(process.events.recv().await, None)?;
    let ended = sandbox.destroy().await;
    equal(ended.limit_hit, None)?;
    check(ended.cleanup.is_ok(), || ended.cleanup.to_string())?;
    check(ended.usage.cpu_time > Duration::ZERO, || "no CPU time was counted".into())?;
    check(ended.usage.peak_memory > 100_000, || format!("{:?}", ended.usage))
}

async fn exit_codes_and_signals(wall: &dyn Wall) -> Result {
    let cases = [
        ("exit 0", ExitStatus::Code(0)),
        ("exit 255", ExitStatus::Code(255)),
        ("kill -TERM $$", ExitStatus::Signal(15)),
        ("kill -KILL $$", ExitStatus::Signal(9)),
        ("ulimit -f 1; head -c 100000 /dev/zero > f; exit $?", ExitStatus::Code(153)),
    ];
    for (script, want) in cases {
        let (result, _) = run(wall, Job::new(spec(), bash(script))).await?;
        check(result.exit == want, || format!("{script}: {:?}, want {want:?}", result.exit))?;
    }
    Ok(())
}

async fn a_program_that_wants_to_be_traced_runs_on(wall: &dyn Wall) -> Result {
    let script = "import ctypes, os, signal, subprocess\n\
                  ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n\
                  signal.signal(signal.SIGUSR1, lambda *_: print('signal', flush=True))\n\
                  os.kill(os.getpid(), signal.SIGUSR1)\n\
                  subprocess.run(['echo', 'child'])\n\
                  os.execv('/bin/echo', ['echo', 'end'])\n";
    let job = Job::new(spec(), ProcessSpec::new(["python3", "-c", script]));
    let (result, _) = run(wall, job).await?;
    equal(result.stdout.to_text(), "signal\nchild\nend\n".into())?;
    equal(result.exit, ExitStatus::Code(0))
}

async fn stdin_reaches_the_program(wall: &dyn Wall) -> Result {
    let big = Bytes::from(vec![b'x'; 1 << 20]);
    let mut job = Job::new(spec(), ProcessSpec::new(["wc", "-c"]));
    job.stdin = Stdin::Bytes(big.clone());
    let (result, _) = run(wall, job).await?;
    equal(result.stdout.to_text().trim().to_owned(), "1048576".to_owned())?;
    // A program that does not read must not hang the run.
    let mut job = Job::new(spec(), ProcessSpec::new(["true"]));
    job.stdin = Stdin::Bytes(big);
    let (result, _) = run(wall, job).await?;
    equal(result.exit, ExitStatus::Code(0))?;
    // With no stdin asked for, it is at its end.
    let (result, _) = run(wall, Job::new(spec(), ProcessSpec::new(["cat"]))).await?;
    equal(result.exit, ExitStatus::Code(0))
}

async fn a_program_that_is_not_there(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let missing = sandbox.start(ProcessSpec::new(["no-such-program"])).await.err();
    equal(missing, Some(StartError::NotFound { program: "no-such-program".into() }))?;
    let directory = sandbox.start(ProcessSpec::new(["/tmp"])).await.err();
    check(matches!(directory, Some(StartError::Exec { .. })), || format!("{directory:?}"))?;
    let mut elsewhere = bash("true");
    elsewhere.cwd = path("/nowhere");
    let cwd = sandbox.start(elsewhere).await.err();
    check(matches!(cwd, Some(StartError::Cwd { .. })), || format!("{cwd:?}"))?;
    // The sandbox lives on.
    equal(output_of(&*sandbox, "echo alive").await?, "alive\n".into())
}

async fn bad_arguments_are_named(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let long = "x".repeat(200_000);
    let mut variable = bash("true");
    variable.env.insert("A=B".into(), "c".into());
    let cases = [
        (ProcessSpec::new(Vec::<String>::new()), "the program"),
        (ProcessSpec::new(["echo", "a\0b"]), "NUL"),
        (ProcessSpec::new(["echo", &long]), "128 KiB"),
        (variable, "A=B"),
    ];
    for (process, want) in cases {
        let error = sandbox.start(process).await.err().map(|error| error.to_string());
        check(error.as_ref().is_some_and(|text| text.contains(want)), || {
            format!("{error:?}, want {want}")
        })?;
    }
    Ok(())
}

async fn several_processes_are_listed_signalled_and_attached(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let mut sleeper =
        bash("trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.05; done");
    sleeper.tag = Some("sleeper".into());
    let mut first = sandbox.start(sleeper).await?;
    equal(first.events.recv().await, Some(ProcessEvent::Stdout(Bytes::from_static(b"ready\n"))))?;
    let mut second = sandbox.start(bash("exit 4")).await?;
    equal(watch(&mut second).await.1, ExitStatus::Code(4))?;

    let listed = sandbox.processes().await;
    equal(listed.len(), 2)?;
    let find = |pid| listed.iter().find(|info| info.pid == pid).cloned();
    let info = find(first.pid).ok_or("the sleeper is not listed")?;
    equal((info.tag.as_deref(), info.exit), (Some("sleeper"), None))?;
    equal(find(second.pid).and_then(|info| info.exit), Some(ExitStatus::Code(4)))?;

    let mut watcher = sandbox.attach(first.pid).await?;
    sandbox.signal(first.pid, 10).await?;
    let (text, status) = watch(&mut watcher).await;
    equal((text.as_str(), status), ("caught\n", ExitStatus::Code(7)))?;
    equal(watch(&mut first).await.1, ExitStatus::Code(7))?;

    // Whoever comes late is told of the end; the dead are not signalled.
    let mut late = sandbox.attach(first.pid).await?;
    equal(watch(&mut late).await, (String::new(), ExitStatus::Code(7)))?;
    equal(sandbox.signal(first.pid, 15).await, Err(SandboxError::NoProcess(first.pid.0)))?;
    for pid in [0, 1, 99_999, u32::MAX] {
        equal(sandbox.signal(Pid(pid), 9).await, Err(SandboxError::NoProcess(pid)))?;
    }
    Ok(())
}

async fn a_terminal(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let mut process =
        bash("tty; stty size; test -t 1 && echo yes; read line; echo got $line; stty size; cat");
    process.stdio = Stdio::Pty(TerminalSize { rows: 30, cols: 100 });
    let mut process = sandbox.start(process).await?;
    let input = process.input.clone().ok_or("a terminal has no input")?;
    let mut text = String::new();
    while !text.contains("yes") {
        match process.events.recv().await {
            Some(ProcessEvent::Pty(bytes)) => text.push_str(&String::from_utf8_lossy(&bytes)),
            other => return Err(format!("{other:?} after {text:?}").into()),
        }
    }
    check(text.contains("/dev/pts/0") && text.contains("30 100"), || text.clone())?;
    sandbox.resize(process.pid, TerminalSize { rows: 50, cols: 132 }).await?;
    input.write(Bytes::from_static(b"hello\n")).await?;
    input.close().await;
    let (text, status) = watch(&mut process).await;
    check(text.contains("got hello") && text.contains("50 132"), || text.clone())?;
    equal(status, ExitStatus::Code(0))
}

fn text_file(at: &str, text: &'static str, mode: u32) -> FileToPut {
    FileToPut {
        path: path(at),
        contents: Contents::Bytes(Bytes::from_static(text.as_bytes())),
        mode,
    }
}

async fn files_are_written_read_listed_renamed_removed(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    sandbox.put(&text_file("a/b/run.sh", "#!/bin/sh\necho it runs\n", 0o755)).await?;
    sandbox.put(&text_file("a/plain", "text", 0o640)).await?;
    sandbox.put(&text_file("a/plain", "new", 0o600)).await?;
    let link =
        FileToPut { path: path("a/link"), contents: Contents::Symlink("plain".into()), mode: 0 };
    sandbox.put(&link).await?;
    sandbox
        .put(&FileToPut { path: path("a/dir"), contents: Contents::Directory, mode: 0o700 })
        .await?;

    equal(
        output_of(&*sandbox, "a/b/run.sh; cat a/link; stat -c %a a/plain a/dir").await?,
        "it runs\nnew600\n700\n".into(),
    )?;
    equal(sandbox.read_file(&path("a/link"), 100).await?, Bytes::from_static(b"new"))?;

    let listed = sandbox.list_dir(&path("a")).await?;
    let seen: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    equal(
        seen,
        vec![
            ("b", EntryKind::Directory),
            ("dir", EntryKind::Directory),
            ("link", EntryKind::Symlink),
            ("plain", EntryKind::File),
        ],
    )?;
    let stat = sandbox.stat(&path("a/link")).await?;
    equal((stat.kind, stat.target.as_deref()), (EntryKind::Symlink, Some("plain")))?;

    sandbox.rename(&path("a/plain"), &path("moved")).await?;
    equal(sandbox.stat(&path("moved")).await?.size, 3)?;
    sandbox.remove(&path("a")).await?;
    sandbox.remove(&path("a")).await?;
    equal(sandbox.stat(&path("a")).await.err(), Some(FileError::NotFound(path("a"))))?;
    // Outside what is writable.
    let outside = sandbox.put(&text_file("/etc/x", "", 0o644)).await;
    check(matches!(outside, Err(FileError::Refused { .. })), || format!("{outside:?}"))?;
    let full = FileToPut {
        path: path("big"),
        contents: Contents::Bytes(Bytes::from(vec![1; 80 << 20])),
        mode: 0o644,
    };
    equal(sandbox.put(&full).await, Err(FileError::DiskFull(path("big"))))
}

async fn links_inside_lead_inside(wall: &dyn Wall) -> Result {
    let secret = tempfile::NamedTempFile::new()?;
    std::fs::write(secret.path(), "secret of the host")?;
    let outside = secret.path().display().to_string();
    let sandbox = wall.create(&spec()).await?;
    output_of(&*sandbox, &format!("ln -s {outside} out; ln -s /etc/passwd passwd; ln -s / root"))
        .await?;
    let read = sandbox.read_file(&path("out"), 1000).await;
    check(matches!(read, Err(FileError::NotFound(_))), || format!("{read:?}"))?;
    let passwd = sandbox.read_file(&path("passwd"), 1000).await?;
    check(passwd.starts_with(b"user:x:1000"), || "the host's passwd".into())?;
    sandbox.put(&text_file("out", "written", 0o644)).await.err();
    equal(std::fs::read_to_string(secret.path())?, "secret of the host".into())?;
    let mut names: Vec<_> =
        sandbox.list_dir(&path("root")).await?.into_iter().map(|entry| entry.name).collect();
    names.retain(|name| {
        ["home", "usr", "root", "srv", "mnt", "boot", "opt"].contains(&name.as_str())
    });
    equal(names, vec!["home".to_owned(), "root".into(), "usr".into()])
}

async fn what_is_no_regular_file_is_not_read(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    output_of(&*sandbox, "mkfifo pipe; ln -s /dev/zero zero; ln -s /proc/self/mem mem; ln -s /proc/1/environ env; mkdir d").await?;
    for name in ["pipe", "zero", "mem", "env", "d", "/proc/self/fd/0", "/dev/tty"] {
        let read =
            tokio::time::timeout(Duration::from_secs(5), sandbox.read_file(&path(name), 10)).await;
        let read = read.map_err(|_| format!("reading {name} hangs"))?;
        check(read.is_err(), || format!("{name}: {read:?}"))?;
        let put =
            tokio::time::timeout(Duration::from_secs(5), sandbox.put(&text_file(name, "x", 0o644)))
                .await;
        let put = put.map_err(|_| format!("writing {name} hangs"))?;
        check(put.is_err(), || format!("{name} was written"))?;
    }
    Ok(())
}

async fn reading_is_bounded(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    output_of(&*sandbox, "truncate -s 60M sparse").await?;
    let read = sandbox.read_file(&path("sparse"), 1000).await;
    equal(read, Err(FileError::TooLarge { path: path("sparse"), max: 1000 }))
}

async fn pause_and_resume(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let mut process = sandbox.start(bash("while :; do echo x >> ticks; sleep 0.01; done")).await?;
    let ticks = async || sandbox.stat(&path("ticks")).await.map(|entry| entry.size);
    let begun = Instant::now();
    while ticks().await.is_err() {
        check(begun.elapsed() < patience(Duration::from_secs(5)), || "it does not start".into())?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sandbox.pause().await?;
    let paused = ticks().await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    equal(ticks().await?, paused)?;
    sandbox.resume().await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    check(ticks().await? > paused, || "it did not go on".into())?;
    sandbox.signal(process.pid, 9).await?;
    equal(watch(&mut process).await.1, ExitStatus::Signal(9))
}

async fn limits_are_named(wall: &dyn Wall) -> Result {
    let limits = Limits { cpus: 2.0, wall_time: Duration::from_secs(20), ..Limits::default() };
    let cases = [
        (
            Limits { wall_time: Duration::from_millis(200), ..limits.clone() },
            "sleep 60",
            Limit::WallTime,
        ),
        (
            Limits { wall_time: Duration::from_millis(200), ..limits.clone() },
            "trap '' TERM; while :; do :; done",
            Limit::WallTime,
        ),
        (
            Limits { cpu_time: Some(Duration::from_millis(300)), ..limits.clone() },
            "while :; do :; done",
            Limit::CpuTime,
        ),
        (limits.clone(), "python3 -c 'x = bytearray(10**9)'", Limit::Memory),
        (
            limits.clone(),
            "head -c 50M /dev/zero > /dev/shm/a; python3 -c 'x = bytearray(100 * 2**20)'",
            Limit::Memory,
        ),
        (
            limits.clone(),
            "python3 -c 'import mmap, time; m = mmap.mmap(-1, 200 << 20); [m.write(bytes(1 << 20)) for _ in range(200)]; time.sleep(5)'",
            Limit::Memory,
        ),
        (
            Limits { disk: 4 << 20, ..limits.clone() },
            "cat /dev/zero > a & cat /dev/zero > /tmp/b; wait; sleep 5",
            Limit::Disk,
        ),
        (
            Limits { file_size: Some(1 << 20), ..limits.clone() },
            "exec cat /dev/zero > a",
            Limit::FileSize,
        ),
        (
            Limits { processes: 8, ..limits.clone() },
            "f() { f | f & }; f; sleep 5",
            Limit::Processes,
        ),
        (limits, "yes", Limit::Output),
    ];
    for (limits, script, want) in cases {
        let begun = Instant::now();
        let (result, _) =
            run(wall, Job::new(SandboxSpec { limits, ..spec() }, bash(script))).await?;
        check(result.limit_hit == Some(want), || {
            format!("{script}: {:?}, want {want:?}", result.limit_hit)
        })?;
        equal(result.timed_out, want == Limit::WallTime)?;
        check(result.cleanup.is_ok(), || format!("{script}: {}", result.cleanup))?;
        check(begun.elapsed() < patience(Duration::from_secs(15)), || {
            format!("{script}: ended late")
        })?;
    }
    Ok(())
}

async fn output_is_cut_at_its_limit(wall: &dyn Wall) -> Result {
    let limited = |output| SandboxSpec {
        limits: Limits { output, cpus: 2.0, ..Limits::default() },
        ..spec()
    };
    let script = "head -c 5000 /dev/zero; head -c 5000 /dev/zero >&2";
    let (result, _) = run(wall, Job::new(limited(10_000), bash(script))).await?;
    equal((result.truncated, result.limit_hit), (false, None))?;
    let (result, _) = run(wall, Job::new(limited(9_999), bash(script))).await?;
    equal((result.truncated, result.limit_hit), (true, Some(Limit::Output)))?;
    equal(result.stdout.0.len() + result.stderr.0.len(), 9_999)
}

/// Processes of the host whose command line contains `marker`.
fn running(marker: &str) -> usize {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(marker))
        .count()
}

async fn until_gone(marker: &str) -> Result {
    let begun = Instant::now();
    while running(marker) > 0 {
        check(begun.elapsed() < patience(Duration::from_secs(5)), || {
            format!("{marker} still runs")
        })?;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

async fn dropping_a_sandbox_ends_it(wall: &dyn Wall) -> Result {
    let marker = "600.1357";
    let sandbox = wall.create(&spec()).await?;
    let process = sandbox.start(ProcessSpec::new(["sleep", marker])).await?;
    check(running(marker) > 0, || "the control does not see the process".into())?;
    drop(sandbox);
    drop(process);
    until_gone(marker).await
}

async fn dropping_a_run_ends_it(wall: &dyn Wall) -> Result {
    let marker = "600.2468";
    let job = Job::new(spec(), ProcessSpec::new(["sleep", marker]));
    let ended = tokio::time::timeout(Duration::from_millis(500), run(wall, job)).await;
    check(ended.is_err(), || "the run ended by itself".into())?;
    until_gone(marker).await?;
    // At every moment of a start, too.
    for micros in (0..6000).step_by(200) {
        let job = Job::new(spec(), ProcessSpec::new(["sleep", marker]));
        let _ = tokio::time::timeout(Duration::from_micros(micros), run(wall, job)).await;
    }
    until_gone(marker).await
}

/// A root directory with what bash needs, copied from the host.
fn small_root(at: &std::path::Path) -> std::io::Result<()> {
    for directory in ["bin", "etc", "lib64", "lib/x86_64-linux-gnu"] {
        std::fs::create_dir_all(at.join(directory))?;
    }
    std::fs::copy("/bin/bash", at.join("bin/bash"))?;
    std::fs::copy("/bin/cat", at.join("bin/cat"))?;
    std::fs::copy("/lib64/ld-linux-x86-64.so.2", at.join("lib64/ld-linux-x86-64.so.2"))?;
    for library in ["libc.so.6", "libtinfo.so.6"] {
        let host = std::path::Path::new("/lib/x86_64-linux-gnu").join(library);
        std::fs::copy(host, at.join("lib/x86_64-linux-gnu").join(library))?;
    }
    std::fs::write(at.join("etc/os-release"), "NAME=small\n")?;
    std::fs::write(at.join("etc/passwd"), "root:x:0:0::/root:/bin/bash\n")?;
    open_to_all(at)
}

/// The sandbox's user is another than the one who made the directory.
fn open_to_all(at: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o755))
}

async fn a_directory_as_root(wall: &dyn Wall) -> Result {
    if !std::path::Path::new("/lib/x86_64-linux-gnu/libtinfo.so.6").exists() {
        eprintln!("a_directory_as_root skipped: this host's bash has other libraries");
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    small_root(directory.path())?;
    let spec = SandboxSpec { root: Root::Directory(directory.path().into()), ..spec() };
    let script = "echo /*; cat /etc/os-release /etc/passwd; echo x > /bin/y; echo $?; cat /usr/bin/id; exit 3";
    let (result, _) =
        run(wall, Job::new(spec, ProcessSpec::new(["/bin/bash", "-c", script]))).await?;
    let out = result.stdout.to_text();
    equal(result.exit, ExitStatus::Code(3))?;
    check(out.starts_with("/bin /dev /etc /home /lib /lib64 /proc"), || out.clone())?;
    check(!out.contains(" /usr "), || out.clone())?;
    check(out.contains("NAME=small") && out.contains("user:x:1000"), || out.clone())?;
    check(!directory.path().join("bin/y").exists(), || "the root was written".into())
}

async fn a_bundle_as_root(wall: &dyn Wall) -> Result {
    if !std::path::Path::new("/lib/x86_64-linux-gnu/libtinfo.so.6").exists() {
        eprintln!("a_bundle_as_root skipped: this host's bash has other libraries");
        return Ok(());
    }
    let bundle = tempfile::tempdir()?;
    small_root(&bundle.path().join("rootfs"))?;
    open_to_all(bundle.path())?;
    std::fs::write(
        bundle.path().join("config.json"),
        r#"{"ociVersion":"1.0.2","process":{"args":["sh"],"env":["PATH=/bin","FROM_IMAGE=1"]}}"#,
    )?;
    let spec = SandboxSpec { root: Root::Directory(bundle.path().into()), ..spec() };
    let (result, _) = run(wall, Job::new(spec.clone(), bash("echo $FROM_IMAGE $PATH"))).await?;
    equal(result.stdout.to_text(), "1 /bin\n".into())?;
    std::fs::rename(bundle.path().join("rootfs"), bundle.path().join("real"))?;
    std::os::unix::fs::symlink("/", bundle.path().join("rootfs"))?;
    let link = run(wall, Job::new(spec.clone(), bash("true"))).await.err();
    check(link.is_some_and(|error| error.to_string().contains("no directory")), || {
        "a link as rootfs was followed".into()
    })?;
    std::fs::remove_file(bundle.path().join("rootfs"))?;
    std::fs::rename(bundle.path().join("real"), bundle.path().join("rootfs"))?;
    std::fs::write(bundle.path().join("config.json"), "{")?;
    let broken = run(wall, Job::new(spec, bash("true"))).await.err().map(|error| error.to_string());
    check(broken.as_ref().is_some_and(|text| text.contains("config.json")), || {
        format!("{broken:?}")
    })
}

async fn a_workspace_is_read_only_or_a_copy(wall: &dyn Wall) -> Result {
    let host = tempfile::tempdir()?;
    open_to_all(host.path())?;
    std::fs::write(host.path().join("file"), "original")?;
    let with = |access| SandboxSpec {
        workspace: Some(Workspace { host: host.path().into(), guest: path("/work"), access }),
        ..spec()
    };
    let script =
        "cat /work/file; echo changed > /work/new && cat /work/new; rm -f /work/file; ls /work";
    let (result, _) = run(wall, Job::new(with(WorkspaceAccess::ReadOnly), bash(script))).await?;
    equal(result.stdout.to_text(), "originalfile\n".into())?;
    check(result.stderr.to_text().contains("Read-only"), || result.stderr.to_text())?;
    // Who does not own the folder may write only where its mode lets everybody.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(host.path(), std::fs::Permissions::from_mode(0o777))?;
    let job = Job::new(with(WorkspaceAccess::CopyOnWrite), bash(script));
    match run(wall, job).await {
        Ok((result, _)) => equal(result.stdout.to_text(), "originalchanged\nnew\n".into())?,
        Err(error) if error.to_string().contains("overlay") => {
            eprintln!("copy-on-write workspace skipped: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    equal(std::fs::read_to_string(host.path().join("file"))?, "original".into())?;
    check(!host.path().join("new").exists(), || "the host's folder was written".into())
}

async fn user_namespaces_when_allowed(wall: &dyn Wall) -> Result {
    let script = "unshare --user --map-root-user --pid --fork bash -c 'id -u; echo $$'";
    let (refused, _) = run(wall, Job::new(spec(), bash(script))).await?;
    check(refused.exit != ExitStatus::Code(0), || refused.stdout.to_text())?;
    let allowed = SandboxSpec { allow_user_namespaces: true, ..spec() };
    let (allowed, _) = run(wall, Job::new(allowed, bash(script))).await?;
    equal(allowed.stdout.to_text(), "0\n1\n".into())
}

async fn files_of_the_spec(wall: &dyn Wall) -> Result {
    let spec_with = SandboxSpec { files: vec![text_file("data.txt", "put", 0o644)], ..spec() };
    let mut job = Job::new(spec_with, bash("cat data.txt; echo out > result.txt"));
    job.collect = vec![path("result.txt"), path("missing.txt")];
    let (result, collected) = run(wall, job).await?;
    equal(result.stdout.to_text(), "put".into())?;
    let contents: Vec<_> = collected.into_iter().map(|file| file.contents).collect();
    equal(
        contents,
        vec![
            Ok(Tree::File(Bytes::from_static(b"out\n"))),
            Err(FileError::NotFound(path("missing.txt"))),
        ],
    )?;
    let bad = SandboxSpec { files: vec![text_file("/usr/x", "", 0o644)], ..spec() };
    let error = wall.create(&bad).await.err().map(|error| error.to_string());
    check(error.as_ref().is_some_and(|text| text.contains("/usr/x")), || format!("{error:?}"))
}

async fn directories_are_collected(wall: &dyn Wall) -> Result {
    let script =
        "mkdir -p d/sub; echo a > d/a; echo b > d/sub/b; ln -s /etc/passwd d/link; mkfifo d/pipe";
    let mut job = Job::new(spec(), bash(script));
    job.collect = vec![path("d"), path("d/sub")];
    let (_, collected) = run(wall, job).await?;
    let file = |text: &'static str| Tree::File(Bytes::from_static(text.as_bytes()));
    let sub = Tree::Directory(vec![("b".into(), file("b\n"))]);
    let all = Tree::Directory(vec![
        ("a".into(), file("a\n")),
        ("link".into(), Tree::Other(EntryKind::Symlink)),
        ("pipe".into(), Tree::Other(EntryKind::Other)),
        ("sub".into(), sub.clone()),
    ]);
    let contents: Vec<_> = collected.into_iter().map(|file| file.contents).collect();
    equal(contents, vec![Ok(all), Ok(sub)])?;

    let cases = [
        (
            "mkdir d; head -c 2M /dev/zero > d/a; head -c 2M /dev/zero > d/b",
            "more than 3145728 bytes",
        ),
        ("mkdir d; for i in $(seq 11000); do : > d/$i; done", "10,000 entries"),
        ("d=d; for i in $(seq 70); do d=$d/d; done; mkdir -p $d", "64 directories deep"),
    ];
    for (script, want) in cases {
        let mut job = Job::new(spec(), bash(script));
        job.collect = vec![path("d")];
        job.collect_max = 3 << 20;
        let (_, collected) = run(wall, job).await?;
        let error = collected[0].contents.as_ref().err().map(ToString::to_string);
        check(error.as_ref().is_some_and(|text| text.contains(want)), || {
            format!("{script}: {error:?}")
        })?;
    }
    Ok(())
}

async fn warm_sandboxes_are_used_once(_: &dyn Wall) -> Result {
    let wall = walls::open_warm(WallChoice::Auto, &Helper::this_program(), 2).await?;
    for round in 0..6 {
        let (result, _) =
            run(&*wall, Job::new(spec(), bash("ls ~ /tmp; echo x > ~/mine; echo x > /tmp/mine")))
                .await?;
        let want = "/home/user:\n\n/tmp:\n";
        check(result.stdout.to_text() == want, || {
            format!("round {round}: {}", result.stdout.to_text())
        })?;
        check(result.cleanup.is_ok(), || result.cleanup.to_string())?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let left = wall.shutdown().await;
    check(left.is_ok(), || left.to_string())
}

async fn controls_are_listed(wall: &dyn Wall) -> Result {
    let (result, _) = run(wall, Job::new(spec(), bash("true"))).await?;
    for name in [
        "namespaces",
        "user namespaces",
        "identity",
        "capabilities",
        "no_new_privs",
        "root",
        "shared files",
        "seccomp",
        "landlock",
        "descriptors",
        "core dumps",
        "resources",
        "files",
        "network",
        "wall-clock time",
        "output",
    ] {
        let found = result.controls.iter().find(|control| control.name == name);
        check(found.is_some(), || format!("{name} is not listed"))?;
        if let Some(ControlState::Absent(why) | ControlState::Partial(why)) =
            found.map(|control| &control.state)
        {
            eprintln!("{name} is not wholly in force here: {why}");
        }
    }
    Ok(())
}

async fn a_launcher_that_died_is_replaced(wall: &dyn Wall) -> Result {
    let sandbox = wall.create(&spec()).await?;
    let mut process = sandbox.start(ProcessSpec::new(["sleep", "600.97531"])).await?;
    // The parent of init, which is the parent of the sleeper.
    let parent = |pid: i32| -> std::io::Result<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        Ok(rest.split(' ').nth(1).and_then(|field| field.parse().ok()).unwrap_or(0))
    };
    let sleeper = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .find(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line == b"sleep\x00600.97531\x00")
        })
        .ok_or("the sleeper is not to be seen")?;
    let launcher = parent(parent(sleeper)?)?;
    linux::process::kill(launcher, 9)?;
    equal(watch(&mut process).await.1, ExitStatus::Signal(9))?;
    until_gone("600.97531").await?;
    check(!sandbox.destroy().await.cleanup.is_ok(), || "a removal that nobody confirmed".into())?;
    let begun = Instant::now();
    loop {
        match run(wall, Job::new(spec(), bash("echo again"))).await {
            Ok((result, _)) => return equal(result.stdout.to_text(), "again\n".into()),
            Err(error) => {
                check(begun.elapsed() < patience(Duration::from_secs(5)), || error.to_string())?
            }
        }
    }
}

async fn bad_specs_are_named(wall: &dyn Wall) -> Result {
    let file = tempfile::NamedTempFile::new()?;
    let cases = [
        (
            SandboxSpec { limits: Limits { memory: 1, ..Limits::default() }, ..spec() },
            "memory (bytes) is 1",
        ),
        (SandboxSpec { root: Root::Directory("/no/such/dir".into()), ..spec() }, "/no/such/dir"),
        (SandboxSpec { root: Root::Directory(file.path().into()), ..spec() }, "not a directory"),
    ];
    for (spec, want) in cases {
        let error: Option<CreateError> = wall.create(&spec).await.err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        check(text.contains(want), || format!("{text}, want {want}"))?;
    }
    Ok(())
}
