//! From a request to a job for the wall: every field checked, and named if it
//! is wrong.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sandbox::{
    Contents, FileToPut, GuestPath, Job, Language, LimitError, Limits, ProcessSpec, SandboxSpec,
    Stdin, WallChoice, WallName,
};

use crate::api::request::{ExecRequest, FileRequest, LimitsRequest};
use crate::config::ServerConfig;
use crate::error::ApiError;

/// What requests are measured against.
#[derive(Debug)]
pub(crate) struct Planner {
    wall: WallName,
    defaults: Limits,
    most: Limits,
    max_get: u64,
}

/// A request that makes sense.
pub(crate) struct Plan {
    /// The sandbox and the program, without events and cancellation.
    pub(crate) job: Job,
    /// How the program was given: a language, or `argv`.
    pub(crate) kind: &'static str,
}

impl Planner {
    pub(crate) fn new(config: &ServerConfig, wall: WallName) -> Self {
        Self {
            wall,
            defaults: config.default_limits(),
            most: config.most_limits(),
            max_get: config.max_get,
        }
    }

    /// Makes a plan of a request. `at` is where the request is in the body, to
    /// go before the names of fields: empty, or `executions[3].`.
    ///
    /// # Errors
    ///
    /// [`ApiError::BadRequest`] that names the field.
    pub(crate) fn plan(&self, request: ExecRequest, at: &str) -> Result<Plan, ApiError> {
        let bad = |field: &str, reason: &dyn Display| bad(at, field, reason);

        let wall = match request.wall.as_deref().unwrap_or("auto").parse() {
            Ok(WallChoice::Named(name)) if name != self.wall => {
                let built = self.wall;
                let reason = format!("the `{name}` wall is not built yet: choose auto or {built}");
                return Err(bad("wall", &reason));
            }
            Ok(choice) => choice,
            Err(error) => return Err(bad("wall", &error)),
        };
        let language: Option<Language> = match request.language.as_deref().map(str::parse) {
            Some(Ok(language)) => Some(language),
            Some(Err(error)) => return Err(bad("language", &error)),
            None => None,
        };

        let mut files = Vec::with_capacity(request.files.len() + 1);
        for (index, file) in request.files.into_iter().enumerate() {
            files.push(put(file, &format!("{at}files[{index}]."))?);
        }

        let (argv, kind) = match (request.code, request.argv) {
            (Some(code), args) => {
                let language = language.unwrap_or_default();
                let (argv, main) = language.invocation(&code, &args.unwrap_or_default());
                files.extend(main);
                (argv, language.as_str())
            }
            (None, Some(argv)) if argv.is_empty() => return Err(bad("argv", &"it is empty")),
            (None, Some(_)) if language.is_some() => {
                return Err(bad("language", &"it means nothing without `code`"));
            }
            (None, Some(argv)) => (argv, "argv"),
            (None, None) => return Err(bad("code", &"missing; give `code` or `argv`")),
        };
        if let Some(index) = argv.iter().position(|argument| argument.contains('\0')) {
            return Err(bad("argv", &format!("argument {index} contains a NUL character")));
        }
        check_env(&request.env, at)?;

        let stdin = match (request.stdin, request.stdin_base64) {
            (Some(_), Some(_)) => return Err(bad("stdin", &"there is `stdin_base64` too")),
            (Some(text), None) => Stdin::Bytes(Bytes::from(text)),
            (None, Some(text)) => Stdin::Bytes(decode(&text, at, "stdin_base64")?),
            (None, None) => Stdin::Empty,
        };
        let limits =
            self.limits(request.limits.unwrap_or_default(), request.timeout_seconds, at)?;

        let mut collect: Vec<GuestPath> = Vec::with_capacity(request.get.len());
        for (index, path) in request.get.iter().enumerate() {
            let path = GuestPath::new(path).map_err(|e| bad(&format!("get[{index}]"), &e))?;
            if !collect.contains(&path) {
                collect.push(path);
            }
        }

        let spec = SandboxSpec { wall, limits, env: request.env, files, ..SandboxSpec::default() };
        let mut job = Job::new(spec, ProcessSpec::new(argv));
        (job.stdin, job.collect, job.collect_max) = (stdin, collect, self.max_get);
        Ok(Plan { job, kind })
    }

    fn limits(
        &self,
        asked: LimitsRequest,
        timeout: Option<f64>,
        at: &str,
    ) -> Result<Limits, ApiError> {
        let mut limits = self.defaults.clone();
        if let Some(seconds) = timeout {
            if seconds.is_nan() || seconds <= 0.0 {
                return Err(bad(at, "timeout_seconds", &"it must be more than 0"));
            }
            // More than the most is clamped, as zeroboot does; so is what no
            // duration can hold.
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            limits.wall_time = time.clamp(Duration::from_millis(1), self.most.wall_time);
        }

        let over = |field: &str, most: &dyn Display| {
            bad(at, &format!("limits.{field}"), &format!("this server gives at most {most}"))
        };
        macro_rules! take {
            ($($field:ident: $value:expr),+ $(,)?) => {$(
                if let Some(value) = $value {
                    if value > self.most.$field {
                        return Err(over(stringify!($field), &self.most.$field));
                    }
                    limits.$field = value;
                }
            )+};
        }
        take! {
            memory: asked.memory.map(|size| size.0),
            cpus: asked.cpus,
            processes: asked.processes,
            output: asked.output.map(|size| size.0),
            disk: asked.disk.map(|size| size.0),
            open_files: asked.open_files,
        }
        if let Some(size) = asked.file_size {
            if size.0 > self.most.disk {
                return Err(over("file_size", &self.most.disk));
            }
            limits.file_size = Some(size.0);
        }
        // More processor time than the wall-clock time leaves is no harm.
        limits.cpu_time = asked.cpu_time.map(|time| time.0.min(Duration::from_secs(24 * 3600)));
        limits.check().map_err(|error| bad(at, field_of(&error), &error))?;
        Ok(limits)
    }
}

/// The field that a limit out of range is.
fn field_of(error: &LimitError) -> &'static str {
    let LimitError::OutOfRange { limit, .. } = error else { return "limits" };
    match *limit {
        "wall time (ms)" => "timeout_seconds",
        "CPU time (ms)" => "limits.cpu_time",
        "CPUs" => "limits.cpus",
        "memory (bytes)" => "limits.memory",
        "processes" => "limits.processes",
        "file size (bytes)" => "limits.file_size",
        "disk (bytes)" => "limits.disk",
        "open files" => "limits.open_files",
        "output (bytes)" => "limits.output",
        _ => "limits",
    }
}

fn put(file: FileRequest, at: &str) -> Result<FileToPut, ApiError> {
    let path = GuestPath::new(&file.path).map_err(|error| bad(at, "path", &error))?;
    let bytes = match (file.content, file.content_base64) {
        (Some(_), Some(_)) => return Err(bad(at, "content", &"there is `content_base64` too")),
        (Some(text), None) => Bytes::from(text),
        (None, Some(text)) => decode(&text, at, "content_base64")?,
        (None, None) => return Err(bad(at, "content", &"missing; or give `content_base64`")),
    };
    let mode = match file.mode {
        None => 0o644,
        Some(text) => u32::from_str_radix(&text, 8)
            .ok()
            .filter(|mode| *mode <= 0o777 && !text.starts_with('+'))
            .ok_or_else(|| bad(at, "mode", &"it must be octal, between 0 and 777"))?,
    };
    Ok(FileToPut { path, contents: Contents::Bytes(bytes), mode })
}

fn check_env(env: &BTreeMap<String, String>, at: &str) -> Result<(), ApiError> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let reason = format!("{name:?} cannot be the name of a variable");
            return Err(bad(at, "env", &reason));
        }
        if value.contains('\0') {
            return Err(bad(at, &format!("env.{name}"), &"it contains a NUL character"));
        }
    }
    Ok(())
}

fn decode(text: &str, at: &str, field: &str) -> Result<Bytes, ApiError> {
    STANDARD.decode(text).map(Bytes::from).map_err(|error| bad(at, field, &error))
}

fn bad(at: &str, field: &str, reason: &dyn Display) -> ApiError {
    ApiError::BadRequest(format!("{at}{field}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(json: &str) -> Result<Plan, String> {
        let planner = Planner::new(&ServerConfig::default(), WallName::Jail);
        let request = serde_json::from_str(json).map_err(|error| error.to_string())?;
        planner.plan(request, "").map_err(|error| error.to_string())
    }

    #[test]
    fn programs() {
        let cases: [(&str, &str, &[&str]); 5] = [
            (r#"{"code":"x"}"#, "python", &["python3", "-c", "x"]),
            (r#"{"code":"x","language":"javascript"}"#, "node", &["node", "--eval=x", "--"]),
            (
                r#"{"code":"x","language":"bash","argv":["-a"]}"#,
                "bash",
                &["bash", "-c", "--", "x", "bash", "-a"],
            ),
            (r#"{"argv":["ls","-l"]}"#, "argv", &["ls", "-l"]),
            (r#"{"code":""}"#, "python", &["python3", "-c", ""]),
        ];
        for (json, kind, argv) in cases {
            let plan = plan(json).unwrap();
            assert_eq!(
                (plan.kind, plan.job.process.argv.as_slice()),
                (kind, &argv.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>()[..]),
                "{json}"
            );
        }
    }

    #[test]
    fn limits() {
        let limits = |json: &str| plan(json).unwrap().job.spec.limits;
        assert_eq!(limits(r#"{"code":""}"#), Limits::default());
        let cases = [
            (r#"{"code":"","timeout_seconds":0.5}"#, 500),
            (r#"{"code":"","timeout_seconds":30}"#, 30_000),
            (r#"{"code":"","timeout_seconds":999}"#, 300_000),
            (r#"{"code":"","timeout_seconds":1e300}"#, 300_000),
            (r#"{"code":"","timeout_seconds":1e-300}"#, 1),
        ];
        for (json, millis) in cases {
            assert_eq!(limits(json).wall_time.as_millis(), millis, "{json}");
        }
        let got = limits(
            r#"{"code":"","limits":{"memory":"1G","cpus":2,"processes":9,"output":"1M",
                "disk":2097152,"cpu_time":"3s","open_files":99,"file_size":"1M"}}"#,
        );
        let want = Limits {
            wall_time: Duration::from_secs(10),
            cpus: 2.0,
            cpu_time: Some(Duration::from_secs(3)),
            memory: 1 << 30,
            processes: 9,
            file_size: Some(1 << 20),
            disk: 2 << 20,
            open_files: 99,
            output: 1 << 20,
        };
        assert_eq!(got, want);
    }

    #[test]
    fn files_and_input() {
        let plan = plan(
            r#"{"code":"","stdin_base64":"AP8=","get":["out","~/out","/tmp/x"],
                "files":[{"path":"a/b","content":"c"},
                         {"path":"/tmp/r","content_base64":"/w==","mode":"0755"}]}"#,
        )
        .unwrap();
        let files: Vec<_> = plan.job.spec.files.iter().map(|f| (f.path.as_str(), f.mode)).collect();
        assert_eq!(files, [("/home/user/a/b", 0o644), ("/tmp/r", 0o755)]);
        assert!(matches!(&plan.job.stdin, Stdin::Bytes(bytes) if bytes[..] == [0, 255]));
        let get: Vec<_> = plan.job.collect.iter().map(GuestPath::as_str).collect();
        assert_eq!(get, ["/home/user/out", "/tmp/x"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            (r#"{}"#, "code: missing"),
            (r#"{"argv":[]}"#, "argv: it is empty"),
            (r#"{"argv":["a\u0000"]}"#, "argv: argument 0"),
            (r#"{"argv":["a"],"language":"node"}"#, "language: it means nothing"),
            (r#"{"code":"","language":"cobol"}"#, "choose python, node, javascript or bash"),
            (r#"{"code":"","wall":"vm"}"#, "wall: the `vm` wall is not built yet"),
            (r#"{"code":"","wall":"paper"}"#, "wall: no wall is called `paper`"),
            (r#"{"code":"","timeout_seconds":0}"#, "timeout_seconds: it must be more than 0"),
            (r#"{"code":"","timeout_seconds":-1}"#, "timeout_seconds: "),
            (r#"{"code":"","limits":{"memory":"1T"}}"#, "limits.memory: this server gives at most"),
            (r#"{"code":"","limits":{"memory":1}}"#, "limits.memory: "),
            (r#"{"code":"","limits":{"cpus":-1}}"#, "limits.cpus: "),
            (r#"{"code":"","limits":{"file_size":"9T"}}"#, "limits.file_size: "),
            (r#"{"code":"","env":{"A=B":""}}"#, "env: \"A=B\""),
            (r#"{"code":"","env":{"A":"\u0000"}}"#, "env.A: "),
            (r#"{"code":"","stdin":"","stdin_base64":""}"#, "stdin: "),
            (r#"{"code":"","stdin_base64":"?"}"#, "stdin_base64: "),
            (r#"{"code":"","files":[{"path":"a"}]}"#, "files[0].content: missing"),
            (r#"{"code":"","files":[{"path":"/..","content":""}]}"#, "files[0].path: "),
            (r#"{"code":"","files":[{"path":"a","content":"","mode":"4755"}]}"#, "files[0].mode: "),
            (r#"{"code":"","files":[{"path":"a","content":"","mode":"rwx"}]}"#, "files[0].mode: "),
            (r#"{"code":"","get":["a",""]}"#, "get[1]: "),
        ];
        for (json, said) in cases {
            let error = plan(json).map(|_| ()).unwrap_err();
            assert!(error.contains(said), "{json}: {error}");
        }
    }
}
