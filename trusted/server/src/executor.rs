//! Runs plans. Each run is a task of its own, so that a client that goes away
//! takes its program with it but never a sandbox's destruction and its record.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{Collected, ExitStatus, RunEvent, RunResult, Wall, WallName};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::slots::Slot;

/// How much longer than its time limit a run may take before the wall is taken
/// to hang: creation, destruction and collecting files.
const GRACE: Duration = Duration::from_secs(60);

/// What runs plans.
pub(crate) struct Executor {
    pub(crate) wall: Arc<dyn Wall>,
    pub(crate) metrics: Arc<Metrics>,
    /// Ends all runs.
    pub(crate) kill: CancellationToken,
    /// All runs.
    pub(crate) running: TaskTracker,
    pub(crate) log_code: bool,
}

/// What a run gives.
pub(crate) type Done = (RunResult, Vec<Collected>);

/// A run. Dropping it ends the program and destroys the sandbox.
pub(crate) struct Running {
    task: JoinHandle<Result<Done, ApiError>>,
    _guard: DropGuard,
}

impl Running {
    /// Waits for the end.
    ///
    /// # Errors
    ///
    /// Why the program was not run, or not to its end.
    pub(crate) async fn finish(&mut self) -> Result<Done, ApiError> {
        (&mut self.task).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a run panicked");
            Err(ApiError::Internal("the run failed: this is a mistake in casemate".into()))
        })
    }
}

impl Executor {
    pub(crate) fn wall_name(&self) -> WallName {
        self.wall.name()
    }

    /// Starts a run in `slot`, which is held until nothing is left of the
    /// sandbox. What the program writes goes to `events` too.
    pub(crate) fn start(
        &self,
        slot: Slot,
        plan: Plan,
        events: Option<mpsc::Sender<RunEvent>>,
    ) -> Running {
        // A child of `kill` that its watcher's going away cancels alone.
        let cancel = self.kill.child_token();
        let run = Run {
            wall: Arc::clone(&self.wall),
            metrics: Arc::clone(&self.metrics),
            kill: self.kill.clone(),
            cancel: cancel.clone(),
            log_code: self.log_code,
        };
        let task = run.run(slot, plan, events).instrument(Span::current());
        Running { task: self.running.spawn(task), _guard: cancel.drop_guard() }
    }
}

/// What one run's task owns.
struct Run {
    wall: Arc<dyn Wall>,
    metrics: Arc<Metrics>,
    kill: CancellationToken,
    cancel: CancellationToken,
    log_code: bool,
}

impl Run {
    async fn run(
        self,
        slot: Slot,
        plan: Plan,
        events: Option<mpsc::Sender<RunEvent>>,
    ) -> Result<Done, ApiError> {
        if self.kill.is_cancelled() {
            return Err(ApiError::stopping());
        }
        let live = self.metrics.live.hold();
        let Plan { mut job, kind } = plan;
        if self.log_code {
            tracing::info!(argv = ?job.process.argv, "starting");
        }
        let most = job.spec.limits.wall_time + GRACE;
        job.events = events;
        job.cancel = self.cancel.clone();

        let done = match tokio::time::timeout(most, sandbox::run(&*self.wall, job)).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => {
                self.metrics.failed();
                let error = ApiError::from(error);
                tracing::warn!(kind, error = error.for_log(self.log_code), "not run");
                return Err(error);
            }
            // The future is dropped, so the wall destroys the sandbox.
            Err(_) => {
                self.metrics.failed();
                tracing::error!(kind, "the wall did not end a run in time");
                return Err(ApiError::Internal("the sandbox did not end in time".into()));
            }
        };
        drop((live, slot));
        let result = &done.0;
        self.metrics.ran(result);
        self.log(kind, result);
        // A program that ended by itself just before is not a lost one.
        let cut = result.limit_hit.is_none() && result.exit == ExitStatus::Signal(9);
        if cut && self.kill.is_cancelled() {
            return Err(ApiError::Unavailable(
                "the server is stopping; the program was ended before it was done".into(),
            ));
        }
        if cut && self.cancel.is_cancelled() {
            self.metrics.disconnects.add(1);
        }
        Ok(done)
    }

    fn log(&self, kind: &str, result: &RunResult) {
        if !result.cleanup.is_ok() {
            tracing::error!(sandbox = %result.id, cleanup = %result.cleanup, "something was left");
        }
        tracing::info!(
            sandbox = %result.id,
            wall = %result.wall,
            kind,
            exit_code = result.process_exit_code(),
            limit = result.limit_hit.map(tracing::field::display),
            stdout_bytes = result.stdout.0.len(),
            stderr_bytes = result.stderr.0.len(),
            create_us = micros(result.times.create),
            run_us = micros(result.times.run),
            destroy_us = micros(result.times.destroy),
            cleanup = %result.cleanup,
            cancelled = self.cancel.is_cancelled(),
            "ran"
        );
        if self.log_code {
            // Debug form: control characters are made visible.
            let (stdout, stderr) = (result.stdout.to_text(), result.stderr.to_text());
            tracing::info!(sandbox = %result.id, ?stdout, ?stderr, "output");
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
