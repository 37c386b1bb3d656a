//! Which walls work.

use sandbox::{WallChoice, WallName};
use walls::Helper;

use super::{Fact, State};

const GROUP: &str = "walls";

/// Tries each wall, the strongest last.
pub(super) async fn facts() -> Vec<Fact> {
    vec![
        jail().await,
        not_built(WallName::Fork, "will need KVM"),
        not_built(WallName::Vm, "will need QEMU"),
    ]
}

async fn jail() -> Fact {
    let name = WallName::Jail.as_str();
    let unavailable =
        match walls::open(WallChoice::Named(WallName::Jail), &Helper::this_program()).await {
            Ok(wall) => {
                let probed = wall.probe().await;
                wall.shutdown().await;
                match probed {
                    Ok(()) => return Fact::new(GROUP, name, State::Ok, "works"),
                    Err(unavailable) => unavailable,
                }
            }
            Err(sandbox::CreateError::Unavailable { unavailable, .. }) => unavailable,
            Err(error) => return Fact::new(GROUP, name, State::No, error.to_string()),
        };
    Fact::new(GROUP, name, State::No, unavailable.reason).fix(unavailable.fix)
}

fn not_built(wall: WallName, needs: &str) -> Fact {
    Fact::new(GROUP, wall.as_str(), State::No, format!("not built yet; {needs}"))
}
