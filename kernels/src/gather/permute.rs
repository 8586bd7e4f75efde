//! Permute: a copy between two layouts of the same shape. It goes through shared memory if their innermost modes
//! differ, so that reads and writes are coalesced.

use cutlet_device::{
    DeviceData, Global, GlobalMut, SharedMemory, ThreadGroup, ThreadIdx, block_idx, instantiate,
    sync_threads, thread_idx,
};
use cutlet_layout_core::{
    AnyStrides, Coord, Divide, Divisor, Fixed, L, Raster, StaticLayout, StaticSwizzle, Sw, Tensor,
    ThreadValue, Tv, tiles,
};

use super::Shape;
use super::shapes::{Long, Short};

/// Modes of a permutation beyond the two of a matrix.
pub const REST: usize = 6;

/// Two layouts of one shape: matrices, and the modes over which they are repeated.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct PermuteArgs {
    /// Strides of the source's rows and columns.
    pub from: [i64; 2],
    /// Strides of the destination's rows and columns.
    pub to: [i64; 2],
    /// The modes over which the matrices are repeated. Unused ones have the extent 1.
    pub rest: [RestMode; REST],
    /// Rows and columns of each matrix.
    pub extent: Coord,
    /// Number of matrices.
    pub matrices: u32,
    /// Unused.
    pub padding: u32,
}

/// A mode over which matrices are repeated.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct RestMode {
    /// Stride in the source.
    pub from: i64,
    /// Stride in the destination.
    pub to: i64,
    /// The extent.
    pub extent: Divisor,
    /// Unused.
    pub padding: u32,
}

impl PermuteArgs {
    /// The matrix and its tile that a block of tiles `T` copies, and where the matrix begins in source and destination.
    #[inline(always)]
    fn place<T: StaticLayout>(&self) -> ((u32, u32), [i64; 2]) {
        let tiles = tiles::<T>(self.extent);
        let of_matrix = Raster::new([self.matrices, tiles[0] * tiles[1]], 1);
        let (mut matrix, tile) = of_matrix.tile(block_idx().x);
        let mut begins = [0; 2];
        for mode in &self.rest {
            let (others, nth) = mode.extent.div_rem(matrix);
            matrix = others;
            begins[0] += i64::from(nth) * mode.from;
            begins[1] += i64::from(nth) * mode.to;
        }
        (Raster::new(tiles, 1).tile(tile), begins)
    }
}

/// Copies a tile whose columns are innermost in both layouts. Each block copies one tile.
///
/// # Safety
/// Source and destination must have these layouts.
#[inline(always)]
unsafe fn copy<S: Shape, T: DeviceData + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    destination: GlobalMut<T>,
    args: PermuteArgs,
) {
    let (tile, [from, to]) = args.place::<S::Tile>();
    // SAFETY: the launcher promises the layouts.
    let (source, destination) = unsafe {
        (
            Tensor::new(source.offset(from), AnyStrides::new(args.extent, args.from)),
            Tensor::new(
                destination.offset(to),
                AnyStrides::new(args.extent, args.to),
            ),
        )
    };
    let values = source
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread)
        .load(T::default());
    destination
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread)
        .store(&values);
}

/// How a block transposes a square tile.
trait Square {
    /// The tile.
    type Tile: StaticLayout;
    /// The tile in shared memory.
    type Stored: StaticLayout;
    /// Columns are xored with their row's number, so that a warp has no bank conflicts along a row or along a column.
    type Swizzle: StaticSwizzle;
    /// For reads: a warp is along a row of the source.
    type AlongRows: ThreadValue;
    /// For writes: a warp is along a column, which is contiguous in the destination.
    type AlongColumns: ThreadValue;
}

/// Tiles of 64×64.
struct Square64;
impl Square for Square64 {
    type Tile = L!((64, 64):(1@0, 1@1));
    type Stored = L!((64, 64):(64, 1));
    type Swizzle = Sw<5, 0, 6>;
    type AlongRows = Tv<L!((64, 4):(1@1, 1@0)), L!(16:4@0)>;
    type AlongColumns = Tv<L!((64, 4):(1@0, 1@1)), L!(16:4@1)>;
}

/// Tiles of 32×32, for wide elements.
struct Square32;
impl Square for Square32 {
    type Tile = L!((32, 32):(1@0, 1@1));
    type Stored = L!((32, 32):(32, 1));
    type Swizzle = Sw<5, 0, 5>;
    type AlongRows = Tv<L!((32, 8):(1@1, 1@0)), L!(4:8@0)>;
    type AlongColumns = Tv<L!((32, 8):(1@0, 1@1)), L!(4:8@1)>;
}

/// Bytes of shared memory for a tile.
const fn shared<S: Square, T>() -> u32 {
    (<S::Tile as StaticLayout>::SIZE * size_of::<T>()) as u32
}

/// Copies a tile whose columns are innermost in the source, and whose rows are in the destination. Each block copies
/// one tile.
///
/// # Safety
/// Source and destination must have these layouts.
#[inline(always)]
unsafe fn transpose<S: Square, T: DeviceData + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    destination: GlobalMut<T>,
    args: PermuteArgs,
) {
    let (tile, [from, to]) = args.place::<S::Tile>();
    // SAFETY: the launcher promises the layouts. The shared tile is as large as its layout.
    let (source, destination, stored) = unsafe {
        let memory = SharedMemory::new().take::<T>(<S::Tile as StaticLayout>::SIZE);
        (
            Tensor::new(source.offset(from), AnyStrides::new(args.extent, args.from)),
            Tensor::new(
                destination.offset(to),
                AnyStrides::new(args.extent, args.to),
            ),
            Tensor::new(memory, Fixed::<S::Stored, S::Swizzle>::new()),
        )
    };
    let values = source
        .local_tile::<S::Tile>(tile)
        .partition::<S::AlongRows>(thread)
        .load(T::default());
    stored.partition::<S::AlongRows>(thread).store(&values);
    sync_threads();
    let values = stored
        .partition::<S::AlongColumns>(thread)
        .load(T::default());
    destination
        .local_tile::<S::Tile>(tile)
        .partition::<S::AlongColumns>(thread)
        .store(&values);
}

/// The tile of the kernels that transpose elements of this many bytes: rows and columns.
pub const fn transposed_tile(bytes: usize) -> [usize; 2] {
    match bytes {
        8.. => [32, 32],
        _ => [64, 64],
    }
}

macro_rules! instances {
    ($($element:ty, $square:ident: $long:ident $short:ident $transpose:ident;)+) => {
        instantiate! {$(
            /// Rows of 128 elements and more, whose columns are innermost in both layouts.
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $long(
                source: Global<$element>,
                destination: GlobalMut<$element>,
                args: PermuteArgs,
            ) = copy::<Long, $element>(thread_idx(), ..);

            /// Shorter rows, whose columns are innermost in both layouts.
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $short(
                source: Global<$element>,
                destination: GlobalMut<$element>,
                args: PermuteArgs,
            ) = copy::<Short, $element>(thread_idx(), ..);

            /// Columns are innermost in the source, and rows in the destination.
            #[kernel(threads = 256, shared = shared::<$square, $element>(), cpu = crate::cpu::BODY)]
            pub unsafe fn $transpose(
                source: Global<$element>,
                destination: GlobalMut<$element>,
                args: PermuteArgs,
            ) = transpose::<$square, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    [u64; 2], Square32: permute_long16 permute_short16 permute_transpose16;
    u64, Square32: permute_long8 permute_short8 permute_transpose8;
    u32, Square64: permute_long4 permute_short4 permute_transpose4;
    u16, Square64: permute_long2 permute_short2 permute_transpose2;
    u8, Square64: permute_long1 permute_short1 permute_transpose1;
}
