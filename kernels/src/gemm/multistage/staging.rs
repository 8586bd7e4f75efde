//! How an operand's k-tiles lie in shared memory, and how threads copy them there.
//!
//! | staging | copies | of |
//! |---|---|---|
//! | [`Vectors`] | `cp.async` of 16, 8 or 4 bytes | lines that start at multiples of so many bytes |
//! | [`Elements`] | `cp.async` of an element | f32 and f64 of any alignment |
//! | [`Loads`] | through registers, an element at a time | smaller elements of any alignment |
//! | [`Transposed`] | through registers, 16 bytes at a time | K-major f32, to a stage in which mn is consecutive |

use cutlet_device::sm90::{KMajor, Major, MnMajor};
use cutlet_device::{DeviceData, Global, ThreadIdx};
use cutlet_layout_core::{
    ColMajor, Coord, MatrixInner, Partition, RowMajor, StaticLayout, StaticSwizzle, Strided,
    ThreadValue,
};
use half::{bf16, f16};

use super::config::StageTile;
use super::instance::Read;

mod direct;
mod held;
mod threads;

pub use direct::{Copies, Direct, Elements, OfBytes, OfElements, Vectors};
pub use held::{Loads, Transposed};

/// How an operand goes through shared memory. Coordinates are (mn, k).
pub trait Staging: core::marker::Copy + 'static {
    /// The operand's elements.
    type Element: DeviceData;
    /// Which coordinate is consecutive in shared memory.
    type Major: Major;
    /// The operand in global memory.
    type Matrix: MatrixInner;
    /// From (mn, k) to an index in a stage, before the swizzle.
    type Layout: StaticLayout;
    /// The swizzle of a stage.
    type Swizzle: StaticSwizzle;
    /// Thread-value layout by which threads copy a k-tile.
    type Copy: ThreadValue;
    /// What the host knows of it.
    const READ: Read;

    /// The operand of `extent` = (mn, k), with the strides of both.
    fn matrix(extent: Coord, strides: [i64; 2]) -> Self::Matrix;

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

    /// Writes what the thread holds to its part of a stage, or starts to copy the k-tile there: accesses of which `holds`
    /// is true for the first value, and zeros in place of the others. What a thread holds is zero already where it has read
    /// nothing.
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
        thread: ThreadIdx,
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
        thread: ThreadIdx,
    );
}

/// A thread's accesses to a k-tile in global memory.
pub type Accesses<S> =
    Partition<Global<<S as Staging>::Element>, <S as Staging>::Matrix, <S as Staging>::Copy>;

/// A stage's layout, which says what is consecutive.
pub trait StageLayout: StaticLayout {
    /// Which coordinate is consecutive.
    type Major: Major;
}

/// A [`Major`], and the matrix that has it in global memory.
pub trait GlobalMajor: Major {
    /// The matrix: (mn, k) with one of the strides 1.
    type Matrix: MatrixInner;

    /// The operand of `extent` = (mn, k), with the strides of both.
    fn matrix(extent: Coord, strides: [i64; 2]) -> Self::Matrix;
}

macro_rules! global_major {
    ($major:ident: $matrix:ident, ld $ld:literal) => {
        impl GlobalMajor for $major {
            type Matrix = $matrix;

            #[inline(always)]
            fn matrix(extent: Coord, strides: [i64; 2]) -> $matrix {
                Strided::new(extent, strides[$ld])
            }
        }
    };
}
global_major!(KMajor: RowMajor, ld 0);
global_major!(MnMajor: ColMajor, ld 1);

/// An element type that threads copy to shared memory.
pub trait StagedElement: DeviceData {
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
