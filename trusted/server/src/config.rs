//! The server's settings: a TOML file, over which flags go.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::Limits;
use serde::Deserialize;

use crate::api::request::MAX_EXECUTIONS;
use crate::units::{self, Size};

const MIB: u64 = 1 << 20;

/// Why there is no database.
pub(crate) const NO_DATABASE: &str =
    "neither HOME nor XDG_DATA_HOME says where it is: set `database`, or give --database";

/// Settings of the server. Times are numbers of seconds or texts like `"2m"`,
/// sizes numbers of bytes or texts like `"8M"`.
///
/// ```
/// let config: server::ServerConfig = server::ServerConfig::parse(r#"
///     listen = "127.0.0.1:7070"
///     slots = 32
///     max_body = "4M"
///
///     [max_limits]
///     memory = "1G"
/// "#).unwrap();
/// assert_eq!(config.slots, 32);
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Where to listen. Default `127.0.0.1:7070`. Another address than a
    /// loopback one needs an API key to exist.
    pub listen: SocketAddr,
    /// The SQLite file that holds the keys. Default `casemate/server.sqlite`
    /// in the user's data directory; empty, which [`ServerConfig::check`]
    /// refuses, if neither HOME nor XDG_DATA_HOME names one.
    pub database: PathBuf,
    /// The most sandboxes at once. Default 16.
    pub slots: usize,
    /// How many sandboxes of each kind that is asked for are kept ready; for
    /// whoever opens the wall. Default 4.
    pub warm: usize,
    /// The most requests that wait for a slot; any further one is refused as
    /// busy at once. Default 0.
    pub queue: usize,
    /// How long a request waits for a slot. Default 10 s.
    #[serde(deserialize_with = "units::duration")]
    pub queue_wait: Duration,
    /// The largest request body, in bytes. Default 8 MiB.
    #[serde(deserialize_with = "units::bytes")]
    pub max_body: u64,
    /// Requests that one key may make in a second. Default 100; 0 is no bound.
    pub rate_limit: u32,
    /// The longest time a program may be given; a caller that asks for more
    /// gets this. Default 300 s.
    #[serde(deserialize_with = "units::duration")]
    pub max_timeout: Duration,
    /// The most executions in one batch. Default 256; not more than 4096.
    pub max_batch: usize,
    /// The largest file that a caller may get back, in bytes. Default 4 MiB.
    #[serde(deserialize_with = "units::bytes")]
    pub max_get: u64,
    /// What a sandbox gets if its caller says nothing. Default: that of
    /// [`Limits::default`].
    pub limits: LimitSettings,
    /// The most that a caller may ask for. Default: 4 GiB of memory, 4 CPUs,
    /// 1024 processes, 1 GiB of disk, 65536 open files, 16 MiB of output.
    pub max_limits: LimitSettings,
    /// How long running programs are waited for at a graceful stop. Default 30 s.
    #[serde(deserialize_with = "units::duration")]
    pub drain: Duration,
    /// The most connections at once; further ones wait in the listen queue.
    /// Default 512.
    pub max_connections: usize,
    /// How long a client may take to send the head of a request, and how long
    /// a kept-alive connection may be idle. Default 30 s.
    #[serde(deserialize_with = "units::duration")]
    pub header_timeout: Duration,
    /// How long a client may take to send the body of a request. Default 30 s.
    #[serde(deserialize_with = "units::duration")]
    pub body_timeout: Duration,
    /// How long a client may leave what is sent to it unread. Default 30 s.
    #[serde(deserialize_with = "units::duration")]
    pub write_timeout: Duration,
    /// Names under which an open server may be addressed besides `localhost`
    /// and loopback addresses. Default: none.
    pub allowed_hosts: Vec<String>,
    /// Writes code and output of programs to the log. Default false.
    pub log_code: bool,
    /// How log lines are written. Default `text`.
    pub log_format: LogFormat,
    /// Which log lines are written: a level, or `target=level` pairs with
    /// commas between. Default `info`.
    pub log_level: String,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            database: default_database(),
            slots: 16,
            warm: 4,
            queue: 0,
            queue_wait: Duration::from_secs(10),
            max_body: 8 * MIB,
            rate_limit: 100,
            max_timeout: Duration::from_secs(300),
            max_batch: 256,
            max_get: 4 * MIB,
            limits: LimitSettings::default(),
            max_limits: LimitSettings::default(),
            drain: Duration::from_secs(30),
            max_connections: 512,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            allowed_hosts: Vec::new(),
            log_code: false,
            log_format: LogFormat::Text,
            log_level: "info".into(),
        }
    }
}

impl ServerConfig {
    /// Reads settings from a TOML file; what it does not name is at its default.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Read`] if the file cannot be read, otherwise as
    /// [`ServerConfig::parse`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads settings from TOML text.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Syntax`] names line, column and field; otherwise as
    /// [`ServerConfig::check`], but that a database may still be missing.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text)?;
        config.check_amounts()?;
        Ok(config)
    }

    /// Checks that the settings make sense; for settings that flags changed.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Value`] names the field and what is wrong with it.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.database.as_os_str().is_empty() {
            return Err(ConfigError::Value { field: "database", reason: NO_DATABASE.into() });
        }
        self.check_amounts()
    }

    /// As [`ServerConfig::check`], without what a flag may still add.
    fn check_amounts(&self) -> Result<(), ConfigError> {
        let value = |field: &'static str, reason: String| Err(ConfigError::Value { field, reason });
        let at_least_one = [("slots", self.slots), ("max_connections", self.max_connections)];
        for (field, number) in at_least_one {
            // The upper bound is that of what counts them.
            if !(1..=1_000_000).contains(&number) {
                return value(field, format!("{number} does not lie between 1 and 1000000"));
            }
        }
        if !(1..=MAX_EXECUTIONS).contains(&self.max_batch) {
            let reason = format!("{} does not lie between 1 and {MAX_EXECUTIONS}", self.max_batch);
            return value("max_batch", reason);
        }
        if self.queue > 1_000_000 {
            return value("queue", format!("{} is more than 1000000", self.queue));
        }
        let times = [
            ("max_timeout", self.max_timeout),
            ("header_timeout", self.header_timeout),
            ("body_timeout", self.body_timeout),
            ("write_timeout", self.write_timeout),
        ];
        for (field, time) in times {
            if time.is_zero() {
                return value(field, "it is zero".into());
            }
        }
        if !(1024..=1 << 30).contains(&self.max_body) {
            return value("max_body", "it does not lie between 1K and 1G".into());
        }
        let (default, most) = (self.default_limits(), self.most_limits());
        for (field, limits) in [("limits", &default), ("max_limits", &most)] {
            if let Err(error) = limits.check() {
                return value(field, error.to_string());
            }
        }
        if let Some((name, asked, most)) = self.limits.above(&most) {
            let reason = format!("{name} is {asked}, more than the {most} of `max_limits`");
            return value("limits", reason);
        }
        match self.log_level.parse::<tracing_subscriber::filter::Targets>() {
            Ok(_) => Ok(()),
            Err(error) => value("log_level", error.to_string()),
        }
    }

    /// What a sandbox gets if its caller says nothing; the maxima hold for it too.
    pub(crate) fn default_limits(&self) -> Limits {
        let (base, most) = (Limits::default(), self.most_limits());
        self.limits.over(Limits {
            wall_time: base.wall_time.min(most.wall_time),
            memory: base.memory.min(most.memory),
            cpus: base.cpus.min(most.cpus),
            processes: base.processes.min(most.processes),
            disk: base.disk.min(most.disk),
            open_files: base.open_files.min(most.open_files),
            output: base.output.min(most.output),
            ..base
        })
    }

    /// The most that a caller may ask for.
    pub(crate) fn most_limits(&self) -> Limits {
        self.max_limits.over(Limits {
            wall_time: self.max_timeout,
            memory: 4096 * MIB,
            cpus: 4.0,
            processes: 1024,
            disk: 1024 * MIB,
            open_files: 65536,
            output: 16 * MIB,
            ..Limits::default()
        })
    }
}

/// Amounts of what a sandbox may use; what is not named is at its default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Memory, in bytes.
    pub memory: Option<Size>,
    /// Share of processor time; 1.0 is one whole CPU.
    pub cpus: Option<f64>,
    /// Processes and threads at once.
    pub processes: Option<u32>,
    /// Bytes of files.
    pub disk: Option<Size>,
    /// Open descriptors of one process.
    pub open_files: Option<u64>,
    /// Bytes of output.
    pub output: Option<Size>,
}

impl LimitSettings {
    fn over(&self, base: Limits) -> Limits {
        let size = |setting: Option<Size>, base| setting.map_or(base, |size| size.0);
        Limits {
            memory: size(self.memory, base.memory),
            cpus: self.cpus.unwrap_or(base.cpus),
            processes: self.processes.unwrap_or(base.processes),
            disk: size(self.disk, base.disk),
            open_files: self.open_files.unwrap_or(base.open_files),
            output: size(self.output, base.output),
            ..base
        }
    }

    /// The first of these that is more than the most: its name, and both.
    fn above(&self, most: &Limits) -> Option<(&'static str, String, String)> {
        macro_rules! compare {
            ($($field:ident: $value:expr),+ $(,)?) => {$(
                if let Some(value) = $value.filter(|value| *value > most.$field) {
                    return Some((stringify!($field), value.to_string(), most.$field.to_string()));
                }
            )+};
        }
        compare! {
            memory: self.memory.map(|size| size.0),
            cpus: self.cpus,
            processes: self.processes,
            disk: self.disk.map(|size| size.0),
            open_files: self.open_files,
            output: self.output.map(|size| size.0),
        }
        None
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(format!("no log format is called `{text}`: choose text or json")),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the settings file {} cannot be read: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not TOML, or a field is unknown or of the wrong type. The text
    /// names line, column and field.
    #[error("settings: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A value makes no sense.
    #[error("settings: `{field}`: {reason}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// `casemate/server.sqlite` in the user's data directory, as the XDG base
/// directory specification finds it; empty if there is no home either.
fn default_database() -> PathBuf {
    database_below(|variable| std::env::var_os(variable).map(PathBuf::from))
}

fn database_below(from: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    // The specification: a relative path is to be ignored.
    let absolute = |variable| from(variable).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("casemate/server.sqlite"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_what_it_names() {
        let config = ServerConfig::parse(
            "listen = '[::1]:80'\ndrain = '1m'\nqueue_wait = 2\nmax_body = '1M'\n\
             log_format = 'json'\n[max_limits]\nmemory = '2G'\n[limits]\ncpus = 1.5\n",
        )
        .unwrap();
        assert_eq!(config.listen.port(), 80);
        assert_eq!(config.drain, Duration::from_secs(60));
        assert_eq!(config.queue_wait, Duration::from_secs(2));
        assert_eq!(config.max_body, MIB);
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.most_limits().memory, 2048 * MIB);
        assert_eq!(config.most_limits().cpus, 4.0);
        assert_eq!(config.default_limits().cpus, 1.5);
        assert_eq!(config.default_limits().memory, Limits::default().memory);
        assert_eq!(ServerConfig::parse("").unwrap().slots, 16);
    }

    #[test]
    fn the_most_holds_for_defaults_too() {
        let config = ServerConfig::parse("[max_limits]\nmemory = '64M'\noutput = '2K'\n").unwrap();
        let limits = config.default_limits();
        assert_eq!((limits.memory, limits.output), (64 * MIB, 2048));
        assert!(ServerConfig::parse("[limits]\ncpus = 2\n[max_limits]\ncpus = 2\n").is_ok());
    }

    #[test]
    fn a_database_is_never_in_the_working_directory() {
        let cases = [
            // XDG_DATA_HOME  HOME            database
            (Some("/data"), Some("/home/a"), "/data/casemate/server.sqlite"),
            (Some("data"), Some("/home/a"), "/home/a/.local/share/casemate/server.sqlite"),
            (None, Some("home"), ""),
            (None, Some(""), ""),
            (None, None, ""),
        ];
        for (data, home, want) in cases {
            let database = database_below(|name| {
                let value = if name == "HOME" { home } else { data };
                value.map(PathBuf::from)
            });
            assert_eq!(database, Path::new(want), "{data:?} {home:?}");
        }
        let config = ServerConfig { database: PathBuf::new(), ..ServerConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("--database"));
        assert!(ServerConfig::parse("database = ''\n").is_ok(), "a flag may name one");
    }

    #[test]
    fn errors_say_where() {
        let cases = [
            // name               text                              said
            ("unknown field", "slots = 1\nslot = 2\n", "line 2, column 1|slot"),
            ("wrong type", "slots = 'many'\n", "line 1, column 9|slots"),
            ("unknown in table", "[limits]\nram = 1\n", "line 2, column 1|ram"),
            ("not TOML", "slots = \n", "line 1, column 9"),
            ("no address", "listen = 'localhost'\n", "line 1|listen"),
            ("no unit", "drain = '1 fortnight'\n", "line 1|fortnight"),
            ("no slots", "slots = 0\n", "`slots`"),
            ("no batches", "max_batch = 0\n", "`max_batch`"),
            ("huge batches", "max_batch = 5000\n", "`max_batch`|between 1 and 4096"),
            ("tiny body", "max_body = 5\n", "`max_body`"),
            ("no memory", "[limits]\nmemory = 1\n", "`limits`|memory"),
            (
                "above the most",
                "[limits]\nmemory = '8G'\n",
                "`limits`|memory is 8589934592|`max_limits`",
            ),
            (
                "above its most",
                "[limits]\ncpus = 2.5\n[max_limits]\ncpus = 1.5\n",
                "`limits`|cpus is 2.5|the 1.5 of `max_limits`",
            ),
            ("no such level", "log_level = 'loud=er=x'\n", "`log_level`"),
        ];
        for (name, text, said) in cases {
            let error = ServerConfig::parse(text).unwrap_err().to_string();
            for part in said.split('|') {
                assert!(error.contains(part), "{name}: {error}");
            }
        }
    }
}
