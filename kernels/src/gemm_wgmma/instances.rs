//! The instances of gemm_wgmma that the library launches, each in a module of its own, so that a
//! first launch compiles one kernel. Those that end in an activation's name, or in `linear`, do what
//! a linear layer asks for.
//!
//! A name says the type, the consumers and whether they are together (`x`) or take turns (`t`), the
//! tile, the cluster, and the majors of A and B: `bf16_2x128x256_c2_kk`. `c2` and `c4` are two and four
//! blocks one below the other, `r2` and `r4` as many side by side, `c2r2` two rows of two, `d2` two at the same tile; `c1`
//! is no cluster. A third major is that of C where its columns are consecutive: `bf16_2x128x160_c1_kkm` computes
//! `Cᵀ = Bᵀ·Aᵀ`, so that the tile's 160 are rows of a row-major C.
//!
//! Those for f16 have the same PTX as those for bf16 but for the format's name, and are not compiled: `also` has
//! their texts made. A build with `CUTLET_EACH_FORMAT=1` compiles them, and fails where they differ by more. GELU is
//! compiled for both: it is computed by less where bf16 rounds the rest away.

use cutlet_device::hopper::{KMajor, MnMajor, TensorMap};
use cutlet_device::{GlobalMut, instantiate};

#[cfg(not(target_arch = "nvptx64"))]
use cutlet_device::hopper::Major;

use super::{
    AtLeast, Gelu, GeluForBf16, Linear, Problem, Scale, Silu, Then, gemm, piece_columns,
    piece_span, shared_bytes,
};
#[cfg(not(target_arch = "nvptx64"))]
use super::{Instance, box_a, box_b, box_c, columns_on_their_way, fixes_up, leaves_sums};

/// Consumers at a tile of those that are at it together.
const fn together(consumers: usize) -> usize {
    consumers
}

/// Consumers at a tile of those that take turns.
const fn turns(_: usize) -> usize {
    1
}

/// The instances of both element types: `name for bf16, name for f16 = consumers, whether they are
/// together at a tile or take turns, tile of C, stages, blocks of a cluster (rows x columns x those at
/// the same tile), major of A, major of B`, and of C if its columns are consecutive.
macro_rules! instances {
    ($($bf16:ident, $f16:ident = $shape:tt;)+) => {
        instances_of! {
            /// Instances for bf16.
            BF16 of half::bf16, Scale, compiled if true, also ["f16 for bf16"]: $($bf16 = $shape;)+
        }
        instances_of! {
            /// Instances for f16.
            F16 of half::f16, Scale, compiled if each_format, also []: $($f16 = $shape;)+
        }
    };
    (fused $activation:ident, $list_bf16:ident, $list_f16:ident:
        $($bf16:ident, $f16:ident = $shape:tt;)+) => {
        instances_of! {
            #[doc = concat!("Instances for bf16 that fuse [`Linear`] and [`", stringify!($activation), "`].")]
            $list_bf16 of half::bf16, Then<Linear<half::bf16>, $activation>, compiled if true,
                also ["f16 for bf16"]: $($bf16 = $shape;)+
        }
        instances_of! {
            #[doc = concat!("Instances for f16 that fuse [`Linear`] and [`", stringify!($activation), "`].")]
            $list_f16 of half::f16, Then<Linear<half::f16>, $activation>, compiled if each_format,
                also []: $($f16 = $shape;)+
        }
    };
    (fused $for_bf16:ident or $for_f16:ident, $list_bf16:ident, $list_f16:ident:
        $($bf16:ident, $f16:ident = $shape:tt;)+) => {
        instances_of! {
            #[doc = concat!("Instances for bf16 that fuse [`Linear`] and [`", stringify!($for_bf16), "`].")]
            $list_bf16 of half::bf16, Then<Linear<half::bf16>, $for_bf16>, compiled if true, also []:
                $($bf16 = $shape;)+
        }
        instances_of! {
            #[doc = concat!("Instances for f16 that fuse [`Linear`] and [`", stringify!($for_f16), "`].")]
            $list_f16 of half::f16, Then<Linear<half::f16>, $for_f16>, compiled if true, also []:
                $($f16 = $shape;)+
        }
    };
}

/// What is consecutive in C where an instance does not say it: its rows.
macro_rules! major_of_c {
    () => {
        KMajor
    };
    ($major:ident) => {
        $major
    };
}

/// Instances of an element type with an epilogue; under which condition they are compiled for the GPU, and which
/// others are made of their PTX.
macro_rules! instances_of {
    ($(#[$list_doc:meta])* $list:ident of $element:ty, $epilogue:ty, compiled if $condition:tt, also $also:tt:
        $($name:ident = ($consumers:literal $how:ident $m:literal x $n:literal, $stages:literal,
            $rows:literal x $columns:literal x $depth:literal, $a:ident, $b:ident $(, $c:ident)?);)+
    ) => {
        $(
            #[doc = concat!($consumers, " consumers ", stringify!($how), ", a tile of ", $m, "×", $n, ", ", $stages,
                " stages, clusters of ", $rows, "×", $columns, "×", $depth, ", A ", stringify!($a), ", B ",
                stringify!($b), $(", C ", stringify!($c),)? ".")]
            #[cfg(any(not(target_arch = "nvptx64"), $condition))]
            pub mod $name {
                use super::*;

                pub(super) type C = major_of_c!($($c)?);

                instantiate! {
                    #[doc = concat!("The kernel: ", stringify!($element), ".")]
                    #[kernel(threads = 128 * (1 + $consumers), min_blocks = 1,
                        cluster = $rows * $columns * $depth,
                        shared = shared_bytes($m, $n, $stages, $consumers, $depth),
                        arch = "sm_90a", also = $also)]
                    pub unsafe fn $name(
                        #[grid_constant] map_a: &TensorMap,
                        #[grid_constant] map_b: &TensorMap,
                        #[grid_constant] map_c: &TensorMap,
                        c: GlobalMut<$element>,
                        workspace: GlobalMut<f32>,
                        problem: Problem,
                        epilogue: $epilogue,
                    ) = gemm::<$element, $a, $b, C, $epilogue, $m, $n, $stages, $rows, $columns,
                        { $rows * $columns }, $depth, $consumers, { $m / 64 / $how($consumers) },
                        { piece_columns($n) }, { piece_span::<C>(piece_columns($n)) }>;
                }
            }
        )+

        $(#[$list_doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        pub static $list: &[Instance<$element, $epilogue>] = &{
            #[allow(non_camel_case_types)]
            enum Nth { $($name,)+ }
            [$(Instance {
                nth: Nth::$name as usize,
                kernel: &$name::$name,
                k_major: [$a::K_IS_CONSECUTIVE, $b::K_IS_CONSECUTIVE],
                tile: [$m, $n],
                cluster: [$rows, $columns],
                depth: $depth,
                consumers: $consumers,
                alternate: $consumers > $how($consumers),
                overwrites_only: $m / 64 / $how($consumers) > 1 || !$name::C::K_IS_CONSECUTIVE,
                pieces_under_way: columns_on_their_way($m, $n, $stages, $consumers, $depth) / piece_columns($n),
                leaves_sums: leaves_sums::<$epilogue>(),
                fixes_up: fixes_up::<$epilogue>($n, $m / 64 / $how($consumers), $depth),
                transposed: !$name::C::K_IS_CONSECUTIVE,
                boxes: [
                    box_a::<$element, $a, $m>($columns),
                    box_b::<$element, $b, $n>($rows),
                    box_c::<$element, $name::C, { piece_columns($n) }, { piece_span::<$name::C>(piece_columns($n)) }>(),
                ],
            },)+]
        };
    };
}

instances! {
    bf16_2x128x256_c2_kk, f16_2x128x256_c2_kk = (2 together 128 x 256, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_2x128x256_c1_kk, f16_2x128x256_c1_kk = (2 together 128 x 256, 4, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x224_c2_kk, f16_2x128x224_c2_kk = (2 together 128 x 224, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_2x256x192_r2_kk, f16_2x256x192_r2_kk = (2 together 256 x 192, 3, 1 x 2 x 1, KMajor, KMajor);
    bf16_2x256x160_r2_kk, f16_2x256x160_r2_kk = (2 together 256 x 160, 4, 1 x 2 x 1, KMajor, KMajor);
    bf16_3x192x192_r2_kk, f16_3x192x192_r2_kk = (3 together 192 x 192, 4, 1 x 2 x 1, KMajor, KMajor);
    bf16_2t128x192_c2_kk, f16_2t128x192_c2_kk = (2 turns 128 x 192, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_2t128x176_c2_kk, f16_2t128x176_c2_kk = (2 turns 128 x 176, 5, 2 x 1 x 1, KMajor, KMajor);
    bf16_2t128x160_c2_kk, f16_2t128x160_c2_kk = (2 turns 128 x 160, 5, 2 x 1 x 1, KMajor, KMajor);
    bf16_2t128x128_c2_kk, f16_2t128x128_c2_kk = (2 turns 128 x 128, 6, 2 x 1 x 1, KMajor, KMajor);
    bf16_2t128x96_c2_kk, f16_2t128x96_c2_kk = (2 turns 128 x 96, 6, 2 x 1 x 1, KMajor, KMajor);
    bf16_2t64x224_c2_kk, f16_2t64x224_c2_kk = (2 turns 64 x 224, 5, 2 x 1 x 1, KMajor, KMajor);
    bf16_2x128x208_c1_kk, f16_2x128x208_c1_kk = (2 together 128 x 208, 4, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x176_c1_kk, f16_2x128x176_c1_kk = (2 together 128 x 176, 5, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x144_c1_kk, f16_2x128x144_c1_kk = (2 together 128 x 144, 5, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x128_c1_kk, f16_2x128x128_c1_kk = (2 together 128 x 128, 6, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x112_c1_kk, f16_2x128x112_c1_kk = (2 together 128 x 112, 6, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x128_d2_kk, f16_2x128x128_d2_kk = (2 together 128 x 128, 5, 1 x 1 x 2, KMajor, KMajor);
    bf16_1x64x160_c2_kk, f16_1x64x160_c2_kk = (1 together 64 x 160, 7, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c2_kk, f16_1x64x128_c2_kk = (1 together 64 x 128, 8, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x96_c2_kk, f16_1x64x96_c2_kk = (1 together 64 x 96, 10, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x64_c2_kk, f16_1x64x64_c2_kk = (1 together 64 x 64, 12, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x144_c1_kk, f16_1x64x144_c1_kk = (1 together 64 x 144, 8, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c1_kk, f16_1x64x128_c1_kk = (1 together 64 x 128, 8, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x160_c4_kk, f16_1x64x160_c4_kk = (1 together 64 x 160, 6, 4 x 1 x 1, KMajor, KMajor);
    bf16_1x64x96_c4_kk, f16_1x64x96_c4_kk = (1 together 64 x 96, 10, 4 x 1 x 1, KMajor, KMajor);
    bf16_1x64x96_c2r2_kk, f16_1x64x96_c2r2_kk = (1 together 64 x 96, 10, 2 x 2 x 1, KMajor, KMajor);
    bf16_1x64x80_c2r2_kk, f16_1x64x80_c2r2_kk = (1 together 64 x 80, 10, 2 x 2 x 1, KMajor, KMajor);
    bf16_1x64x80_r4_kk, f16_1x64x80_r4_kk = (1 together 64 x 80, 10, 1 x 4 x 1, KMajor, KMajor);
    bf16_1x64x112_c1_kk, f16_1x64x112_c1_kk = (1 together 64 x 112, 9, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x96_c1_kk, f16_1x64x96_c1_kk = (1 together 64 x 96, 10, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x80_c1_kk, f16_1x64x80_c1_kk = (1 together 64 x 80, 10, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x64_c1_kk, f16_1x64x64_c1_kk = (1 together 64 x 64, 12, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x48_c1_kk, f16_1x64x48_c1_kk = (1 together 64 x 48, 14, 1 x 1 x 1, KMajor, KMajor);
    bf16_1x64x32_c1_kk, f16_1x64x32_c1_kk = (1 together 64 x 32, 16, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x256x160_r2_kkm, f16_2x256x160_r2_kkm = (2 together 256 x 160, 4, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x256x144_c2_kkm, f16_2x256x144_c2_kkm = (2 together 256 x 144, 4, 2 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x256x88_c1_kkm, f16_2x256x88_c1_kkm = (2 together 256 x 88, 4, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_3x192x160_r2_kkm, f16_3x192x160_r2_kkm = (3 together 192 x 160, 4, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x208_c1_kkm, f16_2x128x208_c1_kkm = (2 together 128 x 208, 5, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x192_c1_kkm, f16_2x128x192_c1_kkm = (2 together 128 x 192, 4, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x176_c1_kkm, f16_2x128x176_c1_kkm = (2 together 128 x 176, 5, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x160_c1_kkm, f16_2x128x160_c1_kkm = (2 together 128 x 160, 5, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x112_c1_kkm, f16_2x128x112_c1_kkm = (2 together 128 x 112, 6, 1 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x104_c4_kkm, f16_2x128x104_c4_kkm = (2 together 128 x 104, 6, 4 x 1 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x144_r2_kkm, f16_2x128x144_r2_kkm = (2 together 128 x 144, 5, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x112_r2_kkm, f16_2x128x112_r2_kkm = (2 together 128 x 112, 6, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x96_r2_kkm, f16_2x128x96_r2_kkm = (2 together 128 x 96, 6, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x88_r2_kkm, f16_2x128x88_r2_kkm = (2 together 128 x 88, 7, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x80_r2_kkm, f16_2x128x80_r2_kkm = (2 together 128 x 80, 7, 1 x 2 x 1, KMajor, KMajor, MnMajor);
    bf16_2x128x160_d2_kkm, f16_2x128x160_d2_kkm = (2 together 128 x 160, 4, 1 x 1 x 2, KMajor, KMajor, MnMajor);
    bf16_2x128x256_c2_km, f16_2x128x256_c2_km = (2 together 128 x 256, 4, 2 x 1 x 1, KMajor, MnMajor);
    bf16_2t128x128_c2_km, f16_2t128x128_c2_km = (2 turns 128 x 128, 6, 2 x 1 x 1, KMajor, MnMajor);
    bf16_1x64x128_c1_km, f16_1x64x128_c1_km = (1 together 64 x 128, 8, 1 x 1 x 1, KMajor, MnMajor);
    bf16_1x64x64_c1_km, f16_1x64x64_c1_km = (1 together 64 x 64, 12, 1 x 1 x 1, KMajor, MnMajor);
    bf16_2x128x256_c2_mk, f16_2x128x256_c2_mk = (2 together 128 x 256, 4, 2 x 1 x 1, MnMajor, KMajor);
    bf16_2t128x128_c2_mk, f16_2t128x128_c2_mk = (2 turns 128 x 128, 6, 2 x 1 x 1, MnMajor, KMajor);
    bf16_1x64x128_c1_mk, f16_1x64x128_c1_mk = (1 together 64 x 128, 8, 1 x 1 x 1, MnMajor, KMajor);
    bf16_1x64x64_c1_mk, f16_1x64x64_c1_mk = (1 together 64 x 64, 12, 1 x 1 x 1, MnMajor, KMajor);
    bf16_2x128x256_c2_mm, f16_2x128x256_c2_mm = (2 together 128 x 256, 4, 2 x 1 x 1, MnMajor, MnMajor);
    bf16_2t128x128_c2_mm, f16_2t128x128_c2_mm = (2 turns 128 x 128, 6, 2 x 1 x 1, MnMajor, MnMajor);
    bf16_1x64x128_c1_mm, f16_1x64x128_c1_mm = (1 together 64 x 128, 8, 1 x 1 x 1, MnMajor, MnMajor);
    bf16_1x64x64_c1_mm, f16_1x64x64_c1_mm = (1 together 64 x 64, 12, 1 x 1 x 1, MnMajor, MnMajor);
}

instances! {
    fused AtLeast, LINEAR_BF16, LINEAR_F16:
    bf16_2x128x256_c2_kk_linear, f16_2x128x256_c2_kk_linear = (2 together 128 x 256, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c1_kk_linear, f16_1x64x128_c1_kk_linear = (1 together 64 x 128, 8, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x128_c2_kk_linear, f16_2x128x128_c2_kk_linear = (2 together 128 x 128, 6, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x160_c2_kk_linear, f16_1x64x160_c2_kk_linear = (1 together 64 x 160, 7, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c2_kk_linear, f16_1x64x128_c2_kk_linear = (1 together 64 x 128, 8, 2 x 1 x 1, KMajor, KMajor);
}

instances! {
    fused GeluForBf16 or Gelu, GELU_BF16, GELU_F16:
    bf16_2x128x256_c2_kk_gelu, f16_2x128x256_c2_kk_gelu = (2 together 128 x 256, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c1_kk_gelu, f16_1x64x128_c1_kk_gelu = (1 together 64 x 128, 8, 1 x 1 x 1, KMajor, KMajor);
    bf16_2x128x128_c2_kk_gelu, f16_2x128x128_c2_kk_gelu = (2 together 128 x 128, 6, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x160_c2_kk_gelu, f16_1x64x160_c2_kk_gelu = (1 together 64 x 160, 7, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c2_kk_gelu, f16_1x64x128_c2_kk_gelu = (1 together 64 x 128, 8, 2 x 1 x 1, KMajor, KMajor);
}

instances! {
    fused Silu, SILU_BF16, SILU_F16:
    bf16_2x128x256_c2_kk_silu, f16_2x128x256_c2_kk_silu = (2 together 128 x 256, 4, 2 x 1 x 1, KMajor, KMajor);
    bf16_1x64x128_c1_kk_silu, f16_1x64x128_c1_kk_silu = (1 together 64 x 128, 8, 1 x 1 x 1, KMajor, KMajor);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{format, vec::Vec};

    use super::*;
    use crate::PTX;

    /// The entries of the instances that have no text of their own format.
    fn without_text<T, E>(instances: &[Instance<T, E>]) -> Vec<&'static str> {
        let has_text = |instance: &&Instance<T, E>| {
            let kernel = instance.kernel;
            let format = match kernel.name().split('_').next() {
                Some("bf16") => ".f32.bf16.bf16",
                _ => ".f32.f16.f16",
            };
            let entry = format!(".entry {}(", kernel.name());
            PTX.family(kernel.family()).is_some_and(|family| {
                let mut texts = family.modules.iter().map(|module| module.ptx);
                texts.any(|text| text.contains(&entry) && text.contains(format))
            })
        };
        let missing = instances.iter().filter(|instance| !has_text(instance));
        missing.map(|instance| instance.kernel.name()).collect()
    }

    /// Some are compiled, and some are made of those.
    #[test]
    fn every_instance_has_a_text_of_its_format() {
        let none: [&str; 0] = [];
        assert_eq!(without_text(BF16), none);
        assert_eq!(without_text(F16), none);
        assert_eq!(without_text(LINEAR_BF16), none);
        assert_eq!(without_text(LINEAR_F16), none);
        assert_eq!(without_text(GELU_BF16), none);
        assert_eq!(without_text(GELU_F16), none);
        assert_eq!(without_text(SILU_BF16), none);
        assert_eq!(without_text(SILU_F16), none);
    }
}
