//! Stack overflow of a GPU thread: the handler of the guard page's signal names kernel, block and thread, and ends the
//! process.
//!
//! The thread's frames cannot be unwound where it overflows, and dropping them without unwinding would leave other OS
//! threads with references into them. So there is no way to go on.
//!
//! This works on Linux. Elsewhere the guard page still keeps the thread from writing over other memory, but the message
//! is the operating system's.

#[cfg(target_os = "linux")]
pub(crate) use linux::watch_this_thread;

#[cfg(not(target_os = "linux"))]
pub(crate) fn watch_this_thread() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::OnceCell;
    use std::ffi::c_void;
    use std::fmt::{self, Write};
    use std::mem;
    use std::ptr;
    use std::sync::OnceLock;

    use libc::{c_int, sigaction, siginfo_t, stack_t};

    use crate::context::{Thread, current_or_null};
    use crate::error::Index;
    use crate::stack::{STACK_VARIABLE, stack_bytes};

    /// The signals that an access to a guard page can raise, and the handlers installed before ours.
    static PREVIOUS: [(c_int, OnceLock<sigaction>); 2] = [
        (libc::SIGSEGV, OnceLock::new()),
        (libc::SIGBUS, OnceLock::new()),
    ];

    /// A stack for the signal handler, for OS threads that Rust did not start.
    struct SignalStack {
        memory: *mut c_void,
    }

    const SIGNAL_STACK_BYTES: usize = 64 * 1024;

    impl SignalStack {
        /// Gives the calling OS thread a signal stack if it has none.
        fn ensure() -> Option<Self> {
            // SAFETY: system calls on memory that this function owns. Results that matter are checked.
            unsafe {
                let mut present: stack_t = mem::zeroed();
                if libc::sigaltstack(ptr::null(), &mut present) != 0
                    || present.ss_flags & libc::SS_DISABLE == 0
                {
                    return None;
                }
                let memory = libc::mmap(
                    ptr::null_mut(),
                    SIGNAL_STACK_BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                if memory == libc::MAP_FAILED {
                    return None;
                }
                let stack = stack_t {
                    ss_sp: memory,
                    ss_flags: 0,
                    ss_size: SIGNAL_STACK_BYTES,
                };
                libc::sigaltstack(&stack, ptr::null_mut());
                Some(Self { memory })
            }
        }
    }

    impl Drop for SignalStack {
        fn drop(&mut self) {
            // SAFETY: the thread is ending. Its signal stack is switched off before the memory is unmapped.
            unsafe {
                let none = stack_t {
                    ss_sp: ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: SIGNAL_STACK_BYTES,
                };
                libc::sigaltstack(&none, ptr::null_mut());
                libc::munmap(self.memory, SIGNAL_STACK_BYTES);
            }
        }
    }

    /// Makes stack overflows of GPU threads on the calling OS thread end in a message.
    pub(crate) fn watch_this_thread() {
        thread_local! {
            static SIGNAL_STACK: OnceCell<Option<SignalStack>> = const { OnceCell::new() };
        }
        SIGNAL_STACK.with(|stack| {
            stack.get_or_init(SignalStack::ensure);
        });
        for (signal, previous) in &PREVIOUS {
            previous.get_or_init(|| {
                // SAFETY: the handler has the signature that SA_SIGINFO asks for, and is async-signal-safe (see
                // `handle`). Zeroed `sigaction`s are valid.
                unsafe {
                    let mut ours: sigaction = mem::zeroed();
                    let mut theirs: sigaction = mem::zeroed();
                    ours.sa_sigaction = handle as *const () as usize;
                    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigemptyset(&mut ours.sa_mask);
                    libc::sigaction(*signal, &ours, &mut theirs);
                    theirs
                }
            });
        }
    }

    /// Ends the process with a message if the fault is in the guard page of the running GPU thread's stack. Passes
    /// every other fault on to the handler before.
    ///
    /// It reads only thread-locals without destructors, and memory that the interrupted OS thread does not write at
    /// that moment. It takes no lock and allocates nothing.
    unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the pointer is null or to a thread of a running cluster, see `context::current`.
        let thread = unsafe { current_or_null().as_ref() };
        // SAFETY: the kernel passes valid pointers to handlers with SA_SIGINFO.
        let fault = unsafe { (*info).si_addr() as usize };
        if let Some(thread) = thread
            && let Some(trap) = thread.trap.get()
            // All of a stack but its guard page can be written, so that a fault in its range is an overflow.
            && trap.stack_ptr_in_bounds(fault)
        {
            end_process(thread);
        }
        // SAFETY: the kernel passes valid pointers, as above.
        unsafe { pass_on(signal, info, context) };
    }

    /// Says which thread has overflowed its stack, and aborts.
    fn end_process(thread: &Thread) -> ! {
        let mut text = Text::default();
        let block = thread.block();
        // A message that is too long is cut off.
        let _ = writeln!(
            text,
            "\nkernel `{}`, block {}, thread {}: stack overflow, the thread used more than its {} KiB. The process \
             cannot go on. Look for endless recursion, or set {STACK_VARIABLE}=<KiB> to give threads more.",
            block.launch().kernel,
            Index(block.idx),
            Index(thread.idx),
            stack_bytes() / 1024,
        );
        // SAFETY: the text has that many bytes, and both calls are async-signal-safe.
        unsafe {
            libc::write(libc::STDERR_FILENO, text.bytes.as_ptr().cast(), text.len);
            libc::abort()
        }
    }

    /// A message in memory of fixed size: the handler must not allocate.
    struct Text {
        bytes: [u8; 1024],
        len: usize,
    }

    impl Default for Text {
        fn default() -> Self {
            Self {
                bytes: [0; 1024],
                len: 0,
            }
        }
    }

    impl Write for Text {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let room = &mut self.bytes[self.len..];
            let fits = room.len().min(part.len());
            room[..fits].copy_from_slice(&part.as_bytes()[..fits]);
            self.len += fits;
            Ok(())
        }
    }

    /// Calls the handler that was installed before ours. If there was none, restores the default action, which the
    /// faulting instruction meets when it runs again.
    ///
    /// # Safety
    /// The arguments must be those of the signal handler.
    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let previous = PREVIOUS
            .iter()
            .find(|(of, _)| *of == signal)
            .and_then(|(_, p)| p.get());
        // SAFETY: the caller passes the handler's arguments, and the handler is called as its flags say. Zeroed
        // `sigaction`s mean the default action.
        unsafe {
            match previous {
                Some(action)
                    if action.sa_sigaction != libc::SIG_DFL
                        && action.sa_sigaction != libc::SIG_IGN =>
                {
                    if action.sa_flags & libc::SA_SIGINFO != 0 {
                        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                            mem::transmute(action.sa_sigaction);
                        handler(signal, info, context);
                    } else {
                        let handler: extern "C" fn(c_int) = mem::transmute(action.sa_sigaction);
                        handler(signal);
                    }
                }
                _ => {
                    let default: sigaction = mem::zeroed();
                    libc::sigaction(signal, &default, ptr::null_mut());
                }
            }
        }
    }
}
