//! Stack overflow of a GPU thread: the guard page's signal ends the thread's coroutine instead of the process.
//!
//! This works on Linux on x86-64 and AArch64. Elsewhere the guard page still keeps the thread from writing over other
//! memory, but the operating system ends the process.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) use linux::watch_this_thread;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) fn watch_this_thread() {}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux {
    use std::cell::OnceCell;
    use std::ffi::c_void;
    use std::mem;
    use std::ptr;
    use std::sync::OnceLock;

    use corosensei::trap::TrapHandlerRegs;
    use libc::{c_int, sigaction, siginfo_t, stack_t, ucontext_t};

    use crate::context::{Outcome, current_or_null};

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

    /// Makes stack overflows of GPU threads on the calling OS thread end in an error.
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

    /// Ends the running GPU thread if the fault is in its stack's guard page. Passes every other fault on to the
    /// handler before.
    ///
    /// It reads only thread-locals without destructors, and memory that the interrupted OS thread does not write at
    /// that moment. It takes no lock and allocates nothing.
    unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let thread = current_or_null();
        // SAFETY: the pointer is null or to a thread of a running cluster, see `context::current`.
        let trap = unsafe { thread.as_ref() }.and_then(|thread| thread.trap.get());
        // SAFETY: the kernel passes valid pointers to handlers with SA_SIGINFO.
        let (fault, registers) = unsafe {
            (
                (*info).si_addr() as usize,
                &mut *context.cast::<ucontext_t>(),
            )
        };
        if let Some(trap) = trap
            && trap.stack_ptr_in_bounds(fault)
            && trap.stack_ptr_in_bounds(stack_pointer(registers))
        {
            // All of a stack but its guard page can be written, so that a fault in its range is an overflow. Rust
            // probes a frame's pages on entry to a function: the function that is cut off here has not begun. Its
            // callers' locals are not dropped, and nothing reads them again.
            //
            // SAFETY: the fault and the stack pointer are in the coroutine's stack, and the registers are set as
            // `setup_trap_handler` asks. The coroutine never runs again.
            let regs = unsafe { trap.setup_trap_handler(|| Outcome::StackOverflow) };
            enter(registers, regs);
            return;
        }
        // SAFETY: the kernel passes valid pointers, as above.
        unsafe { pass_on(signal, info, context) };
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

    #[cfg(target_arch = "x86_64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn enter(context: &mut ucontext_t, regs: TrapHandlerRegs) {
        let TrapHandlerRegs {
            rip,
            rsp,
            rbp,
            rdi,
            rsi,
        } = regs;
        let gregs = &mut context.uc_mcontext.gregs;
        for (register, value) in [
            (libc::REG_RIP, rip),
            (libc::REG_RSP, rsp),
            (libc::REG_RBP, rbp),
            (libc::REG_RDI, rdi),
            (libc::REG_RSI, rsi),
        ] {
            gregs[register as usize] = value as i64;
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.sp as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn enter(context: &mut ucontext_t, regs: TrapHandlerRegs) {
        let TrapHandlerRegs {
            pc,
            sp,
            x0,
            x1,
            x29,
            lr,
        } = regs;
        let machine = &mut context.uc_mcontext;
        machine.pc = pc;
        machine.sp = sp;
        machine.regs[0] = x0;
        machine.regs[1] = x1;
        machine.regs[29] = x29;
        machine.regs[30] = lr;
    }
}
