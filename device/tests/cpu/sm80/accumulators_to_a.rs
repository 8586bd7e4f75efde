//! Accumulators as operand A of the next product.

use cutlet_device::sm80::{Mma16816, WarpMma, accumulators_to_a};
use cutlet_device::{Float16, MmaInstruction, lane_idx};
use cutlet_layout_core::Fragment;
use half::{bf16, f16};

use crate::fixture::launch;

/// Regroups 16×32 numbers as two k-steps of A, and multiplies each by blocks of the unit matrix.
fn check<T: Float16>()
where
    Mma16816<T>: WarpMma<FragmentA = [u32; 4], FragmentB = [u32; 2], Acc = f32>,
{
    launch(32, 1, 1, || {
        let lane = lane_idx().get() as usize;
        let (row, column) = (lane / 4, lane % 4 * 2);
        // The numbers of a thread in a block: two neighbours, and those 8 rows below.
        let number =
            |block: usize, v: usize| (32 * (row + v / 2 * 8) + 8 * block + column + v % 2) as f32;
        let numbers: [_; 4] = core::array::from_fn(|block| {
            Fragment::<_, <Mma16816<T> as MmaInstruction>::Values>::from_fn(|v| number(block, v))
        });
        let a = accumulators_to_a::<T, 4, 2>(&numbers);
        for block in 0..4 {
            // B has the unit matrix in its first or in its last 8 columns.
            let unit = T::pack_f32([column, column + 1].map(|k| f32::from(u8::from(k == row))));
            let mut b = [0; 2];
            b[block % 2] = unit;
            let mut sums = Fragment::filled(0.0);
            Mma16816::<T>::mma(&mut sums, a[block / 2], b);
            for v in 0..4 {
                let rounded = T::from_f32(number(block, v)).to_f32();
                assert_eq!(sums.get(v), rounded, "value {v} of block {block}");
            }
        }
    })
    .unwrap();
}

#[test]
fn accumulators_are_operand_a_of_the_next_product() {
    check::<bf16>();
    check::<f16>();
}
