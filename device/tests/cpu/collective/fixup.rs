//! Partials of splits, added by the last block to arrive.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::collective::*;
use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{GlobalMut, block_idx};
use cutlet_layout_core::{Fragment, FragmentLayout, L, each};

use crate::fixture::launch;

/// Adds these partials, one for each split, at each of several M atoms. Each split is the last block to arrive in one
/// of the launches. Checks that one block has `sum`, by warps.
fn check_fixup<Values: FragmentLayout>(partials: &[f32], sum: f32) {
    const TILES: u32 = 3;
    const M_ATOMS: u32 = 2;
    const ATOMS: usize = (TILES * M_ATOMS) as usize;
    let values = Fixup::<Values>::VALUES;
    let mut memory = vec![f32::NAN; ATOMS * partials.len() * values];
    let mut words = vec![0u32; ATOMS * ArrivalCounters::WARPS as usize];
    let (memory, words) = (
        GlobalMut::from_ptr(memory.as_mut_ptr()),
        GlobalMut::from_ptr(words.as_mut_ptr()),
    );
    let splits = partials.len() as u32;
    for rotation in 0..splits {
        let complete = [const { AtomicU32::new(0) }; ATOMS];
        launch(128, ATOMS as u32 * splits, 1, || {
            let block = block_idx().x.get();
            let (atom, split) = (block / splits, (block + rotation) % splits);
            let thread = warpgroup_thread_idx();
            let number = partials[split as usize] * (1 + atom) as f32;
            let mut accumulators = Fragment::<f32, Values>::filled(number);
            let fixup = Fixup::new(memory, ArrivalCounters::at(words), M_ATOMS);
            let tile_and_atom = (atom / M_ATOMS, atom % M_ATOMS);
            let share = Share {
                nth: split,
                count: splits,
                first: atom / M_ATOMS * splits,
            };
            // SAFETY: each block has a split of its own, and there is memory for all of them.
            if unsafe { fixup.add(tile_and_atom, share, thread, &mut accumulators) } {
                let expected = sum * (1 + atom) as f32;
                each::<Values>(|v| assert_eq!(accumulators.get(v), expected));
                complete[atom as usize].fetch_add(1, Relaxed);
            }
        })
        .unwrap();
        for threads in complete {
            assert_eq!(
                threads.into_inner(),
                128,
                "each warp of an M atom completes once"
            );
        }
    }
}

/// The sum depends on the order of additions, because 1 is lost beside 1e8.
#[test]
fn partials_are_added_in_the_order_of_splits() {
    check_fixup::<L!(8:1)>(&[1e8, 1.0, -1e8, 3.0, 0.25], 3.25);
}

#[test]
fn more_partials_than_are_read_at_a_time_are_added() {
    let partials: Vec<f32> = (1..=19).map(|split| split as f32).collect();
    check_fixup::<L!(4:1)>(&partials, 190.0);
    check_fixup::<L!(8:1)>(&partials, 190.0);
    check_fixup::<L!(64:1)>(&partials, 190.0);
}
