//! What a kernel asserts of its accesses to shared memory: no bank conflicts, and whole vectors.

use cutlet_layout_core::{CopyPartition, L, NoSwizzle, TiledCopy, WarpAccess, Width};

/// Eight elements of two bytes a thread.
type Copy = TiledCopy<Width<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>;
type Written = CopyPartition<Copy, L!((64, 64):(1@0, 1@1))>;
type Rows = L!((64, 64):(64, 1));
/// Rows of 68 elements do not begin at multiples of eight.
type LongRows = L!((64, 64):(68, 1));

const _: () = WarpAccess::of::<Written, Rows, NoSwizzle>(2).assert_conflict_free();
const _: () = WarpAccess::of::<Written, LongRows, NoSwizzle>(2).assert_vectorised();

fn main() {}
