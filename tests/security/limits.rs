//! Memory, output, descriptors, file size: more than was granted is not to be
//! had, however it is asked for.

use std::time::Duration;

use tests::{Attack, Ran, Sandbox, marked_pids, scratch, trials, unique};

trials! {
    memory_in_one_process, memory_in_many_processes, memory_shared, memory_in_memfd,
    memory_in_tmp, memory_of_a_process_whose_name_is_no_text, memory_beside_a_file_whose_name_is_no_text, memory_in_system_v_segments, memory_in_sockets, memory_in_shm, memory_in_pipes,
    flood_of_stdout, flood_of_stderr, flood_of_both, flood_of_bytes_that_are_no_text,
    open_files, file_size, file_size_default, absurd_limits_are_refused,
}

/// Resident memory of marked processes together, in MiB.
fn resident(marker: &str) -> u64 {
    let of = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = status.lines().find(|line| line.starts_with("Pss:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    marked_pids(marker).into_iter().filter_map(of).sum::<u64>() / 1024
}

/// Holds 200 MiB where 64 are granted; says how much it came to hold, seen
/// from outside, and how it ended.
fn hold(how: &str, directory: &str) -> (u64, Ran) {
    let marker = unique("hold");
    let plain = scratch();
    let here = plain.path().to_str().expect("a plain path");
    let control = Attack::new("hold_memory.py").args(&[how, "200", here, "x"]).on_host();
    if control.text() != "held 200\n" {
        let error = control.errors();
        let why = error.lines().last().unwrap_or("it failed").to_owned();
        tests::skip_control(&format!("hold_memory.py {how}"), &format!("on the host: {why}"));
    }

    let attack = Attack::new("hold_memory.py").args(&[how, "200", directory, &marker]);
    let sandbox = Sandbox::new().option("--memory", "64M").option("--cpus", "2");
    let sandbox = sandbox.option("--disk", "1G").option("--open-files", "4096");
    let live = attack.start_in(sandbox);
    let mut most = 0;
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let now = resident(&marker);
        most = most.max(now);
        if begun.elapsed() > Duration::from_secs(1) && marked_pids(&marker).is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(15));
    }
    (most, live.wait())
}

fn memory_is_limited(how: &str, directory: &str) {
    let (most, ran) = hold(how, directory);
    let kernel_memory = matches!(how, "sockets" | "pipes");
    if kernel_memory && ran.stdout().contains("held") {
        let (state, detail) = ran.control("resources").expect("a control");
        assert_eq!(state, "partial", "without a cgroup it says what is not counted: {detail}");
        assert!(detail.contains("socket buffers"), "{detail}");
        tests::skip_attack(
            &format!("hold_memory.py {how}"),
            "there is no cgroup, as `controls` says",
        );
        return;
    }
    assert!(!ran.stdout().contains("held"), "it held 200 MiB of 64: {ran:?}");
    // `casemate` itself carries the marker, hence the allowance. Without a cgroup
    // a watcher looks from time to time, and later on a busy machine.
    let watched = ran.control("resources").is_some_and(|(state, _)| state == "partial");
    let allowance = if watched { 128 } else { 48 };
    assert!(most < 64 + allowance, "{most} MiB at once");
    assert!(
        ran.limit_hit() == Some("memory") && ran.process.code() == 137
            || ran.limit_hit() == Some("disk")
            || ran.exit_code().is_some_and(|code| code != 0),
        "{ran:?}"
    );
}

fn memory_in_one_process() {
    memory_is_limited("bytes", "/tmp");
}

fn memory_in_many_processes() {
    memory_is_limited("processes", "/tmp");
}

fn memory_shared() {
    memory_is_limited("shared", "/tmp");
}

fn memory_in_memfd() {
    memory_is_limited("memfd", "/tmp");
}

fn memory_in_tmp() {
    memory_is_limited("files", "/tmp");
}

fn memory_in_shm() {
    memory_is_limited("files", "/dev/shm");
}

fn memory_in_system_v_segments() {
    memory_is_limited("sysv", "/tmp");
}

fn memory_in_sockets() {
    memory_is_limited("sockets", "/tmp");
}

fn memory_unseen(how: &str) {
    let control = Attack::new("evade_watcher.py").args(&[how, "x"]).on_host();
    assert_eq!(control.text(), "held 200\n", "{control:?}");
    let attack = Attack::new("evade_watcher.py").args(&[how, "x"]);
    let ran = attack.run_in(Sandbox::new().option("--memory", "64M").option("--cpus", "2"));
    assert!(!ran.stdout().contains("held"), "it held 200 MiB of 64: {ran:?}");
}

fn memory_of_a_process_whose_name_is_no_text() {
    memory_unseen("name-memory");
}

fn memory_beside_a_file_whose_name_is_no_text() {
    memory_unseen("file-memory");
}

fn memory_in_pipes() {
    memory_is_limited("pipes", "/tmp");
}

fn flood(target: &str) {
    let control = Attack::new("flood.py").args(&[target, "3000000"]).on_host();
    assert!(control.stdout.len() + control.stderr.len() >= 3_000_000, "the host takes it all");

    let attack = Attack::new("flood.py").args(&[target, "3000000000"]);
    let ran = attack.run_in(Sandbox::new().option("--output-limit", "100K"));
    let length = ran.stdout().len() + ran.stderr().len();
    assert!((1..=100 * 1024).contains(&length), "{length} bytes");
    assert!(length >= 100 * 1024 - 8192, "only {length} bytes of what was granted");
    assert!(ran.truncated());
    assert_eq!(ran.limit_hit(), Some("output"));
    assert!(ran.process.elapsed < Duration::from_secs(8), "{:?}", ran.process.elapsed);
    assert!(ran.process.stdout.len() < 400 * 1024);
}

fn flood_of_stdout() {
    flood("stdout");
}

fn flood_of_stderr() {
    flood("stderr");
}

fn flood_of_both() {
    flood("both");
}

fn flood_of_bytes_that_are_no_text() {
    let ran = Sandbox::new().run(&["head", "-c", "5000", "/dev/urandom"]);
    assert_eq!(ran.exit_code(), Some(0));
    assert!(ran.json["stdout_base64"].as_str().is_some_and(|text| text.len() == 6668), "{ran:?}");
    let ran = Sandbox::new().run(&["cat", "/dev/zero"]);
    assert_eq!((ran.limit_hit(), ran.truncated()), (Some("output"), true));
    assert_eq!(ran.stdout().len(), 64 * 1024, "the default limit");
}

fn number_after(text: &str, word: &str) -> u64 {
    let rest = text.split_once(word).map(|(_, rest)| rest.trim_start());
    let digits = rest.and_then(|rest| rest.split_whitespace().next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{word} in {text:?}"))
}

fn open_files() {
    let attack = Attack::new("open_many.py").args(&["300"]);
    assert_eq!(number_after(&attack.on_host().text(), "opened"), 300);
    let ran = attack.run_in(Sandbox::new().option("--open-files", "100"));
    let opened = number_after(ran.stdout(), "opened");
    assert!((50..100).contains(&opened), "{opened}");

    let ran = Attack::new("open_many.py").args(&["3000"]).in_sandbox();
    let opened = number_after(ran.stdout(), "opened");
    assert!((1000..1024).contains(&opened), "the default is 1024: {opened}");
}

fn file_size() {
    let plain = scratch();
    let here = plain.path().to_str().expect("a plain path");
    let control = Attack::new("fill_disk.py").args(&["big", "5000000", here]).on_host();
    assert!(number_after(&control.text(), "written") >= 5_000_000);

    let attack = Attack::new("fill_disk.py").args(&["big", "5000000", "/tmp"]);
    let ran = attack.run_in(Sandbox::new().option("--file-size", "1M"));
    if let Some((_, rest)) = ran.stdout().split_once("written ") {
        let written = number_after(&format!("w {rest}"), "w");
        assert!(written <= 1 << 20, "{written}");
    } else {
        assert_eq!(ran.signal(), Some(25), "SIGXFSZ: {ran:?}");
    }
}

fn file_size_default() {
    // As large as the disk: a file of 20 MB is none of our business.
    let attack = Attack::new("fill_disk.py").args(&["big", "20000000", "/tmp"]);
    let ran = attack.in_sandbox();
    assert!(number_after(ran.stdout(), "written") >= 20_000_000, "{ran:?}");
}

fn absurd_limits_are_refused() {
    let absurd = [
        ("--timeout", "0"),
        ("--timeout", "99999h"),
        ("--timeout", "-5s"),
        ("--memory", "1K"),
        ("--memory", "many"),
        ("--cpus", "0"),
        ("--cpus", "nan"),
        ("--pids", "0"),
        ("--output-limit", "0"),
        ("--disk", "1"),
    ];
    for (option, value) in absurd {
        let text = format!("{option}={value}");
        let ran = Sandbox::new().may_fail().flag(&text).run(&["echo", "ran"]);
        assert!(matches!(ran.process.code(), 2 | 125), "{text}: {ran:?}");
        assert!(!ran.everything().contains("ran\n"), "{text}");
    }
}
