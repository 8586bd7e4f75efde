//! The stacks of the coroutines. Each has a guard page. Later launches use them again.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use corosensei::stack::{DefaultStack, Stack, StackPointer};

/// Environment variable that sets the size of a thread's stack in KiB.
pub(crate) const STACK_VARIABLE: &str = "CUTLET_SIMT_STACK_KIB";

/// Generous, because unoptimised kernels keep whole tiles in locals, and only touched pages cost memory.
const DEFAULT_STACK_BYTES: usize = 512 * 1024;

/// The most stacks that a launch holds at the same time, over all cores. A stack takes two memory mappings, and Linux
/// gives a process 65,530.
pub(crate) const MAX_STACKS: usize = 16 * 1024;

/// How many stacks move between the process-wide pool and a core at once.
const BATCH: usize = 64;

/// Bytes, beyond whole pages, between the tops of consecutive stacks. With all tops at the same offset in their page,
/// every switch would use the same few cache sets.
const COLOR_BYTES: usize = 192;

/// Number of different tops. Each stack has `COLORS * COLOR_BYTES` bytes more for them.
const COLORS: usize = 21;

static POOL: Mutex<Vec<PooledStack>> = Mutex::new(Vec::new());

/// Bytes of stack that a GPU thread may use.
pub(crate) fn stack_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        std::env::var(STACK_VARIABLE)
            .ok()
            .and_then(|text| text.parse::<usize>().ok())
            .and_then(|kib| kib.checked_mul(1024))
            .map_or(DEFAULT_STACK_BYTES, |bytes| bytes.clamp(16 * 1024, 1 << 30))
    })
}

/// A stack whose top is moved down by `color_bytes`.
pub(crate) struct PooledStack {
    memory: DefaultStack,
    color_bytes: usize,
}

// SAFETY: the range is that of `DefaultStack` without up to `COLORS * COLOR_BYTES` bytes at its top. Limit and guard
// page are the same. At least the 16 KiB of `stack_bytes` remain, because `StackCache::create` adds room for the color.
unsafe impl Stack for PooledStack {
    #[inline]
    fn base(&self) -> StackPointer {
        let base = self.memory.base().get() - self.color_bytes;
        // The color is far smaller than the stack: the address is not zero.
        StackPointer::new(base).unwrap_or(self.memory.base())
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        self.memory.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.memory.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.memory
            .update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}

/// One core's share of the pool. The stack that was given back last is taken first, while it is still in the cache.
pub(crate) struct StackCache {
    stacks: Vec<PooledStack>,
}

impl StackCache {
    pub(crate) fn new() -> Self {
        Self { stacks: Vec::new() }
    }

    /// Takes a stack from this core's share, from the pool if the share is empty, or else a new one.
    #[inline]
    pub(crate) fn take(&mut self) -> io::Result<PooledStack> {
        match self.stacks.pop() {
            Some(stack) => Ok(stack),
            None => self.refill(),
        }
    }

    #[inline]
    pub(crate) fn give_back(&mut self, stack: PooledStack) {
        self.stacks.push(stack);
    }

    #[cold]
    fn refill(&mut self) -> io::Result<PooledStack> {
        {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = pool.len().saturating_sub(BATCH);
            self.stacks.extend(pool.drain(kept..));
        }
        match self.stacks.pop() {
            Some(stack) => Ok(stack),
            None => Self::create(),
        }
    }

    fn create() -> io::Result<PooledStack> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let color = CREATED.fetch_add(1, Ordering::Relaxed) % COLORS;
        Ok(PooledStack {
            memory: DefaultStack::new(stack_bytes() + COLORS * COLOR_BYTES)?,
            color_bytes: color * COLOR_BYTES,
        })
    }
}

impl Drop for StackCache {
    fn drop(&mut self) {
        POOL.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut self.stacks);
    }
}
