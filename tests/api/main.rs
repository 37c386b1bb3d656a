//! The server over real HTTP, with real sandboxes.

#![forbid(unsafe_code)]

mod errors;
mod exec;
mod lifecycle;
mod load;
mod streaming;

fn main() -> std::process::ExitCode {
    let modules = [
        errors::trials(),
        exec::trials(),
        lifecycle::trials(),
        load::trials(),
        streaming::trials(),
    ];
    tests::Suite::new("api").run(modules.into_iter().flatten().collect())
}
