//! What each thread of a cluster waits for, where another OS thread may read it: the watchdog does.
//!
//! The scheduler's own record of a wait borrows from the thread's stack, so only the core that runs the thread may use
//! it. This one is two numbers that are stored when a thread is suspended.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::wait::WaitKind;

/// What a suspended thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// All threads of the block, at `sync_threads`.
    Block,
    /// This many threads at a numbered barrier.
    Barrier { id: u32, threads: u32 },
    /// The other lanes of the warp.
    Warp,
    /// The other threads of the warpgroup, at `wgmma`.
    Warpgroup,
    /// The barrier of the cluster.
    ClusterBarrier,
    /// The phase of a parity of an mbarrier.
    Mbarrier { address: u32, parity: u32 },
    /// Any other event that a thread of the cluster causes.
    Cluster,
    /// An event that another block can cause.
    Grid,
    /// A value in memory that it reads again and again.
    Value,
}

impl From<WaitKind> for Awaited {
    fn from(kind: WaitKind) -> Self {
        match kind {
            WaitKind::BlockBarrier => Self::Block,
            WaitKind::Cluster => Self::Cluster,
            WaitKind::Grid => Self::Grid,
        }
    }
}

/// Bits of each of the two numbers of an [`Awaited`].
const NUMBER_BITS: u32 = 28;
/// What a thread shows that has not been suspended, or has ended.
const NOTHING: u64 = 0;

impl Awaited {
    fn to_bits(self) -> u64 {
        let (code, numbers) = match self {
            Self::Block => (1, [0; 2]),
            Self::Barrier { id, threads } => (2, [id, threads]),
            Self::Warp => (3, [0; 2]),
            Self::Warpgroup => (4, [0; 2]),
            Self::ClusterBarrier => (5, [0; 2]),
            Self::Mbarrier { address, parity } => (6, [address, parity]),
            Self::Cluster => (7, [0; 2]),
            Self::Grid => (8, [0; 2]),
            Self::Value => (9, [0; 2]),
        };
        numbers.into_iter().fold(code, |bits, number| {
            bits << NUMBER_BITS | u64::from(number) & ((1 << NUMBER_BITS) - 1)
        })
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let number = |place: u32| (bits >> (place * NUMBER_BITS)) as u32 & ((1 << NUMBER_BITS) - 1);
        let [first, second] = [number(1), number(0)];
        Some(match bits >> (2 * NUMBER_BITS) {
            1 => Self::Block,
            2 => Self::Barrier {
                id: first,
                threads: second,
            },
            3 => Self::Warp,
            4 => Self::Warpgroup,
            5 => Self::ClusterBarrier,
            6 => Self::Mbarrier {
                address: first,
                parity: second,
            },
            7 => Self::Cluster,
            8 => Self::Grid,
            9 => Self::Value,
            _ => return None,
        })
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block => f.write_str("at sync_threads"),
            Self::Barrier { id, threads } => write!(f, "at barrier {id} for {threads} threads"),
            Self::Warp => f.write_str("for lanes of their warp"),
            Self::Warpgroup => f.write_str("for their warpgroup at wgmma"),
            Self::ClusterBarrier => f.write_str("at the cluster's barrier"),
            Self::Mbarrier { address, parity } => write!(
                f,
                "for the phase of parity {parity} of the mbarrier at shared address {address}"
            ),
            Self::Cluster => f.write_str("for a thread of their cluster"),
            Self::Grid => f.write_str("for other blocks"),
            Self::Value => f.write_str("for a value in memory, which they poll"),
        }
    }
}

/// What one thread waits for, and at which line.
#[derive(Default)]
pub(crate) struct ShownWait {
    awaited: AtomicU64,
    line: AtomicPtr<Location<'static>>,
}

impl ShownWait {
    /// To be called when the thread is suspended.
    #[inline]
    pub(crate) fn set(&self, awaited: Awaited, line: &'static Location<'static>) {
        self.line
            .store(ptr::from_ref(line).cast_mut(), Ordering::Relaxed);
        self.awaited.store(awaited.to_bits(), Ordering::Relaxed);
    }

    /// `file:line:column` of the thread's last wait, on the core that runs the thread.
    pub(crate) fn line(&self) -> String {
        self.get()
            .map_or(String::new(), |(_, line)| line.to_string())
    }

    /// To be called when the thread has ended.
    pub(crate) fn end(&self) {
        self.awaited.store(NOTHING, Ordering::Relaxed);
    }

    /// What the thread waited for when it was suspended last, and the line. If it has run meanwhile, the two may be of
    /// different waits.
    pub(crate) fn get(&self) -> Option<(Awaited, &'static Location<'static>)> {
        let awaited = Awaited::from_bits(self.awaited.load(Ordering::Relaxed))?;
        // SAFETY: null, or a line of the program, which lives as long as it.
        let line = unsafe { self.line.load(Ordering::Relaxed).as_ref() }?;
        Some((awaited, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_is_shown_as_it_is() {
        for awaited in [
            Awaited::Block,
            Awaited::Barrier {
                id: 15,
                threads: 1024,
            },
            Awaited::Warp,
            Awaited::Warpgroup,
            Awaited::ClusterBarrier,
            Awaited::Mbarrier {
                address: 232_440,
                parity: 1,
            },
            Awaited::Cluster,
            Awaited::Grid,
            Awaited::Value,
        ] {
            let shown = ShownWait::default();
            assert!(shown.get().is_none());
            let line = Location::caller();
            shown.set(awaited, line);
            assert_eq!(shown.get(), Some((awaited, line)));
            shown.end();
            assert!(shown.get().is_none());
        }
    }
}
