//! The `jail` wall: the host's kernel, fenced, without root.
//!
//! Three kinds of process:
//!
//! - the *supervisor*: this program, any number of threads ([`JailWall`]);
//! - one *launcher* (`launcher.rs`): the same program started anew, with one
//!   thread and no secret, which makes and removes sandboxes;
//! - one *init* a sandbox (`init.rs`): process 1 inside. It builds the root
//!   (`root.rs`), gives up every power (`lockdown.rs`), proves that it did, and
//!   then starts programs, which inherit all of that.

mod cgroup;
mod client;
mod files;
mod init;
mod launcher;
mod link;
mod live;
mod lockdown;
mod processes;
mod root;
mod rules;
mod watch;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sandbox::{
    Cleanup, Control, ControlState, CreateError, Root, Sandbox, SandboxId, SandboxSpec,
    Unavailable, Wall, WallName, WorkspaceAccess,
};
use tokio::io::unix::AsyncFd;
use wire::jail::{Accounting, ControlNote, FromInit, Held, Plan, RootPlan, WorkspacePlan};

use crate::Helper;
use client::{Client, Inbox};
use live::{JailSandbox, Shared};
use watch::Measures;

pub use launcher::launcher_main;

/// How long a sandbox may take to be ready.
const READY_PATIENCE: Duration = Duration::from_secs(30);

/// How long the launcher may take to remove everything at the end.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Locks a mutex whose holders never leave it half changed, so that a panic
/// elsewhere does not spread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a descriptor one that tasks can wait for; sets it non-blocking.
fn async_fd(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&fd, true)?;
    // Deprecated for types that may give out another descriptor later. An
    // `OwnedFd` cannot: its successor's contract holds by construction.
    #[allow(deprecated)]
    AsyncFd::new(fd)
}

/// The `jail` wall.
pub struct JailWall {
    helper: Helper,
    /// Replaced when it has died.
    client: tokio::sync::Mutex<Arc<Client>>,
    next: AtomicU64,
}

impl JailWall {
    /// Starts the wall's launcher.
    ///
    /// # Errors
    ///
    /// [`CreateError::Unavailable`] if it does not start.
    pub async fn open(helper: &Helper) -> Result<Self, CreateError> {
        let client =
            Client::start(helper).await.map_err(|error| unavailable(&error.to_string()))?;
        Ok(Self {
            helper: helper.clone(),
            client: tokio::sync::Mutex::new(Arc::new(client)),
            next: AtomicU64::new(1),
        })
    }

    /// The launcher, started again if it has died.
    async fn client(&self) -> Result<Arc<Client>, CreateError> {
        let mut client = self.client.lock().await;
        if !client.is_alive() {
            tracing::warn!("the jail's launcher is gone; starting another");
            let new = Client::start(&self.helper).await;
            *client = Arc::new(new.map_err(|error| unavailable(&error.to_string()))?);
        }
        Ok(Arc::clone(&client))
    }

    fn plan(&self, spec: &SandboxSpec) -> Result<(Plan, Vec<(String, String)>), CreateError> {
        let limits = &spec.limits;
        limits.check()?;
        let (directory, mut env) = root_of(&spec.root)?;
        for (name, value) in
            [("HOME", root::HOME), ("USER", "user"), ("LOGNAME", "user"), ("LANG", "C.UTF-8")]
        {
            env.push((name.into(), value.into()));
        }
        env.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        let workspace = match &spec.workspace {
            Some(workspace) => Some(WorkspacePlan {
                host: directory_of("workspace", &workspace.host)?,
                guest: workspace.guest.to_string(),
                copy_on_write: workspace.access == WorkspaceAccess::CopyOnWrite,
            }),
            None => None,
        };
        // In range by `check`.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let cpu_milli = (limits.cpus * 1000.0).round() as u64;
        let plan = Plan {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            root: RootPlan { directory, workspace },
            disk: limits.disk,
            memory: limits.memory,
            cpu_milli,
            processes: limits.processes.into(),
            file_size: limits.file_size.unwrap_or(limits.disk),
            open_files: limits.open_files,
            cpu_seconds: limits.cpu_time.map(|time| time.as_secs() + 1),
            user_namespaces: spec.allow_user_namespaces,
        };
        Ok((plan, env))
    }
}

fn unavailable(reason: &str) -> CreateError {
    let unavailable = Unavailable { reason: reason.to_owned(), fix: fix_for(reason) };
    CreateError::Unavailable { wall: WallName::Jail, unavailable }
}

/// What would make a failed step work, where the reason is a common one.
fn fix_for(reason: &str) -> Option<String> {
    let switched_off = |path: &str, off: &str| {
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() == off)
    };
    if !reason.contains("namespaces")
        && !reason.contains("map the user")
        && !reason.contains("mount")
    {
        return None;
    }
    if switched_off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Some("sysctl -w kernel.unprivileged_userns_clone=1".into());
    }
    if switched_off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Some("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".into());
    }
    if switched_off("/proc/sys/user/max_user_namespaces", "0") {
        return Some("sysctl -w user.max_user_namespaces=15000".into());
    }
    None
}

/// The directory of a root, and the variables that come with it.
fn root_of(root: &Root) -> Result<(Option<String>, Vec<(String, String)>), CreateError> {
    let default = vec![("PATH".to_owned(), PATH.to_owned())];
    let Root::Directory(path) = root else { return Ok((None, default)) };
    let bundle = path.join("rootfs");
    let config = path.join("config.json");
    if !(bundle.is_dir() && config.is_file()) {
        return Ok((Some(directory_of("root", path)?), default));
    }
    let spec =
        |reason: String| CreateError::Spec { what: format!("root {}", config.display()), reason };
    let text = std::fs::read_to_string(&config).map_err(|error| spec(error.to_string()))?;
    let config: Bundle = serde_json::from_str(&text).map_err(|error| spec(error.to_string()))?;
    let mut env = default;
    for variable in config.process.unwrap_or_default().env {
        if let Some((name, value)) = variable.split_once('=') {
            env.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok((Some(directory_of("root", &bundle)?), env))
}

/// What is used of an OCI bundle's `config.json`.
#[derive(serde::Deserialize)]
struct Bundle {
    process: Option<BundleProcess>,
}

#[derive(Default, serde::Deserialize)]
struct BundleProcess {
    #[serde(default)]
    env: Vec<String>,
}

/// A directory that exists, by its absolute path without links.
fn directory_of(what: &str, path: &Path) -> Result<String, CreateError> {
    let spec = |reason: &str| CreateError::Spec {
        what: format!("{what} {}", path.display()),
        reason: reason.to_owned(),
    };
    let real: PathBuf = path.canonicalize().map_err(|error| spec(&error.to_string()))?;
    if !real.is_dir() {
        return Err(spec("it is not a directory"));
    }
    real.into_os_string().into_string().map_err(|_| spec("its path is not UTF-8"))
}

#[async_trait]
impl Wall for JailWall {
    fn name(&self) -> WallName {
        WallName::Jail
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        match self.create(&SandboxSpec::default()).await {
            Ok(sandbox) => {
                let ended = sandbox.destroy().await;
                if ended.cleanup.is_ok() {
                    Ok(())
                } else {
                    Err(Unavailable { reason: ended.cleanup.to_string(), fix: None })
                }
            }
            Err(CreateError::Unavailable { unavailable, .. }) => Err(unavailable),
            Err(error) => Err(Unavailable { reason: error.to_string(), fix: None }),
        }
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        let (plan, env) = self.plan(spec)?;
        let client = self.client().await?;
        let number = plan.number;
        let wall = |error: std::io::Error| CreateError::Wall(error.to_string());
        let (ours, theirs) = UnixStream::pair().map_err(wall)?;
        let (outbox, inbox) = client::open(ours).map_err(wall)?;
        // From here on, whatever way this ends, the launcher is told.
        let undo = Undo { client: &client, number, done: false };
        let created = match client.create(plan, theirs.into()).await {
            Ok(Ok(created)) => created,
            Ok(Err(reason)) => return Err(unavailable(&reason)),
            Err(gone) => return Err(CreateError::Wall(gone.to_string())),
        };
        let ready = tokio::time::timeout(READY_PATIENCE, ready(&inbox)).await;
        let (notes, measures) =
            ready.map_err(|_| CreateError::Wall("the sandbox was not ready in time".into()))??;
        let (shared, inbox) = Shared::new(
            spec.limits.clone(),
            (outbox, inbox),
            created.pidfd,
            created.counters,
            measures,
        );
        let shared = Arc::new(shared);
        tokio::spawn(live::serve(Arc::clone(&shared), inbox));
        tokio::spawn(watch::watch(Arc::clone(&shared), client.accounting.clone()));
        live::put_all(&shared, &spec.files).await.map_err(|error| CreateError::Spec {
            what: "files".into(),
            reason: error.to_string(),
        })?;
        undo.disarm();
        let controls = controls(notes, spec, &client.accounting);
        let id = SandboxId::new();
        Ok(Box::new(JailSandbox { id, number, shared, client, controls, env, destroyed: false }))
    }

    async fn shutdown(&self) -> Cleanup {
        let client = self.client.lock().await;
        if client.close(CLOSE_PATIENCE).await {
            Cleanup::default()
        } else {
            Cleanup { left: vec!["the jail's launcher, still removing sandboxes".into()] }
        }
    }
}

/// Has a half-made sandbox removed when its making is given up.
struct Undo<'a> {
    client: &'a Client,
    number: u64,
    done: bool,
}

impl Undo<'_> {
    fn disarm(mut self) {
        self.done = true;
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.client.destroy_behind(self.number);
        }
    }
}

/// Waits for init to say that every control is in force.
async fn ready(inbox: &Inbox) -> Result<(Vec<ControlNote>, Measures), CreateError> {
    match inbox.receive::<FromInit>().await {
        Ok(Some((FromInit::Ready { controls }, fds))) => match <[_; 2]>::try_from(fds) {
            Ok([proc, disk]) => Ok((controls, Measures { proc, disk })),
            Err(_) => Err(CreateError::Wall("init sent no measures".into())),
        },
        Ok(Some((FromInit::Failed { control, reason }, _))) => {
            match fix_for(&format!("{control} {reason}")) {
                Some(fix) => Err(CreateError::Control {
                    control,
                    reason: format!("{reason}; to fix it: {fix}"),
                }),
                None => Err(CreateError::Control { control, reason }),
            }
        }
        Ok(Some(_)) => Err(CreateError::Wall("init spoke out of turn".into())),
        Ok(None) => Err(CreateError::Wall("init ended before it was ready".into())),
        Err(error) => Err(CreateError::Wall(format!("init: {error}"))),
    }
}

/// What init has proved, and what is enforced from here.
fn controls(notes: Vec<ControlNote>, spec: &SandboxSpec, accounting: &Accounting) -> Vec<Control> {
    let mut controls: Vec<Control> = notes
        .into_iter()
        .map(|note| Control {
            name: note.name,
            state: match note.held {
                Held::Wholly => ControlState::InForce(note.detail),
                Held::Partly => ControlState::Partial(note.detail),
                Held::Not => ControlState::Absent(note.detail),
            },
        })
        .collect();
    let mut add = |name: &str, detail: String| {
        controls.push(Control { name: name.into(), state: ControlState::InForce(detail) });
    };
    let limits = &spec.limits;
    add("network", "none: a network namespace with a loopback interface only".into());
    add("wall-clock time", format!("{:?}, measured and ended by the supervisor", limits.wall_time));
    add("output", format!("{} bytes, counted by the supervisor", limits.output));
    if let Some(time) = limits.cpu_time {
        let by = match accounting {
            Accounting::Rlimits(_) => "RLIMIT_CPU and the watcher",
            _ => "the cgroup's counter and RLIMIT_CPU",
        };
        add("CPU time", format!("{time:?}, by {by}"));
    }
    controls
}
