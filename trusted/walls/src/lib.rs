//! The walls: each isolation technology behind the `sandbox` interface.

#![forbid(unsafe_code)]

pub mod jail;

use std::path::PathBuf;
use std::sync::Arc;

use sandbox::{CreateError, Wall, WallChoice, WallName};

/// How the helper processes of walls are started: a program that calls
/// [`helper_main`] first thing in its `main`. The `casemate` binary does.
#[derive(Clone, Debug)]
pub struct Helper(PathBuf);

impl Helper {
    /// The running program itself, which must call [`helper_main`].
    #[must_use]
    pub fn this_program() -> Self {
        Self(PathBuf::from("/proc/self/exe"))
    }

    /// Another program that calls [`helper_main`]: a `casemate` binary.
    #[must_use]
    pub fn program(path: PathBuf) -> Self {
        Self(path)
    }

    /// The program's path.
    #[must_use]
    pub fn path(&self) -> &std::path::Path {
        &self.0
    }
}

/// Becomes a wall's helper process if this program was started as one; else
/// returns at once. To be called first thing in `main`, before any thread.
pub fn helper_main() {
    jail::launcher_main();
}

/// Opens the wall that was chosen. `auto` takes the strongest that works here.
///
/// # Errors
///
/// [`CreateError::NotBuilt`] or [`CreateError::Unavailable`].
pub async fn open(choice: WallChoice, helper: &Helper) -> Result<Arc<dyn Wall>, CreateError> {
    open_warm(choice, helper, 0).await
}

/// As [`open`], for a caller who makes many: of every kind of sandbox asked
/// for, `warm` further ones are kept ready, so that the next is had at once.
///
/// # Errors
///
/// As [`open`].
pub async fn open_warm(
    choice: WallChoice,
    helper: &Helper,
    warm: usize,
) -> Result<Arc<dyn Wall>, CreateError> {
    match choice {
        WallChoice::Auto | WallChoice::Named(WallName::Jail) => {
            Ok(Arc::new(jail::JailWall::open(helper, warm).await?))
        }
        WallChoice::Named(other) => Err(CreateError::NotBuilt(other)),
    }
}
