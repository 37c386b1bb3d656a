//! The server over real HTTP, with a wall that is none: programs run on the
//! host, unfenced. What walls do is tested elsewhere.

#![forbid(unsafe_code)]

mod access;
mod documents;
mod exec;
mod harness;
mod http;
mod load;
mod log;
mod stop;
mod stream;
mod wall;
mod zeroboot;
