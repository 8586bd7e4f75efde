//! Errors of a launch. They name kernel, block and thread.

use std::fmt;

/// Why a launch did not run every thread to its end.
///
/// Blocks and threads are named by their `[x, y, z]` index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimtError {
    /// The launch asks for something that no GPU can run. Nothing was run.
    InvalidLaunch {
        /// Name of the kernel.
        kernel: String,
        /// What the launch asks for, and what is allowed.
        reason: String,
    },
    /// A thread panicked: an assertion failed, an access to memory was out of bounds, too early or raced with another
    /// one, or a collective was called wrongly.
    Panic {
        /// Name of the kernel.
        kernel: String,
        /// The block.
        block: [u32; 3],
        /// The thread.
        thread: [u32; 3],
        /// The panic's message.
        message: String,
        /// `file:line:column` of the access or the panic; empty if a panic hook installed later replaced this crate's.
        location: String,
    },
    /// Threads wait at `sync_threads` for a thread that has ended without calling it.
    BarrierNotReached {
        /// Name of the kernel.
        kernel: String,
        /// The block.
        block: [u32; 3],
        /// A thread that waits at the barrier.
        waiting: [u32; 3],
        /// A thread that has ended without reaching it.
        missing: [u32; 3],
        /// How many of the block's threads wait.
        arrived: u32,
        /// How many threads the block has.
        threads: u32,
    },
    /// No thread of a cluster can go on.
    Deadlock {
        /// Name of the kernel.
        kernel: String,
        /// The first block of the cluster that waits.
        block: [u32; 3],
        /// Who waits for what.
        waiting: Vec<Waiting>,
    },
    /// No thread of the launch has come to a wait or to its end for a long time.
    NoProgress {
        /// Name of the kernel.
        kernel: String,
        /// After how many seconds.
        seconds: u64,
        /// The threads that run. All others wait, have ended or have not begun.
        running: Vec<Running>,
    },
    /// The operating system had no memory for the threads' stacks.
    OutOfStacks {
        /// Name of the kernel.
        kernel: String,
        /// How many bytes of stack a thread needs.
        stack_bytes: usize,
        /// The operating system's message.
        message: String,
    },
}

/// Threads of one block that wait for the same thing, in [`SimtError::Deadlock`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The block.
    pub block: [u32; 3],
    /// One of the threads.
    pub thread: [u32; 3],
    /// How many threads of the block wait for it.
    pub count: u32,
    /// What the threads wait for.
    pub what: String,
}

/// A thread that runs, in [`SimtError::NoProgress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The block.
    pub block: [u32; 3],
    /// The thread.
    pub thread: [u32; 3],
}

/// An index as messages print it: `(x, y, z)`.
pub(crate) struct Index(pub(crate) [u32; 3]);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

impl fmt::Display for SimtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidLaunch { kernel, reason } => {
                write!(f, "kernel `{kernel}` cannot be launched: {reason}")
            }
            Self::Panic {
                kernel,
                block,
                thread,
                message,
                location,
            } => {
                write!(
                    f,
                    "kernel `{kernel}`, block {}, thread {}: {message}",
                    Index(*block),
                    Index(*thread)
                )?;
                if !location.is_empty() {
                    write!(f, " (at {location})")?;
                }
                Ok(())
            }
            Self::BarrierNotReached {
                kernel,
                block,
                waiting,
                missing,
                arrived,
                threads,
            } => write!(
                f,
                "kernel `{kernel}`, block {}: thread {} waits at sync_threads, but thread {} ended without \
                 reaching it ({arrived} of {threads} threads wait); every thread of a block must call \
                 sync_threads",
                Index(*block),
                Index(*waiting),
                Index(*missing)
            ),
            Self::Deadlock {
                kernel,
                block,
                waiting,
            } => {
                write!(
                    f,
                    "kernel `{kernel}`, block {}: deadlock, every thread that is left waits",
                    Index(*block)
                )?;
                for Waiting {
                    block,
                    thread,
                    count,
                    what,
                } in waiting
                {
                    write!(f, "; block {} thread {}", Index(*block), Index(*thread))?;
                    if *count > 1 {
                        write!(f, " and {} more", count - 1)?;
                    }
                    write!(f, ": {what}")?;
                }
                Ok(())
            }
            Self::NoProgress {
                kernel,
                seconds,
                running,
            } => {
                write!(f, "kernel `{kernel}`: no progress for {seconds} s")?;
                for Running { block, thread } in running {
                    write!(
                        f,
                        "; block {} thread {} runs",
                        Index(*block),
                        Index(*thread)
                    )?;
                }
                write!(
                    f,
                    "; all other threads wait, have ended or have not begun. Look for an endless loop, or for a lock \
                     that a waiting thread holds, or set {}=<seconds> to wait longer",
                    crate::watchdog::VARIABLE
                )
            }
            Self::OutOfStacks {
                kernel,
                stack_bytes,
                message,
            } => write!(
                f,
                "kernel `{kernel}`: the system has no memory for the threads' stacks of {} KiB each ({message}); use \
                 smaller blocks, or set {}=<KiB> to give threads less",
                stack_bytes / 1024,
                crate::stack::STACK_VARIABLE
            ),
        }
    }
}

impl std::error::Error for SimtError {}
