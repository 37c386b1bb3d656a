//! What figures were measured on.

use std::fmt;

use serde::Serialize;

/// This machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    /// Processors that this process may use.
    pub(super) cpus: usize,
    model: String,
    kernel: String,
}

impl Machine {
    pub(super) fn this() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| {
            line.strip_prefix("model name")?.split_once(':').map(|(_, model)| model.trim())
        });
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            model: model.unwrap_or("an unknown processor").to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs of {}, Linux {}", self.cpus, self.model, self.kernel)
    }
}
