//! How an operand's k-tiles lie in shared memory, and how threads copy them there.
//!
//! | staging | copies | of |
//! |---|---|---|
//! | [`Vectors`] | `cp.async` of 16, 8 or 4 bytes | lines that start at multiples of so many bytes |
//! | [`Elements`] | `cp.async` of an element | f32 and f64 of any alignment |
//! | [`Loads`] | through registers, an element at a time | smaller elements of any alignment |
//! | [`Transposed`] | through registers, 16 bytes at a time | K-major f32, to a stage in which mn is consecutive |

use cutlet_device::tile::{KMajor, Major, MnMajor};
use cutlet_device::{DeviceData, Global, Shared, ThreadGroup, ThreadIdx, ThreadsOf};
use cutlet_layout_core::{
    ColMajor, Coord, Engine, Fixed, FragmentStorage, MatrixInner, Partition, RowMajor,
    StaticLayout, StaticSwizzle, Strided, Tensor, ThreadValue, TileShape,
};
use half::{bf16, f16};

mod direct;
mod held;
mod named_rows;
mod threads;

pub use direct::{Copies, Direct, Elements, OfBytes, OfElements, Vectors};
pub use held::{Loads, Transposed};
pub use named_rows::{NamedKMajor, NamedMajor};

/// How a kernel reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Whether k is consecutive in memory. If not, m or n is.
    pub k_major: bool,
    /// Bytes that it reads at a time, at multiples of so many.
    pub bytes: usize,
    /// Whether lines must have whole vectors, because it reads none in part.
    pub in_whole_vectors: bool,
}

/// A stage's tile of an operand, as (mn, k).
pub type StageTile<S> =
    Tensor<Shared<<S as Staging>::Element>, Fixed<<S as Staging>::Layout, <S as Staging>::Swizzle>>;

/// How an operand goes through shared memory. Coordinates are (mn, k).
pub trait Staging: core::marker::Copy + 'static {
    /// The operand's elements.
    type Element: DeviceData;
    /// Which coordinate is consecutive in shared memory.
    type Major: Major;
    /// How the operand lies in global memory.
    type Source: GlobalMajor;
    /// From (mn, k) to an index in a stage, before the swizzle.
    type Layout: TileShape;
    /// The swizzle of a stage.
    type Swizzle: StaticSwizzle;
    /// Thread-value layout by which threads copy a k-tile.
    type Copy: ThreadValue;
    /// What the host knows of it.
    const READ: Read;

    /// What a thread holds of a k-tile on its way through registers: `()` if it goes directly.
    type Held: core::marker::Copy;

    /// Holds nothing.
    fn nothing() -> Self::Held;

    /// Reads the thread's part of a k-tile into registers, if it goes through them: those `from` accesses of which
    /// `holds` is true for the first value.
    ///
    /// # Safety
    /// The elements must exist and be aligned for the accesses.
    unsafe fn fetch(from: &Accesses<Self>, holds: impl Fn(usize) -> bool) -> Self::Held;

    /// Writes what the thread holds to its part of a stage, or starts to copy the k-tile there: accesses of which
    /// `holds` is true for the first value, and zeros in place of the others. What a thread holds is zero already where
    /// it has read nothing.
    ///
    /// # Safety
    /// As [`fetch`](Self::fetch). No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(
        held: Self::Held,
        from: &Accesses<Self>,
        holds: impl Fn(usize) -> bool,
        to: StageTile<Self>,
        thread: ThreadIdx<CopyThreads<Self>>,
    ) {
        let _ = holds;
        // SAFETY: as promised by the caller.
        unsafe { Self::put_part(held, from, to, thread) };
    }

    /// [`put`](Self::put) of the part of a k-tile that is in the matrix, and zeros beyond.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    unsafe fn put_part(
        held: Self::Held,
        from: &Accesses<Self>,
        to: StageTile<Self>,
        thread: ThreadIdx<CopyThreads<Self>>,
    );
}

/// A thread's accesses to a k-tile in global memory.
pub type Accesses<S> = Partition<Operand<S>, Matrix<S>, <S as Staging>::Copy>;

/// The threads that copy a k-tile: those of the block, or the first ones of them.
pub type CopyThreads<S> = ThreadsOf<<S as Staging>::Copy>;

/// How an operand lies in global memory.
pub type Source<S> = <S as Staging>::Source;
/// An operand's memory.
pub type Operand<S> = Global<<S as Staging>::Element>;
/// How it lies there.
pub type Matrix<S> = <<S as Staging>::Source as GlobalMajor>::Matrix;
/// What a thread keeps of its accesses from one k-tile to the next.
pub type Start<S> =
    <<S as Staging>::Source as GlobalMajor>::Start<Operand<S>, <S as Staging>::Copy>;

/// A stage's layout, which says what is consecutive.
pub trait StageLayout: TileShape {
    /// Which coordinate is consecutive.
    type Major: Major;
}

/// A [`Major`], and the matrix that has it in global memory.
pub trait GlobalMajor: Major {
    /// The matrix, of (mn, k).
    type Matrix: MatrixInner;
    /// Storage of something for each of a thread's values. It must be exact where rows are named.
    type Values: FragmentStorage;
    /// What a thread keeps of its accesses by `C` from one k-tile to the next.
    type Start<E: Engine, C: ThreadValue>: core::marker::Copy;

    /// Finds what is kept, of tiles of `T` with this index along mn.
    fn start<E: Engine, T: StaticLayout, C: ThreadValue>(
        matrix: &Tensor<E, Self::Matrix>,
        tile: u32,
        thread: ThreadIdx<impl ThreadGroup>,
    ) -> Self::Start<E, C>;

    /// The thread's accesses to the tile at `tile` = (mn, k), in units of `T`.
    fn accesses<E: Engine, T: StaticLayout, C: ThreadValue>(
        start: &Self::Start<E, C>,
        matrix: &Tensor<E, Self::Matrix>,
        tile: (u32, u32),
        thread: ThreadIdx<ThreadsOf<C>>,
    ) -> Partition<E, Self::Matrix, C>;
}

/// A [`GlobalMajor`] of matrices with strides, one of which is 1.
pub trait StridedMajor: GlobalMajor {
    /// The operand of `extent` = (mn, k), with the strides of both.
    fn matrix(extent: Coord, strides: [i64; 2]) -> Self::Matrix;
}

macro_rules! strided_major {
    ($major:ident: $matrix:ident, ld $ld:literal) => {
        impl GlobalMajor for $major {
            type Matrix = $matrix;
            type Values = [(); 256];
            type Start<E: Engine, C: ThreadValue> = ();

            #[inline(always)]
            fn start<E: Engine, T: StaticLayout, C: ThreadValue>(
                _: &Tensor<E, $matrix>,
                _: u32,
                _: ThreadIdx<impl ThreadGroup>,
            ) {
            }

            #[inline(always)]
            fn accesses<E: Engine, T: StaticLayout, C: ThreadValue>(
                (): &(),
                matrix: &Tensor<E, $matrix>,
                tile: (u32, u32),
                thread: ThreadIdx<ThreadsOf<C>>,
            ) -> Partition<E, $matrix, C> {
                matrix.local_tile::<T>(tile).partition::<C>(thread)
            }
        }

        impl StridedMajor for $major {
            #[inline(always)]
            fn matrix(extent: Coord, strides: [i64; 2]) -> $matrix {
                Strided::new(extent, strides[$ld])
            }
        }
    };
}
strided_major!(KMajor: RowMajor, ld 0);
strided_major!(MnMajor: ColMajor, ld 1);

/// An element type that threads copy to shared memory.
pub trait StagedElement: DeviceData + Default {
    /// How single elements are copied.
    type Elements<J: GlobalMajor, L: StageLayout, W: StaticSwizzle, const THREADS: usize>: Staging<
        Element = Self,
    >;
}

macro_rules! staged_element {
    ($($element:ty: $staging:ident;)+) => {$(
        impl StagedElement for $element {
            type Elements<J: GlobalMajor, L: StageLayout, W: StaticSwizzle, const THREADS: usize> =
                $staging<Self, J, L, W, THREADS>;
        }
    )+};
}
staged_element! {
    f64: Elements;
    f32: Elements;
    bf16: Loads;
    f16: Loads;
    i8: Loads;
}
