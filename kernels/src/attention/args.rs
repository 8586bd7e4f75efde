//! The arguments of a launch.

use cutlet_device::{DeviceData, Global, GlobalMut};
use cutlet_layout_core::Divisor;

/// What a launch passes besides tensors.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Args {
    /// Where the output goes.
    pub output: OutputArgs,
    /// The sequences.
    pub sequences: SequencesArgs,
    /// A score for each head that counts in the sum of weights and has no value. Not read unless `has_sinks`.
    pub sinks: Global<f32>,
    /// Not 0 if there are sinks.
    pub has_sinks: u32,
    /// What the product of a query and a key is multiplied by. Positive.
    pub scale: f32,
    /// The tiles of the launch.
    pub tiles: TilesArgs,
    /// Which keys a query sees.
    pub window: Window,
}

impl Args {
    /// The sink of a head, or −∞.
    ///
    /// # Safety
    /// There must be a sink for each head, or none.
    #[inline(always)]
    pub(super) unsafe fn sink(&self, head: u32) -> f32 {
        match self.has_sinks {
            0 => f32::NEG_INFINITY,
            // SAFETY: as promised by the caller.
            _ => unsafe { self.sinks.load(i64::from(head)) },
        }
    }
}

/// Where operands lie that kernels read without tensor maps: elements from a sequence, a row and a head to the next.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OperandStrides {
    /// Those of the queries.
    pub queries: [i64; 3],
    /// Those of the keys.
    pub keys: [i64; 3],
    /// Those of the values.
    pub values: [i64; 3],
}

/// The tiles of a launch: queries of a head of a sequence.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct TilesArgs {
    /// Tiles of a head. Each sequence has as many as the longest one.
    pub of_head: u32,
    /// Heads of a sequence.
    pub heads: u32,
    /// Heads of all sequences.
    pub all_heads: u32,
    /// Heads whose keys and values fit the L2 cache. Their tiles come before those of other heads. They divide the
    /// heads of all sequences.
    pub heads_at_a_time: u32,
}

/// Where sequences lie.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SequencesArgs {
    /// The first query of each packed sequence, and the end of the last one. Not read unless `are_packed`.
    pub first_queries: Global<i32>,
    /// The same of keys.
    pub first_keys: Global<i32>,
    /// Not 0 if sequences are packed: if they lie behind one another in one.
    pub are_packed: u32,
    /// Queries of each sequence, or of all packed ones.
    pub queries: i32,
    /// Keys of each sequence, or of all packed ones.
    pub keys: i32,
    /// Heads of queries for each head of keys.
    pub group: Divisor,
}

/// Which keys a query sees, relative to its own: query `i` of `m` belongs to key `i + n - m` of `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, DeviceData)]
#[repr(C)]
pub struct Window {
    /// How many keys before its own.
    pub before: i32,
    /// How many keys after its own.
    pub after: i32,
}

impl Window {
    /// So many keys are all.
    const ALL: i32 = 1 << 29;
    /// All keys.
    pub const FULL: Self = Self {
        before: Self::ALL,
        after: Self::ALL,
    };
    /// The own key and those before.
    pub const CAUSAL: Self = Self {
        before: Self::ALL,
        after: 0,
    };

    /// The window of queries that see a key, if keys and queries change places.
    #[inline(always)]
    pub const fn transposed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
        }
    }

    /// The window of at most so many keys before and after.
    pub const fn new(before: u32, after: u32) -> Self {
        const fn clamped(keys: u32) -> i32 {
            if keys > Window::ALL as u32 {
                Window::ALL
            } else {
                keys as i32
            }
        }
        Self {
            before: clamped(before),
            after: clamped(after),
        }
    }
}

/// Where the output and the logarithms of the sums lie.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OutputArgs {
    /// Elements from a sequence, a row and a head to the next.
    pub strides: [i64; 3],
    /// The natural logarithm of each query's sum of `e^score`. Not written unless `writes_log_sum_exp`.
    pub log_sum_exp: GlobalMut<f32>,
    /// Elements of it from a sequence, a row and a head to the next.
    pub log_sum_exp_strides: [i64; 3],
    /// Features of a head.
    pub features: i32,
    /// Not 0 if the logarithms are written.
    pub writes_log_sum_exp: u32,
}
