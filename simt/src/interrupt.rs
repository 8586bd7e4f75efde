//! Where a thread is that does not come to a wait: a signal interrupts it, and its handler looks at the stack.
//!
//! The process is about to end. So the handler may do what handlers usually must not: it allocates, and takes locks. If
//! the thread was interrupted in the allocator, the handler hangs, and the line stays unknown.
//!
//! This works on Linux, in programs with line tables. On 64-bit Arm, the line is not always found.

#[cfg(target_os = "linux")]
pub(crate) use linux::{this_os_thread, where_is};

/// The calling OS thread, as [`where_is`] takes it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn this_os_thread() -> u64 {
    0
}

/// The line that an OS thread is at: unknown.
#[cfg(not(target_os = "linux"))]
pub(crate) fn where_is(_: u64) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::backtrace::Backtrace;
    use std::mem;
    use std::ptr;
    use std::sync::{Mutex, PoisonError};
    use std::thread;
    use std::time::{Duration, Instant};

    use libc::{c_int, pthread_t, sigaction};

    /// Ignored by default, and used by few programs.
    const SIGNAL: c_int = libc::SIGURG;
    /// This file, in the stack.
    const HANDLER: &str = "src/interrupt.rs:";
    /// The file that calls a kernel's body. From its line on, a stack has none of the kernel.
    const CALLER: &str = "src/cluster.rs:";
    /// How long the handler has at most.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// What the handler found.
    static FOUND: Mutex<Option<String>> = Mutex::new(None);

    /// The calling OS thread, as [`where_is`] takes it.
    pub(crate) fn this_os_thread() -> u64 {
        // SAFETY: has no conditions.
        unsafe { libc::pthread_self() as u64 }
    }

    /// `file:line:column` of the code that an OS thread runs, which must not have ended; `None` if it cannot be found.
    pub(crate) fn where_is(os_thread: u64) -> Option<String> {
        let take = || FOUND.lock().unwrap_or_else(PoisonError::into_inner).take();
        take();
        // SAFETY: zeroed `sigaction`s are valid, and the handler has the signature that a handler without SA_SIGINFO
        // has. The caller's thread has not ended.
        let sent = unsafe {
            let mut action: sigaction = mem::zeroed();
            action.sa_sigaction = look as *const () as usize;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(SIGNAL, &action, ptr::null_mut()) == 0
                && libc::pthread_kill(os_thread as pthread_t, SIGNAL) == 0
        };
        let sent_at = Instant::now();
        while sent && sent_at.elapsed() < PATIENCE {
            if let Some(stack) = take() {
                return line_in(&stack);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Notes the stack of the interrupted thread.
    extern "C" fn look(_: c_int) {
        let stack = Backtrace::force_capture().to_string();
        *FOUND.lock().unwrap_or_else(PoisonError::into_inner) = Some(stack);
    }

    /// The innermost line of the interrupted code in a stack, leaving out the handler and what lies in Rust's library.
    /// An instruction that the compiler added has no line.
    fn line_in(stack: &str) -> Option<String> {
        let is_of_kernel = |line: &&str| {
            let in_library = line.starts_with("/rustc/") || line.contains("/rust/library/");
            line.contains(".rs:") && !in_library && !line.contains(HANDLER)
        };
        let mut lines = stack
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("at "))
            .take_while(|line| !line.contains(CALLER));
        let line = lines.find(is_of_kernel)?;
        Some(line.trim_start_matches("./").to_owned())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_innermost_line_outside_of_the_library_is_found() {
            let stack = "   0: std::backtrace::Backtrace::create
             at /rustc/6b00bc/library/std/src/backtrace.rs:331:13
   1: cutlet_simt::interrupt::linux::look
             at ./src/interrupt.rs:80:21
   2: <unknown>
   3: core::hint::black_box
             at /rustc/6b00bc/library/core/src/hint.rs:482:5
   4: spinning::body
             at ./src/kernel.rs:12:9
   5: spinning::main
             at ./src/main.rs:3:5
";
            assert_eq!(line_in(stack).as_deref(), Some("src/kernel.rs:12:9"));
            assert_eq!(line_in("   0: look\n   1: <unknown>\n   2: main"), None);
            let without_line = "   0: spinning::body\n   1: call\n             at ./src/cluster.rs:378:13\n   \
                                2: run\n             at /home/me/corosensei/src/coroutine.rs:243:62";
            assert_eq!(line_in(without_line), None);
        }
    }
}
