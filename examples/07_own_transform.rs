//! An inner transform of your own: the rows of a ring buffer as a matrix, tiled and partitioned like any other. What
//! the transform needs to know are arguments of the kernel.

use cutlet::{Device, Result};
use cutlet_device::{Global, GlobalMut, PtxLibrary, block_idx, kernel, thread_idx};
use cutlet_layout_core::{
    Bound, Coord, FragmentLayout, Inner, L, MatrixInner, RowMajor, StaticLayout, Tensor, Tv,
    covers_exactly, tile_extent,
};

/// A matrix whose row `r` is row `(first + r) mod capacity` of a ring buffer.
///
/// A plain matrix of the same extents places threads and values, and knows which of them exist.
#[derive(Clone, Copy)]
struct Ring {
    plain: RowMajor,
    first: i32,
    capacity: i32,
    ld: i64,
}

impl Inner for Ring {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundRing<L>;

    const ORIGIN: Coord = RowMajor::ORIGIN;

    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        self.plain.partition::<Thr, Val>(offset, thr)
    }

    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundRing<L> {
        let plain = self.plain.bind::<L>(offset);
        BoundRing { plain, ring: *self }
    }
}

impl MatrixInner for Ring {
    fn extent(&self) -> Coord {
        self.plain.extent()
    }
}

/// [`Ring`], bound to where a thread's values begin.
#[derive(Clone, Copy)]
struct BoundRing<L: FragmentLayout> {
    plain: <RowMajor as Inner>::Bound<L>,
    ring: Ring,
}

impl<L: FragmentLayout> Bound for BoundRing<L> {
    /// Rows are contiguous, so vectors along them are.
    const RUN: usize = <<RowMajor as Inner>::Bound<L> as Bound>::RUN;

    fn base(&self) -> i64 {
        0
    }

    /// The only line that differs from a plain matrix: where a row is.
    fn index(&self, v: usize) -> i64 {
        let [row, column] = self.plain.coordinate(v);
        let after_first = self.ring.first + row;
        let wrapped = match after_first < self.ring.capacity {
            true => after_first,
            false => after_first - self.ring.capacity,
        };
        i64::from(wrapped) * self.ring.ld + i64::from(column)
    }

    fn holds(&self, v: usize) -> bool {
        self.plain.holds(v)
    }

    fn holds_along(&self, v: usize, direction: usize) -> bool {
        self.plain.holds_along(v, direction)
    }

    fn count(&self, v: usize, width: usize) -> u32 {
        self.plain.count(v, width)
    }
}

/// A block's tile, and its threads: four consecutive values each, in one access.
type Tile = L!((8, 32):(1@0, 1@1));
type Threads = Tv<L!((8, 8):(4@1, 1@0)), L!(4:1@1), 4>;
const _: () = assert!(covers_exactly::<Threads>(tile_extent::<Tile>()));

/// Copies `rows` rows of the ring buffer to a matrix, the first one first.
///
/// # Safety
/// The ring buffer must have `capacity` rows of `columns` elements, and the output `rows`. `columns` is a multiple of
/// 4, `rows` at most `capacity`, and `first` below it.
#[kernel(threads = 64)]
pub unsafe fn unroll_ring(
    rows: i32,
    columns: i32,
    first: i32,
    capacity: i32,
    buffer: Global<f32>,
    output: GlobalMut<f32>,
) {
    let ld = i64::from(columns);
    let plain = RowMajor::new([rows, columns], ld);
    let ring = Ring {
        plain,
        first,
        capacity,
        ld,
    };
    // SAFETY: the caller promises the extents.
    let (buffer, output) = unsafe { (Tensor::new(buffer, ring), Tensor::new(output, plain)) };
    let tile = (block_idx().y, block_idx().x);
    let values = buffer
        .local_tile::<Tile>(tile)
        .partition::<Threads>(thread_idx())
        .load(0.0);
    output
        .local_tile::<Tile>(tile)
        .partition::<Threads>(thread_idx())
        .store(&values);
}

/// The kernel of a single file runs on the CPU only. In a package, as `examples/own-kernel`, it runs on a GPU, too.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

fn main() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let unroll = stream.device().load(&PTX, &unroll_ring)?;
    let (capacity, columns, rows, first) = (10, 40, 7, 6);
    let buffer: Vec<f32> = (0..capacity * columns)
        .map(|i| (i / columns) as f32)
        .collect();
    let buffer = stream.upload(&buffer)?;
    let mut output = stream.zeroed::<f32>(rows * columns)?;
    let [tile_rows, tile_columns] = tile_extent::<Tile>().map(|extent| extent as usize);
    let grid = (
        columns.div_ceil(tile_columns) as u32,
        rows.div_ceil(tile_rows) as u32,
    );
    let [rows, columns, first, capacity] = [rows, columns, first, capacity].map(|it| it as i32);
    // SAFETY: the buffers have these extents.
    unsafe {
        let args = (rows, columns, first, capacity, &buffer, &mut output);
        stream.launch(&unroll, grid, args)?;
    }
    let found = stream.download(&output)?;
    let rows: Vec<f32> = found.chunks(columns as usize).map(|row| row[39]).collect();
    println!("rows of the ring: {rows:?}");
    assert_eq!(rows, [6.0, 7.0, 8.0, 9.0, 0.0, 1.0, 2.0]);
    Ok(())
}
