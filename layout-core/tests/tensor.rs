//! Tensors of kernels: what the compiler cannot refuse is noticed where debug assertions are on.
#![cfg(debug_assertions)]

use cutlet_layout_core::{Fixed, L, RowMajor, Tensor, Tv};

type Column = Tv<L!(2:1@0), L!(2:1@1)>;

#[test]
#[should_panic(expected = "a tile begins before its matrix")]
fn tiles_before_a_matrix_are_noticed() {
    let memory = [0; 8];
    // SAFETY: the second row is the matrix; what is before it is not read.
    let tensor = unsafe { Tensor::new(memory[4..].as_ptr(), RowMajor::new([1, 4], 4)) };
    tensor
        .local_tile::<L!((1, 4):(1@0, 1@1))>((u32::MAX, 0))
        .partition::<Tv<L!(1:1@0), L!(4:1@1)>>(0);
}

#[test]
#[should_panic(expected = "a thread that its thread layout does not have")]
fn threads_beyond_a_tile_are_noticed() {
    let memory = [0; 4];
    // SAFETY: the tile has four elements.
    let tile = unsafe { Tensor::new(memory.as_ptr(), Fixed::<L!((2, 2):(1, 2))>::new()) };
    tile.partition::<Column>(7);
}
