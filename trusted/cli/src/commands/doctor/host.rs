//! What this host's kernel offers.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

use super::{Fact, State};

const GROUP: &str = "host";

/// Looks at everything that a wall needs or uses.
pub(super) fn facts() -> Vec<Fact> {
    vec![
        kernel(),
        user_namespaces(),
        namespaces(),
        seccomp(),
        landlock(),
        cgroups(),
        overlay(),
        kvm(),
    ]
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn kernel() -> Fact {
    let uname = rustix::system::uname();
    let (release, machine) = (uname.release().to_string_lossy(), uname.machine().to_string_lossy());
    let user = if rustix::process::geteuid().is_root() { "root" } else { "an ordinary user" };
    let detail = format!("Linux {release} on {machine}, as {user}");
    if machine == "x86_64" {
        Fact::new(GROUP, "kernel", State::Ok, detail)
    } else {
        Fact::new(GROUP, "kernel", State::Warn, format!("{detail}; only x86_64 is tested"))
    }
}

/// Makes a user namespace in a process of its own, as the jail does.
fn user_namespaces() -> Fact {
    let name = "user namespaces";
    match Command::new("unshare").args(["--user", "--map-root-user", "true"]).output() {
        Ok(made) if made.status.success() => {
            return Fact::new(GROUP, name, State::Ok, "can be made");
        }
        Ok(_) => {}
        Err(_) => {
            return Fact::new(GROUP, name, State::Warn, "not tried: `unshare` is not installed")
                .fix(Some("apt-get install -y util-linux"));
        }
    }
    let (why, fix) = user_namespaces_refused();
    Fact::new(GROUP, name, State::No, why).fix(fix)
}

/// Why the kernel refuses user namespaces, and what lifts that.
fn user_namespaces_refused() -> (&'static str, Option<&'static str>) {
    let is = |path, value| read(path).is_some_and(|text| text == value);
    if !Path::new("/proc/self/ns/user").exists() {
        ("this kernel has none", None)
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        ("only root may make one", Some("sysctl -w kernel.unprivileged_userns_clone=1"))
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        (
            "AppArmor lets only programs with a profile make one",
            Some("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
        )
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        ("their number is limited to none", Some("sysctl -w user.max_user_namespaces=15000"))
    } else {
        (
            "refused, as container engines do by default",
            Some("start this container with --security-opt seccomp=unconfined"),
        )
    }
}

fn namespaces() -> Fact {
    let name = "namespaces";
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for kind in ["mnt", "pid", "net", "ipc", "uts", "cgroup"] {
        let none_allowed = read(&format!("/proc/sys/user/max_{kind}_namespaces"))
            .is_some_and(|number| number == "0");
        let exists = Path::new("/proc/self/ns").join(kind).exists();
        if exists && !none_allowed { there.push(kind) } else { missing.push(kind) }
    }
    if missing.is_empty() {
        return Fact::new(GROUP, name, State::Ok, there.join(", "));
    }
    let limits: Vec<String> =
        missing.iter().map(|kind| format!("user.max_{kind}_namespaces=15000")).collect();
    let detail = format!("{}; missing: {}", there.join(", "), missing.join(", "));
    Fact::new(GROUP, name, State::No, detail).fix(Some(format!("sysctl -w {}", limits.join(" "))))
}

fn seccomp() -> Fact {
    let name = "seccomp";
    let actions = read("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if actions.split_whitespace().any(|action| action == "errno") {
        Fact::new(GROUP, name, State::Ok, "filters work")
    } else {
        Fact::new(GROUP, name, State::No, "this kernel has no filters (CONFIG_SECCOMP_FILTER)")
    }
}

fn landlock() -> Fact {
    let name = "Landlock";
    let abi = linux::landlock::abi();
    if abi <= 0 {
        return Fact::new(GROUP, name, State::Warn, "this kernel has none, or it is off at boot")
            .fix(Some("add `landlock` to the lsm= list on the kernel's command line"));
    }
    let lacking = linux::landlock::lacking(abi);
    if lacking.is_empty() {
        return Fact::new(GROUP, name, State::Ok, format!("ABI {abi}"));
    }
    let detail = format!("ABI {abi}, which does not restrict {}", lacking.join(", "));
    Fact::new(GROUP, name, State::Warn, detail).fix(Some("a newer kernel"))
}

fn cgroups() -> Fact {
    let name = "cgroups";
    let own = read("/proc/self/cgroup").unwrap_or_default();
    let writable = |dir: &Path| rustix::fs::access(dir, Access::WRITE_OK).is_ok();
    let root = Path::new("/sys/fs/cgroup");
    let in_unified = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();

    if let Some(controllers) = read("/sys/fs/cgroup/cgroup.controllers") {
        let dir = root.join(in_unified);
        if writable(&dir) && writable(&dir.join("cgroup.procs")) {
            return Fact::new(GROUP, name, State::Ok, format!("v2, delegated: {controllers}"));
        }
        return Fact::new(GROUP, name, State::Warn, "v2, not delegated: rlimits are used instead")
            .fix(Some("systemd-run --user --scope -p Delegate=yes casemate …"));
    }
    let used: Vec<&str> = ["memory", "cpu", "cpuacct", "pids"]
        .into_iter()
        .filter(|controller| writable(&v1_directory(root, controller, &own)))
        .collect();
    if !used.is_empty() {
        let detail = format!("v1, writable: {}", used.join(", "));
        return Fact::new(GROUP, name, State::Ok, detail);
    }
    let detail = if root.join("memory").exists() {
        "v1, not writable: rlimits are used instead"
    } else {
        "none are mounted: rlimits are used instead"
    };
    Fact::new(GROUP, name, State::Warn, detail)
        .fix(Some("run as root, or boot with systemd.unified_cgroup_hierarchy=1"))
}

/// This process's directory in the hierarchy of a v1 controller.
fn v1_directory(root: &Path, controller: &str, own: &str) -> PathBuf {
    let path = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then_some(path)
    });
    root.join(controller).join(path.unwrap_or_default().trim_start_matches('/'))
}

fn overlay() -> Fact {
    let name = "overlayfs";
    let known = read("/proc/filesystems").unwrap_or_default();
    if known.split_whitespace().any(|system| system == "overlay") {
        Fact::new(GROUP, name, State::Ok, "known to the kernel")
    } else {
        Fact::new(GROUP, name, State::Warn, "not loaded; copy-on-write workspaces need it")
            .fix(Some("modprobe overlay"))
    }
}

fn kvm() -> Fact {
    use kvm::Kvm;
    let fact = |state, detail: String| Fact::new(GROUP, "KVM", state, detail);
    match kvm::probe() {
        Kvm::Kernels { api } => fact(State::Ok, format!("API {api}; runs user code and Linux")),
        Kvm::UserCodeOnly { api, missing } => fact(
            State::Warn,
            format!("API {api}; runs user code, but cannot boot Linux: {missing}"),
        ),
        Kvm::Broken(why) => fact(State::No, format!("makes no machines: {why}")),
        Kvm::Absent => {
            fact(State::No, "no /dev/kvm: off in the firmware, not nested, or not loaded".into())
                .fix(Some("modprobe kvm_intel || modprobe kvm_amd"))
        }
        Kvm::Forbidden(why) => {
            fact(State::No, format!("/dev/kvm does not open: {why}")).fix(Some(kvm_permission()))
        }
        other => fact(State::Warn, format!("{other:?}")),
    }
}

/// What lets a user open `/dev/kvm`.
fn kvm_permission() -> &'static str {
    // The usual owner is a group that users can be made members of.
    let for_a_group =
        fs::metadata("/dev/kvm").is_ok_and(|kvm| kvm.gid() != 0 && kvm.mode() & 0o060 == 0o060);
    if for_a_group {
        "usermod -aG kvm \"$USER\", then log in again"
    } else {
        "chown root:kvm /dev/kvm && chmod 660 /dev/kvm && usermod -aG kvm \"$USER\", then log in \
         again"
    }
}
