//! SmAffinity of a launch: clusters whose multiprocessors share reads of the L2 cache work at tiles of the same
//! rows, so that they share what they read of A, or of the same columns, and share B.

use cutlet_device::collective::SmAffinity;
use cutlet_host::Stream;

use crate::matrix::pointer_mut;

/// What clusters have in common, each block of which reads it for itself, in a schedule with groups of that
/// many rows of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Common {
    /// Rows of A: the blocks of a cluster are one below the other.
    Rows(u32),
    /// Columns of B: they are side by side.
    Columns(u32),
}

/// What the words are for that stay with a stream.
#[derive(PartialEq, Eq, Hash)]
struct OfSeats {
    clusters: u32,
    blocks: u32,
    common: Common,
}

/// SmAffinity for `clusters` of `blocks` blocks each, which stay with the stream; none where its launches cannot
/// claim any.
pub fn seats(stream: &Stream, clusters: u32, blocks: u32, common: Common) -> SmAffinity {
    let key = OfSeats {
        clusters,
        blocks,
        common,
    };
    let words = stream.resident(key, || {
        let groups = stream.device().multiprocessor_groups()?;
        let seats = of_groups(groups, clusters, blocks, common);
        Ok(SmAffinity::plan(groups, &seats))
    });
    // Without seats the product is only slower, so that this is no reason to refuse it.
    words.ok().flatten().map_or(SmAffinity::NONE, |words| {
        SmAffinity::at(pointer_mut(words.view().address()))
    })
}

/// The seats of each group of multiprocessors: as many as it has room for clusters, and as far as
/// possible such with something in common.
fn of_groups(groups: &[u32], clusters: u32, blocks: u32, common: Common) -> Vec<Vec<u32>> {
    let mut by_common: Vec<u32> = (0..clusters).collect();
    by_common.sort_by_key(|seat| match common {
        Common::Rows(rows) => seat % rows,
        Common::Columns(rows) => seat / rows,
    });
    let mut rest = by_common.into_iter();
    let count = groups.iter().max().map_or(1, |last| last + 1);
    let mut seats: Vec<Vec<u32>> = (0..count)
        .map(|group| {
            let members = groups.iter().filter(|&&it| it == group).count();
            rest.by_ref().take(members / blocks as usize).collect()
        })
        .collect();
    seats[0].extend(rest);
    seats
}

#[cfg(test)]
mod tests {
    use super::{Common, of_groups};

    #[test]
    fn groups_have_rows_or_columns_of_their_own() {
        // Three groups of 6, 4 and 4 multiprocessors: three, two and two clusters.
        let groups = [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0];
        assert_eq!(
            of_groups(&groups, 7, 2, Common::Rows(3)),
            [vec![0, 3, 6], vec![1, 4], vec![2, 5]]
        );
        assert_eq!(
            of_groups(&groups, 7, 2, Common::Columns(3)),
            [vec![0, 1, 2], vec![3, 4], vec![5, 6]]
        );
    }

    #[test]
    fn every_seat_is_somebodys() {
        // A multiprocessor without a second one for a cluster: the seats are more than there is room for.
        let groups = [0, 0, 0, 1, 1, 1, 2, 2];
        let mut seats: Vec<u32> = of_groups(&groups, 4, 2, Common::Rows(8)).concat();
        seats.sort_unstable();
        assert_eq!(seats, [0, 1, 2, 3]);
    }
}
