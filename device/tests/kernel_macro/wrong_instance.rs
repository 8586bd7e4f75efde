#![allow(unused)]

use cutlet_device::{GlobalMut, instantiate};

unsafe fn fill<const N: usize>(value: f32, y: GlobalMut<f32>) {
    for i in 0..N {
        unsafe { y.store(i as i64, value) };
    }
}

instantiate! {
    #[kernel(threads = 256)]
    fn safe(value: f32, y: GlobalMut<f32>) = fill::<4>;
}

instantiate! {
    #[kernel(threads = 256)]
    unsafe fn other_arguments(value: u32, y: GlobalMut<f32>) = fill::<4>;
}

instantiate! {
    #[kernel(threads = 256)]
    unsafe fn taken_apart([value]: [f32; 1], y: GlobalMut<f32>) = fill::<4>;
}

instantiate! {
    unsafe fn unbounded(value: f32, y: GlobalMut<f32>) = fill::<4>;
}

fn main() {}
