//! `casemate serve`: the HTTP server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{Wall, WallChoice, parse_duration, parse_size};
use server::{LogFormat, ServerConfig};
use tokio_util::sync::CancellationToken;
use walls::Helper;

use super::values;
use crate::failure::Failure;
use crate::signals::Signals;

const AFTER: &str = "\
Flags go over what the file says; the file has more settings than there are flags.
Without API keys the server is open to every program on this machine, and listens
on no other address than a loopback one. `casemate keys create NAME` ends that.

Ctrl-C or SIGTERM: no new work, running programs get their time (--drain). A second
one ends them at once.

Examples:
  casemate serve
  casemate serve --listen 0.0.0.0:7070 --slots 64
  casemate serve --config /etc/casemate.toml --log-format json
  curl -H 'Content-Type: application/json' -d '{\"code\": \"print(1+1)\"}' \\
    http://127.0.0.1:7070/v1/exec";

/// Serves POST /v1/exec and what belongs to it over HTTP.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct ServeArgs {
    /// Settings, a TOML file
    #[arg(long, value_name = "FILE", env = "CASEMATE_CONFIG")]
    config: Option<PathBuf>,

    /// Wall around programs
    #[arg(long, default_value = "auto", value_parser = values::walls())]
    wall: WallChoice,

    /// Where to listen [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,

    /// SQLite file that holds the API keys [default: in the user's data directory]
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,

    /// Most sandboxes at once; further requests are refused as busy [default: 16]
    #[arg(long, value_name = "NUMBER")]
    slots: Option<usize>,

    /// Sandboxes of each kind asked for that are kept ready; 0 for none [default: 4]
    #[arg(long, value_name = "NUMBER")]
    warm: Option<usize>,

    /// Most requests that wait for a slot [default: 0]
    #[arg(long, value_name = "NUMBER")]
    queue: Option<usize>,

    /// How long a request waits for a slot [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    queue_wait: Option<Duration>,

    /// Largest request body [default: 8M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_body: Option<u64>,

    /// Longest time a program may be given [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    max_timeout: Option<Duration>,

    /// Requests of one key in a second; 0 is no bound [default: 100]
    #[arg(long, value_name = "NUMBER")]
    rate_limit: Option<u32>,

    /// Time that running programs get when the server stops [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    drain: Option<Duration>,

    /// Another name an open server may be addressed by; may be repeated
    #[arg(long, value_name = "NAME")]
    allowed_host: Vec<String>,

    /// Write code and output of programs to the log
    #[arg(long)]
    log_code: bool,

    /// How log lines are written [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = values::log_formats())]
    log_format: Option<LogFormat>,

    /// Which log lines are written: a level, or TARGET=LEVEL,… [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl ServeArgs {
    /// The settings: defaults, over them the file, over it the flags.
    fn settings(self) -> anyhow::Result<ServerConfig> {
        fn over<T>(setting: &mut T, flag: Option<T>) {
            if let Some(value) = flag {
                *setting = value;
            }
        }
        let mut config = match &self.config {
            Some(path) => ServerConfig::load(path)?,
            None => ServerConfig::default(),
        };
        over(&mut config.listen, self.listen);
        over(&mut config.database, self.database);
        over(&mut config.slots, self.slots);
        over(&mut config.warm, self.warm);
        over(&mut config.queue, self.queue);
        over(&mut config.queue_wait, self.queue_wait);
        over(&mut config.max_body, self.max_body);
        over(&mut config.max_timeout, self.max_timeout);
        over(&mut config.rate_limit, self.rate_limit);
        over(&mut config.drain, self.drain);
        over(&mut config.log_format, self.log_format);
        over(&mut config.log_level, self.log_level);
        config.allowed_hosts.extend(self.allowed_host);
        config.log_code |= self.log_code;
        config.check()?;
        Ok(config)
    }
}

pub(crate) fn execute(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let wall = args.wall;
    let config = args.settings()?;
    let warm = config.warm.min(config.slots);
    let _logs = server::init_logging(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let wall =
            walls::open_warm(wall, &Helper::this_program(), warm).await.map_err(Failure::from)?;
        serve(config, wall).await
    })
}

async fn serve(config: ServerConfig, wall: Arc<dyn Wall>) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::take()?;
    let server = match server::bind(config, Arc::clone(&wall)).await {
        Ok(server) => server,
        Err(error) => {
            wall.shutdown().await;
            return Err(error.into());
        }
    };
    let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
    let mut running = std::pin::pin!(server.run_until(stop.clone(), hurry.clone()));
    tokio::select! {
        ended = &mut running => return done(ended),
        _ = signals.next() => stop.cancel(),
    }
    let code = tokio::select! {
        ended = &mut running => return done(ended),
        code = signals.next() => code,
    };
    hurry.cancel();
    running.await?;
    Ok(ExitCode::from(code))
}

fn done(ended: Result<(), server::ServeError>) -> anyhow::Result<ExitCode> {
    ended?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn settings(words: &[&str]) -> Result<ServerConfig, String> {
        let program = Program::try_parse_from(["serve"].iter().chain(words));
        program
            .map_err(|error| error.to_string())?
            .serve
            .settings()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn flags_go_over_the_file_and_the_file_over_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("casemate.toml");
        std::fs::write(&file, "slots = 3\nqueue = 4\nlog_format = 'json'\n").unwrap();
        let config = settings(&["--config", file.to_str().unwrap(), "--slots", "5"]).unwrap();
        assert_eq!((config.slots, config.queue), (5, 4));
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.rate_limit, ServerConfig::default().rate_limit);

        assert!(settings(&["--slots", "0"]).unwrap_err().contains("slots"));
        assert!(settings(&["--drain", "soon"]).unwrap_err().contains("--drain"));
        assert!(settings(&["--config", "no-such-file.toml"]).unwrap_err().contains("no-such-file"));
    }
}
