//! Reading what is the host's own. Here the secret in the output is the effect.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tests::{Attack, Sandbox, Sleeper, scratch, trials, unique};

trials! {
    planted_files, files_in_home, shadow, through_proc_root, sweep_of_the_file_system,
    environment_of_casemate, arguments_of_casemate, memory_of_processes, current_directory,
    host_files_of_interest, working_directory_through_descriptors,
}

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

fn plant(path: &std::path::Path, secret: &str) {
    fs::write(path, secret).expect("a planted file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).expect("a mode");
}

/// Secrets in every directory of the host that anybody may write to.
fn planted_files() {
    for place in ["/tmp", "/dev/shm", "/var/tmp"] {
        let Ok(folder) = tempfile::Builder::new().prefix("wall-test-").tempdir_in(place) else {
            tests::skip_attack(&format!("read_paths.py in {place}"), "it cannot be written to");
            continue;
        };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let secret = unique("secret");
        let file = folder.path().join("file");
        plant(&file, &secret);
        let attack = Attack::new("read_paths.py").args(&[file.to_str().expect("a plain path")]);
        assert!(attack.on_host().text().contains(&secret));
        let ran = attack.in_sandbox();
        assert!(!ran.everything().contains(&secret), "{place}: {ran:?}");
    }
}

fn files_in_home() {
    let home = scratch();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let secret = unique("secret");
    let mut paths = Vec::new();
    for name in [".ssh/id_ed25519", ".aws/credentials", ".netrc", "file"] {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        plant(&path, &secret);
        paths.push(path.to_str().expect("a plain path").to_owned());
    }
    let guesses = ["/home/user/.ssh/id_ed25519", "/home/user/.netrc", "/home/user/file"];
    let control = Attack::new("read_paths.py").args(&paths).on_host();
    assert!(control.text().contains(&secret));
    paths.extend(guesses.map(str::to_owned));
    let sandbox = Sandbox::new().outer_env("HOME", home.path()).directory(home.path());
    let ran = Attack::new("read_paths.py").args(&paths).run_in(sandbox);
    assert!(!ran.everything().contains(&secret), "{ran:?}");
}

fn shadow() {
    let attack =
        Attack::new("read_paths.py").args(&["/etc/shadow", "/etc/gshadow", "/etc/sudoers"]);
    match fs::read_to_string("/etc/shadow") {
        Ok(text) => {
            let control = attack.on_host();
            let first = text.lines().next().unwrap_or_default();
            assert!(control.text().contains(first), "root reads it");
        }
        Err(_) => tests::skip_control("read_paths.py /etc/shadow", "only root may read it"),
    }
    let ran = attack.in_sandbox();
    assert!(!ran.stdout().contains("READ"), "{ran:?}");
}

fn through_proc_root() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let secret = unique("secret");
    let file = folder.path().join("file");
    plant(&file, &secret);
    let path = format!("/proc/self/root{}", file.display());
    let control = Attack::new("read_paths.py").args(&[&path]).on_host();
    assert!(control.text().contains(&secret));
    let mut ways = vec![path];
    for link in ["1/root", "1/cwd", "2/root", "self/cwd", "self/task/1/root", "thread-self/root"] {
        ways.push(format!("/proc/{link}{}", file.display()));
        ways.push(format!("/proc/{link}/../../../..{}", file.display()));
    }
    let ran = Attack::new("read_paths.py").args(&ways).in_sandbox();
    assert!(!ran.everything().contains(&secret), "{ran:?}");
}

fn sweep_of_the_file_system() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let secret = unique("secret");
    plant(&folder.path().join("file"), &secret);
    let here = folder.path().to_str().expect("a plain path");
    let control = Attack::new("sweep_files.py").args(&[&reversed(&secret), here]).on_host();
    assert!(control.text().contains("FOUND"));
    let attack = Attack::new("sweep_files.py").args(&[&reversed(&secret), "/"]);
    let ran =
        attack.run_in(Sandbox::new().outer_env("WALL_TEST", &secret).directory(folder.path()));
    assert!(ran.stdout().contains("seen"), "{ran:?}");
    assert!(!ran.stdout().contains(&secret), "{}", ran.stdout());
}

/// A process on the host with a secret, found by a program beside it.
fn control_of_sweep(secret: &str) -> String {
    let sleeper = Sleeper::new(&unique("sleeper"), secret);
    let pid = sleeper.pid().to_string();
    Attack::new("sweep_processes.py").args(&[&reversed(secret), &pid]).on_host().text()
}

fn environment_of_casemate() {
    let secret = unique("secret");
    assert!(control_of_sweep(&secret).contains("through environ"));
    let sandbox = Sandbox::new().outer_env("AWS_SECRET_ACCESS_KEY", &secret);
    let sandbox = sandbox.outer_env("LD_LIBRARY_PATH_", &secret).outer_env("LC_ALL_", &secret);
    let ran = Attack::new("sweep_processes.py").args(&[&reversed(&secret)]).run_in(sandbox.clone());
    assert!(ran.stdout().contains("looked at"), "{ran:?}");
    assert!(!ran.stdout().contains(&secret), "{}", ran.stdout());
    // And in the program's own environment.
    let ran = sandbox.run(&["env"]);
    assert!(!ran.stdout().contains(&secret), "{}", ran.stdout());
}

/// What else is on the command line of `casemate`: other values, host paths.
fn arguments_of_casemate() {
    let secret = unique("secret");
    let folder = scratch();
    let file = folder.path().join(&secret);
    fs::write(&file, "x").expect("a file");
    let sandbox = Sandbox::new().put(&file, "/tmp/innocent");
    let attack = Attack::new("sweep_processes.py").args(&[&reversed(&secret)]);
    let ran = attack.run_in(sandbox);
    assert!(!ran.stdout().contains(&secret), "{}", ran.stdout());
}

fn memory_of_processes() {
    let secret = unique("secret");
    let control = control_of_sweep(&secret);
    let ways = ["through mem", "through process_vm_readv", "through ptrace"];
    for way in ways {
        if !control.contains(way) {
            tests::skip_control(&format!("sweep_processes.py {way}"), "this host refuses it");
        }
    }
    // By the pid that a host process has on the host, and by all that is seen.
    let sleeper = Sleeper::new(&unique("sleeper"), &secret);
    let pid = sleeper.pid().to_string();
    let own = std::process::id().to_string();
    for pids in [vec![], vec![pid.as_str(), own.as_str(), "1"]] {
        let mut arguments = vec![reversed(&secret)];
        arguments.extend(pids.iter().map(|&pid| pid.to_owned()));
        let sandbox = Sandbox::new().outer_env("PLANTED_SECRET", &secret);
        let sandbox = sandbox.option("--timeout", "30s");
        let ran = Attack::new("sweep_processes.py").args(&arguments).run_in(sandbox);
        assert!(ran.stdout().contains("looked at"), "{ran:?}");
        assert!(!ran.stdout().contains(&secret), "{}", ran.stdout());
        assert!(!ran.stdout().contains("ATTACHED"), "{}", ran.stdout());
    }
}

fn current_directory() {
    let folder = scratch();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let secret = unique("secret");
    plant(&folder.path().join("file"), &secret);
    let code = "import os\nfor p in ('file','./file','../file',os.getcwd()+'/file','/proc/1/cwd/file'):\n try: print(open(p).read())\n except OSError as e: print(e)";
    let sandbox = Sandbox::new().directory(folder.path());
    let ran = sandbox.run(&["python3", "-c", code]);
    assert!(!ran.everything().contains(&secret), "{ran:?}");
}

/// Kernel and host details that help an attacker further.
fn host_files_of_interest() {
    let paths = [
        "/proc/kcore",
        "/proc/kmsg",
        "/dev/kmsg",
        "/dev/mem",
        "/dev/port",
        "/proc/keys",
        "/proc/key-users",
        "/proc/sched_debug",
        "/proc/timer_list",
        "/proc/slabinfo",
        "/proc/pagetypeinfo",
        "/proc/vmallocinfo",
        "/proc/iomem",
        "/sys/kernel/debug/sched/debug",
        "/sys/class/dmi/id/product_uuid",
        "/etc/machine-id",
        "/etc/ssh/ssh_host_ed25519_key",
        "/proc/1/environ",
        "/run/secrets/kubernetes.io/serviceaccount/token",
    ];
    let ran = Attack::new("read_paths.py").args(&paths).in_sandbox();
    let harmless = |line: &&str| {
        // `/proc/keys` shows the caller's own keys, `iomem` zeros, to anybody.
        !line.contains("/proc/keys") && !line.contains("/proc/key-users")
    };
    let told: Vec<&str> = ran
        .stdout()
        .lines()
        .filter(|line| line.starts_with("READ"))
        .filter(harmless)
        .filter(|line| !line.ends_with(" b''"))
        .collect();
    let about_the_host: Vec<&&str> = told
        .iter()
        .filter(|line| !line.contains("iomem") || !line.contains("00000000-00000000"))
        .collect();
    assert!(about_the_host.is_empty(), "{about_the_host:#?}");
}

/// CVE-2024-21626: a working directory that is a descriptor which the runtime
/// had open on the host leads out.
fn working_directory_through_descriptors() {
    let folder = scratch();
    let secret = unique("secret");
    let file = folder.path().join("file");
    plant(&file, &secret);
    let climb = format!("cat ../../../../../../../..{0} .{0} 2>/dev/null; ls ..", file.display());
    for number in 0..24 {
        for process in ["self", "1"] {
            let directory = format!("/proc/{process}/fd/{number}");
            let sandbox = Sandbox::new().may_fail().option("--cwd", &directory);
            let ran = sandbox.run(&["sh", "-c", &climb]);
            assert!(!ran.everything().contains(&secret), "{directory}: {ran:?}");
            assert!(!ran.stdout().contains("vmlinuz"), "{directory}: {ran:?}");
        }
    }
}
