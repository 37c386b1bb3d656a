//! What the tests need of the machine, and getting it.

use std::path::Path;
use std::process::Command;

use crate::process::{run, works};
use crate::steps::{Context, Outcome};

/// Something that tests need.
struct Need {
    probe: Probe,
    /// The package of Debian and Ubuntu that has it.
    package: &'static str,
    /// What it is for.
    used_for: &'static str,
    /// Whether the tests mean little without it.
    required: bool,
}

/// How it is seen that it is there.
enum Probe {
    /// A program in a system directory: those below `/usr` are what a sandbox
    /// sees, so that one in somebody's home would not do.
    Program(&'static str),
    File(&'static str),
    /// A module of the system's Python.
    PythonModule(&'static str),
}

/// Everything that tests need, besides Rust.
const NEEDS: [Need; 10] = [
    Need {
        probe: Probe::Program("gcc"),
        package: "gcc",
        used_for: "SQLite, and attacks written in C",
        required: true,
    },
    Need {
        probe: Probe::File("/usr/include/stdio.h"),
        package: "libc6-dev",
        used_for: "SQLite, and attacks written in C",
        required: true,
    },
    Need {
        probe: Probe::Program("python3"),
        package: "python3",
        used_for: "attacks and programs in Python",
        required: true,
    },
    Need {
        probe: Probe::Program("node"),
        package: "nodejs",
        used_for: "programs in Node",
        required: true,
    },
    Need {
        probe: Probe::Program("bash"),
        package: "bash",
        used_for: "programs in bash",
        required: true,
    },
    Need {
        probe: Probe::Program("unshare"),
        package: "util-linux",
        used_for: "controls that show an attack working in namespaces",
        required: true,
    },
    Need {
        probe: Probe::Program("git"),
        package: "git",
        used_for: "the list of files that tidy checks",
        required: false,
    },
    Need {
        probe: Probe::PythonModule("numpy"),
        package: "python3-numpy",
        used_for: "programs that use NumPy",
        required: false,
    },
    Need {
        probe: Probe::Program("bwrap"),
        package: "bubblewrap",
        used_for: "benches, as the peer to measure against",
        required: false,
    },
    Need {
        probe: Probe::Program("curl"),
        package: "curl",
        used_for: "the examples of the README",
        required: false,
    },
];

/// The directories that a sandbox looks for programs in.
const SYSTEM_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Parts of the Rust tool-chain that not every installation has.
const COMPONENTS: [(&str, &str); 2] = [("fmt", "rustfmt"), ("clippy", "clippy")];

impl Probe {
    fn name(&self) -> String {
        match self {
            Self::Program(name) | Self::File(name) => (*name).to_owned(),
            Self::PythonModule(name) => format!("Python's {name}"),
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Program(name) => program(name).is_some(),
            Self::File(path) => Path::new(path).exists(),
            Self::PythonModule(module) => program("python3").is_some_and(|python| {
                works(Command::new(python).args(["-c", &format!("import {module}")]))
            }),
        }
    }
}

fn program(name: &str) -> Option<std::path::PathBuf> {
    SYSTEM_PATH.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

/// Finds what is missing and installs it where that may be done.
pub(crate) fn step(_: &mut Context) -> anyhow::Result<Outcome> {
    install_components()?;
    let before = missing();
    if before.is_empty() {
        return Ok(Outcome::found(format!("{} of {} there", NEEDS.len(), NEEDS.len())));
    }
    for need in &before {
        println!("missing: {}, for {}", need.probe.name(), need.used_for);
    }
    let has_apt = program("apt-get").is_some();
    if has_apt && rustix::process::geteuid().is_root() {
        install(&packages(&before))?;
    }
    let after = missing();
    judge(&after, &advice(&after, has_apt))
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !need.probe.is_there()).collect()
}

fn packages(needs: &[&Need]) -> Vec<&'static str> {
    needs.iter().map(|need| need.package).collect()
}

fn install(packages: &[&str]) -> anyhow::Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-q", "-o", "Acquire::Retries=2"]).args(args);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    if let Err(error) = run(&mut apt(&["update"])) {
        println!("{error}: trying with the lists that are there");
    }
    let install = ["install", "-y", "--no-install-recommends"];
    match run(&mut apt(&[install.as_slice(), packages].concat())) {
        // One by one, what there is: an optional package may be unknown here.
        Err(error) if packages.len() > 1 => {
            println!("{error}: trying one by one");
            for package in packages {
                if let Err(error) = run(&mut apt(&[install.as_slice(), &[*package]].concat())) {
                    println!("{error}");
                }
            }
        }
        Err(error) => println!("{error}"),
        Ok(()) => {}
    }
    Ok(())
}

/// The one command that installs what is missing.
fn advice(missing: &[&Need], has_apt: bool) -> String {
    let packages = packages(missing).join(" ");
    if has_apt {
        format!("sudo apt-get install -y --no-install-recommends {packages}")
    } else {
        format!("install what Debian calls: {packages}")
    }
}

/// What is still missing is a failure if it is required.
fn judge(missing: &[&Need], advice: &str) -> anyhow::Result<Outcome> {
    let (required, optional): (Vec<&Need>, Vec<&Need>) =
        missing.iter().partition(|need| need.required);
    let names =
        |needs: &[&Need]| needs.iter().map(|need| need.probe.name()).collect::<Vec<_>>().join(", ");
    anyhow::ensure!(required.is_empty(), "missing: {}\n  {advice}", names(&required));
    let there = format!("{} of {} there", NEEDS.len() - missing.len(), NEEDS.len());
    let warnings = if optional.is_empty() {
        Vec::new()
    } else {
        vec![format!("without {}, some tests do less: {advice}", names(&optional))]
    };
    Ok(Outcome::Passed { found: there, warnings })
}

/// rustup adds what `rust-toolchain.toml` names by itself; this is for where it
/// did not.
fn install_components() -> anyhow::Result<()> {
    for (subcommand, component) in COMPONENTS {
        if works(&mut crate::process::cargo(&[subcommand, "--version"])) {
            continue;
        }
        println!("missing: {component}");
        run(Command::new("rustup").args(["component", "add", component])).map_err(|error| {
            anyhow::anyhow!("{error}\n  install the {component} of this Rust tool-chain")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_tell_there_from_missing() {
        let cases = [
            (Probe::Program("sh"), true),
            (Probe::Program("no-such-program"), false),
            (Probe::File("/usr"), true),
            (Probe::File("/no/such/file"), false),
            (Probe::PythonModule("no_such_module"), false),
        ];
        for (probe, want) in cases {
            assert_eq!(probe.is_there(), want, "{}", probe.name());
        }
    }

    #[test]
    fn what_is_required_fails_and_the_rest_is_said() {
        let named = |name: &str| NEEDS.iter().find(|need| need.package == name).unwrap();
        let (python, numpy) = (named("python3"), named("python3-numpy"));
        let command = advice(&[python, numpy], true);
        assert_eq!(
            command,
            "sudo apt-get install -y --no-install-recommends python3 python3-numpy"
        );
        let error = judge(&[python, numpy], &command).err().unwrap().to_string();
        assert!(error.contains("missing: python3\n  sudo apt-get"), "{error}");
        let notes = judge(&[numpy], &advice(&[numpy], true)).unwrap().notes();
        assert!(notes.contains("warning: without Python's numpy"), "{notes}");
        assert!(advice(&[python], false).contains("Debian calls: python3"));
    }
}
