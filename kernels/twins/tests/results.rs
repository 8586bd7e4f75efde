//! A layout-driven kernel and its hand-indexed twin compute the same: a twin that does less is no measure.

use cutlet_device::{Global, GlobalMut, Kernel, PtxLibrary};
use cutlet_host::{Buffer, Device, Stream};

type Transpose = Kernel<(i32, i32, Global<f32>, i64, GlobalMut<f32>, i64)>;

/// Pseudorandom numbers from −1 to 1.
fn numbers(stream: &Stream, count: usize) -> Buffer<f32> {
    let number = |i: usize| (i as u32).wrapping_mul(2_654_435_769) as i32 as f32 / 2_147_483_648.0;
    stream
        .upload(&(0..count).map(number).collect::<Vec<_>>())
        .unwrap()
}

fn bits(stream: &Stream, buffer: &Buffer<f32>) -> Vec<u32> {
    let elements = stream.download(buffer).unwrap();
    elements.into_iter().map(f32::to_bits).collect()
}

/// The destination after `kernel`. It was filled with NaN before.
fn transposed(library: &'static PtxLibrary, kernel: &'static Transpose) -> Vec<u32> {
    let [rows, columns] = [130, 70];
    let (ld_source, ld_destination) = (columns + 3, rows + 5);
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(library, kernel).unwrap();
    let source = numbers(&stream, rows * ld_source);
    let mut destination = stream
        .filled::<f32>(columns * ld_destination, 0xff)
        .unwrap();
    let args = (
        rows as i32,
        columns as i32,
        &source,
        ld_source as i64,
        &mut destination,
        ld_destination as i64,
    );
    // SAFETY: the buffers are as large as the leading dimensions require. A tile is 64×64.
    unsafe { stream.launch(&function, (2, 3), args).unwrap() };
    bits(&stream, &destination)
}

#[test]
fn both_transposes_write_the_same() {
    let by_hand = transposed(&cutlet_twins::PTX, &cutlet_twins::transpose::transpose_f32);
    let by_layout = transposed(
        &cutlet_kernels::PTX,
        &cutlet_kernels::transpose::transpose_f32,
    );
    assert_eq!(by_hand, by_layout);
}
