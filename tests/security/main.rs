//! Attacks from inside a sandbox, each judged by its real effect on the host,
//! each with a control: the same program on the host, where it works.
//!
//! An attack is a small program under `attacks/`. Where a control cannot work
//! on this host, the test says so, and the summary counts it.

#![forbid(unsafe_code)]

mod cleanup;
mod descriptors;
mod devices;
mod disk;
mod endings;
mod files;
mod handles;
mod host_processes;
mod identity;
mod interfaces;
mod limits;
mod mounts;
mod neighbours;
mod network;
mod processors;
mod roots;
mod secrets;
mod setuid;
mod terminal;
mod writes;

fn main() -> std::process::ExitCode {
    let modules = [
        cleanup::trials(),
        descriptors::trials(),
        devices::trials(),
        disk::trials(),
        endings::trials(),
        files::trials(),
        handles::trials(),
        host_processes::trials(),
        identity::trials(),
        interfaces::trials(),
        limits::trials(),
        mounts::trials(),
        neighbours::trials(),
        network::trials(),
        processors::trials(),
        roots::trials(),
        secrets::trials(),
        setuid::trials(),
        terminal::trials(),
        writes::trials(),
    ];
    tests::Suite::new("security").run(modules.into_iter().flatten().collect())
}
