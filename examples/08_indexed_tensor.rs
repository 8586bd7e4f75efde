//! An index table under a tensor: a kernel that was written for plain matrices works on the rows that a table names, in
//! place and unchanged.

use cutlet::{Device, Result};
use cutlet_device::{
    Global, GlobalMut, PtxLibrary, ThreadGroup, ThreadIdx, block_idx, instantiate, shfl_xor,
    thread_idx,
};
use cutlet_layout_core::{
    Gather, L, MatrixInner, RowMajor, Tensor, ThreadValue, Tv, each, tile_extent,
};

/// A block's tile: eight rows. A warp has a row.
type Tile = L!((8, 128):(1@0, 1@1));
type Threads = Tv<L!((32, 8):(1@1, 1@0)), L!(4:32@1)>;

/// Divides each row by its largest element, for matrices of up to 128 columns. Nothing here knows where rows are.
fn normalise<I: MatrixInner>(thread: ThreadIdx<impl ThreadGroup>, x: Tensor<GlobalMut<f32>, I>) {
    let rows = x
        .local_tile::<Tile>((block_idx().x, 0u32))
        .partition::<Threads>(thread);
    let values = rows.load(f32::NEG_INFINITY);
    let mut largest = f32::NEG_INFINITY;
    each::<<Threads as ThreadValue>::Val>(|v| largest = largest.max(values.get(v)));
    for step in 0..5 {
        largest = largest.max(shfl_xor(largest, 1 << step));
    }
    rows.store(&values.map(|_, value| value / largest));
}

/// # Safety
/// `x` must have these extents.
unsafe fn of_matrix(thread: ThreadIdx<impl ThreadGroup>, extent: [i32; 2], x: GlobalMut<f32>) {
    let plain = RowMajor::new(extent, i64::from(extent[1]));
    // SAFETY: the caller promises the extents.
    normalise(thread, unsafe { Tensor::new(x, plain) });
}

/// # Safety
/// `x` must have `all` rows. There must be a different index for each row of the extents.
unsafe fn of_named_rows(
    thread: ThreadIdx<impl ThreadGroup>,
    extent: [i32; 2],
    all: i64,
    indices: Global<i32>,
    x: GlobalMut<f32>,
) {
    // SAFETY: the caller promises the extents. Rows with an index outside of `x` do not exist.
    normalise(thread, unsafe {
        let named = Gather::new(indices, extent, all, i64::from(extent[1]));
        Tensor::new(x, named)
    });
}

instantiate! {
    /// Divides each row of a matrix by its largest element.
    #[kernel(threads = 256)]
    pub unsafe fn normalise_matrix(extent: [i32; 2], x: GlobalMut<f32>) = of_matrix(thread_idx(), ..);

    /// Divides each row that an index names by its largest element.
    #[kernel(threads = 256)]
    pub unsafe fn normalise_named(
        extent: [i32; 2],
        all: i64,
        indices: Global<i32>,
        x: GlobalMut<f32>,
    ) = of_named_rows(thread_idx(), ..);
}

/// The kernels of a single file run on the CPU only. In a package, as `examples/own-kernel`, they run on a GPU, too.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

fn main() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (rows, columns) = (20, 100);
    let matrix: Vec<f32> = (0..rows * columns)
        .map(|i| (i % columns + 1) as f32)
        .collect();
    let blocks = |rows: usize| rows.div_ceil(tile_extent::<Tile>()[0] as usize) as u32;
    let largest = |matrix: &[f32]| -> Vec<f32> {
        let rows = matrix.chunks(columns);
        rows.map(|row| row.iter().copied().fold(0.0, f32::max))
            .collect()
    };

    let mut x = stream.upload(&matrix)?;
    let kernel = stream.device().load(&PTX, &normalise_matrix)?;
    // SAFETY: the matrix has these extents.
    unsafe { stream.launch(&kernel, blocks(rows), ([20, 100], &mut x))? };
    assert_eq!(largest(&stream.download(&x)?), [1.0; 20]);

    let mut x = stream.upload(&matrix)?;
    let named = stream.upload(&[17i32, 3, 99, 4])?; // there is no row 99
    let kernel = stream.device().load(&PTX, &normalise_named)?;
    // SAFETY: the matrix has 20 rows, and the four indices differ.
    unsafe { stream.launch(&kernel, blocks(4), ([4, 100], 20i64, &named, &mut x))? };
    let found = largest(&stream.download(&x)?);
    let divided: Vec<usize> = (0..rows).filter(|&row| found[row] == 1.0).collect();
    println!("rows that were divided: {divided:?}");
    assert_eq!(divided, [3, 4, 17]);
    Ok(())
}
