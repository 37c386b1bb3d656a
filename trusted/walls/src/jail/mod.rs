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
mod make;
mod processes;
mod root;
mod rules;
mod warm;
mod watch;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sandbox::{
    Cleanup, Control, ControlState, CreateError, Root, Sandbox, SandboxId, SandboxSpec,
    Unavailable, Wall, WallName, WorkspaceAccess,
};
use tokio::io::unix::AsyncFd;
use wire::jail::{Accounting, ControlNote, Held, Plan, RootPlan, WorkspacePlan};

use crate::Helper;
use client::Client;
use live::{JailSandbox, Shared};
use make::{make, unavailable};
use warm::Warm;

pub use launcher::launcher_main;

/// How long the launcher may take to remove everything at the end.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names and values of variables; a later one counts.
type Variables = Vec<(String, String)>;

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
    next: Arc<AtomicU64>,
    warm: Arc<Warm>,
}

impl JailWall {
    /// Starts the wall's launcher. For every kind of sandbox that is asked for,
    /// `warm` further ones are kept ready.
    ///
    /// # Errors
    ///
    /// [`CreateError::Unavailable`] if it does not start.
    pub async fn open(helper: &Helper, warm: usize) -> Result<Self, CreateError> {
        let client =
            Client::start(helper).await.map_err(|error| unavailable(&error.to_string()))?;
        Ok(Self {
            helper: helper.clone(),
            client: tokio::sync::Mutex::new(Arc::new(client)),
            next: Arc::new(AtomicU64::new(1)),
            warm: Arc::new(Warm::new(warm)),
        })
    }

    fn numbered(&self, plan: &Plan) -> Plan {
        Plan { number: self.next.fetch_add(1, Ordering::Relaxed), ..plan.clone() }
    }

    /// Has further sandboxes of this plan made, behind the caller's back.
    fn refill(&self, plan: &Plan) {
        let (next, wanted) = (Arc::clone(&self.next), plan.clone());
        let Ok(client) = self.client.try_lock().map(|client| Arc::clone(&client)) else { return };
        self.warm.refill(plan, move || {
            let plan = Plan { number: next.fetch_add(1, Ordering::Relaxed), ..wanted.clone() };
            let client = Arc::clone(&client);
            // What fails here fails again, and is told, when a caller wants one.
            async move { make(client, plan).await.ok() }
        });
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

    fn plan(spec: &SandboxSpec) -> Result<(Plan, Variables), CreateError> {
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
            number: 0,
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

/// The directory of a root, and the variables that come with it.
fn root_of(root: &Root) -> Result<(Option<String>, Variables), CreateError> {
    let default = vec![("PATH".to_owned(), PATH.to_owned())];
    let Root::Directory(path) = root else { return Ok((None, default)) };
    let bundle = path.join("rootfs");
    let config = path.join("config.json");
    let found = std::fs::symlink_metadata(&bundle);
    if found.is_err() || !config.is_file() {
        return Ok((Some(directory_of("root", path)?), default));
    }
    // An image comes from strangers: a link would show what it leads to.
    if !found.is_ok_and(|found| found.is_dir()) {
        return Err(CreateError::Spec {
            what: format!("root {}", path.display()),
            reason: "it has a config.json, as an OCI image has, but `rootfs` is no directory"
                .into(),
        });
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
    let real = path.canonicalize().map_err(|error| spec(&error.to_string()))?;
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
        let (plan, env) = Self::plan(spec)?;
        let made = match self.warm.take(&plan) {
            Some(made) => made,
            None => make(self.client().await?, self.numbered(&plan)).await?,
        };
        self.refill(&plan);
        let (shared, inbox) =
            Shared::new(spec.limits.clone(), made.links, made.pidfd, made.counters, made.measures);
        let shared = Arc::new(shared);
        let accounting = &made.lease.client.accounting;
        tokio::spawn(live::serve(Arc::clone(&shared), inbox));
        tokio::spawn(watch::watch(Arc::clone(&shared), accounting.clone()));
        let controls = controls(made.notes, spec, accounting);
        let id = SandboxId::new();
        let sandbox = JailSandbox { id, shared, lease: Some(made.lease), controls, env };
        for file in &spec.files {
            sandbox.put(file).await.map_err(|error| CreateError::Spec {
                what: "files".into(),
                reason: error.to_string(),
            })?;
        }
        Ok(Box::new(sandbox))
    }

    async fn shutdown(&self) -> Cleanup {
        self.warm.clear();
        let client = self.client.lock().await;
        if client.close(CLOSE_PATIENCE).await {
            Cleanup::default()
        } else {
            Cleanup { left: vec!["the jail's launcher, still removing sandboxes".into()] }
        }
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
