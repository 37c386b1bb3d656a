//! Landlock: a process gives up access to files for good.
//!
//! Source: landlock(7). The crate of the same name does the calls; here is what
//! Casemate asks of it.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

/// The ABI that this code knows all of.
const NEWEST: ABI = ABI::V6;

/// What may be done beneath a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Read and execute.
    Read,
    /// Read, execute, and write to files that exist.
    WriteExisting,
    /// Use devices: read, write, ioctl.
    Devices,
    /// All, with making, removing and renaming; but no device nodes.
    Everything,
}

/// Why Landlock was not put in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LandlockError {
    /// The kernel refused.
    #[error("{0}")]
    Ruleset(#[from] landlock::RulesetError),
    /// The kernel has none, or it is switched off.
    #[error("this kernel has no Landlock, or it is off at boot (lsm=)")]
    Absent,
}

/// The ABI of the running kernel; 0 for none.
#[must_use]
pub fn abi() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with no attributes and the version flag, the call reads no memory.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION)
    };
    i32::try_from(abi).unwrap_or(0).max(0)
}

/// What an ABI lacks of what Casemate asks for, oldest first.
#[must_use]
pub fn lacking(abi: i32) -> Vec<&'static str> {
    [
        (2, "renaming between directories"),
        (3, "truncation"),
        (5, "device ioctls"),
        (6, "abstract unix sockets and signals"),
    ]
    .into_iter()
    .filter(|(since, _)| abi < *since)
    .map(|(_, what)| what)
    .collect()
}

/// Gives up, for this thread and all it starts, every access to files that
/// `grants` does not name, and signals and abstract unix sockets to anything
/// outside. `no_new_privs` must be set before.
///
/// # Errors
///
/// [`LandlockError`]; nothing has changed then.
pub fn restrict(grants: Vec<(OwnedFd, Grant)>) -> Result<(), LandlockError> {
    let all = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    for (directory, grant) in grants {
        let access = match grant {
            Grant::Read => AccessFs::from_read(NEWEST),
            Grant::WriteExisting => {
                AccessFs::from_read(NEWEST) | AccessFs::WriteFile | AccessFs::Truncate
            }
            Grant::Devices => {
                AccessFs::ReadFile
                    | AccessFs::ReadDir
                    | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::IoctlDev
            }
            Grant::Everything => {
                all & !(AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock)
            }
        };
        ruleset = ruleset.add_rule(PathBeneath::new(directory, access))?;
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(LandlockError::Absent),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_shrinks_with_the_abi() {
        assert_eq!(lacking(0).len(), 4);
        assert_eq!(lacking(3), ["device ioctls", "abstract unix sockets and signals"]);
        assert!(lacking(6).is_empty());
    }
}
