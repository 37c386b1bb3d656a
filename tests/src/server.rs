//! A `casemate serve` of the test's own.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::host::{drain, kill_group, wait};

/// A server on a free port of the loopback address. Killed when dropped.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its private directory: home, state and temporary files.
    pub home: PathBuf,
    child: Child,
    log: Mutex<Log>,
    _scratch: Option<tempfile::TempDir>,
}

/// What a server has printed, and where more of it comes from.
struct Log {
    text: Vec<u8>,
    more: Vec<mpsc::Receiver<Vec<u8>>>,
}

impl Server {
    /// Starts one with these arguments and variables, in a scratch directory.
    #[must_use]
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let scratch = crate::scratch();
        let mut server = Self::start_at(crate::casemate(), scratch.path(), arguments, variables);
        server._scratch = Some(scratch);
        server
    }

    /// Starts a given copy of `casemate` in a given directory.
    ///
    /// # Panics
    ///
    /// If it does not listen within 20 s.
    #[must_use]
    pub fn start_at(
        binary: &Path,
        home: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut command = command(binary, home, &["serve", "--listen", "127.0.0.1:0"]);
        command.args(arguments).envs(variables.iter().map(|&(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().expect("casemate starts");
        let more = vec![
            drain(child.stdout.take().expect("stdout is a pipe")),
            drain(child.stderr.take().expect("stderr is a pipe")),
        ];
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let home = home.to_owned();
        let mut server = Self {
            address: nowhere,
            home,
            child,
            log: Mutex::new(Log { text: Vec::new(), more }),
            _scratch: None,
        };
        let mut ended = false;
        let listens = crate::wait_until(Duration::from_secs(20), || {
            ended = ended || !matches!(server.child.try_wait(), Ok(None));
            if ended {
                return true;
            }
            let Some(port) = port_in(&server.log()) else { return false };
            server.address.set_port(port);
            std::net::TcpStream::connect(server.address).is_ok()
        });
        assert!(listens && !ended, "the server does not listen: {}", server.log());
        server
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that it has printed.
    ///
    /// # Panics
    ///
    /// If another thread panicked while asking.
    pub fn log(&self) -> String {
        let mut log = self.log.lock().expect("nobody panics while reading");
        let Log { text, more } = &mut *log;
        for source in more {
            while let Ok(chunk) = source.try_recv() {
                text.extend_from_slice(&chunk);
            }
        }
        String::from_utf8_lossy(text).into_owned()
    }

    /// A new connection to it.
    #[must_use]
    pub fn connect(&self) -> crate::Connection {
        crate::Connection::open(self.address)
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid fits");
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid is positive");
        rustix::process::kill_process(pid, signal).expect("the server is there to be signalled");
    }

    /// Waits for its end; its exit code, or 128 and the signal.
    ///
    /// # Panics
    ///
    /// If it does not end within `limit`.
    pub fn wait(&mut self, limit: Duration) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        let (status, overdue) = wait(&mut self.child, Instant::now(), limit);
        assert!(!overdue, "the server did not end within {limit:?}: {}", self.log());
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
    }
}

/// A command of `casemate` whose state all lies below `home`.
pub(crate) fn command(binary: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).current_dir(home);
    for name in
        ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "TMPDIR"]
    {
        command.env(name, <Path as AsRef<OsStr>>::as_ref(home));
    }
    command
}

/// The port in the first `127.0.0.1:PORT` of a text that is not port 0.
fn port_in(text: &str) -> Option<u16> {
    text.split("127.0.0.1:").skip(1).find_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok().filter(|&port| port != 0)
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_group(&self.child);
            let _ = self.child.wait();
        }
    }
}
