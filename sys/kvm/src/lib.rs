//! What this host's KVM can do.
//!
//! Source: Linux `Documentation/virt/kvm/api.rst`.

#[cfg(target_arch = "x86_64")]
mod trial;

use std::sync::mpsc;
use std::time::Duration;

/// How long the trial of a guest kernel's instructions may take. It takes less
/// than a millisecond where it works.
const PATIENCE: Duration = Duration::from_secs(2);

/// What this host's KVM can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kvm {
    /// There is no `/dev/kvm`.
    Absent,
    /// It is there, and this user may not open it.
    Forbidden(String),
    /// It opens, and machines cannot be made.
    Broken(String),
    /// Machines run user code, but not a kernel: the named instruction, which
    /// every kernel needs, is not executed. Software KVMs are like that.
    UserCodeOnly {
        /// `KVM_GET_API_VERSION`.
        api: i32,
        /// What was not executed.
        missing: String,
    },
    /// Machines execute what a kernel needs.
    Kernels {
        /// `KVM_GET_API_VERSION`.
        api: i32,
    },
}

/// Tries it: makes a machine and has it execute what every kernel needs.
#[must_use]
pub fn probe() -> Kvm {
    match std::fs::File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Kvm::Absent,
        Err(error) => return Kvm::Forbidden(error.to_string()),
    }
    // A machine that never leaves its guest must not take the caller along.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(trial())));
    receiver
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| Kvm::Broken("a machine was started and did not come back".into()))
}

#[cfg(target_arch = "x86_64")]
fn trial() -> Kvm {
    trial::run().unwrap_or_else(|error| Kvm::Broken(error.to_string()))
}

#[cfg(not(target_arch = "x86_64"))]
fn trial() -> Kvm {
    Kvm::Broken("not tried on this processor architecture".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_agrees_with_the_device() {
        let there = std::path::Path::new("/dev/kvm").exists();
        match probe() {
            Kvm::Absent => assert!(!there),
            other => assert!(there, "{other:?}"),
        }
    }
}
