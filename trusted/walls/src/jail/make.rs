//! Having the launcher make a sandbox, up to the point where it is ready.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sandbox::{CreateError, Unavailable, WallName};
use wire::jail::{ControlNote, Counters, FromInit, Plan};

use super::client::{self, Client, Inbox, Outbox};
use super::watch::Measures;

/// How long a sandbox may take to be ready.
const READY_PATIENCE: Duration = Duration::from_secs(30);

/// A sandbox in which nothing has run. Dropping it has it removed.
pub(super) struct Made {
    pub(super) lease: Lease,
    pub(super) links: (Outbox, Inbox),
    pub(super) pidfd: OwnedFd,
    pub(super) counters: Counters,
    pub(super) measures: Measures,
    pub(super) notes: Vec<ControlNote>,
}

/// The right to a sandbox of the launcher's. Dropping it has it removed.
pub(super) struct Lease {
    pub(super) client: Arc<Client>,
    pub(super) number: u64,
    ended: bool,
}

impl Lease {
    /// Has the sandbox removed, waits, and says what was left and used.
    pub(super) async fn end(mut self) -> Result<client::Removed, client::Gone> {
        self.ended = true;
        self.client.destroy(self.number).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.ended {
            self.client.destroy_behind(self.number);
        }
    }
}

impl Made {
    /// Whether its init still runs.
    pub(super) fn is_alive(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

/// Has a sandbox made. However this ends, nothing is left of a failed attempt.
pub(super) async fn make(client: Arc<Client>, plan: Plan) -> Result<Made, CreateError> {
    let wall = |error: std::io::Error| CreateError::Wall(error.to_string());
    let (ours, theirs) = UnixStream::pair().map_err(wall)?;
    let (outbox, inbox) = client::open(ours).map_err(wall)?;
    let lease = Lease { client, number: plan.number, ended: false };
    let created = match lease.client.create(plan, theirs.into()).await {
        Ok(Ok(created)) => created,
        Ok(Err(reason)) => return Err(unavailable(&reason)),
        Err(gone) => return Err(CreateError::Wall(gone.to_string())),
    };
    let (notes, measures) = tokio::time::timeout(READY_PATIENCE, ready(&inbox))
        .await
        .map_err(|_| CreateError::Wall("the sandbox was not ready in time".into()))??;
    Ok(Made {
        lease,
        links: (outbox, inbox),
        pidfd: created.pidfd,
        counters: created.counters,
        measures,
        notes,
    })
}

/// Waits for init to say that every control is in force.
async fn ready(inbox: &Inbox) -> Result<(Vec<ControlNote>, Measures), CreateError> {
    match inbox.receive::<FromInit>().await {
        Ok(Some((FromInit::Ready { controls }, fds))) => match <[_; 2]>::try_from(fds) {
            Ok([proc, disk]) => Ok((controls, Measures { proc, disk })),
            Err(_) => Err(CreateError::Wall("init sent no measures".into())),
        },
        Ok(Some((FromInit::Failed { control, reason }, _))) => {
            let fix = fix_for(&format!("{control} {reason}"));
            let reason =
                fix.map_or_else(|| reason.clone(), |fix| format!("{reason}; to fix it: {fix}"));
            Err(CreateError::Control { control, reason })
        }
        Ok(Some(_)) => Err(CreateError::Wall("init spoke out of turn".into())),
        Ok(None) => Err(CreateError::Wall("init ended before it was ready".into())),
        Err(error) => Err(CreateError::Wall(format!("init: {error}"))),
    }
}

/// The wall does not work here, for this reason.
pub(super) fn unavailable(reason: &str) -> CreateError {
    let unavailable = Unavailable { reason: reason.to_owned(), fix: fix_for(reason) };
    CreateError::Unavailable { wall: WallName::Jail, unavailable }
}

/// The setting that would make a failed step work, where user namespaces are
/// switched off.
pub(super) fn fix_for(reason: &str) -> Option<String> {
    if !["namespace", "map the user", "mount"].iter().any(|word| reason.contains(word)) {
        return None;
    }
    let is = |path: &str, value: &str| {
        std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
    };
    [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ]
    .into_iter()
    .find(|(path, off, _)| is(path, off))
    .map(|(_, _, setting)| format!("sysctl -w {setting}"))
}
