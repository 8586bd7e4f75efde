//! A kernel over a vector whose length has 64 bits, on the CPU backend.

use cutlet_device::{GlobalMut, PtxLibrary, block_idx, kernel, thread_idx};
use cutlet_host::{Device, Result};
use cutlet_layout_core::{L, LongVector, Tv, tile_extent};

/// On the CPU, kernels need no PTX.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

type Tile = L!((1, 1024):(1@0, 1@1));
type Threads = Tv<L!(256:4@1), L!(4:1@1), 4>;

/// Inverts the bits of `n` bytes. Each block has a tile of them.
///
/// # Safety
/// `x` must have `n` bytes, a multiple of 4.
#[kernel(threads = 256)]
unsafe fn invert(n: i64, x: GlobalMut<u8>) {
    // SAFETY: the launcher promises the bytes.
    let x = unsafe { LongVector::new(x, n) };
    let x = x
        .local_tile::<Tile>(block_idx().x)
        .partition::<Threads>(thread_idx());
    x.store(&x.load(0).map(|_, x| !x));
}

/// Inverts `n` bytes in the memory of `len`.
fn inverted(n: usize, len: usize) -> Result<Vec<u8>> {
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &invert)?;
    let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
    let mut x = stream.upload(&bytes)?;
    let [_, columns] = tile_extent::<Tile>();
    let blocks = n.div_ceil(columns as usize) as u32;
    // SAFETY: the CPU backend ends a kernel that leaves its buffers.
    unsafe { stream.launch(&function, blocks, (n as i64, &mut x))? };
    stream.download(&x)
}

#[test]
fn each_element_is_written_once_and_none_beyond_the_vector() {
    let found = inverted(4100, 5000).unwrap();
    for (i, found) in found.iter().enumerate() {
        let before = i as u8;
        assert_eq!(*found, if i < 4100 { !before } else { before }, "{i}");
    }
}

#[test]
fn a_vector_longer_than_its_memory_is_refused() {
    let refused = inverted(4100, 4096).unwrap_err().to_string();
    assert!(
        refused.contains("(`x`), which has 4096 elements"),
        "{refused}"
    );
}
