use cutlet_device::{SharedArray, kernel};

#[kernel(threads = 32, shared = 256)]
fn counted_too(#[shared] tile: SharedArray<f32, 64>) {
    let _ = tile;
}

#[kernel(threads = 32)]
fn no_storage(#[shared] tile: [f32; 64]) {
    let _ = tile;
}

#[kernel(threads = 32)]
fn too_much(#[shared] tile: SharedArray<f32, 65536>) {
    let _ = tile;
}

fn main() {}
