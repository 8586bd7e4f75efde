//! What operations of two streams with the same operands need an order for. On the CPU: on a GPU, other tests use memory
//! by its address, which ends the search for uses without an order.

#![cfg(debug_assertions)]

use crate::batches::{batch, batch_mut};
use cutlet::{
    Buffer, Device, Error, Gather, Gemm, Matrix, MatrixMut, MoeRows, Order, Scatter, Stream,
    Tensor, TensorMut, gemm, layout, permute, swiglu,
};

fn two_streams() -> [Stream; 2] {
    [(); 2].map(|()| Device::cpu().stream().unwrap())
}

/// Elements that the host has waited for.
fn ones(stream: &Stream) -> Buffer<f32> {
    stream.upload(&[1.0; 16]).unwrap()
}

fn square(elements: &Buffer<f32>) -> Matrix<'_, f32> {
    Matrix::row_major(elements, 4, 4).unwrap()
}

fn square_mut(elements: &mut Buffer<f32>) -> MatrixMut<'_, f32> {
    MatrixMut::row_major(elements, 4, 4).unwrap()
}

fn product(
    stream: &Stream,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    c: &mut Buffer<f32>,
) -> cutlet::Result<()> {
    gemm(stream, 1.0, a, b, 0.0, square_mut(c))
}

#[track_caller]
fn is_refused(result: cutlet::Result<()>, operand: &str) {
    let error = result.expect_err(operand);
    let is_unordered = matches!(error, Error::Host(cutlet_host::Error::Unordered { .. }));
    let said = error.to_string();
    assert!(is_unordered && said.contains(operand), "{operand}: {said}");
}

#[test]
fn a_product_of_a_product_needs_an_order() {
    let [first, second] = two_streams();
    let (one, mut between, mut last) = (ones(&first), ones(&first), ones(&first));
    let one = square(&one);
    gemm(&first, 1.0, one, one, 0.0, square_mut(&mut between)).unwrap();
    is_refused(
        product(&second, square(&between), one, &mut last),
        "gemm: A or B (16 × f32)",
    );
    is_refused(
        product(&second, one, square(&between), &mut last),
        "gemm: A or B (16 × f32)",
    );
    let added = Gemm::new(one, one, square_mut(&mut last))
        .residual(square(&between))
        .run(&second);
    is_refused(added, "gemm: the residual");
    is_refused(product(&second, one, one, &mut between), "gemm: C");
    second.wait_for(&first).unwrap();
    product(&second, square(&between), one, &mut last).unwrap();
    assert_eq!(second.download(&last).unwrap(), [16.0; 16]);
}

#[test]
fn a_plan_uses_no_elements() {
    let [first, second] = two_streams();
    let (a, mut c) = (ones(&first), ones(&first));
    first.fill_bytes(&mut c, 0).unwrap();
    let mut product = Gemm::new(square(&a), square(&a), square_mut(&mut c));
    let plan = product.plan(&second).unwrap();
    is_refused(plan.run(&second, &mut product), "gemm: C");
    plan.run(&first, &mut product).unwrap();
}

/// As the heads of attention are, which lie side by side.
#[test]
fn columns_of_one_matrix_are_written_in_two_streams() {
    let [first, second] = two_streams();
    let (a, mut c) = (ones(&first), ones(&first));
    let b = Matrix::row_major(a.slice(..8).unwrap(), 4, 2).unwrap();
    for (stream, column) in [(&first, 0), (&second, 2)] {
        let columns = c.slice_mut(column..).unwrap();
        let columns = MatrixMut::with_ld(columns, 4, 2, Order::RowMajor, 4).unwrap();
        gemm(stream, 1.0, square(&a), b, 0.0, columns).unwrap();
    }
    is_refused(
        second.download(&c).map(drop).map_err(Error::Host),
        "the source",
    );
    first.synchronize().unwrap();
    assert_eq!(second.download(&c).unwrap(), [4.0; 16]);
}

#[test]
fn matrices_of_a_batch_need_an_order() {
    let [first, second] = two_streams();
    let (a, mut c) = (ones(&first), ones(&first));
    let of_a = batch(&a, 4, 2, 2, Order::RowMajor);
    fn of_c(c: &mut Buffer<f32>) -> TensorMut<'_, f32> {
        batch_mut(c, 4, 2, 2, Order::RowMajor)
    }
    gemm(&first, 1.0, of_a, of_a, 0.0, of_c(&mut c)).unwrap();
    is_refused(gemm(&second, 1.0, of_a, of_a, 0.0, of_c(&mut c)), "gemm: C");
    let mut low = second.zeroed::<f32>(8).unwrap();
    let transposed = permute(
        &second,
        Tensor::new(c.slice(..8).unwrap(), [2, 4]).unwrap(),
        TensorMut::new(&mut low, layout!((2, 4):(1, 2))).unwrap(),
    );
    is_refused(transposed, "of kernel `permute_");
    let mut gated = second.zeroed::<f32>(8).unwrap();
    let to = MatrixMut::row_major(&mut gated, 4, 2).unwrap();
    is_refused(
        swiglu(&second, square(&c), to),
        "(`source`) of kernel `swiglu_f32",
    );
}

/// They may be of different rows, and the report of bad indices is written atomically.
#[test]
fn rows_by_indices_are_moved_in_two_streams_by_one_plan() {
    let [first, second] = two_streams();
    let (source, mut table) = (ones(&first), ones(&first));
    let mut plan = Scatter::new(&Device::cpu()).unwrap();
    let [even, odd] = [[0i32, 2], [1, 3]].map(|rows| first.upload(&rows).unwrap());
    for (stream, indices) in [(&first, &even), (&second, &odd)] {
        let source = Matrix::row_major(source.slice(..8).unwrap(), 2, 4).unwrap();
        plan.enqueue(stream, source, indices, square_mut(&mut table))
            .unwrap();
    }
    let mut gather = Gather::new(&Device::cpu()).unwrap();
    let (indices, mut output) = (second.upload(&[1i32, 1, 3, 3]).unwrap(), ones(&second));
    gather
        .enqueue(&second, square(&table), &indices, square_mut(&mut output))
        .unwrap();
    is_refused(
        second.fill_bytes(&mut table, 0).map_err(Error::Host),
        "the destination",
    );
    plan.check(&second).unwrap();
    is_refused(
        second.fill_bytes(&mut table, 0).map_err(Error::Host),
        "the destination",
    );
    plan.check(&first).unwrap();
    second.fill_bytes(&mut table, 0).unwrap();
}

#[test]
fn rows_of_experts_are_used_in_the_stream_that_sorts_them() {
    let [first, second] = two_streams();
    let mut rows = MoeRows::new(&Device::cpu(), 4, 1, 2).unwrap();
    let (tokens, mut permuted) = (ones(&first), ones(&first));
    let choices = first.upload(&[1i32, 0, 1, 0]).unwrap();
    rows.route(&first, &choices).unwrap();
    is_refused(
        rows.permute(&second, square(&tokens), square_mut(&mut permuted)),
        "(`indices`) of kernel `gather_",
    );
    second.wait_for(&first).unwrap();
    rows.permute(&second, square(&tokens), square_mut(&mut permuted))
        .unwrap();
    rows.check(&second).unwrap();
}
