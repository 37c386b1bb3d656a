//! Attacks from inside a sandbox, each judged by its effect on the host.
#![forbid(unsafe_code)]
fn main() -> std::process::ExitCode {
    tests::Suite::new("security").run(vec![])
}
