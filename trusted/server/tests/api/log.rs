//! What goes into the log, and what does not.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::TestServer;

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Where all tests of this process log to, from the first call on.
fn shared_log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .init();
        log
    })
}

/// The log so far, after a few requests that are full of `secret`.
async fn log(log_code: bool, secret: &str, id: &str) -> String {
    let log = shared_log();
    let server = TestServer::with(|config| config.log_code = log_code).await;
    let key = server.keys().await.create("k").await.unwrap();
    let bodies = [
        json!({"code": format!("print('{secret}')"), "env": {"A": secret}, "stdin": secret}),
        json!({"argv": [secret]}),
        json!({"code": "", "language": secret}),
        json!({"code": "", "limits": secret}),
        json!({"code": "", secret: 1}),
        json!({"code": "", "files": [{"path": secret, "content": secret}], "get": [secret]}),
        json!({"code": "", "env": {format!("={secret}"): ""}}),
    ];
    for body in bodies {
        let request = server.post("/v1/exec", &body).bearer_auth(&key);
        request.header("x-request-id", id).send().await.unwrap();
    }
    server.stop().await.unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!log.contains(&key), "a key in the log:\n{log}");
    log
}

#[tokio::test]
async fn no_code_and_no_output_unless_asked_for() {
    let quiet = log(false, "s3cr3t", "quiet-id").await;
    assert!(!quiet.contains("s3cr3t"), "{quiet}");
    let own: Vec<&str> =
        quiet.lines().filter(|line| line.contains("request_id=quiet-id")).collect();
    for said in ["sandbox=", "status=200", "status=400", "status=422", "exit_code=0"] {
        assert!(own.iter().any(|line| line.contains(said)), "{said} in\n{own:#?}");
    }
    assert!(quiet.contains("there are no API keys"));

    let loud = log(true, "0p3n", "loud-id").await;
    for said in ["print('0p3n')", "stdout=\"0p3n\\n\"", "no language is called `0p3n`"] {
        assert!(loud.contains(said), "{said} in\n{loud}");
    }
}
