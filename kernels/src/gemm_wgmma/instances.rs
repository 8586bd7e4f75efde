//! The instances of gemm_wgmma that the library launches, each in a module of its own, so that a
//! first launch compiles one kernel.

use cutlet_device::hopper::{KMajor, MnMajor, TensorMap, TileBox};
use cutlet_device::{GlobalMut, Kernel, instantiate};

use super::{Problem, Scale, gemm, shared_bytes};
#[cfg(not(target_arch = "nvptx64"))]
use super::{box_a, box_b, box_c};

#[cfg(not(target_arch = "nvptx64"))]
/// The arguments of an instance: maps of A, B and C, C, the problem and the epilogue.
pub type Arguments<T> = (
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<T>,
    GlobalMut<f32>,
    Problem,
    Scale,
);

#[cfg(not(target_arch = "nvptx64"))]
/// What the host needs to know of an instance to choose and launch it.
#[derive(Debug)]
pub struct Instance<T: 'static> {
    /// The kernel.
    pub kernel: &'static Kernel<Arguments<T>>,
    /// Whether k is consecutive in A and in B.
    pub k_major: [bool; 2],
    /// Rows and columns of a block's tile of C.
    pub tile: [u32; 2],
    /// Rows and columns of tiles that a cluster has.
    pub cluster: [u32; 2],
    /// Whether two consumers take turns, each with a tile of its own.
    pub alternate: bool,
    /// The boxes of the tensor maps of A, B and C.
    pub boxes: [TileBox; 3],
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T> Instance<T> {
    /// Bytes of a tile of A if its boxes have `lines` lines.
    pub const fn bytes_a(&self, lines: u32) -> u32 {
        let [line, most] = self.boxes[0].extent;
        let tile = self.tile[0] * super::K as u32 * size_of::<T>() as u32;
        tile / (line * most) * (line * lines)
    }
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! k_major {
    (KMajor) => {
        true
    };
    (MnMajor) => {
        false
    };
}

/// Instances of an element type: `name = consumers * tile of C, stages, blocks of a cluster
/// (rows x columns), major of A, major of B`.
macro_rules! instances {
    ($(#[$list_doc:meta])* $list:ident of $element:ty:
        $($name:ident = $consumers:literal * $m:literal x $n:literal, $stages:literal,
            $rows:literal x $columns:literal, $a:ident, $b:ident;)+
    ) => {
        $(
            #[doc = concat!($consumers, " consumers, a tile of ", $m, "×", $n, ", ", $stages,
                " stages, clusters of ", $rows, "×", $columns, ", A ", stringify!($a), ", B ",
                stringify!($b), ".")]
            pub mod $name {
                use super::*;

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($element), ".")]
                    #[kernel(threads = 128 * (1 + $consumers), min_blocks = 1,
                        cluster = $rows * $columns, shared = shared_bytes($m, $n, $stages, $consumers),
                        arch = "sm_90a")]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<$element>,
                        workspace: GlobalMut<f32>,
                        problem: Problem,
                        epilogue: Scale,
                    ) = gemm::<$element, $a, $b, Scale, $m, $n, $stages, $rows, $columns,
                        { $rows * $columns }, $consumers>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$element>] = &[$(
            Instance {
                kernel: &$name::$name,
                k_major: [k_major!($a), k_major!($b)],
                tile: [$m, $n],
                cluster: [$rows, $columns],
                alternate: $m == 64 && $consumers == 2,
                boxes: [
                    box_a::<$element, $a, $m>($columns),
                    box_b::<$element, $b, $n>($rows),
                    box_c::<$element>(),
                ],
            },
        )+];
    };
}

instances! {
    /// Instances for bf16.
    BF16 of half::bf16:
        bf16_2x128x256_c2_kk = 2 * 128 x 256, 4, 2 x 1, KMajor, KMajor;
        bf16_2x128x256_c1_kk = 2 * 128 x 256, 4, 1 x 1, KMajor, KMajor;
        bf16_2x128x224_c2_kk = 2 * 128 x 224, 4, 2 x 1, KMajor, KMajor;
        bf16_2x128x160_c1_kk = 2 * 128 x 160, 5, 1 x 1, KMajor, KMajor;
        bf16_2x128x128_c2_kk = 2 * 128 x 128, 6, 2 x 1, KMajor, KMajor;
        bf16_1x64x128_c1_kk = 1 * 64 x 128, 8, 1 x 1, KMajor, KMajor;
        bf16_1x64x128_c2_kk = 1 * 64 x 128, 8, 2 x 1, KMajor, KMajor;
        bf16_1x64x64_c1_kk = 1 * 64 x 64, 12, 1 x 1, KMajor, KMajor;
        bf16_2x64x256_c2_kk = 2 * 64 x 256, 4, 2 x 1, KMajor, KMajor;
        bf16_2x64x224_c2_kk = 2 * 64 x 224, 5, 2 x 1, KMajor, KMajor;
        bf16_2x128x256_c2_km = 2 * 128 x 256, 4, 2 x 1, KMajor, MnMajor;
        bf16_2x128x128_c2_km = 2 * 128 x 128, 6, 2 x 1, KMajor, MnMajor;
        bf16_1x64x128_c1_km = 1 * 64 x 128, 8, 1 x 1, KMajor, MnMajor;
        bf16_1x64x64_c1_km = 1 * 64 x 64, 12, 1 x 1, KMajor, MnMajor;
        bf16_2x128x256_c2_mk = 2 * 128 x 256, 4, 2 x 1, MnMajor, KMajor;
        bf16_2x128x128_c2_mk = 2 * 128 x 128, 6, 2 x 1, MnMajor, KMajor;
        bf16_1x64x128_c1_mk = 1 * 64 x 128, 8, 1 x 1, MnMajor, KMajor;
        bf16_1x64x64_c1_mk = 1 * 64 x 64, 12, 1 x 1, MnMajor, KMajor;
        bf16_2x128x256_c2_mm = 2 * 128 x 256, 4, 2 x 1, MnMajor, MnMajor;
        bf16_2x128x128_c2_mm = 2 * 128 x 128, 6, 2 x 1, MnMajor, MnMajor;
        bf16_1x64x128_c1_mm = 1 * 64 x 128, 8, 1 x 1, MnMajor, MnMajor;
        bf16_1x64x64_c1_mm = 1 * 64 x 64, 12, 1 x 1, MnMajor, MnMajor;
}
instances! {
    /// Instances for f16.
    F16 of half::f16:
        f16_2x128x256_c2_kk = 2 * 128 x 256, 4, 2 x 1, KMajor, KMajor;
        f16_2x128x256_c1_kk = 2 * 128 x 256, 4, 1 x 1, KMajor, KMajor;
        f16_2x128x224_c2_kk = 2 * 128 x 224, 4, 2 x 1, KMajor, KMajor;
        f16_2x128x160_c1_kk = 2 * 128 x 160, 5, 1 x 1, KMajor, KMajor;
        f16_2x128x128_c2_kk = 2 * 128 x 128, 6, 2 x 1, KMajor, KMajor;
        f16_1x64x128_c1_kk = 1 * 64 x 128, 8, 1 x 1, KMajor, KMajor;
        f16_1x64x128_c2_kk = 1 * 64 x 128, 8, 2 x 1, KMajor, KMajor;
        f16_1x64x64_c1_kk = 1 * 64 x 64, 12, 1 x 1, KMajor, KMajor;
        f16_2x64x256_c2_kk = 2 * 64 x 256, 4, 2 x 1, KMajor, KMajor;
        f16_2x64x224_c2_kk = 2 * 64 x 224, 5, 2 x 1, KMajor, KMajor;
        f16_2x128x256_c2_km = 2 * 128 x 256, 4, 2 x 1, KMajor, MnMajor;
        f16_2x128x128_c2_km = 2 * 128 x 128, 6, 2 x 1, KMajor, MnMajor;
        f16_1x64x128_c1_km = 1 * 64 x 128, 8, 1 x 1, KMajor, MnMajor;
        f16_1x64x64_c1_km = 1 * 64 x 64, 12, 1 x 1, KMajor, MnMajor;
        f16_2x128x256_c2_mk = 2 * 128 x 256, 4, 2 x 1, MnMajor, KMajor;
        f16_2x128x128_c2_mk = 2 * 128 x 128, 6, 2 x 1, MnMajor, KMajor;
        f16_1x64x128_c1_mk = 1 * 64 x 128, 8, 1 x 1, MnMajor, KMajor;
        f16_1x64x64_c1_mk = 1 * 64 x 64, 12, 1 x 1, MnMajor, KMajor;
        f16_2x128x256_c2_mm = 2 * 128 x 256, 4, 2 x 1, MnMajor, MnMajor;
        f16_2x128x128_c2_mm = 2 * 128 x 128, 6, 2 x 1, MnMajor, MnMajor;
        f16_1x64x128_c1_mm = 1 * 64 x 128, 8, 1 x 1, MnMajor, MnMajor;
        f16_1x64x64_c1_mm = 1 * 64 x 64, 12, 1 x 1, MnMajor, MnMajor;
}
