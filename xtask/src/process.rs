//! Running other programs.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::Context as _;

/// Cargo, the one that runs this program.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args);
    command
}

/// Says the command, runs it with this program's own output and no input.
///
/// # Errors
///
/// If it does not start or does not end well.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    println!("$ {}", shown(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("`{}` does not start", name(command)))?;
    anyhow::ensure!(status.success(), "`{}`: {status}", shown(command));
    Ok(())
}

/// Runs a command silently; its stdout.
///
/// # Errors
///
/// If it does not start or does not end well: then with what it said.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{}` does not start", name(command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "`{}`: {}: {}",
        shown(command),
        output.status,
        said.trim()
    );
    Ok(output.stdout)
}

/// Whether a command starts and ends well.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as a reader would type it, the program by its name only.
fn shown(command: &Command) -> String {
    let args = command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.contains([' ', '\'', '"']) { format!("{arg:?}") } else { arg.into_owned() }
    });
    std::iter::once(name(command)).chain(args).collect::<Vec<_>>().join(" ")
}

fn name(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told() {
        assert_eq!(output(Command::new("echo").arg("a b")).unwrap(), b"a b\n");
        let error = output(Command::new("/bin/sh").args(["-c", "echo why >&2; exit 3"]));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("sh -c \"echo why") && error.contains("3: why"), "{error}");
        let error = run(&mut Command::new("/no/such-program")).unwrap_err().to_string();
        assert!(error.contains("`such-program` does not start"), "{error}");
        assert!(!works(&mut Command::new("false")));
        assert!(works(&mut Command::new("true")));
    }
}
