//! Which languages work here: tried once, behind the wall, after the start.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use sandbox::{Job, Language, Limits, ProcessSpec, SandboxSpec, Wall};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

/// Whether programs in one language can be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, ToSchema)]
pub(crate) struct Template {
    /// Whether an empty program was run, after the server's start.
    pub(crate) ready: bool,
    /// The most memory that the empty program held, in MiB.
    pub(crate) memory_mb: f64,
    /// For Python: whether NumPy is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) numpy: Option<bool>,
}

/// What is known of each language.
#[derive(Debug)]
pub(crate) struct Readiness(RwLock<BTreeMap<&'static str, Template>>);

impl Readiness {
    /// Nothing is ready yet.
    pub(crate) fn new() -> Self {
        let none = |language: Language| (language.as_str(), Template::default());
        Self(RwLock::new(Language::ALL.into_iter().map(none).collect()))
    }

    /// What is known now.
    pub(crate) fn now(&self) -> BTreeMap<&'static str, Template> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tries each language in a sandbox of its own, one after the other.
    pub(crate) async fn find_out(
        &self,
        wall: &dyn Wall,
        limits: &Limits,
        stop: &CancellationToken,
    ) {
        for language in Language::ALL {
            if stop.is_cancelled() {
                return;
            }
            let template = try_out(wall, limits, stop, language).await;
            tracing::info!(%language, ready = template.ready, "tried");
            self.0
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(language.as_str(), template);
        }
    }
}

/// Says with its exit code whether NumPy could be imported, without doing that.
const FIND_NUMPY: &str =
    "import importlib.util as u; raise SystemExit(3 * (not u.find_spec('numpy')))";

async fn try_out(
    wall: &dyn Wall,
    limits: &Limits,
    stop: &CancellationToken,
    language: Language,
) -> Template {
    let code = if language == Language::Python { FIND_NUMPY } else { "" };
    let (argv, _) = language.invocation(code, &[]);
    let spec = SandboxSpec { limits: limits.clone(), ..SandboxSpec::default() };
    let mut job = Job::new(spec, ProcessSpec::new(argv));
    job.cancel = stop.clone();
    match sandbox::run(wall, job).await {
        Ok((result, _)) => {
            let code = result.process_exit_code();
            #[expect(clippy::cast_precision_loss, reason = "memory needs no more than 53 bits")]
            let mib = result.usage.peak_memory as f64 / f64::from(1 << 20);
            Template {
                ready: code == 0 || (language == Language::Python && code == 3),
                memory_mb: (mib * 10.0).round() / 10.0,
                numpy: (language == Language::Python).then_some(code == 0),
            }
        }
        Err(error) => {
            tracing::warn!(%language, %error, "does not work here");
            Template::default()
        }
    }
}
