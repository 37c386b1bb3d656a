//! `casemate bench run`: create, run, destroy.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use sandbox::{Job, Limits, ProcessSpec, SandboxSpec, Wall};

use super::machine::Machine;
use super::report::{Group, Report, Samples};

const ABOUT: &str = "A sandbox created, one program run to its end, the sandbox destroyed";

/// Runs before those that count.
const WARM_UP: u32 = 5;

/// What bubblewrap needs for a sandbox like the jail's, as far as it can.
const BWRAP: &str = "--unshare-all --unshare-user --ro-bind /usr /usr --symlink usr/bin /bin \
    --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp \
    --die-with-parent";

/// The only variable that programs get, so that all do the same.
const PATH: (&str, &str) = ("PATH", "/usr/bin:/bin");

/// A program and what it prints.
pub(super) struct Subject {
    pub(super) name: &'static str,
    argv: &'static [&'static str],
    prints: &'static str,
}

const TRUE: Subject = Subject { name: "/bin/true", argv: &["/bin/true"], prints: "" };

/// The host's own Python, which the jail runs too.
pub(super) const PYTHON: Subject = Subject {
    name: "python3 -c 'print(1+1)'",
    argv: &["/usr/bin/python3", "-c", "print(1+1)"],
    prints: "2\n",
};

impl Subject {
    pub(super) fn exists(&self) -> bool {
        self.argv.first().is_some_and(|program| Path::new(program).exists())
    }

    /// Runs it on the bare host.
    pub(super) fn on_host(&self) -> anyhow::Result<Duration> {
        let (program, arguments) = self.argv.split_first().context("no program")?;
        self.time(Command::new(program).args(arguments))
    }

    fn time(&self, command: &mut Command) -> anyhow::Result<Duration> {
        command.env_clear().env(PATH.0, PATH.1);
        let begun = Instant::now();
        let output = command.output()?;
        let took = begun.elapsed();
        if output.status.success() && output.stdout == self.prints.as_bytes() {
            return Ok(took);
        }
        bail!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    }
}

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Host,
    Bwrap,
    OpenWall,
    Program,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Bwrap => "bubblewrap",
            Self::OpenWall => "jail, in a server",
            Self::Program => "jail, casemate run",
        }
    }
}

/// Measures all of it.
pub(super) async fn measure(wall: &Arc<dyn Wall>, runs: u32) -> anyhow::Result<Report> {
    let mut notes = vec![
        "`in a server`: the wall is open already. `casemate run`: a process that opens it, and \
         closes it after. All may use all CPUs."
            .to_owned(),
    ];
    let mut ways = vec![Way::Host, Way::OpenWall, Way::Program];
    if Command::new("bwrap").arg("--version").output().is_ok_and(|said| said.status.success()) {
        ways.insert(1, Way::Bwrap);
    } else {
        notes.push("bubblewrap is missing, so its rows are: apt-get install -y bubblewrap".into());
    }
    let mut groups = Vec::new();
    let (subjects, missing): (Vec<_>, Vec<_>) =
        [TRUE, PYTHON].into_iter().partition(Subject::exists);
    for subject in missing {
        notes.push(format!("{} is missing: apt-get install -y python3", subject.name));
    }

    let mut all: Vec<Vec<Samples>> =
        subjects.iter().map(|_| ways.iter().map(|way| Samples::of(way.name())).collect()).collect();
    for round in 0..WARM_UP + runs {
        for (subject, samples) in subjects.iter().zip(&mut all) {
            // Each round another way is the first: none always follows the same.
            for turn in 0..ways.len() {
                let index = (turn + round as usize) % ways.len();
                let way = ways[index];
                let took = once(wall, subject, way)
                    .await
                    .with_context(|| format!("{}: {}", way.name(), subject.name))?;
                if round >= WARM_UP {
                    samples[index].add(took);
                }
            }
        }
    }
    for (subject, samples) in subjects.iter().zip(&all) {
        groups.push(Group::new(subject.name, &[Way::Bwrap.name(), Way::Host.name()], samples));
    }
    Ok(Report::new(ABOUT, runs, groups, notes))
}

async fn once(wall: &Arc<dyn Wall>, subject: &Subject, way: Way) -> anyhow::Result<Duration> {
    match way {
        Way::Host => subject.on_host(),
        Way::Bwrap => {
            let mut command = Command::new("bwrap");
            subject.time(command.args(BWRAP.split_whitespace()).args(subject.argv))
        }
        Way::Program => {
            let cpus = Machine::this().cpus.to_string();
            let mut command = Command::new("/proc/self/exe");
            command.args(["run", "--cpus", &cpus, "--"]).args(subject.argv);
            subject.time(&mut command)
        }
        Way::OpenWall => in_process(wall, subject).await,
    }
}

async fn in_process(wall: &Arc<dyn Wall>, subject: &Subject) -> anyhow::Result<Duration> {
    // In range: a machine has no more than a few thousand.
    let cpus = f64::from(u32::try_from(Machine::this().cpus).unwrap_or(1));
    let begun = Instant::now();
    let spec =
        SandboxSpec { limits: Limits { cpus, ..Limits::default() }, ..SandboxSpec::default() };
    let job = Job::new(spec, ProcessSpec::new(subject.argv.iter().copied()));
    let (result, _) = sandbox::run(&**wall, job).await?;
    let took = begun.elapsed();
    if result.process_exit_code() == 0
        && result.stdout.0 == subject.prints.as_bytes()
        && result.cleanup.is_ok()
    {
        return Ok(took);
    }
    bail!("{:?}, cleanup {}: {}", result.exit, result.cleanup, result.stderr.to_text())
}
