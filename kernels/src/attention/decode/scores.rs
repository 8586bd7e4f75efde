//! The scores of a tile of keys: what becomes of products before the softmax.

use cutlet_device::{lane_idx, tanh_approx};
use cutlet_layout_core::{Fragment, FragmentLayout};

use super::args::{DecodeArgs, KEYS, ROWS, Work};
use crate::attention::mask::{ScorePlaces, VisibleKeys, mask};
use crate::attention::scheduler::Sequence;

/// What becomes of scores.
#[derive(Clone, Copy)]
pub(super) struct Scores {
    /// What the softmax multiplies scores by.
    pub scale: f32,
    /// What products are multiplied by before the cap.
    scale_before: f32,
    /// The cap, or 0.
    soft_cap: f32,
    /// Where the lane's scores are.
    pub places: ScorePlaces,
    /// The keys that the lane's rows see.
    visible: [VisibleKeys; ScorePlaces::ROWS],
    /// The key of the first tile's first one.
    first_key: i32,
}

impl Scores {
    /// Those of a lane. The first tile begins with the key `first_key`.
    #[inline(always)]
    pub fn new(args: &DecodeArgs, work: Work, sequence: Sequence, first_key: i32) -> Self {
        let places = ScorePlaces::of_lane(lane_idx());
        let visible = [0, 1].map(|nth| {
            let row = work.tile * ROWS + places.row_below(nth) as u32;
            let (query, _) = args.work.query_and_head(work.head, row);
            VisibleKeys::of(query as i32, sequence, args.window)
        });
        let [scale, scale_before] = match args.soft_cap == 0.0 {
            true => [args.scale, 0.0],
            false => [1.0, args.scale / args.soft_cap],
        };
        Self {
            scale,
            scale_before,
            soft_cap: args.soft_cap,
            places,
            visible,
            first_key,
        }
    }

    /// The scores of a tile for the softmax: capped and masked.
    #[inline(always)]
    pub fn of_tile<V: FragmentLayout>(
        &self,
        products: Fragment<f32, V>,
        tile: u32,
    ) -> Fragment<f32, V> {
        let capped = match self.soft_cap == 0.0 {
            true => products,
            false => products.map(|_, it| self.soft_cap * tanh_approx(it * self.scale_before)),
        };
        let first_key = self.first_key + (tile * KEYS) as i32;
        mask(&capped, self.places, self.visible, first_key)
    }
}
