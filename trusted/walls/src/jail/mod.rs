//! placeholder
use crate::Helper;
use sandbox::*;
/// The `jail` wall.
pub struct JailWall;
/// placeholder
pub fn launcher_main() {}
impl JailWall {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`CreateError::Unavailable`].
    pub async fn open(_helper: &Helper) -> Result<Self, CreateError> {
        Err(CreateError::NotBuilt(WallName::Jail))
    }
}
#[async_trait::async_trait]
impl Wall for JailWall {
    fn name(&self) -> WallName {
        WallName::Jail
    }
    async fn probe(&self) -> Result<(), Unavailable> {
        Ok(())
    }
    async fn create(&self, _: &SandboxSpec) -> Result<Box<dyn Sandbox>, CreateError> {
        Err(CreateError::NotBuilt(WallName::Jail))
    }
    async fn shutdown(&self) -> Cleanup {
        Cleanup::default()
    }
}
