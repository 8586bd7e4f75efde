//! What is done to scores before their softmax.

use cutlet_device::{DeviceData, Global, tanh_approx};

/// Where a score is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScorePlace {
    /// Which sequence.
    pub sequence: u32,
    /// The head of the query.
    pub head: u32,
    /// The query, from the sequence's first one on.
    pub query: i32,
    /// The key, from the sequence's first one on. It may lie beyond the last one, where the score does not count.
    pub key: i32,
    /// The key that the query belongs to: the last query belongs to the last key.
    pub own_key: i32,
}

/// A function of scores. A kernel applies it to `scale · q·k`, before the mask and the softmax.
///
/// A score of −∞ has a weight of 0, so that a mask of one's own is such a function.
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::attention::score_mod::{ScoreMod, ScorePlace};
///
/// /// A query sees the keys of its own document, whose length is a power of two.
/// #[derive(Clone, Copy, DeviceData)]
/// #[repr(C)]
/// struct OwnDocument {
///     log2_length: u32,
/// }
///
/// impl ScoreMod for OwnDocument {
///     fn apply(&self, score: f32, at: ScorePlace) -> f32 {
///         let document = |row: i32| row >> self.log2_length;
///         match document(at.key) == document(at.own_key) {
///             true => score,
///             false => f32::NEG_INFINITY,
///         }
///     }
/// }
/// ```
pub trait ScoreMod: DeviceData {
    /// Whether scores stay as they are.
    const IS_IDENTITY: bool = false;

    /// What becomes of a score.
    fn apply(&self, score: f32, at: ScorePlace) -> f32;
}

/// Scores stay as they are.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Unmodified(u32);

impl Unmodified {
    /// The only value.
    pub const VALUE: Self = Self(0);
}

impl ScoreMod for Unmodified {
    const IS_IDENTITY: bool = true;

    #[inline(always)]
    fn apply(&self, score: f32, _: ScorePlace) -> f32 {
        score
    }
}

/// The functions that models use, each of which may be absent: a soft cap, then a bias, then the slopes of ALiBi.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Modifications {
    /// The bias, which is added. Not read unless `has_bias`.
    pub bias: Global<f32>,
    /// Elements of it from a sequence, a head and a query to the next. Those of neighbouring keys are neighbours.
    pub bias_strides: [i64; 3],
    /// Queries and keys of the bias.
    pub bias_extent: [i32; 2],
    /// For each head, `slope · |key − own key|` is subtracted. Not read unless `has_slopes`.
    pub slopes: Global<f32>,
    /// `cap · tanh(score / cap)`, unless the cap is 0.
    pub soft_cap: f32,
    /// Not 0 if there is a bias.
    pub has_bias: u32,
    /// Not 0 if there are slopes.
    pub has_slopes: u32,
    /// Fills the last word.
    pub unused: u32,
}

impl ScoreMod for Modifications {
    #[inline(always)]
    fn apply(&self, score: f32, at: ScorePlace) -> f32 {
        let score = match self.soft_cap == 0.0 {
            true => score,
            false => self.soft_cap * tanh_approx(score / self.soft_cap),
        };
        score + self.bias_at(at) - self.slope_at(at)
    }
}

impl Modifications {
    /// The bias of a score.
    #[inline(always)]
    fn bias_at(&self, at: ScorePlace) -> f32 {
        let [queries, keys] = self.bias_extent;
        let is_there = self.has_bias != 0 && at.query < queries && at.key < keys;
        let [sequence, head, query] = self.bias_strides;
        let index = i64::from(at.sequence) * sequence
            + i64::from(at.head) * head
            + i64::from(at.query) * query
            + i64::from(at.key);
        // SAFETY: the launcher promises a bias of these extents.
        unsafe { self.bias.load_if(index, is_there) }
    }

    /// What the slope of the head subtracts.
    #[inline(always)]
    fn slope_at(&self, at: ScorePlace) -> f32 {
        let has_slopes = self.has_slopes != 0;
        // SAFETY: the launcher promises a slope for each head.
        let slope = unsafe { self.slopes.load_if(i64::from(at.head), has_slopes) };
        slope * (at.key - at.own_key).abs() as f32
    }
}
