//! The tests of the executor, its errors and its watchdog, as one program.

#[cfg(unix)]
mod apart;

mod errors;
mod executor;
#[cfg(target_os = "linux")]
mod overflow;
mod unwritten;
#[cfg(unix)]
mod watchdog;
