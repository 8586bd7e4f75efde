//! Element gather: each element of the output is an element of a table that an index names along one dimension.

use cutlet_device::{
    DeviceData, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, instantiate, thread_idx,
};
use cutlet_layout_core::{
    Bound, Coord, Divide, Divisor, Engine, Fragment, FragmentLayout, Inner, MatrixInner, Raster,
    RowMajor, StaticLayout, Tensor, each, tiles,
};

use super::args::report_miss;
use super::shapes::{Short, Wide};
use super::{Indices, OutOfRange, Shape};

/// Extents of an element gather, as a matrix of the output's elements.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ElementArgs {
    /// Extent of the table along the dimension that is indexed.
    pub named: i64,
    /// From one element of the table to the next along that dimension.
    pub named_stride: i64,
    /// From the elements of the table that a group of rows names to those of the next group.
    pub group_stride: i64,
    /// From one element of the table to the next along a row of the output: 1, or 0 if the indexed dimension is along
    /// rows.
    pub column_stride: i64,
    /// Rows and columns of the output.
    pub extent: Coord,
    /// Rows of a group, which name elements of the same part of the table.
    pub group: Divisor,
    /// Not 0 if an index has 64 bits.
    pub wide_indices: u32,
    /// What an index outside of the table means.
    pub out_of_range: OutOfRange,
    /// Unused.
    pub padding: u32,
}

/// The inner transform of an element gather: each element of a matrix has an index of its own.
///
/// Where the elements of the matrix are, and which exist, is what the plain matrix of the indices says.
#[derive(Clone, Copy, Debug)]
pub struct NamedElements {
    indices: Indices,
    plain: RowMajor,
    args: ElementArgs,
}

impl NamedElements {
    /// The elements that these indices name.
    ///
    /// # Safety
    /// There must be an index for each element of the matrix, row by row.
    #[inline(always)]
    pub unsafe fn new(indices: Indices, args: ElementArgs) -> Self {
        let plain = RowMajor::new(args.extent, i64::from(args.extent[1]));
        NamedElements {
            indices,
            plain,
            args,
        }
    }

    /// The element of the table at a coordinate of the matrix with this index.
    #[inline(always)]
    fn element(&self, [row, column]: Coord, index: i64) -> i64 {
        let (group, _) = self.args.group.div_rem(row as u32);
        i64::from(group) * self.args.group_stride
            + i64::from(column) * self.args.column_stride
            + index.wrapping_mul(self.args.named_stride)
    }
}

impl Inner for NamedElements {
    type Offset = Coord;
    type Bound<L: FragmentLayout> = BoundElements<L>;

    const ORIGIN: Coord = RowMajor::ORIGIN;

    #[inline(always)]
    fn partition<Thr: StaticLayout, Val: StaticLayout>(&self, offset: Coord, thr: u32) -> Coord {
        self.plain.partition::<Thr, Val>(offset, thr)
    }

    #[inline(always)]
    fn bind<L: FragmentLayout>(&self, offset: Coord) -> BoundElements<L> {
        let plain = self.plain.bind::<L>(offset);
        let named = Fragment::<i64, L>::from_fn(|v| {
            let at = plain.base() + plain.index(v);
            // SAFETY: there is an index for each element that exists.
            let index = unsafe { self.indices.load_if(at, plain.holds(v)) }.unwrap_or(-1);
            match self.args.out_of_range.clamps() {
                true => index.max(0).min(self.args.named - 1),
                false => index,
            }
        });
        BoundElements {
            elements: named.map(|v, index| self.element(plain.coordinate(v), index)),
            exist: named.map(|_, index| (0..self.args.named).contains(&index)),
            plain,
        }
    }
}

impl MatrixInner for NamedElements {
    #[inline(always)]
    fn extent(&self) -> Coord {
        self.args.extent
    }
}

/// [`NamedElements`], bound: the index of each value has been read.
#[derive(Clone, Copy)]
pub struct BoundElements<L: FragmentLayout> {
    plain: <RowMajor as Inner>::Bound<L>,
    elements: Fragment<i64, L>,
    exist: Fragment<bool, L>,
}

impl<L: FragmentLayout> BoundElements<L> {
    /// Calls `f(position)` for the index of each value that lies in the matrix, but names no element of the table.
    #[inline(always)]
    pub fn each_miss(&self, mut f: impl FnMut(i64)) {
        each::<L>(|v| {
            if self.plain.holds(v) && !self.exist.get(v) {
                f(self.plain.base() + self.plain.index(v));
            }
        });
    }
}

impl<L: FragmentLayout> Bound for BoundElements<L> {
    const RUN: usize = 1;

    #[inline(always)]
    fn base(&self) -> i64 {
        0
    }

    #[inline(always)]
    fn index(&self, v: usize) -> i64 {
        self.elements.get(v)
    }

    #[inline(always)]
    fn holds(&self, v: usize) -> bool {
        self.exist.get(v) && self.plain.holds(v)
    }

    #[inline(always)]
    fn holds_along(&self, v: usize, direction: usize) -> bool {
        self.exist.get(v) && self.plain.holds_along(v, direction)
    }

    #[inline(always)]
    fn count(&self, v: usize, _: usize) -> u32 {
        self.holds(v).into()
    }
}

/// Copies the named elements of the table to the output. Each block copies one tile of the output, row by row of tiles.
///
/// # Safety
/// Table, indices and output must have these extents, and `first_miss` one element.
#[inline(always)]
unsafe fn gather_elements<S: Shape, T: DeviceData + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    table: Global<T>,
    indices: Global<i32>,
    output: GlobalMut<T>,
    first_miss: GlobalMut<u64>,
    args: ElementArgs,
) {
    let tile = Raster::new(tiles::<S::Tile>(args.extent), 1).tile(block_idx().x);
    let indices = Indices::new(indices, args.wide_indices != 0);
    let plain = RowMajor::new(args.extent, i64::from(args.extent[1]));
    // SAFETY: the launcher promises the extents.
    let (table, output) = unsafe {
        (
            Tensor::new(table, NamedElements::new(indices, args)),
            Tensor::new(output, plain),
        )
    };
    let from = table
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);
    let to = output
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread);

    let values = from.load(T::default());
    to.store_if(&values, |v| {
        from.bound().holds(v) || !args.out_of_range.skips()
    });
    if args.out_of_range.is_error() {
        // SAFETY: the launcher promises one element.
        from.bound()
            .each_miss(|position| unsafe { report_miss(first_miss, position) });
    }
}

macro_rules! instances {
    ($($(#[$doc:meta])* $name:ident = $shape:ident, $element:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                table: Global<$element>,
                indices: Global<i32>,
                output: GlobalMut<$element>,
                first_miss: GlobalMut<u64>,
                args: ElementArgs,
            ) = gather_elements::<$shape, $element>(thread_idx(), ..);
        )+}
    };
}
instances! {
    /// Elements of 16 bytes, rows of 1024 and more.
    gather_elements_wide16 = Wide, [u64; 2];
    /// Elements of 16 bytes, shorter rows.
    gather_elements_short16 = Short, [u64; 2];
    /// Elements of 8 bytes, rows of 1024 and more.
    gather_elements_wide8 = Wide, u64;
    /// Elements of 8 bytes, shorter rows.
    gather_elements_short8 = Short, u64;
    /// Elements of 4 bytes, rows of 1024 and more.
    gather_elements_wide4 = Wide, u32;
    /// Elements of 4 bytes, shorter rows.
    gather_elements_short4 = Short, u32;
    /// Elements of 2 bytes, rows of 1024 and more.
    gather_elements_wide2 = Wide, u16;
    /// Elements of 2 bytes, shorter rows.
    gather_elements_short2 = Short, u16;
    /// Elements of 1 byte, rows of 1024 and more.
    gather_elements_wide1 = Wide, u8;
    /// Elements of 1 byte, shorter rows.
    gather_elements_short1 = Short, u8;
}
