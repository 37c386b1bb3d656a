//! Linux mechanisms that the standard library and rustix lack: the only crate
//! with `unsafe` for them. Each wrapper is safe to call; what it does is in its
//! man page, named at its head.

pub mod landlock;
pub mod mount;
pub mod net;
pub mod process;
pub mod scm;
pub mod seccomp;
pub mod signals;
