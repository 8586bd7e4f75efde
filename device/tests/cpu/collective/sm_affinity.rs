//! Slots that clusters claim by the multiprocessors they run on.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::cluster::cluster_sync;
use cutlet_device::collective::*;
use cutlet_device::{GlobalMut, SharedMemory, block_idx, cluster_rank, thread_idx};

use crate::fixture::{early, launch};

/// The slot of each block in each of three launches of ten clusters of two blocks. Block i is on multiprocessor i.
fn claimed_slots(groups: &[u32], slots: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut words = SmAffinity::plan(groups, slots).unwrap();
    let before = words.clone();
    let affinity = SmAffinity::at(GlobalMut::from_ptr(words.as_mut_ptr()));
    let claimed = (0..3)
        .map(|_| {
            let claimed: Vec<AtomicU32> = (0..20).map(|_| AtomicU32::new(0)).collect();
            launch(32, 20, 2, || {
                let slot = AffinitySlot::take(&mut SharedMemory::new());
                let first = thread_idx().is_first();
                if first {
                    // SAFETY: no thread uses the barrier before the cluster has met.
                    unsafe { slot.init() };
                }
                cluster_sync();
                if first {
                    slot.expect();
                    if cluster_rank().is_first() {
                        // SAFETY: there are ten slots, launches run one after the other, and no block
                        // ends before it has read its slot.
                        unsafe { slot.broadcast(affinity.claim(), 2) };
                    }
                }
                let slot = slot.claimed();
                claimed[block_idx().x.get() as usize].store(slot, Relaxed);
            })
            .unwrap();
            claimed.into_iter().map(AtomicU32::into_inner).collect()
        })
        .collect();
    assert_eq!(words, before, "a launch resets the table");
    claimed
}

#[test]
fn clusters_claim_the_slots_of_their_multiprocessors() {
    // Multiprocessors 0 to 3 and 16 to 19 are group 0, and the others are group 1.
    let groups: Vec<u32> = (0..20).map(|i| u32::from((4..16).contains(&i))).collect();
    for claimed in claimed_slots(&groups, &[vec![1, 3, 5, 7], vec![0, 2, 4, 6, 8, 9]]) {
        for (block, slot) in claimed.iter().enumerate() {
            assert_eq!(
                *slot,
                claimed[block ^ 1],
                "blocks of a cluster share a slot"
            );
            let in_group_0 = [1, 3, 5, 7].contains(slot);
            assert_eq!(
                in_group_0,
                groups[block] == 0,
                "block {block} has slot {slot}"
            );
        }
        let mut of_clusters: Vec<u32> = claimed.iter().copied().step_by(2).collect();
        of_clusters.sort_unstable();
        assert_eq!(of_clusters, Vec::from_iter(0..10));
    }
}

#[test]
fn clusters_claim_slots_of_other_groups_once_their_own_are_taken() {
    for claimed in claimed_slots(&[0; 20], &[vec![4], (0..4).collect(), (5..10).collect()]) {
        let mut of_clusters: Vec<u32> = claimed.iter().copied().step_by(2).collect();
        of_clusters.sort_unstable();
        assert_eq!(of_clusters, Vec::from_iter(0..10));
    }
}

#[test]
fn impossible_slots_are_refused() {
    assert!(SmAffinity::plan(&[0; 257], &[vec![0]]).is_none());
    assert!(SmAffinity::plan(&[0, 1], &[vec![0]]).is_none());
    assert!(SmAffinity::plan(&[0], &vec![vec![0]; 17]).is_none());
    assert!(SmAffinity::plan(&[0], &[(0..257).collect()]).is_none());
}

/// Kernels before this one do not use the table.
#[test]
fn slots_are_claimed_before_grid_dependency_wait() {
    let mut words = SmAffinity::plan(&[0], &[vec![7]]).unwrap();
    let affinity = SmAffinity::at(GlobalMut::from_ptr(words.as_mut_ptr()));
    let claimed = AtomicU32::new(0);
    cutlet_simt::launch(&early(), &|| {
        if thread_idx().is_first() {
            // SAFETY: there is a slot for the launch's only block.
            claimed.store(unsafe { affinity.claim() }, Relaxed);
        }
    })
    .unwrap();
    assert_eq!(claimed.into_inner(), 7);
}
