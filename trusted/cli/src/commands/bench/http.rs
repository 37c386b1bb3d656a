//! `casemate bench http`: a request for a run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use sandbox::Wall;
use server::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::report::{Group, Report, Samples};
use super::run::PYTHON;
use crate::failure::Failure;

const ABOUT: &str = "A program run to its end, by itself and through POST /v1/exec";

/// Runs before those that count.
const WARM_UP: u32 = 5;

/// How long the server may take until its first runs have told it that it works.
const READY_PATIENCE: Duration = Duration::from_secs(30);

const HOST: &str = "host";
const POST: &str = "POST /v1/exec";

/// Measures all of it.
pub(super) async fn measure(wall: &Arc<dyn Wall>, runs: u32) -> anyhow::Result<Report> {
    if !PYTHON.exists() {
        let failure = Failure::new("/usr/bin/python3 is missing");
        return Err(failure.fix("apt-get install -y python3").into());
    }
    let directory = tempfile::tempdir()?;
    let config = ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        database: directory.path().join("server.sqlite"),
        rate_limit: 0,
        ..ServerConfig::default()
    };
    let server = server::bind(config, Arc::clone(wall)).await?;
    let address = server.local_addr();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(server.run(stop.clone()));

    // A blocking client on this thread: nothing of it competes with the server
    // for the runtime.
    let measured = tokio::task::spawn_blocking(move || take_turns(address, runs)).await?;
    stop.cancel();
    serving.await??;

    let samples = measured?;
    let notes = vec!["One connection, kept alive; the server's own limits (0.5 CPU) and sandboxes kept ready (4)."
        .to_owned()];
    Ok(Report::new(ABOUT, runs, vec![Group::new(PYTHON.name, &[HOST], &samples)], notes))
}

fn take_turns(address: SocketAddr, runs: u32) -> anyhow::Result<[Samples; 2]> {
    let mut client = Client::connect(address)?;
    client.wait_until_ready()?;
    let mut host = Samples::of(HOST);
    let mut post = Samples::of(POST);
    for round in 0..WARM_UP + runs {
        let (on_host, through_post) = if round % 2 == 0 {
            let on_host = PYTHON.on_host()?;
            (on_host, client.execute()?)
        } else {
            let through_post = client.execute()?;
            (PYTHON.on_host()?, through_post)
        };
        if round >= WARM_UP {
            host.add(on_host);
            post.add(through_post);
        }
    }
    Ok([host, post])
}

/// As much of an HTTP client as this needs: one connection, whole bodies.
struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    /// Sends a request, gives status and body.
    fn send(&mut self, line: &str, body: &str) -> anyhow::Result<(u16, Vec<u8>)> {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;

        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        let mut answer = vec![0; length.context("an answer without a length")?];
        self.stream.read_exact(&mut answer)?;
        Ok((status.context("an answer without a status")?, answer))
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }

    /// Waits until the server has tried out its languages, so that it measures
    /// nothing beside.
    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.send("GET /v1/health", "")?;
            let health: serde_json::Value = serde_json::from_slice(&answer)?;
            if status == 200 && health["templates"]["python"]["ready"] == true {
                return Ok(());
            }
            ensure!(begun.elapsed() < READY_PATIENCE, "the server does not get ready: {health}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Has the program run, and says how long the answer took.
    fn execute(&mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let (status, answer) = self.send("POST /v1/exec", r#"{"code": "print(1+1)"}"#)?;
        let took = begun.elapsed();
        let result: serde_json::Value = serde_json::from_slice(&answer)?;
        if status == 200 && result["stdout"] == "2\n" && result["exit_code"] == 0 {
            return Ok(took);
        }
        bail!("the server answered {status}: {result}")
    }
}
