//! map: functions of single elements, of one, two or three tensors at the same place.

use cutlet_device::{
    DeviceData, Global, GlobalMut, ThreadIdx, Threads, block_idx, grid_dependency_wait,
    launch_dependents,
};
use cutlet_layout_core::{Engine, Fragment, FragmentLayout, Raster, Tensor, tiles};

use super::{Held, Number, RowStrides, Rows, Shape, Space, THREADS, narrowed};

/// A function of `N` elements. It is an argument of a kernel, so it may hold numbers.
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::rows::map::Map;
///
/// /// `min(a · b, cap)`.
/// #[derive(Clone, Copy, Debug, DeviceData)]
/// #[repr(C)]
/// pub struct CappedProduct {
///     cap: f32,
/// }
///
/// impl Map<2> for CappedProduct {
///     #[inline(always)]
///     fn apply(&self, [a, b]: [f32; 2]) -> f32 {
///         (a * b).min(self.cap)
///     }
/// }
/// assert_eq!(CappedProduct { cap: 5.0 }.apply([2.0, 3.0]), 5.0);
/// ```
pub trait Map<const N: usize>: DeviceData {
    /// The function, of one element of each tensor.
    fn apply(&self, elements: [f32; N]) -> f32;

    /// The function of all elements that a thread has. A function that branches by its numbers does so once here.
    #[inline(always)]
    fn apply_to_all<L: FragmentLayout>(
        &self,
        elements: [&Fragment<f32, L>; N],
    ) -> Fragment<f32, L> {
        Fragment::from_fn(|v| self.apply(elements.map(|it| it.get(v))))
    }
}

/// Extents and strides of a map.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct MapArgs {
    /// Strides of the rows of each tensor that is read.
    pub inputs: [RowStrides; 3],
    /// Strides of the rows that are written.
    pub output: RowStrides,
    /// The rows.
    pub space: Space,
}

/// The tile of the block: each block has one.
#[inline(always)]
fn tile<S: Shape>(space: &Space) -> (u32, u32) {
    Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x)
}

/// The thread's elements of the block's tile.
#[inline(always)]
fn elements<S: Shape, T: Number, E: Engine<Element = T>>(
    input: &Tensor<E, Rows>,
    tile: (u32, u32),
    thread: ThreadIdx<Threads<THREADS>>,
) -> Held<S> {
    input
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread)
        .load(T::default())
        .map(|_, value| value.widen())
}

macro_rules! map {
    ($(#[$doc:meta])* $name:ident, $count:literal: $($input:ident $element:ident $nth:literal),+) => {
        $(#[$doc])*
        ///
        /// The output may be one of the inputs.
        ///
        /// # Safety
        /// Inputs and output must have these extents, and be aligned for the accesses of `S`.
        #[inline(always)]
        pub unsafe fn $name<S: Shape, F: Map<$count>, $($element: Number,)+ Y: Number>(
            thread: ThreadIdx<Threads<THREADS>>,
            $($input: Global<$element>,)+
            output: GlobalMut<Y>,
            function: F,
            args: MapArgs,
        ) {
            grid_dependency_wait();
            launch_dependents();
            let space = args.space;
            let tile = tile::<S>(&space);
            // SAFETY: the launcher promises the extents.
            let ($($input,)+ output) = unsafe {
                (
                    $(Tensor::new($input, space.rows(args.inputs[$nth])),)+
                    Tensor::new(output, space.rows(args.output)),
                )
            };
            $(let $input = elements::<S, _, _>(&$input, tile, thread);)+
            let results = function.apply_to_all([$(&$input),+]);
            output
                .local_tile::<S::Tile>(tile)
                .partition::<S::Threads>(thread)
                .store(&narrowed::<Y, _>(&results));
        }
    };
}
map! {
    /// `output = function(a)`.
    map1, 1: a A 0
}
map! {
    /// `output = function(a, b)`.
    map2, 2: a A 0, b B 1
}
map! {
    /// `output = function(a, b, c)`.
    map3, 3: a A 0, b B 1, c C 2
}
