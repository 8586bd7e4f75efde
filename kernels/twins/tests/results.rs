//! Layout-driven kernels and their hand-indexed twins compute the same: a twin that does less is no measure.

use cutlet_device::{Global, GlobalMut, Kernel, PtxLibrary};
use cutlet_host::{Buffer, Device, Stream};
use cutlet_twins::tiled_copy::{copy_by_hand, copy_by_layout};
use cutlet_twins::tiled_product::{product_by_hand, product_by_layout};
use half::bf16;

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

/// Pseudorandom numbers from −1 to 1.
fn halves(stream: &Stream, count: usize) -> Buffer<bf16> {
    let numbers = stream.download(&numbers(stream, count)).unwrap();
    let numbers: Vec<bf16> = numbers.into_iter().map(bf16::from_f32).collect();
    stream.upload(&numbers).unwrap()
}

type Copy = Kernel<(i32, i32, i64, Global<bf16>, GlobalMut<bf16>)>;

#[test]
fn both_copies_write_the_same() {
    let (rows, columns, ld) = (131, 72, 80);
    let stream = Device::cpu().stream().unwrap();
    let source = halves(&stream, rows * ld);
    let copied = |kernel: &'static Copy| {
        let function = stream.device().load(&cutlet_twins::PTX, kernel).unwrap();
        let mut destination = stream.filled::<bf16>(rows * ld, 0xff).unwrap();
        let args = (
            rows as i32,
            columns as i32,
            ld as i64,
            &source,
            &mut destination,
        );
        // SAFETY: the buffers have `rows` rows, `ld` apart. A tile is 64×64.
        unsafe { stream.launch(&function, (2, 3), args).unwrap() };
        stream.download(&destination).unwrap()
    };
    let by_hand = copied(&copy_by_hand);
    assert_eq!(
        by_hand.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        copied(&copy_by_layout)
            .iter()
            .map(|x| x.to_bits())
            .collect::<Vec<_>>()
    );
    let source = stream.download(&source).unwrap();
    for (i, (found, source)) in by_hand.iter().zip(source).enumerate() {
        let is_inside = i % ld < columns;
        assert_eq!(*found == source, is_inside, "({}, {})", i / ld, i % ld);
    }
}

type Product = Kernel<([i32; 3], Global<bf16>, Global<bf16>, GlobalMut<f32>)>;

#[test]
fn both_products_write_the_same() {
    let [m, n, k] = [70, 129, 72];
    let stream = Device::cpu().stream().unwrap();
    let (a, b) = (halves(&stream, m * k), halves(&stream, n * k));
    let product = |kernel: &'static Product| {
        let function = stream.device().load(&cutlet_twins::PTX, kernel).unwrap();
        let mut c = stream.filled::<f32>(m * n, 0xff).unwrap();
        let args = ([m, n, k].map(|x| x as i32), &a, &b, &mut c);
        // SAFETY: the buffers have the elements that the extents say. A tile is 64×64.
        unsafe { stream.launch(&function, (3, 2), args).unwrap() };
        bits(&stream, &c)
    };
    let by_hand = product(&product_by_hand);
    assert_eq!(by_hand, product(&product_by_layout));
    let (a, b) = (stream.download(&a).unwrap(), stream.download(&b).unwrap());
    for (i, found) in by_hand.into_iter().enumerate() {
        let (row, column) = (i / n, i % n);
        let of_row = |matrix: &[bf16], row: usize, x: usize| matrix[row * k + x].to_f32();
        let sum: f32 = (0..k)
            .map(|x| of_row(&a, row, x) * of_row(&b, column, x))
            .sum();
        let error = (f32::from_bits(found) - sum).abs();
        assert!(error < 1e-4, "({row}, {column}): {error}");
    }
}
