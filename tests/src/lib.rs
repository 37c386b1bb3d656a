//! Casemate tested from outside, through the built `casemate` program only.
//!
//! Three suites share this harness: `security` (attacks, each with a control
//! that shows it works without the wall), `programs` (real programs, compared
//! with the host's own output) and `api` (the server over HTTP).
//!
//! Environment: `CASEMATE_BIN` names the program to test; otherwise it is the
//! one built beside the tests. `CASEMATE_TEST_RUNS` sets how often the long
//! loops run.

#![forbid(unsafe_code)]

mod attack;
mod binary;
mod host;
mod http;
mod leaks;
mod plant;
mod sandbox;
mod server;
mod suite;

pub use attack::{Attack, Report, compile_static};
pub use binary::{casemate, private_copy};
pub use host::{Finished, HostRun, system_python};
pub use http::{Connection, Response};
pub use leaks::{Snapshot, environment_pids, marked_pids, wait_until};
pub use plant::{Sleeper, TcpTrap, UdpTrap, UnixTrap, scratch, unique};
pub use sandbox::{Live, Ran, Sandbox};
pub use server::Server;
pub use suite::{Suite, is_root, runs, skip_attack, skip_control, suite_dir, trial, trial_alone};
