//! cast: elements of another type.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{Global, GlobalMut, instantiate, thread_idx};
use half::{bf16, f16};

use super::functions::Identity;
use super::map::{MapArgs, map1};
use super::{Warp4, Warp8, WarpAny};

macro_rules! instances {
    ($($name:ident $any:ident: $from:ty, $to:ty, $shape:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("`", stringify!($from), "` to `", stringify!($to), "`, of rows whose vectors are aligned.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(a: Global<$from>, output: GlobalMut<$to>, function: Identity, args: MapArgs)
                = map1::<$shape, Identity, _, _>(thread_idx(), ..);

            #[doc = concat!("`", stringify!($from), "` to `", stringify!($to), "`, of rows of any alignment.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $any(a: Global<$from>, output: GlobalMut<$to>, function: Identity, args: MapArgs)
                = map1::<WarpAny, Identity, _, _>(thread_idx(), ..);
        )+}
    };
}
instances! {
    cast_f32_f16 cast_f32_f16_any: f32, f16, Warp4;
    cast_f32_bf16 cast_f32_bf16_any: f32, bf16, Warp4;
    cast_f32_e4m3 cast_f32_e4m3_any: f32, F8E4M3, Warp4;
    cast_f16_f32 cast_f16_f32_any: f16, f32, Warp4;
    cast_f16_bf16 cast_f16_bf16_any: f16, bf16, Warp8;
    cast_f16_e4m3 cast_f16_e4m3_any: f16, F8E4M3, Warp8;
    cast_bf16_f32 cast_bf16_f32_any: bf16, f32, Warp4;
    cast_bf16_f16 cast_bf16_f16_any: bf16, f16, Warp8;
    cast_bf16_e4m3 cast_bf16_e4m3_any: bf16, F8E4M3, Warp8;
    cast_e4m3_f32 cast_e4m3_f32_any: F8E4M3, f32, Warp4;
    cast_e4m3_f16 cast_e4m3_f16_any: F8E4M3, f16, Warp8;
    cast_e4m3_bf16 cast_e4m3_bf16_any: F8E4M3, bf16, Warp8;
}
