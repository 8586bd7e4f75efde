//! The slots of a launch, by SM affinity. Clusters whose multiprocessors share a path to the L2 cache get tiles of the
//! same rows, and share reads of A, or tiles of the same columns, and share reads of B.

use cutlet_device::collective::SmAffinity;
use cutlet_host::Stream;

use crate::matrix::pointer_mut;

/// The operand that neighbouring clusters have in common, in a raster with groups of this many rows of clusters.
/// Multicast does not share it: each block of a cluster reads it for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InCommon {
    /// Rows of A: a cluster is a column of blocks.
    Rows(u32),
    /// Columns of B: a cluster is a row of blocks.
    Columns(u32),
}

/// Key of a table that is kept per stream.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    clusters: u32,
    blocks: u32,
    in_common: InCommon,
}

/// The table of slots for `clusters` clusters of `blocks` blocks, which is kept per stream. [`SmAffinity::NONE`] if the
/// stream's launches cannot claim slots.
pub fn slots(stream: &Stream, clusters: u32, blocks: u32, in_common: InCommon) -> SmAffinity {
    let key = Key {
        clusters,
        blocks,
        in_common,
    };
    let words = stream.resident(key, || {
        let groups = stream.device().multiprocessor_groups()?;
        let slots = slots_of_groups(groups, clusters, blocks, in_common);
        Ok(SmAffinity::plan(groups, &slots))
    });
    // Without slots, the product is only slower. So an error is no reason to refuse it.
    words.ok().flatten().map_or(SmAffinity::NONE, |words| {
        SmAffinity::at(pointer_mut(words.view().address()))
    })
}

/// The slots of each group of multiprocessors: as many as the group has room for clusters, and as far as possible with
/// the same rows or columns.
fn slots_of_groups(
    groups: &[u32],
    clusters: u32,
    blocks: u32,
    in_common: InCommon,
) -> Vec<Vec<u32>> {
    let mut by_common: Vec<u32> = (0..clusters).collect();
    by_common.sort_by_key(|slot| match in_common {
        InCommon::Rows(rows) => slot % rows,
        InCommon::Columns(rows) => slot / rows,
    });
    let mut rest = by_common.into_iter();
    let count = groups.iter().max().map_or(1, |last| last + 1);
    let mut slots: Vec<Vec<u32>> = (0..count)
        .map(|group| {
            let members = groups.iter().filter(|&&it| it == group).count();
            rest.by_ref().take(members / blocks as usize).collect()
        })
        .collect();
    slots[0].extend(rest);
    slots
}

#[cfg(test)]
mod tests {
    use super::{InCommon, slots_of_groups};

    #[test]
    fn groups_get_rows_or_columns_of_their_own() {
        // Three groups of 6, 4 and 4 multiprocessors: three, two and two clusters.
        let groups = [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0];
        assert_eq!(
            slots_of_groups(&groups, 7, 2, InCommon::Rows(3)),
            [vec![0, 3, 6], vec![1, 4], vec![2, 5]]
        );
        assert_eq!(
            slots_of_groups(&groups, 7, 2, InCommon::Columns(3)),
            [vec![0, 1, 2], vec![3, 4], vec![5, 6]]
        );
    }

    #[test]
    fn every_slot_belongs_to_a_group() {
        // Two multiprocessors have no partner for a cluster, so that the groups have room for fewer clusters than there
        // are slots.
        let groups = [0, 0, 0, 1, 1, 1, 2, 2];
        let mut slots: Vec<u32> = slots_of_groups(&groups, 4, 2, InCommon::Rows(8)).concat();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2, 3]);
    }
}
