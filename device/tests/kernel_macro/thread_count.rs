#![allow(unused)]

use cutlet_device::{GlobalMut, ThreadGroup, ThreadIdx, Threads, instantiate, kernel, thread_idx};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv};

type Pairs = Tv<L!(128:2@1), L!(2:1@1)>;

// A function does not know which kernels call it.
fn clear(to: Tensor<GlobalMut<f32>, RowMajor>) {
    to.partition::<Pairs>(thread_idx()).store_with(|_| 0.0);
}

fn of_128_threads(thread: ThreadIdx<Threads<128>>) {}

#[kernel(threads = 64)]
fn of_64_threads() {
    of_128_threads(thread_idx());
}

instantiate! {
    #[kernel(threads = 256)]
    fn of_256_threads() = of_128_threads(thread_idx(), ..);
}

fn main() {}
