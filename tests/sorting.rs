//! The sort of indices, where a table or a number of indices is too large to be sorted in a test.

use cutlet::Device;
use cutlet_kernels::PTX;
use cutlet_kernels::gather::sorting::{Chunk, DIGIT_BITS, SortArgs, sort_scan};
use cutlet_layout_core::StaticLayout;

/// A value of a digit has as many counts as there are blocks, and its block scans some of them at a time.
#[test]
fn counts_of_many_blocks_are_scanned() {
    let stream = Device::auto().stream().unwrap();
    let scan = stream.device().load(&PTX, &sort_scan).unwrap();
    let values = 1 << DIGIT_BITS;
    for blocks in [1, 5, 1024, 1025, 3000] {
        let mut random = fastrand::Rng::with_seed(blocks as u64);
        let counts: Vec<u32> = (0..values * blocks).map(|_| random.u32(..4096)).collect();
        let mut scanned = stream.upload(&counts).unwrap();
        let mut totals = stream.filled::<u32>(values, 0xff).unwrap();
        let args = SortArgs {
            keys: (blocks * Chunk::SIZE) as i32,
            shift: 0,
        };
        // SAFETY: there is a count for each value and each block of as many keys, and a total for each value.
        unsafe {
            let args = (&mut scanned, &mut totals, args);
            stream.launch(&scan, values as u32, args).unwrap();
        }
        let (scanned, totals) = (
            stream.download(&scanned).unwrap(),
            stream.download(&totals).unwrap(),
        );
        let of_values = scanned.chunks(blocks).zip(counts.chunks(blocks));
        for ((scanned, counts), total) in of_values.zip(totals) {
            let mut before = 0;
            for (scanned, count) in scanned.iter().zip(counts) {
                assert_eq!(*scanned, before, "{blocks} blocks");
                before += count;
            }
            assert_eq!(total, before, "{blocks} blocks");
        }
    }
}
