//! Copies of a thread's part of a tile, by the instruction of a tiled copy.

use cutlet_layout_core::{
    AccessWidth, CopyPartition, CopyWidth, Engine, EngineMut, Inner, Partition, ThreadValue,
    TiledCopy, Width,
};

use crate::cp_async::cp_async;
use crate::{DeviceData, Global, Shared};

/// An instruction that copies some neighbours of a thread `From` somewhere `To` somewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not copy from `{From}` to `{To}`",
    note = "`CpAsync<N>` copies from `Global` to `Shared` memory, and `Width<N>` between any two pointers through registers"
)]
pub trait CopyInstruction<From, To>: CopyWidth {
    /// Copies the first `count` values.
    ///
    /// # Safety
    /// They must exist, with room at `to`. Both addresses must be aligned to all of the values.
    unsafe fn copy(from: From, to: To, count: u32);
}

/// `cp.async` of `N` elements, which are 4, 8 or 16 bytes. It writes zeros in place of elements that are outside of the
/// tensor.
#[derive(Clone, Copy, Debug)]
pub struct CpAsync<const N: usize>;

impl<const N: usize> CopyWidth for CpAsync<N> {
    type Width = Width<N>;
}

impl<T: DeviceData, const N: usize> CopyInstruction<Global<T>, Shared<T>> for CpAsync<N> {
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(from: Global<T>, to: Shared<T>, count: u32) {
        // SAFETY: as promised by the caller.
        unsafe { cp_async::<T, N>(to, from, count) };
    }
}

/// A load and a store of `N` elements. Vectors that begin outside of the tensor are left out.
impl<E: Engine, F: EngineMut<Element = E::Element>, const N: usize> CopyInstruction<E, F>
    for Width<N>
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(from: E, to: F, count: u32) {
        if count > 0 {
            // SAFETY: as promised by the caller.
            unsafe { <Width<N> as AccessWidth>::copy(from, 0, to, 0) };
        }
    }
}

/// A thread's part of a tile, by a tiled copy.
type Part<E, I, Atom, Threads, Values, Tile> =
    Partition<E, I, CopyPartition<TiledCopy<Atom, Threads, Values>, Tile>>;

/// Copies a thread's part of a tile. What is outside of the tensor `from`, the atom copies as it says.
///
/// ```
/// use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
/// use cutlet_device::tiled::{CpAsync, copy};
/// use cutlet_device::{Global, GlobalMut, SharedArray, kernel, sync_threads, thread_idx};
/// use cutlet_layout_core::{Fixed, L, RowMajor, Tensor, TiledCopy, Width};
///
/// type Tile = L!((16, 32):(1@0, 1@1));
/// /// 8×8 threads, each with four neighbours of a row.
/// type Load = TiledCopy<CpAsync<4>, L!((8, 8):(8, 1)), L!((1, 4):(0, 1))>;
/// type Store = TiledCopy<Width<4>, L!((8, 8):(8, 1)), L!((1, 4):(0, 1))>;
///
/// /// # Safety
/// /// Both matrices have `rows` × `columns` elements. Their rows begin at multiples of 16 bytes.
/// #[kernel(threads = 64)]
/// unsafe fn through_shared_memory(
///     rows: i32,
///     columns: i32,
///     from: Global<f32>,
///     to: GlobalMut<f32>,
///     #[shared] memory: SharedArray<f32, 512>,
/// ) {
///     // SAFETY: the launcher promises the matrices; the tile has 512 elements.
///     let (from, to, tile) = unsafe {
///         (
///             Tensor::new(from, RowMajor::new([rows, columns], columns as i64)),
///             Tensor::new(to, RowMajor::new([rows, columns], columns as i64)),
///             Tensor::new(*memory, Fixed::<L!((16, 32):(32, 1))>::new()),
///         )
///     };
///     let load = Load::thread_slice(thread_idx());
///     copy(&load.partition(from.local_tile::<Tile>((0, 0))), &load.partition(tile));
///     cp_async_commit();
///     cp_async_wait::<0>();
///     sync_threads();
///     let store = Store::thread_slice(thread_idx());
///     copy(&store.partition(tile), &store.partition(to.local_tile::<Tile>((0, 0))));
/// }
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn copy<E, F, I, J, Atom, Threads, Values, Tile>(
    from: &Part<E, I, Atom, Threads, Values, Tile>,
    to: &Part<F, J, Atom, Threads, Values, Tile>,
) where
    E: Engine,
    F: Engine,
    I: Inner,
    J: Inner,
    Atom: CopyInstruction<E, F>,
    CopyPartition<TiledCopy<Atom, Threads, Values>, Tile>: ThreadValue,
{
    from.each_access_in_both(to, |from, to, count| {
        // SAFETY: the tensors' creators promised their elements, and that vectors are aligned.
        unsafe { Atom::copy(from, to, count) }
    });
}

/// [`copy`] of the vectors for whose first value `v` the `condition` holds. A vector is copied as a whole, or as the atom
/// copies what is outside of a tensor: with fewer instructions than [`copy`] takes to find how much of it is inside.
///
/// The condition must hold for no value that is outside of `from`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn copy_if<E, F, I, J, Atom, Threads, Values, Tile>(
    from: &Part<E, I, Atom, Threads, Values, Tile>,
    to: &Part<F, J, Atom, Threads, Values, Tile>,
    condition: impl Fn(usize) -> bool,
) where
    E: Engine,
    F: Engine,
    I: Inner,
    J: Inner,
    Atom: CopyInstruction<E, F>,
    CopyPartition<TiledCopy<Atom, Threads, Values>, Tile>: ThreadValue,
{
    let width = const { <Atom::Width as AccessWidth>::VALUES };
    let mut first = 0;
    from.each_access(to, |from, to, _| {
        let count = if condition(first) { width as u32 } else { 0 };
        first += width;
        // SAFETY: as in `copy`. The condition holds for values inside alone.
        unsafe { Atom::copy(from, to, count) }
    });
}
