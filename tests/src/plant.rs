//! Targets planted on the host, and what was done to them.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A text that occurs nowhere else.
#[must_use]
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |time| time.subsec_nanos());
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{what}-{}-{nanos:09}-{number}", std::process::id())
}

/// A directory that goes away with its value. Anybody may look into it: where a
/// sandbox cannot, that is the wall's doing, and not this directory's.
///
/// # Panics
///
/// If none can be made.
#[must_use]
pub fn scratch() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    tempfile::Builder::new()
        .prefix("wall-test-")
        .permissions(std::fs::Permissions::from_mode(0o755))
        .tempdir()
        .expect("a scratch directory")
}

/// What arrived at a trap, shared with the thread that listens.
type Caught = Arc<Mutex<Vec<u8>>>;

fn saw(caught: &Caught, marker: &str) -> bool {
    let holds = || {
        let bytes = caught.lock().expect("the listener does not panic");
        bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
    };
    // What was sent arrives within a moment, or never.
    crate::wait_until(Duration::from_millis(300), holds)
}

/// Accepts connections for as long as the test runs and keeps what they send.
fn listen<S: std::io::Read + Send + 'static>(
    mut accept: impl FnMut() -> Option<S> + Send + 'static,
) -> Caught {
    let caught = Caught::default();
    let keep = Arc::clone(&caught);
    std::thread::spawn(move || {
        while let Some(mut stream) = accept() {
            let keep = Arc::clone(&keep);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(n @ 1..) = stream.read(&mut buffer) {
                    keep.lock().expect("no reader panics").extend_from_slice(&buffer[..n]);
                }
            });
        }
    });
    caught
}

/// A TCP listener on the host.
pub struct TcpTrap {
    /// Where it listens.
    pub address: SocketAddr,
    caught: Caught,
}

impl TcpTrap {
    /// Listens on a free port of `address`; `None` if the host has no such
    /// address.
    #[must_use]
    pub fn new(address: &str) -> Option<Self> {
        let listener = TcpListener::bind((address, 0)).ok()?;
        let address = listener.local_addr().ok()?;
        let caught = listen(move || listener.accept().ok().map(|(stream, _)| stream));
        Some(Self { address, caught })
    }

    /// Whether these bytes arrived.
    #[must_use]
    pub fn saw(&self, marker: &str) -> bool {
        saw(&self.caught, marker)
    }
}

/// A UDP socket on the host.
pub struct UdpTrap {
    /// Where it listens.
    pub address: SocketAddr,
    caught: Caught,
}

impl UdpTrap {
    /// Listens on a free port of `address`.
    #[must_use]
    pub fn new(address: &str) -> Option<Self> {
        let socket = UdpSocket::bind((address, 0)).ok()?;
        let address = socket.local_addr().ok()?;
        let caught = Caught::default();
        let keep = Arc::clone(&caught);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n) = socket.recv(&mut buffer) {
                keep.lock().expect("no reader panics").extend_from_slice(&buffer[..n]);
            }
        });
        Some(Self { address, caught })
    }

    /// Whether these bytes arrived.
    #[must_use]
    pub fn saw(&self, marker: &str) -> bool {
        saw(&self.caught, marker)
    }
}

/// A Unix socket on the host.
pub struct UnixTrap {
    caught: Caught,
}

impl UnixTrap {
    /// Listens at a path.
    ///
    /// # Panics
    ///
    /// If the path cannot be bound.
    #[must_use]
    pub fn at_path(path: &Path) -> Self {
        Self::on(UnixListener::bind(path).expect("a socket in a scratch directory"))
    }

    /// Listens at an abstract name.
    ///
    /// # Panics
    ///
    /// If the name is taken.
    #[must_use]
    pub fn at_name(name: &str) -> Self {
        let address = UnixAddr::from_abstract_name(name).expect("a short name");
        Self::on(UnixListener::bind_addr(&address).expect("an unused abstract name"))
    }

    fn on(listener: UnixListener) -> Self {
        Self { caught: listen(move || listener.accept().ok().map(|(stream, _)| stream)) }
    }

    /// Whether these bytes arrived.
    #[must_use]
    pub fn saw(&self, marker: &str) -> bool {
        saw(&self.caught, marker)
    }
}

/// A sleeping process on the host with something secret about it.
pub struct Sleeper {
    child: Child,
}

impl Sleeper {
    /// Starts one with `argument` on its command line and `secret` in its
    /// environment.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn new(argument: &str, secret: &str) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", "while :; do sleep 1; done", argument])
            .env("PLANTED_SECRET", secret)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        // Until the exec has happened it still looks like the test itself.
        let marked = || crate::marked_pids(argument).contains(&child.id());
        assert!(crate::wait_until(Duration::from_secs(5), marked), "the sleeper starts");
        Self { child }
    }

    /// Its process id on the host.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The state letter of `/proc/PID/stat`: `T` when stopped.
    #[must_use]
    pub fn state(&self) -> Option<char> {
        let mut stat = String::new();
        let mut file = std::fs::File::open(format!("/proc/{}/stat", self.pid())).ok()?;
        file.read_to_string(&mut stat).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
