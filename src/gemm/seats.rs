//! Seats of a launch: clusters whose multiprocessors share reads of the L2 cache work at the same rows
//! of tiles, so that these share what they read of A.

use std::sync::Arc;

use cutlet_device::hopper::Seats;
use cutlet_host::{Buffer, Stream};

use crate::Result;

/// Tiles for each cluster from which on it is worth it to claim seats.
const TILES: u32 = 3;

/// The words of [`Seats`] for `clusters` of `blocks` blocks each, which take `tiles` tiles, their
/// neighbours' included, in groups of `rows` rows; none where the clusters cannot claim seats, or where
/// it is not worth it. They must be there as long as the stream has not got past the launch.
pub fn seats(
    stream: &Stream,
    clusters: u32,
    blocks: u32,
    tiles: u32,
    rows: u32,
) -> Result<Option<Arc<Buffer<u32>>>> {
    let device = stream.device();
    if clusters != device.multiprocessors() / blocks || tiles < TILES * clusters {
        return Ok(None);
    }
    let key = u64::from(blocks) << 32 | u64::from(rows);
    Ok(stream.resident(key, || {
        let groups = device.multiprocessor_groups()?;
        Ok(Seats::plan(
            groups,
            &of_groups(groups, clusters, blocks, rows),
        ))
    })?)
}

/// The seats of each group of multiprocessors: as many as it has room for clusters, and as far as
/// possible those of one row. A seat's row is what its number leaves when divided by `rows`.
fn of_groups(groups: &[u32], clusters: u32, blocks: u32, rows: u32) -> Vec<Vec<u32>> {
    let mut by_row: Vec<u32> = (0..clusters).collect();
    by_row.sort_by_key(|seat| seat % rows);
    let mut rest = by_row.into_iter();
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
    use super::of_groups;

    #[test]
    fn groups_have_rows_of_their_own() {
        // Three groups of 6, 4 and 4 multiprocessors: three, two and two clusters.
        let groups = [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0];
        assert_eq!(
            of_groups(&groups, 7, 2, 3),
            [vec![0, 3, 6], vec![1, 4], vec![2, 5]]
        );
    }

    #[test]
    fn every_seat_is_somebodys() {
        // A multiprocessor without a second one for a cluster: the seats are more than there is room for.
        let groups = [0, 0, 0, 1, 1, 1, 2, 2];
        let mut seats: Vec<u32> = of_groups(&groups, 4, 2, 8).concat();
        seats.sort_unstable();
        assert_eq!(seats, [0, 1, 2, 3]);
    }
}
