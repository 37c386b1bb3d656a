//! What a program learns of where it is, and as whom it runs: seen from
//! inside, and from outside where the host can tell.

use serde_json::Value;
use tests::{Attack, Sandbox, marked_pids, trials, unique, wait_until};

trials! {
    nobody_special, environment, absent_places, mounts, controls_are_listed,
    status_seen_from_outside, own_cgroup_and_hostname, terminal_and_session,
}

fn surroundings(sandbox: Sandbox) -> Value {
    let ran = Attack::new("surroundings.py").run_in(sandbox);
    serde_json::from_str(ran.stdout()).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn nobody_special() {
    let here = surroundings(Sandbox::new());
    assert_eq!(
        here["ids"].to_string(),
        "[1000,1000,1000,1000,[1000]]".replace("[1000]", &here["ids"][4].to_string())
    );
    let groups = here["ids"][4].as_array().expect("a list");
    assert!(groups.iter().all(|group| group == 1000 || group == 65534), "{groups:?}");
    let status = &here["status"];
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2", "a filter");
    let filters = status["Seccomp_filters"].as_str().and_then(|text| text.parse::<u32>().ok());
    assert!(filters.is_none_or(|count| count >= 1), "{filters:?}");
    assert_eq!(here["directory"], "/home/user");
    let passwd = here["passwd"].as_str().expect("text");
    assert!(passwd.contains(":1000:1000:"), "{passwd}");
    assert!(passwd.lines().count() <= 4, "no account of the host: {passwd}");
}

fn environment() {
    let sandbox = Sandbox::new().outer_env("PLANTED", "x").option("--env", "GIVEN=y z=1");
    let here = surroundings(sandbox);
    let variables = here["environment"].as_object().expect("an object");
    let mut names: Vec<&str> = variables.keys().map(String::as_str).collect();
    names.retain(|name| {
        !matches!(
            *name,
            "PATH"
                | "HOME"
                | "USER"
                | "LOGNAME"
                | "LANG"
                | "PWD"
                | "TERM"
                | "LC_CTYPE"
                | "SHLVL"
                | "_"
        )
    });
    assert_eq!(names, ["GIVEN"], "{variables:?}");
    assert_eq!(variables["GIVEN"], "y z=1");
    assert_eq!(variables["HOME"], "/home/user");
    let path = variables["PATH"].as_str().expect("text");
    for folder in path.split(':') {
        let sane = ["/usr/", "/bin", "/sbin"].iter().any(|start| folder.starts_with(start));
        assert!(sane, "{path}");
    }
}

fn absent_places() {
    let here = surroundings(Sandbox::new());
    let entries = &here["entries"];
    for place in ["/root", "/opt", "/sys", "/srv", "/mnt", "/media", "/boot"] {
        let empty = entries[place].as_array().is_some_and(Vec::is_empty);
        assert!(entries[place].is_string() || empty, "{place}: {}", entries[place]);
    }
    assert_eq!(entries["/home"].to_string(), "[\"user\"]");
    for place in ["/var", "/run"] {
        if let Some(names) = entries[place].as_array() {
            let few = names
                .iter()
                .all(|name| matches!(name.as_str(), Some("tmp" | "run" | "lock" | "shm")));
            assert!(few, "{place}: {names:?}");
        }
    }
    let etc = entries["/etc"].as_array().expect("there is an /etc");
    for secret in
        ["shadow", "gshadow", "sudoers", "sudoers.d", "ssh", "machine-id", "fstab", "crontab"]
    {
        assert!(!etc.iter().any(|name| name == secret), "/etc/{secret}");
    }
    let dev = entries["/dev"].as_array().expect("there is a /dev");
    assert!(dev.len() <= 16, "{dev:?}");
}

/// Every mount is read-only, or private; none passes set-user-id bits on.
fn mounts() {
    let here = surroundings(Sandbox::new());
    for line in here["mounts"].as_str().expect("text").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (at, options) = (fields[4], fields[5]);
        if at.starts_with("/proc/") && fields[3].ends_with("/null") {
            // A file of /proc, hidden behind the null device.
            continue;
        }
        assert!(!line.contains("shared:") && !line.contains("master:"), "propagates: {line}");
        assert!(options.contains("nosuid"), "{line}");
        let private = [
            "/tmp",
            "/home/user",
            "/home",
            "/dev/shm",
            "/dev/pts",
            "/proc",
            "/dev",
            "/var/tmp",
            "/dev/mqueue",
        ];
        let device = at.starts_with("/dev/");
        assert!(options.starts_with("ro") || private.contains(&at) || device, "{line}");
        assert!(options.contains("nodev") || device || at == "/dev", "{line}");
    }
}

fn controls_are_listed() {
    let ran = Sandbox::new().run(&["true"]);
    for name in ["seccomp", "landlock"] {
        let (state, detail) = ran.control(name).unwrap_or_else(|| panic!("{name}: {ran:?}"));
        assert!(["in_force", "partial", "absent"].contains(&state.as_str()), "{name}: {state}");
        assert!(!detail.is_empty(), "{name} says how or why");
        assert!(name != "seccomp" || state == "in_force");
    }
    let controls = ran.json["controls"].as_array().expect("a list");
    assert!(controls.len() >= 8, "{controls:?}");
    assert!(ran.json["usage"]["peak_memory_bytes"].as_u64().is_some(), "{ran:?}");
    assert!(ran.json["times"]["create_ms"].as_f64().is_some(), "{ran:?}");
}

fn status_seen_from_outside() {
    let marker = unique("status");
    let live = Attack::new("wait.py").args(&[&marker]).start_in(Sandbox::new());
    let python = || {
        marked_pids(&marker).into_iter().find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|c| c.starts_with("python"))
        })
    };
    assert!(wait_until(std::time::Duration::from_secs(5), || python().is_some()));
    let pid = python().expect("it was there a moment ago");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("", |(_, value)| value.trim()).to_owned()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!((field("NoNewPrivs"), field("Seccomp")), ("1".to_owned(), "2".to_owned()));
    let user = field("Uid").split_whitespace().next().map(str::to_owned).unwrap_or_default();
    assert_ne!(user, "0", "not the host's root either");
    let own = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).ok();
    for kind in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        let its = std::fs::read_link(format!("/proc/{pid}/ns/{kind}"));
        match its {
            Ok(its) => assert_ne!(Some(its), own(kind), "its own {kind} namespace"),
            Err(error) => {
                tests::skip_attack(&format!("{kind} namespace from outside"), &error.to_string())
            }
        }
    }
    drop(live.wait());
}

fn own_cgroup_and_hostname() {
    let here = surroundings(Sandbox::new());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    assert_ne!(here["hostname"].as_str(), Some(host.trim()));
    for line in here["cgroup"].as_str().unwrap_or_default().lines() {
        assert!(line.ends_with(":/"), "the host's cgroup is not named: {line}");
    }
}

fn terminal_and_session() {
    let here = surroundings(Sandbox::new());
    let session = here["session"].as_array().expect("a list");
    assert_eq!(session[0], session[2], "it leads its own session: {session:?}");
    let descriptors = here["descriptors"].as_array().expect("a list").len();
    // 0 to 2, and the one that lists them.
    assert_eq!(descriptors, 4);
}
