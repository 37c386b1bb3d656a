//! `casemate run`: one program in one sandbox, from start to end.

mod args;
mod get;
mod harmless;
mod printer;
mod program;
mod put;
mod terminal;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use sandbox::{Collected, Job, ProcessSpec, RunResult, Stdin, Stdio, Wall};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use walls::Helper;

pub(crate) use args::RunArgs;

use crate::failure::{Failure, RUN_FAILED};
use crate::signals::Signals;
use crate::ui;
use get::Target;
use printer::{Closed, Printer};
use program::Program;
use terminal::RawMode;

/// How long a cancelled run may take to destroy its sandbox before the whole
/// wall is shut down instead.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// How long output may take to be written after an interrupted run.
const PRINT_PATIENCE: Duration = Duration::from_millis(200);

/// Runs what `args`, parsed from `words`, say.
///
/// # Errors
///
/// Why there was nothing to run or it did not run.
pub(crate) fn execute(args: RunArgs, words: &[OsString]) -> anyhow::Result<ExitCode> {
    // Code on stdin is read while Ctrl-C still ends this process.
    let program = Program::find(&args, words)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(session(&args, program));
    // A thread that reads stdin is stuck in there, and ends with the process.
    runtime.shutdown_background();
    code
}

async fn session(args: &RunArgs, program: Program) -> anyhow::Result<ExitCode> {
    let cancel = CancellationToken::new();
    let interrupt = Arc::new(OnceLock::new());
    tokio::spawn(watch(Signals::take()?, Arc::clone(&interrupt), cancel.clone()));

    // The wall's helper starts while we read what to give it.
    let helper = Helper::this_program();
    let (wall, prepared) =
        tokio::join!(walls::open(args.wall, &helper), async { prepare(args, program, &cancel) });
    let (job, targets) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            if let Ok(wall) = wall {
                wall.shutdown().await;
            }
            return Err(failure.into());
        }
    };
    let wall = wall.map_err(Failure::from)?;

    let raw_mode = if args.tty { RawMode::enter()? } else { None };
    let outcome = attend(&wall, job, args, &cancel).await;
    drop(raw_mode);

    let left_by_wall = wall.shutdown().await;
    let mut clean = true;
    if !left_by_wall.is_ok() {
        clean = false;
        ui::note(&format!("the wall was not cleaned up; {left_by_wall}"));
    }
    let Some((result, collected, closed)) = outcome? else {
        // Cancelled and dropped: the wall's shutdown destroyed it.
        return Ok(ExitCode::from(interrupt.get().copied().unwrap_or(RUN_FAILED)));
    };
    if !result.cleanup.is_ok() {
        clean = false;
        ui::note(&format!("the sandbox was not cleaned up; {}", result.cleanup));
    }

    let saved = cancel.is_cancelled() || save(&targets, collected);
    if args.json {
        ui::print_json(&result)?;
    }
    let own = exit_code(&result);
    let code = match interrupt.get().copied() {
        _ if !clean => RUN_FAILED,
        Some(signal) => signal,
        None if closed == Closed::Stdout && result.limit_hit.is_none() => {
            return Err(ui::OutputClosed.into());
        }
        None => {
            if let Some(limit) = result.limit_hit {
                ui::note(&args.limit_note(limit));
            }
            if own == 0 && !saved { RUN_FAILED } else { own }
        }
    };
    Ok(ExitCode::from(code))
}

/// Cancels the run at the first signal and keeps its exit code. Further ones
/// change nothing: the sandbox is being destroyed already, which takes a moment.
async fn watch(mut signals: Signals, interrupt: Arc<OnceLock<u8>>, cancel: CancellationToken) {
    let code = signals.next().await;
    let _ = interrupt.set(code);
    cancel.cancel();
}

fn exit_code(result: &RunResult) -> u8 {
    u8::try_from(result.process_exit_code()).unwrap_or(RUN_FAILED)
}

/// Reads and checks all that the run needs from this host.
fn prepare(
    args: &RunArgs,
    program: Program,
    cancel: &CancellationToken,
) -> Result<(Job, Vec<Target>), Failure> {
    let targets = args.get.iter().map(get::Get::target).collect::<Result<Vec<_>, _>>()?;
    let mut spec = args.spec()?;
    let mut room = spec.limits.disk;
    for put in &args.put {
        spec.files.append(&mut put.read(&mut room)?);
    }
    spec.files.extend(program.file);

    let mut process = ProcessSpec::new(program.argv);
    process.cwd = args.cwd.clone();
    let mut resize = None;
    if args.tty {
        process.stdio = Stdio::Pty(terminal::size());
        resize = terminal::sizes();
    }
    let mut job = Job::new(spec, process);
    job.stdin = if program.reads_stdin { stdin() } else { Stdin::Empty };
    job.collect = targets.iter().map(|target| target.guest.clone()).collect();
    job.collect_max = job.spec.limits.disk.max(job.spec.limits.memory);
    job.resize = resize;
    job.cancel = cancel.clone();
    Ok((job, targets))
}

/// What the program reads: our own stdin, unless there is nothing to be had.
fn stdin() -> Stdin {
    /// The device number of `/dev/null`.
    const NULL: u64 = (1 << 8) | 3;
    let is_null = File::open("/proc/self/fd/0")
        .and_then(|file| file.metadata())
        .is_ok_and(|file| file.file_type().is_char_device() && file.rdev() == NULL);
    if is_null || terminal::in_background() {
        Stdin::Empty
    } else {
        Stdin::Reader(Box::new(tokio::io::stdin()))
    }
}

type Outcome = Option<(RunResult, Vec<Collected>, Closed)>;

/// Runs the job and passes its output on. `None` if it was cancelled and did
/// not end in time.
async fn attend(
    wall: &Arc<dyn Wall>,
    mut job: Job,
    args: &RunArgs,
    cancel: &CancellationToken,
) -> anyhow::Result<Outcome> {
    let (sender, events) = mpsc::channel(1);
    let printer = if args.json {
        None
    } else {
        job.events = Some(sender);
        Some(Printer::start(args.tty, cancel.clone()).context("no thread for output")?)
    };
    let forward = async {
        match printer {
            Some(printer) => Some(printer.forward(events, cancel).await),
            None => None,
        }
    };
    let patience = async {
        cancel.cancelled().await;
        tokio::time::sleep(CANCEL_PATIENCE).await;
    };
    let (run, printed) = tokio::select! {
        both = async { tokio::join!(sandbox::run(&**wall, job), forward) } => both,
        () = patience => return Ok(None),
    };
    let (result, collected) = run.map_err(Failure::from)?;
    let closed = match printed {
        None => Closed::No,
        Some(printed) => {
            let give_up = async {
                cancel.cancelled().await;
                tokio::time::sleep(PRINT_PATIENCE).await;
            };
            tokio::select! {
                closed = printed => closed.unwrap_or(Closed::No),
                () = give_up => Closed::No,
            }
        }
    };
    Ok(Some((result, collected, closed)))
}

/// Writes what was collected; says what could not be had. Whether all could.
fn save(targets: &[Target], collected: Vec<Collected>) -> bool {
    let mut all = true;
    for (target, file) in targets.iter().zip(collected) {
        let written = file.contents.map_err(|error| error.to_string()).and_then(|tree| {
            let path = target.path().display();
            target.write(&tree).map_err(|error| format!("{path}: {error}"))
        });
        let failed = match written {
            Ok(behind) => {
                for what in behind {
                    ui::note(&format!("--get {}: not copied: {what}", target.guest));
                }
                continue;
            }
            Err(why) => why,
        };
        all = false;
        ui::note(&format!("--get: {failed}"));
    }
    all
}
