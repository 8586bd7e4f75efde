//! What every operation does with its operands: memory that is bound to another stream is refused, elements without
//! bytes are no work, and the leading dimension of a single row is free. On a GPU if there is one.

use crate::batches::batch;
use crate::by_kernel::by_kernel;
use cutlet::{
    Bags, Buffer, Device, DeviceTensor, EmbeddingBag, Error, Gather, Gemm, IndexedRows, Matrix,
    MatrixMut, MoeRows, Order, OutOfRange, Pooling, RouterWeights, Scatter, ScatterAdd, Stream,
    TakeAlongDim, Tensor, TensorMut, embedding_bag, gather, gemm, layout, permute, scatter, swiglu,
    top_k,
};
use half::bf16;

/// Expects the error for memory of another stream, which names the operand.
fn is_refused(result: cutlet::Result<()>, operand: &str) {
    let error = result.expect_err(operand);
    assert!(
        matches!(error, Error::Host(cutlet_host::Error::WrongStream { .. })),
        "{operand}: {error}"
    );
    let said = error.to_string();
    assert!(said.contains(operand), "{operand}: {said}");
}

/// Two streams of a device, and indices in scratch memory of the first.
fn streams() -> (Stream, Stream) {
    let device = Device::auto();
    (device.stream().unwrap(), device.stream().unwrap())
}

#[test]
fn indices_of_another_stream_are_refused() {
    let (home, stream) = streams();
    let mut indices = home.scratch::<i64>(2).unwrap();
    home.copy_from_host(&[0, 1], indices.view_mut()).unwrap();
    let indices = indices.view();
    let table = stream.upload(&[1.0f32, 2.0]).unwrap();
    let table = Matrix::row_major(&table, 2, 1).unwrap();
    let mut output = stream.zeroed::<f32>(2).unwrap();
    is_refused(
        gather(&stream, table, indices, column(&mut output)),
        "the indices",
    );
    is_refused(
        scatter(&stream, table, indices, column(&mut output)),
        "the indices",
    );
    let mut add = ScatterAdd::new(stream.device()).unwrap();
    is_refused(
        add.enqueue(&stream, table, indices, column(&mut output)),
        "the indices",
    );
    let bags = Bags::of_len(1);
    let sum = Pooling::Sum;
    let pooled = embedding_bag(&stream, sum, table, indices, bags, column(&mut output));
    is_refused(pooled, "the indices");
    let one = stream.upload(&[1.0f32]).unwrap();
    let one = Matrix::row_major(&one, 1, 1).unwrap();
    let rows = IndexedRows::new(stream.device()).unwrap();
    let named = || rows.by(indices).unwrap();
    let mut gathered = Gemm::new(table, one, column(&mut output)).gather_a(named());
    is_refused(gathered.run(&stream), "the indices");
    let mut scattered = Gemm::new(table, one, column(&mut output)).scatter_c(named());
    is_refused(scattered.run(&stream), "the indices");
    let mut moe = MoeRows::new(stream.device(), 2, 1, 2).unwrap();
    is_refused(moe.route(&stream, indices), "the choices");
    let elements = DeviceTensor::upload(&stream, &[1.0f32, 2.0], [2]).unwrap();
    let mut output = DeviceTensor::<f32>::zeroed(&stream, [2]).unwrap();
    let indices = Tensor::new(indices, [2]).unwrap();
    let mut taken = TakeAlongDim::new(stream.device()).unwrap();
    is_refused(
        taken.enqueue(&stream, &elements, 0, indices, &mut output),
        "the indices",
    );
}

/// A matrix of two rows and a column.
fn column(elements: &mut Buffer<f32>) -> MatrixMut<'_, f32> {
    MatrixMut::row_major(elements, 2, 1).unwrap()
}

#[test]
fn offsets_and_weights_of_another_stream_are_refused() {
    let (home, stream) = streams();
    let mut offsets = home.scratch::<i32>(3).unwrap();
    home.copy_from_host(&[0, 1, 2], offsets.view_mut()).unwrap();
    let mut weights = home.scratch::<f32>(2).unwrap();
    home.copy_from_host(&[1.0, 1.0], weights.view_mut())
        .unwrap();
    let table = stream.upload(&[1.0f32, 2.0]).unwrap();
    let table = Matrix::row_major(&table, 2, 1).unwrap();
    let indices = stream.upload(&[0i32, 1]).unwrap();
    let mut output = stream.zeroed::<f32>(2).unwrap();
    let mut plan = EmbeddingBag::new(stream.device(), Pooling::Sum).unwrap();
    let bags = Bags::from_offsets(offsets.view()).unwrap();
    is_refused(
        plan.enqueue(&stream, table, &indices, bags, column(&mut output)),
        "the offsets",
    );
    let bags = Bags::of_len(1);
    let weighted = plan.enqueue_weighted(
        &stream,
        table,
        &indices,
        weights.view(),
        bags,
        column(&mut output),
    );
    is_refused(weighted, "the weights");
}

/// An element without bytes.
type Nothing = [u32; 0];

fn rows(elements: &mut Buffer<Nothing>) -> MatrixMut<'_, Nothing> {
    MatrixMut::row_major(elements, 3, 2).unwrap()
}

#[test]
fn elements_without_bytes_are_no_work() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.upload(&[[]; 6] as &[Nothing; 6]).unwrap();
    let mut destination = stream.zeroed::<Nothing>(6).unwrap();
    let by_rows = Tensor::new(&source, [2, 3]).unwrap();
    for layout in [layout!((2, 3):(1, 2)), layout!((2, 3):(3, 1))] {
        let to = TensorMut::new(&mut destination, layout).unwrap();
        permute(&stream, by_rows, to).unwrap();
    }
    // The layouts are still checked.
    assert!(TensorMut::new(&mut destination, layout!((2, 3):(3, 4))).is_err());

    let table = Matrix::row_major(&source, 3, 2).unwrap();
    let indices = stream.upload(&[2i32, 0, 1]).unwrap();
    gather(&stream, table, &indices, rows(&mut destination)).unwrap();
    scatter(&stream, table, &indices, rows(&mut destination)).unwrap();
    let mut moe = MoeRows::new(stream.device(), 3, 1, 3).unwrap();
    moe.route(&stream, &indices).unwrap();
    moe.permute(&stream, table, rows(&mut destination)).unwrap();
    assert_eq!(stream.download(&destination).unwrap().len(), 6);
}

/// The largest leading dimension, and one that no whole vectors fit in.
const FREE: [usize; 2] = [usize::MAX, 9];

fn row_of(elements: &mut Buffer<f32>, columns: usize, ld: usize) -> MatrixMut<'_, f32> {
    MatrixMut::with_ld(elements, 1, columns, Order::RowMajor, ld).unwrap()
}

#[test]
fn a_single_row_has_any_leading_dimension() {
    let stream = Device::auto().stream().unwrap();
    let eight = stream
        .upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        .unwrap();
    let zero = stream.upload(&[0i32]).unwrap();
    for ld in FREE {
        let row = Matrix::with_ld(&eight, 1, 8, Order::RowMajor, ld).unwrap();
        let mut output = stream.zeroed::<f32>(8).unwrap();
        let skip = OutOfRange::Skip;
        let mut plan = Gather::new(stream.device()).unwrap().out_of_range(skip);
        plan.enqueue(&stream, row, &zero, row_of(&mut output, 8, ld))
            .unwrap();
        let mut plan = Scatter::new(stream.device()).unwrap();
        plan.enqueue(&stream, row, &zero, row_of(&mut output, 8, ld))
            .unwrap();
        let bags = Bags::of_len(1);
        embedding_bag(
            &stream,
            Pooling::Sum,
            row,
            &zero,
            bags,
            row_of(&mut output, 8, ld),
        )
        .unwrap();
        swiglu(&stream, row, row_of(&mut output, 4, ld)).unwrap();
        let mut choices = stream.zeroed::<i32>(2).unwrap();
        let choices = MatrixMut::with_ld(&mut choices, 1, 2, Order::RowMajor, ld).unwrap();
        top_k(
            &stream,
            row,
            RouterWeights::Softmax,
            choices,
            row_of(&mut output, 2, ld),
        )
        .unwrap();
    }
}

/// Products with A, B or C of a single row, which TMA reads and stores.
#[test]
fn products_of_a_single_row_have_any_leading_dimension() {
    let stream = Device::auto().stream().unwrap();
    let [n, k] = [16, 8];
    let ones = stream.upload(&vec![bf16::ONE; n * k]).unwrap();
    let b = Matrix::col_major(&ones, k, n).unwrap();
    let zero = stream.upload(&[0i32]).unwrap();
    let end = stream.upload(&[1i32]).unwrap();
    for ld in [usize::MAX, 17] {
        let a = Matrix::with_ld(&ones, 1, k, Order::RowMajor, ld).unwrap();
        let rows = IndexedRows::new(stream.device()).unwrap();
        let named = || rows.by(&zero).unwrap();
        let groups = batch(&ones, 1, k, n, Order::ColMajor);
        for (kernel, way) in [
            (None, 0),
            (None, 1),
            (Some("bf16_grouped_128x128x64_1x1_coop"), 1),
            (None, 2),
            (Some("bf16_gathered_128x128x64_1x1_coop"), 2),
            (None, 3),
            (Some("bf16_scattered_128x128x64_1x1_coop"), 3),
            (None, 4),
        ] {
            let mut c = stream.zeroed::<bf16>(n).unwrap();
            let of_c = MatrixMut::with_ld(&mut c, 1, n, Order::RowMajor, ld).unwrap();
            let gemm = match way {
                0 => Gemm::new(a, b, of_c),
                1 => Gemm::new(a, groups, of_c).group_ends(&end),
                2 => Gemm::new(a, b, of_c).gather_a(named()),
                3 => Gemm::new(a, b, of_c).scatter_c(named()),
                _ => {
                    let residual = Matrix::with_ld(&ones, 1, n, Order::RowMajor, ld).unwrap();
                    Gemm::new(a, b, of_c).residual(residual)
                }
            };
            let result = by_kernel(kernel, gemm).run(&stream);
            result.unwrap_or_else(|error| panic!("{kernel:?} {way} {ld}: {error}"));
            // The residual has ones.
            let expected = if way == 4 { k + 1 } else { k };
            assert_eq!(
                stream.download(&c).unwrap(),
                vec![bf16::from_f32(expected as f32); n],
                "{kernel:?} {way} {ld}"
            );
        }
        // A gated product, whose B is a single row as well.
        let b = Matrix::with_ld(&ones, 1, n, Order::RowMajor, ld).unwrap();
        let a = Matrix::with_ld(&ones, 1, 1, Order::RowMajor, ld).unwrap();
        let mut c = stream.zeroed::<bf16>(n / 2).unwrap();
        let of_c = MatrixMut::with_ld(&mut c, 1, n / 2, Order::RowMajor, ld).unwrap();
        Gemm::new(a, b, of_c).swiglu().run(&stream).unwrap();
        let half = stream.download(&c).unwrap();
        assert!(
            half.iter().all(|it| (it.to_f32() - 0.731).abs() < 0.01),
            "{half:?}"
        );
    }
}

/// Strides of modes of one element.
#[test]
fn a_stride_that_is_not_taken_is_free() {
    let stream = Device::auto().stream().unwrap();
    let a = stream.upload(&[1.0f32, 2.0]).unwrap();
    let a = Tensor::new(&a, layout!((2, 1, 1):(1, 99, 98))).unwrap();
    let b = stream.upload(&[3.0f32, 4.0]).unwrap();
    let b = Tensor::new(&b, layout!((1, 2, 1):(97, 1, 96))).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 2, 1):(2, 1, 95))).unwrap();
    gemm(&stream, 1.0, a, b, 0.0, &mut c).unwrap();
    assert_eq!(c.download(&stream).unwrap(), [3.0, 4.0, 6.0, 8.0]);
}
