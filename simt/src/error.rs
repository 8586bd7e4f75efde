//! Errors of a launch. They name kernel, block and thread.

use std::fmt;

use crate::context::EndedThread;

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
        /// `file:line:column` of its wait.
        line: String,
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
        /// The threads that run.
        running: Vec<Running>,
        /// The threads that wait, in groups. All others have ended or have not begun.
        waiting: Vec<Stopped>,
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

/// Threads of one block that wait for the same thing at the same line, in [`SimtError::Deadlock`].
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
    /// `file:line:column` of the wait.
    pub line: String,
}

/// A thread that runs, in [`SimtError::NoProgress`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The block.
    pub block: [u32; 3],
    /// The thread.
    pub thread: [u32; 3],
    /// `file:line:column` of the access at which the thread ended; `None` if it made none.
    pub line: Option<String>,
}

/// Threads that wait for the same kind of event at the same line, in [`SimtError::NoProgress`].
///
/// A thread waits until its next turn, which may be after the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// How many threads of the launch wait so.
    pub threads: u64,
    /// One of them.
    pub example: Running,
    /// What they wait for: `at sync_threads`.
    pub what: String,
    /// `file:line:column` of the wait.
    pub line: String,
}

/// How many threads that run, and how many groups of threads that wait, a message lists.
const MOST_LISTED: usize = 8;

/// An index as messages print it: `(x, y, z)`.
pub(crate) struct Index(pub(crate) [u32; 3]);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "block {} thread {} runs",
            Index(self.block),
            Index(self.thread)
        )?;
        match &self.line {
            Some(line) => write!(f, " (at {line})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            block,
            thread,
            count,
            what,
            line,
        } = self;
        write!(f, "block {} thread {}", Index(*block), Index(*thread))?;
        if *count > 1 {
            write!(f, " and {} more", count - 1)?;
        }
        write!(f, ": {what} (at {line})")
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            threads,
            example,
            what,
            line,
        } = self;
        let Running { block, thread, .. } = example;
        let (block, thread) = (Index(*block), Index(*thread));
        match threads {
            1 => write!(f, "block {block} thread {thread} waits {what} (at {line})"),
            _ => write!(
                f,
                "{threads} threads wait {what} (at {line}), one of them block {block} thread {thread}"
            ),
        }
    }
}

/// Writes at most [`MOST_LISTED`] items, and how many `more` there are.
fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T], more: &str) -> fmt::Result {
    for item in items.iter().take(MOST_LISTED) {
        write!(f, "; {item}")?;
    }
    match items.len().saturating_sub(MOST_LISTED) {
        0 => Ok(()),
        left => write!(f, "; {left} more {more}"),
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
                line,
                missing,
                arrived,
                threads,
            } => write!(
                f,
                "kernel `{kernel}`, block {}: thread {} waits at sync_threads (at {line}), but thread {} ended \
                 without reaching it ({arrived} of {threads} threads wait); every thread of a block must call \
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
                list(f, waiting, "groups of threads wait")
            }
            Self::NoProgress {
                kernel,
                seconds,
                running,
                waiting,
            } => {
                write!(f, "kernel `{kernel}`: no progress for {seconds} s")?;
                list(f, running, "threads run")?;
                list(f, waiting, "groups of threads wait")?;
                write!(
                    f,
                    "; all other threads have ended or have not begun. A thread waits until its next turn, even if its \
                     event has come. Look for an endless loop, or for a lock \
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

impl SimtError {
    /// The error, with the lines at which threads that ran have ended.
    pub(crate) fn with_lines(mut self, ended: &[EndedThread]) -> Self {
        if let Self::NoProgress { running, .. } = &mut self {
            for thread in running {
                let is_it =
                    |it: &&EndedThread| (it.block, it.thread) == (thread.block, thread.thread);
                thread.line = ended.iter().find(is_it).map(|it| it.line.to_string());
            }
        }
        self
    }
}

impl std::error::Error for SimtError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_without_progress_fill_no_more_than_a_screen() {
        let of_thread = |x| Running {
            block: [0, 0, 0],
            thread: [x, 0, 0],
            line: None,
        };
        let stopped = |x| Stopped {
            threads: 32,
            example: of_thread(x),
            what: "at sync_threads".to_owned(),
            line: format!("kernel.rs:{x}:5"),
        };
        let error = SimtError::NoProgress {
            kernel: "stuck".to_owned(),
            seconds: 60,
            running: (0..64).map(of_thread).collect(),
            waiting: (0..100).map(stopped).collect(),
        };
        let text = error.to_string();
        for part in [
            "block (0, 0, 0) thread (7, 0, 0) runs; 56 more threads run; 32 threads wait at sync_threads",
            "(at kernel.rs:7:5), one of them block (0, 0, 0) thread (7, 0, 0); 92 more groups of threads wait;",
        ] {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
}
