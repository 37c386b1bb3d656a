//! What init gives up before the first program, and the proof that it did.
//!
//! Every program is a child of init, so it inherits all of this. Sources:
//! capabilities(7), prctl(2), landlock(7), seccomp(2), setrlimit(2), core(5).

use std::io;
use std::os::fd::OwnedFd;

use linux::landlock::{Grant, LandlockError};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal, getrlimit, setrlimit};
use wire::jail::{Accounting, ControlNote, Held, Plan};

use super::root::WRITABLE;
use super::rules::Compiled;

/// Inside, every process has this user and group id.
pub(super) const USER: u32 = 1000;

/// The namespaces a sandbox has of its own, by their names in `/proc/self/ns`.
pub(super) const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// The ids of this process's namespaces, in the order of [`NAMESPACES`].
pub(super) fn namespace_ids() -> io::Result<Vec<String>> {
    NAMESPACES
        .iter()
        .map(|name| Ok(std::fs::read_link(format!("/proc/self/ns/{name}"))?.display().to_string()))
        .collect()
}

/// Becomes the sandbox's user. Capabilities in the namespace stay, for the
/// mounts; [`apply`] takes them.
pub(super) fn become_user(may_drop_groups: bool) -> io::Result<()> {
    if may_drop_groups {
        rustix::thread::set_thread_groups(&[])?;
    }
    let gid = rustix::process::Gid::from_raw(USER);
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    let uid = rustix::process::Uid::from_raw(USER);
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// A control that could not be put in force.
pub(super) struct Unmet {
    pub(super) control: &'static str,
    pub(super) reason: String,
}

impl Unmet {
    pub(super) fn new(control: &'static str, reason: impl ToString) -> Self {
        Self { control, reason: reason.to_string() }
    }
}

/// Puts limits, capabilities, Landlock and seccomp in force.
pub(super) fn apply(plan: &Plan, accounting: &Accounting, filter: &Compiled) -> Result<(), Unmet> {
    limits(plan, accounting).map_err(|error| Unmet::new("rlimits", error))?;
    drop_capabilities().map_err(|error| Unmet::new("capabilities", error))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| Unmet::new("no_new_privs", error))?;
    // Programs have the same user as init: this bars them from its memory, its
    // descriptors and its links in /proc, all of which lead outside.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| Unmet::new("init", error))?;
    // After the change of user, which clears it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Unmet::new("init", error))?;
    match linux::landlock::restrict(grants(plan).map_err(|error| Unmet::new("landlock", error))?) {
        Ok(()) | Err(LandlockError::Absent) => {}
        Err(error) => return Err(Unmet::new("landlock", error)),
    }
    filter.program.install().map_err(|error| Unmet::new("seccomp", error))
}

/// See [`limits`].
const DATA_SLACK: u64 = 2 << 30;

fn limits(plan: &Plan, accounting: &Accounting) -> io::Result<()> {
    let set = |resource, value: u64| {
        // Only the host's root may raise what this process was given.
        let value = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
    };
    set(Resource::Nofile, plan.open_files)?;
    set(Resource::Fsize, plan.file_size)?;
    // Zero would still hand the dump to a helper of the host's, if
    // core_pattern names one; one byte stops that too (core(5)).
    set(Resource::Core, 1)?;
    set(Resource::Memlock, 8 << 20)?;
    set(Resource::Msgqueue, 512 << 10)?;
    set(Resource::Rtprio, 0)?;
    if let Some(seconds) = plan.cpu_seconds {
        set(Resource::Cpu, seconds + 1)?;
    }
    if matches!(accounting, Accounting::Rlimits(_)) {
        // Counted in the sandbox's own user namespace; init is one of them.
        // One more than allowed, so that the watcher sees the excess.
        set(Resource::Nproc, plan.processes + 2)?;
        // The watcher ends what touches too much; this only bounds how far a
        // process can get between two looks. It counts what may be written, not
        // what is: language runtimes ask for more than they use.
        set(Resource::Data, plan.memory + DATA_SLACK)?;
    }
    Ok(())
}

fn drop_capabilities() -> io::Result<()> {
    use rustix::thread;
    thread::clear_ambient_capability_set()?;
    // The kernel knows this many; asking beyond gives EINVAL.
    for number in 0..64 {
        // By number, since the kernel may know more than rustix has names for.
        let capability = thread::CapabilitySet::from_bits_retain(1 << number);
        match thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(rustix::io::Errno::INVAL) if number > 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    let none = thread::CapabilitySet::empty();
    thread::set_capabilities(
        None,
        thread::CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}

fn grants(plan: &Plan) -> io::Result<Vec<(OwnedFd, Grant)>> {
    let mut paths =
        vec![("/", Grant::Read), ("/proc", Grant::WriteExisting), ("/dev", Grant::Devices)];
    paths.extend(WRITABLE.map(|path| (path, Grant::Everything)));
    if let Some(workspace) = &plan.root.workspace
        && workspace.copy_on_write
    {
        paths.push((&workspace.guest, Grant::Everything));
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    paths
        .into_iter()
        .map(|(path, grant)| Ok((rustix::fs::openat(CWD, path, flags, Mode::empty())?, grant)))
        .collect()
}

/// What the host side knows and the proof needs.
pub(super) struct Outside<'a> {
    /// Ids of the launcher's namespaces.
    pub(super) namespaces: &'a [String],
    pub(super) groups_dropped: bool,
    pub(super) accounting: &'a Accounting,
    pub(super) filter: &'a Compiled,
    pub(super) open_fds: usize,
}

/// Tries each control from inside. Fails if one does not hold.
pub(super) fn verify(plan: &Plan, outside: &Outside<'_>) -> Result<Vec<ControlNote>, Unmet> {
    let mut notes = Vec::new();
    let mut note = |name: &str, held: Held, detail: String| {
        notes.push(ControlNote { name: name.into(), held, detail });
    };
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(|error| Unmet::new("proc", error))?;

    note("namespaces", Held::Wholly, namespaces(outside.namespaces)?);
    note("user namespaces", Held::Wholly, user_namespaces(plan.user_namespaces)?);
    let (held, detail) = identity(&status, outside.groups_dropped)?;
    note("identity", held, detail);
    note("capabilities", Held::Wholly, capabilities(&status)?);
    expect(&status, "NoNewPrivs", "1").map_err(|got| Unmet::new("no_new_privs", got))?;
    note("no_new_privs", Held::Wholly, "set; cannot be unset".into());
    note("root", Held::Wholly, root()?);
    note(
        "shared files",
        Held::Partly,
        "the read-only part of the root is shared with the host and other sandboxes: inotify \
         shows that a file there is used, and locks on it reach others who lock it"
            .into(),
    );
    note("seccomp", Held::Wholly, seccomp(&status, outside.filter.allowed)?);
    let (held, detail) = landlock()?;
    note("landlock", held, detail);
    note("descriptors", Held::Wholly, descriptors(outside.open_fds)?);
    note(
        "core dumps",
        Held::Wholly,
        "RLIMIT_CORE 1: neither a file nor a helper of the host's".into(),
    );
    let (held, detail) = accounting(plan, outside.accounting);
    note("resources", held, detail);
    note(
        "files",
        Held::Wholly,
        format!(
            "RLIMIT_FSIZE {}, RLIMIT_NOFILE {}, all writable files on one tmpfs of {} bytes",
            plan.file_size, plan.open_files, plan.disk
        ),
    );
    Ok(notes)
}

/// The value of `key` in `/proc/self/status`.
fn field<'a>(status: &'a str, key: &str) -> &'a str {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .unwrap_or_default()
        .trim()
}

fn expect(status: &str, key: &str, want: &str) -> Result<(), String> {
    let got = field(status, key);
    if got == want { Ok(()) } else { Err(format!("{key} is `{got}`, not `{want}`")) }
}

fn namespaces(outside: &[String]) -> Result<String, Unmet> {
    let mine = namespace_ids().map_err(|error| Unmet::new("namespaces", error))?;
    for ((name, mine), theirs) in NAMESPACES.iter().zip(&mine).zip(outside) {
        if mine == theirs {
            return Err(Unmet::new("namespaces", format!("{name} is shared with the host")));
        }
    }
    Ok(NAMESPACES.join(", "))
}

fn user_namespaces(allowed: bool) -> Result<String, Unmet> {
    if allowed {
        return Ok("further ones allowed by the spec".into());
    }
    match linux::process::try_user_namespace() {
        Err(error) if error.raw_os_error() == Some(1) => {
            Ok("further ones refused by seccomp and by max_user_namespaces".into())
        }
        Err(error) => {
            Err(Unmet::new("user namespaces", format!("refused with {error}, not EPERM")))
        }
        Ok(()) => Err(Unmet::new("user namespaces", "a further one could be made")),
    }
}

fn identity(status: &str, groups_dropped: bool) -> Result<(Held, String), Unmet> {
    for key in ["Uid", "Gid"] {
        let ids: Vec<&str> = field(status, key).split_whitespace().collect();
        if ids != ["1000"; 4] {
            return Err(Unmet::new("identity", format!("{key} is {ids:?}")));
        }
    }
    let groups = field(status, "Groups");
    if groups.is_empty() {
        return Ok((Held::Wholly, "uid 1000, gid 1000, no further group".into()));
    }
    if groups_dropped {
        return Err(Unmet::new("identity", format!("groups {groups} are left")));
    }
    let others = groups.split_whitespace().filter(|group| *group != "1000").count();
    if others == 0 {
        return Ok((Held::Wholly, "uid 1000, gid 1000, no further group".into()));
    }
    Ok((
        Held::Partly,
        format!(
            "uid 1000, gid 1000; {others} supplementary groups of the user who started Casemate \
             stay, as the kernel lets only root drop them"
        ),
    ))
}

fn capabilities(status: &str) -> Result<String, Unmet> {
    for key in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        expect(status, key, "0000000000000000").map_err(|got| Unmet::new("capabilities", got))?;
    }
    Ok("none: inheritable, permitted, effective, bounding and ambient sets are empty".into())
}

fn root() -> Result<String, Unmet> {
    let create = |path: &str| {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o600))
    };
    for path in
        ["/.casemate-probe", "/usr/.casemate-probe", "/etc/.casemate-probe", "/dev/.casemate-probe"]
    {
        match create(path) {
            Err(rustix::io::Errno::ROFS) => {}
            // A root without that directory, or a link that leads nowhere.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => {}
            Err(error) => return Err(Unmet::new("root", format!("{path}: {error}, not EROFS"))),
            Ok(_) => return Err(Unmet::new("root", format!("{path} could be made"))),
        }
    }
    for directory in WRITABLE {
        let path = format!("{directory}/.casemate-probe");
        create(&path).map_err(|error| Unmet::new("root", format!("{path}: {error}")))?;
        rustix::fs::unlink(path).map_err(|error| Unmet::new("root", error))?;
    }
    Ok(format!("private and read-only; writable: {}", WRITABLE.join(", ")))
}

fn seccomp(status: &str, allowed: usize) -> Result<String, Unmet> {
    expect(status, "Seccomp", "2").map_err(|got| Unmet::new("seccomp", got))?;
    const ENOSYS: i32 = 38;
    const EPERM: i32 = 1;
    let io_uring = linux::seccomp::number("io_uring_setup").map_or(-1, i64::from);
    let bpf = linux::seccomp::number("bpf").map_or(-1, i64::from);
    for (name, number, want) in
        [("io_uring_setup", io_uring, EPERM), ("bpf", bpf, EPERM), ("9999", 9999, ENOSYS)]
    {
        match linux::process::try_harmless_call(number) {
            Err(error) if error.raw_os_error() == Some(want) => {}
            other => {
                return Err(Unmet::new("seccomp", format!("{name}: {other:?}, not errno {want}")));
            }
        }
    }
    use rustix::net::{AddressFamily, SocketType, socket};
    match socket(AddressFamily::NETLINK, SocketType::RAW, None) {
        Err(rustix::io::Errno::PERM) => {}
        other => return Err(Unmet::new("seccomp", format!("a netlink socket: {other:?}"))),
    }
    Ok(format!("default deny; {allowed} system calls allowed, unknown ones ENOSYS"))
}

fn landlock() -> Result<(Held, String), Unmet> {
    let abi = linux::landlock::abi();
    if abi == 0 {
        return Ok((Held::Not, LandlockError::Absent.to_string()));
    }
    // The rules grant no making of devices, and Landlock is asked first: EACCES
    // is its answer, EPERM the one of the missing capability. Not 0:0, which is
    // an overlay's whiteout: kernels differ in whether that counts as a device
    // (6.1.192 lets it pass where regular files may be made).
    let probe = rustix::fs::mknodat(
        CWD,
        "/tmp/.casemate-probe",
        rustix::fs::FileType::CharacterDevice,
        Mode::from_raw_mode(0o600),
        rustix::fs::makedev(1, 3),
    );
    match probe {
        Err(rustix::io::Errno::ACCESS) => {}
        other => return Err(Unmet::new("landlock", format!("not in force: {other:?}"))),
    }
    let lacking = linux::landlock::lacking(abi);
    Ok(if lacking.is_empty() {
        (Held::Wholly, format!("ABI {abi}: files, devices, signals, abstract unix sockets"))
    } else {
        (Held::Partly, format!("ABI {abi}, which lacks {}", lacking.join(", ")))
    })
}

fn descriptors(expected: usize) -> Result<String, Unmet> {
    let open = std::fs::read_dir("/proc/self/fd")
        .map_err(|error| Unmet::new("descriptors", error))?
        .count();
    // The directory that is being read is one of them.
    if open - 1 == expected {
        Ok("programs get 0, 1 and 2 only".into())
    } else {
        Err(Unmet::new("descriptors", format!("{} are open, not {expected}", open - 1)))
    }
}

fn accounting(plan: &Plan, accounting: &Accounting) -> (Held, String) {
    let what = format!(
        "memory {} bytes, CPU {}.{:03}, processes {}",
        plan.memory,
        plan.cpu_milli / 1000,
        plan.cpu_milli % 1000,
        plan.processes
    );
    match accounting {
        Accounting::CgroupV2 { directory, cpu: true } => {
            (Held::Wholly, format!("cgroup v2 ({directory}): {what}"))
        }
        Accounting::CgroupV2 { directory, cpu: false } => (
            Held::Partly,
            format!(
                "cgroup v2 ({directory}), where the cpu controller is not delegated: a watcher \
                 keeps the CPU share: {what}"
            ),
        ),
        Accounting::CgroupV1(controllers) => {
            (Held::Wholly, format!("cgroup v1 ({}): {what}", controllers.join(", ")))
        }
        Accounting::Rlimits(reason) => (
            Held::Partly,
            format!(
                "rlimits and a watcher, for want of a cgroup ({reason}): {what}; memory that the \
                 kernel holds for processes, such as socket buffers, is not counted"
            ),
        ),
    }
}
