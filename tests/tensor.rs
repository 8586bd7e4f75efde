//! Tensors in front of every operation: orders, slices, strides, batches of tuples, one-liners, and what is refused.

use cutlet::{
    Bags, Device, DeviceTensor, Gemm, IndexedRows, IntoTensor, Layout, MAX_EXTENT, Matrix, MoeRows,
    Pooling, Result, RouterWeights, Stream, Tensor, TensorMut, embedding_bag, gather, gemm, layout,
    permute, scatter, scatter_add, shape, silu_mul, swiglu, tile, top_k,
};

use crate::random;
use crate::small::small;

/// Small whole numbers: as many as a layout reaches.
fn elements(layout: Layout, seed: u64) -> Vec<f32> {
    let elements = small(layout.cosize() as usize, seed);
    elements.into_iter().map(|it| it as f32).collect()
}

/// A tensor of small whole numbers.
fn numbers(stream: &Stream, layout: Layout, seed: u64) -> DeviceTensor<f32> {
    DeviceTensor::upload(stream, &elements(layout, seed), layout).unwrap()
}

/// The elements of a tensor in memory, in colexicographic order of coordinates.
fn values(memory: &[f32], layout: &Layout) -> Vec<f32> {
    (0..layout.size())
        .map(|c| memory[layout.at(c) as usize])
        .collect()
}

/// Multiplies (M, K, L) by (K, N, L), or by (K, N), and compares with a loop.
fn check(stream: &Stream, in_a: Layout, in_b: Layout, in_c: Layout) {
    let [a, b] = [(in_a, 1), (in_b, 2)].map(|(layout, seed)| elements(layout, seed));
    let mut c = numbers(stream, in_c, 3);
    let old = c.download(stream).unwrap();
    // A tensor that is read may repeat its elements.
    let [on_a, on_b] = [&a, &b].map(|it| stream.upload(it).unwrap());
    let (in_memory_a, in_memory_b) = (Tensor::new(&on_a, in_a), Tensor::new(&on_b, in_b));
    gemm(
        stream,
        2.0,
        in_memory_a.unwrap(),
        in_memory_b.unwrap(),
        0.0,
        &mut c,
    )
    .unwrap();

    let extent = |layout: &Layout, mode: usize| layout.mode(mode).size() as usize;
    let (m, k, n) = (extent(&in_a, 0), extent(&in_a, 1), extent(&in_b, 1));
    let (of_a, of_b) = (values(&a, &in_a), values(&b, &in_b));
    let of_c = values(&c.download(stream).unwrap(), &in_c);
    let batch = of_c.len() / (m * n);
    for (at, found) in of_c.iter().enumerate() {
        let (row, column, nth) = (at % m, at / m % n, at / m / n);
        let in_a = if of_a.len() == m * k { 0 } else { nth * m * k };
        let in_b = if of_b.len() == k * n { 0 } else { nth * k * n };
        let products = (0..k).map(|i| of_a[in_a + row + i * m] * of_b[in_b + i + column * k]);
        assert_eq!(
            *found,
            2.0 * products.sum::<f32>(),
            "({row},{column},{nth}) of {batch}"
        );
    }
    // What lies between the elements is as it was.
    let reached: Vec<usize> = (0..in_c.size()).map(|c| in_c.at(c) as usize).collect();
    for (at, found) in c.download(stream).unwrap().iter().enumerate() {
        assert!(
            reached.contains(&at) || *found == old[at],
            "element {at} of C"
        );
    }
}

#[test]
fn matrices_of_both_orders() {
    let stream = Device::auto().stream().unwrap();
    let in_a = [
        layout!((5, 7):(7, 1)),
        layout!((5, 7):(1, 5)),
        layout!((5, 7):(1, 9)),
    ];
    let in_b = [
        layout!((7, 6):(6, 1)),
        layout!((7, 6):(1, 7)),
        layout!((7, 6):(11, 1)),
    ];
    let in_c = [
        layout!((5, 6):(6, 1)),
        layout!((5, 6):(1, 5)),
        layout!((5, 6):(13, 1)),
    ];
    for a in in_a {
        for b in in_b {
            for c in in_c {
                check(&stream, a, b, c);
            }
        }
    }
}

#[test]
fn modes_of_one_element_have_any_stride() {
    let stream = Device::auto().stream().unwrap();
    check(
        &stream,
        layout!((1, 7):(3, 1)),
        layout!((7, 6):(1, 7)),
        layout!((1, 6):(0, 1)),
    );
    check(
        &stream,
        layout!((5, 1):(3, 2)),
        layout!((1, 6):(9, 4)),
        layout!((5, 6):(6, 1)),
    );
    check(
        &stream,
        layout!((5, 7):(1, 5)),
        layout!((7, 1):(1, 0)),
        layout!((5, 1):(4, 7)),
    );
    check(
        &stream,
        layout!((1, 1):(0, 0)),
        layout!((1, 1):(5, 5)),
        layout!((1, 1):(7, 7)),
    );
}

#[test]
fn rows_may_be_a_tuple_with_one_stride() {
    let stream = Device::auto().stream().unwrap();
    let in_a = layout!(((2, 3), (7)):((8, 16), (1)));
    let in_c = layout!(((3, 2), 4):((1, 3), 6));
    check(&stream, in_a, layout!((7, 4):(4, 1)), in_c);
}

#[test]
fn batches_of_one_mode_and_of_several() {
    let stream = Device::auto().stream().unwrap();
    let b = layout!((7, 6, 4):(6, 1, 42));
    let c = layout!((5, 6, 4):(6, 1, 30));
    check(&stream, layout!((5, 7, 4):(7, 1, 35)), b, c);
    // An operand without L, or with L of stride 0.
    check(&stream, layout!((5, 7):(7, 1)), b, c);
    check(
        &stream,
        layout!((5, 7, 4):(1, 5, 35)),
        layout!((7, 6):(1, 7)),
        c,
    );
    check(&stream, layout!((5, 7, 4):(7, 1, 0)), b, c);
    // L is a tuple, or several modes, of one stride together. B's is one mode.
    let tuple = layout!((5, 7, (2, 2)):(7, 1, (35, 70)));
    check(&stream, tuple, b, layout!((5, 6, 2, 2):(6, 1, 30, 60)));
    // Modes of which the second is inside of the first, in all operands.
    let a = layout!((5, 7, (2, 3)):(7, 1, (105, 35)));
    let b = layout!((7, 6, (2, 3)):(6, 1, (126, 42)));
    check(&stream, a, b, layout!((5, 6, (2, 3)):(6, 1, (90, 30))));
    // Heads side by side in a row.
    let a = layout!((5, 7, 3):(21, 1, 7));
    check(
        &stream,
        a,
        layout!((7, 6, 3):(18, 1, 6)),
        layout!((5, 6, 3):(18, 1, 6)),
    );
    // Two modes that do not continue one another: heads side by side in a row, of two sequences.
    check(
        &stream,
        layout!((5, 7, 3, 2):(21, 1, 7, 105)),
        layout!((7, 6, 3, 2):(6, 1, 42, 0)),
        layout!((5, 6, (3, 2)):(6, 1, (30, 95))),
    );
}

/// The error of a product of tensors of these layouts.
fn refused(in_a: Layout, in_b: Layout, in_c: Layout) -> String {
    let stream = Device::cpu().stream().unwrap();
    let (a, b) = (numbers(&stream, in_a, 1), numbers(&stream, in_b, 2));
    let mut c = numbers(&stream, in_c, 3);
    let refused = gemm(&stream, 1.0, &a, &b, 0.0, &mut c);
    refused.unwrap_err().to_string()
}

#[test]
fn layouts_that_kernels_do_not_read_are_refused_in_words() {
    let (b, c) = (layout!((5, 6):(6, 1)), layout!((4, 6):(6, 1)));
    assert_eq!(
        refused(layout!((4, 5):(10, 2)), b, c),
        "gemm: A is (4,5):(10,2), and neither its rows nor its columns are contiguous; copy it with `permute`, or use \
         `contract`, which copies"
    );
    for (a, b, c, said) in [
        (
            layout!((4, 5):(5, 1)),
            layout!((5, 6):(12, 2)),
            c,
            "gemm: B is (5,6):(12,2), and neither",
        ),
        (
            layout!((4, 5):(5, 1)),
            b,
            layout!((4, 6):(12, 2)),
            "gemm: C is (4,6):(12,2), and neither",
        ),
        (
            layout!(((2, 2), 5):((5, 20), 1)),
            b,
            c,
            "A is ((2,2),5):((5,20),1), and its rows have no single stride",
        ),
        (
            layout!(20:1),
            b,
            c,
            "A is 20:1, one mode; give it rows and columns",
        ),
        (
            layout!((4, 5):(5, 1)),
            b,
            layout!((4, 7):(7, 1)),
            "the columns of B and C are 6 and 7",
        ),
        (
            layout!((4, 5, 2):(5, 1, 20)),
            b,
            c,
            "there are 2 matrices A, 1 matrices B and 1 matrices C",
        ),
    ] {
        let found = refused(a, b, c);
        assert!(found.contains(said), "{found}");
    }
}

#[test]
fn batches_of_three_modes_are_refused_in_words() {
    let a = layout!((4, 5, (2, 3, 2)):(5, 1, (20, 50, 200)));
    let b = layout!((5, 6):(6, 1));
    let found = refused(a, b, layout!((4, 6, (2, 3, 2)):(6, 1, (24, 50, 200))));
    let said = "the batch has modes of 2 at strides of [20, 0, 24] and 3 at strides of [50, 0, 50] and 2 at strides of \
                [200, 0, 200] in A, B and C, and a launch takes 2; copy an operand with `permute`, or use `contract`";
    assert!(found.contains(said), "{found}");
    let a = layout!((4, 5, (2, 3)):(5, 1, (20, 50)));
    let found = refused(a, b, layout!((4, 6, (3, 2)):(6, 1, (24, 99))));
    assert!(
        found.contains("the shapes (2,3), (), (3,2), which do not divide each other"),
        "{found}"
    );
    let many = layout!((4, 5, 2, 2, 2, 2, 2):(5, 1, 1600, 800, 400, 200, 100));
    let found = refused(many, b, layout!((4, 6, 32):(6, 1, 24)));
    let said = "and too many of its batch's modes do not continue one another; use `contract`";
    assert!(found.contains(said), "{found}");
}

/// Overlapping rows are read by no kernel, and tensors with them are not written.
#[test]
fn rows_with_common_elements_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let memory = stream.zeroed::<f32>(40).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [4, 5]).unwrap();
    for layout in [
        layout!((4, 5):(0, 1)),
        layout!((4, 5):(1, 1)),
        layout!((4, 5):(1, 0)),
    ] {
        let a = Tensor::new(&memory, layout).unwrap();
        let refused = gemm(&stream, 1.0, a, a.transpose().unwrap(), 0.0, &mut c);
        let found = refused.unwrap_err().to_string();
        assert!(
            found.contains("and its rows or columns have elements in common; copy it"),
            "{found}"
        );
        assert!(TensorMut::new(&mut stream.zeroed::<f32>(40).unwrap(), layout).is_err());
    }
}

#[test]
fn extents_beyond_32_bits_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let memory = stream.zeroed::<f32>(1).unwrap();
    let large = MAX_EXTENT + 1;
    let a = Tensor::new(&memory, layout!((dyn large, 1):(0, 1))).unwrap();
    let b = Tensor::new(&memory, [1, 1]).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [1, 1]).unwrap();
    let refused = gemm(&stream, 1.0, a, b, 0.0, &mut c)
        .unwrap_err()
        .to_string();
    let said = "A is (2147482625,1):(0,1), and rows and columns have at most 2147482624 elements; give parts of it";
    assert!(refused.contains(said), "{refused}");
    let a = Tensor::new(&memory, layout!((1, 1, dyn large):(1, 1, 0))).unwrap();
    let mut gemm = Gemm::new(a, b, c.tensor_mut());
    assert!(gemm.run(&stream).is_err());
    let indices = stream.zeroed::<i32>(1).unwrap();
    let refused = gather(&stream, a, &indices, &mut c)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("the table is (1,1,2147482625):(1,1,0), 3 modes; give it rows"),
        "{refused}"
    );
}

/// A shape alone lies by rows.
#[test]
fn shapes_are_layouts_by_rows() {
    let stream = Device::cpu().stream().unwrap();
    let memory = stream.zeroed::<f32>(24).unwrap();
    let of = |tensor: Result<Tensor<'_, f32>>| tensor.unwrap().layout().to_string();
    assert_eq!(of(Tensor::new(&memory, [2, 3, 4])), "(2,3,4):(12,4,_1)");
    assert_eq!(of(Tensor::new(&memory, &[24][..])), "(24):(_1)");
    assert_eq!(of(Tensor::new(&memory, layout!((2, 3)))), "(_2,_3):(_1,_2)");
    let said = |shape: &[usize]| Tensor::new(&memory, shape).unwrap_err().to_string();
    let found = said(&[2, 0]);
    assert!(
        found.contains("[2, 0], by rows, was asked for, but it has no elements"),
        "{found}"
    );
    assert!(said(&[25]).contains("it reaches 25 elements and the memory has 24"));
    assert!(said(&[]).contains("from 1 to 32 modes"));
    assert!(said(&[1; 33]).contains("from 1 to 32 modes"));
    assert!(said(&[usize::MAX, 2]).contains("a tensor of layout [18446744073709551615, 2]"));
    assert!(said(&[1 << 40, 1 << 40]).contains("64 bits"));
}

/// Every form of a tensor is an operand.
#[test]
fn forms_of_operands() -> Result<()> {
    let stream = Device::auto().stream()?;
    let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    let square = [7.0, 10.0, 15.0, 22.0];
    gemm(&stream, 1.0, &a, a.tensor(), 0.0, &mut c)?;
    assert_eq!(c.download(&stream)?, square);
    gemm(
        &stream,
        1.0,
        a.tensor(),
        Matrix::row_major(a.buffer(), 2, 2)?,
        1.0,
        c.tensor_mut(),
    )?;
    assert_eq!(c.download(&stream)?, square.map(|it| 2.0 * it));
    let mut to = c.tensor_mut();
    gemm(&stream, 1.0, &a, &a, 0.0, &mut to)?;
    let mut product = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    gemm(&stream, 1.0, &to, &a, 0.0, &mut product)?;
    assert_eq!(product.download(&stream)?[0], 37.0);
    assert_eq!(
        Matrix::row_major(a.buffer(), 2, 2)?
            .into_tensor()?
            .layout()
            .to_string(),
        "(2,2):(2,1)"
    );
    // A residual is an operand, too.
    let mut gemm = Gemm::new(&a, &a, &mut c).residual(a.tensor().transpose()?);
    gemm.run(&stream)?;
    assert_eq!(c.download(&stream)?, [8.0, 13.0, 17.0, 26.0]);
    let wrong = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 2):(8, 2)))?;
    let mut gemm = Gemm::new(&a, &a, &mut c).residual(&wrong);
    for _ in 0..2 {
        let said = gemm.run(&stream).unwrap_err().to_string();
        assert!(
            said.contains("the residual is (2,2):(8,2), and neither"),
            "{said}"
        );
    }
    Ok(())
}

/// A slice of a tensor of many modes is multiplied where it lies.
#[test]
fn slices_and_tiles_are_operands() -> Result<()> {
    let stream = Device::auto().stream()?;
    // (batch, sequence, query key or value, head, dimension)
    let qkv = numbers(&stream, layout!((2, 10, 3, 4, 8):(960, 96, 32, 8, 1)), 4);
    let memory = qkv.download(&stream)?;
    // (sequence, dimension, batch, head)
    let part = |nth| qkv.tensor().slice(&shape!((_, _, dyn nth, _, _)));
    let q = part(0)?.select(&[1, 3, 2])?;
    let k = part(1)?.select(&[3, 1, 2])?;
    // One batch, all heads: (sequence, sequence, head).
    let mut scores = DeviceTensor::<f32>::zeroed(&stream, layout!((10, 10, 4):(10, 1, 100)))?;
    gemm(&stream, 1.0, q, k, 0.0, &mut scores)?;
    let scores = scores.download(&stream)?;
    for (at, found) in scores.iter().enumerate() {
        let (head, row, column) = (at / 100, at / 10 % 10, at % 10);
        let at = |which: usize, s: usize, d: usize| memory[96 * s + 32 * which + 8 * head + d];
        let expected: f32 = (0..8).map(|d| at(0, row, d) * at(1, column, d)).sum();
        assert_eq!(*found, expected, "head {head}, ({row},{column})");
    }
    // A tile of C.
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [4, 6])?;
    let ones = DeviceTensor::upload(&stream, &[1.0f32; 6], [2, 3])?;
    let to = c.tensor_mut().local_tile(&tile!((2, 3)), &shape!((1, 1)))?;
    gemm(
        &stream,
        1.0,
        &ones,
        &DeviceTensor::upload(&stream, &[1.0f32; 9], [3, 3])?,
        0.0,
        to,
    )?;
    let expected: Vec<f32> = (0..24)
        .map(|i| if i >= 12 && i % 6 >= 3 { 3.0 } else { 0.0 })
        .collect();
    assert_eq!(c.download(&stream)?, expected);
    Ok(())
}

/// Groups of rows, each with a B of its own. Their numbers are coordinates of L.
#[test]
fn groups_are_a_mode_of_b() -> Result<()> {
    let stream = Device::auto().stream()?;
    let a = DeviceTensor::upload(&stream, &[1.0f32; 5 * 4], [5, 4])?;
    let experts = [[1.0f32; 4 * 8], [2.0; 4 * 8]].concat();
    // (K, N, experts), whose weights have a row for each output.
    let b = DeviceTensor::upload(&stream, &experts, layout!((4, 8, 2):(1, 4, 32)))?;
    let ends = stream.upload(&[2, 5])?;
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [5, 8])?;
    Gemm::new(&a, &b, &mut c).group_ends(&ends).run(&stream)?;
    let found = c.download(&stream)?;
    assert_eq!((found[8], found[16]), (4.0, 8.0));
    let mut of_batch = DeviceTensor::<f32>::zeroed(&stream, layout!((5, 8, 2):(8, 1, 40)))?;
    let refused = Gemm::new(&a, &b, &mut of_batch)
        .group_ends(&ends)
        .run(&stream);
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("the groups of A's rows are in one A and one C"),
        "{said}"
    );

    // Rows of a table by indices.
    let rows = IndexedRows::new(stream.device())?;
    let indices = stream.upload(&[1i32, 0, 1])?;
    let table = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    let eye = DeviceTensor::upload(&stream, &[1.0f32, 0.0, 0.0, 10.0], [2, 2])?;
    let mut c = DeviceTensor::<f32>::zeroed(&stream, [3, 2])?;
    Gemm::new(&table, &eye, &mut c)
        .gather_a(rows.by(&indices)?)
        .run(&stream)?;
    assert_eq!(c.download(&stream)?, [3.0, 40.0, 1.0, 20.0, 3.0, 40.0]);
    Ok(())
}

#[test]
fn rows_are_moved_between_tensors() -> Result<()> {
    let stream = Device::auto().stream()?;
    let table = numbers(&stream, layout!((5, 3):(8, 1)), 5);
    let in_table = table.download(&stream)?;
    let indices = stream.upload(&[4i32, 0, 4])?;
    let mut rows = DeviceTensor::<f32>::zeroed(&stream, layout!((3, 3):(4, 1)))?;
    gather(&stream, &table, &indices, &mut rows)?;
    let moved = |from: &[f32], at: usize| from[8 * at..8 * at + 3].to_vec();
    let found = rows.download(&stream)?;
    assert_eq!(found[..3], moved(&in_table, 4)[..]);
    assert_eq!(found[4..7], moved(&in_table, 0)[..]);
    let mut back = DeviceTensor::<f32>::zeroed(&stream, [5, 3])?;
    scatter(&stream, &rows, &indices, &mut back)?;
    assert_eq!(back.download(&stream)?[12..], moved(&in_table, 4)[..]);
    scatter_add(&stream, &rows, &indices, &mut back)?;
    let thrice: Vec<f32> = moved(&in_table, 4).iter().map(|it| 3.0 * it).collect();
    assert_eq!(back.download(&stream)?[12..], thrice[..]);
    let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 3])?;
    embedding_bag(
        &stream,
        Pooling::Sum,
        &table,
        &indices,
        Bags::of_len(3),
        &mut sums,
    )?;
    let sum = |column: usize| 2.0 * in_table[32 + column] + in_table[column];
    assert_eq!(sums.download(&stream)?, [sum(0), sum(1), sum(2)]);

    // A table of one column, whose rows are apart or not.
    for layout in [
        layout!((5, 1):(1, 1)),
        layout!((5, 1):(1, 0)),
        layout!((5, 1):(3, 2)),
    ] {
        let column = numbers(&stream, layout, 6);
        let mut taken = DeviceTensor::<f32>::zeroed(&stream, [3, 1])?;
        gather(&stream, &column, &indices, &mut taken)?;
        let in_column = values(&column.download(&stream)?, &layout);
        assert_eq!(
            taken.download(&stream)?,
            [in_column[4], in_column[0], in_column[4]]
        );
    }
    Ok(())
}

#[test]
fn tables_that_are_no_rows_are_refused() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let indices = stream.upload(&[0i32, 1])?;
    let mut output = DeviceTensor::<f32>::zeroed(&stream, [2, 3])?;
    let mut said = |layout: Layout| {
        let table = DeviceTensor::<f32>::zeroed(&stream, layout).unwrap();
        let refused = gather(&stream, &table, &indices, &mut output);
        refused.unwrap_err().to_string()
    };
    let found = said(layout!((4, 3):(6, 2)));
    let expected = "gather: the table is (4,3):(6,2), and neither its rows nor its columns are contiguous; copy it \
                    with `permute`";
    assert_eq!(found, expected);
    assert!(said(layout!((4, 3):(1, 4))).contains("is column-major; give row-major ones"));
    assert!(said(layout!((4, 3, 2):(6, 2, 1))).contains("is (4,3,2):(6,2,1), 3 modes"));
    assert!(said(layout!(4:1)).contains("the table is 4:1, one mode"));
    Ok(())
}

#[test]
fn gates_and_experts_are_tensors() -> Result<()> {
    let stream = Device::auto().stream()?;
    let source = [100.0f32, 2.0, 0.0, 5.0, 0.0, 1.0, 50.0, 3.0];
    let source = DeviceTensor::upload(&stream, &source, [2, 4])?;
    let mut output = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    swiglu(&stream, &source, &mut output)?;
    assert_eq!(output.download(&stream)?, [200.0, 0.0, 0.0, 150.0]);
    // Every other element is a gate, which no row of a matrix has.
    let parts = source.tensor().logical_divide(&tile!(<1, 2>))?;
    let gates = parts.slice(&shape!((_, (0, _))))?;
    let refused = silu_mul(&stream, gates, gates, &mut output).unwrap_err();
    assert!(
        refused.to_string().contains("silu_mul: the gates is"),
        "{refused}"
    );

    let logits = DeviceTensor::upload(
        &stream,
        &[0.0f32, 1.0, 1.0, -2.0, 8.0, 0.5, 0.0, 7.0],
        [2, 4],
    )?;
    let mut choices = DeviceTensor::<i32>::zeroed(&stream, [2, 2])?;
    let mut weights = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    top_k(
        &stream,
        &logits,
        RouterWeights::Normalised,
        &mut choices,
        &mut weights,
    )?;
    assert_eq!(choices.download(&stream)?, [1, 2, 0, 3]);

    let mut rows = MoeRows::new(stream.device(), 2, 2, 4)?;
    rows.route(&stream, choices.view())?;
    let tokens = DeviceTensor::upload(&stream, &[1.0f32, 10.0], [2, 1])?;
    let mut permuted = DeviceTensor::<f32>::zeroed(&stream, [4, 1])?;
    rows.permute(&stream, &tokens, &mut permuted)?;
    assert_eq!(permuted.download(&stream)?, [10.0, 1.0, 1.0, 10.0]);
    let mut sums = DeviceTensor::<f32>::zeroed(&stream, [2, 1])?;
    rows.unpermute(&stream, &permuted, weights.view(), &mut sums)?;
    assert_eq!(sums.download(&stream)?, [1.0, 10.0]);

    let mut transposed = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 4):(1, 2)))?;
    permute(&stream, &logits, &mut transposed)?;
    assert_eq!(transposed.download(&stream)?[..2], [0.0, 8.0]);
    Ok(())
}

/// The place in memory of the element that is number `nth` by rows. In a mode of modes, the first one is the fastest.
fn place_by_rows(layout: &Layout, mut nth: i64) -> i64 {
    let of_mode = |mode: usize| {
        let mode = layout.mode(mode);
        let place = mode.at(nth % mode.size());
        nth /= mode.size();
        place
    };
    (0..layout.rank()).rev().map(of_mode).sum()
}

/// The layout of a shape with these elements by rows: each mode's stride is where its second coordinate leads.
fn only_layout(elements: &[i64], shape: &[usize]) -> Option<Vec<i64>> {
    let mut behind = elements.len();
    let strides: Vec<i64> = (shape.iter())
        .map(|extent| {
            behind /= extent;
            if *extent > 1 { elements[behind] } else { 0 }
        })
        .collect();
    let leads_there = |nth: usize| {
        let (mut behind, mut place) = (elements.len(), 0);
        for (extent, stride) in shape.iter().zip(&strides) {
            behind /= extent;
            place += stride * (nth / behind % extent) as i64;
        }
        place == elements[nth]
    };
    (0..elements.len()).all(leads_there).then_some(strides)
}

#[test]
fn a_reshape_has_the_elements_in_order_or_there_is_none() {
    let stream = Device::cpu().stream().unwrap();
    let memory = stream.zeroed::<u8>(1 << 16).unwrap();
    let mut random = random::generator(7);
    let (mut reshaped, mut refused) = (0, 0);
    for _ in 0..3000 {
        // Modes that mostly continue one another, from the fastest on, some of two leaves.
        let (mut modes, mut reach) = (Vec::new(), 1);
        for _ in 0..random.usize(1..4) {
            let mut leaf = || {
                let extent = [1, 2, 3, 4, 6][random.usize(0..5)];
                let stride = match random.usize(0..8) {
                    0 => 0,
                    1 => 2 * reach,
                    _ => reach,
                };
                reach = reach.max(stride * extent);
                layout!((dyn extent):(dyn stride)).mode(0)
            };
            let (first, second) = (leaf(), leaf());
            modes.push(match random.bool() {
                true => first,
                false => Layout::concat2(&first, &second),
            });
        }
        modes.reverse();
        let layout = Layout::concat(&modes);
        let mut left = layout.size() as usize;
        let mut shape = Vec::new();
        while left > 1 || shape.is_empty() {
            let divisors: Vec<usize> = (1..=left).filter(|it| left.is_multiple_of(*it)).collect();
            shape.push(divisors[random.usize(0..divisors.len())]);
            left /= shape[shape.len() - 1];
        }
        let elements: Vec<i64> = (0..layout.size())
            .map(|nth| place_by_rows(&layout, nth))
            .collect();
        let found = Tensor::new(&memory, layout).unwrap().reshape(&shape);
        let Some(strides) = only_layout(&elements, &shape) else {
            let said = found.unwrap_err().to_string();
            assert!(said.contains("do not continue one another; copy"), "{said}");
            refused += 1;
            continue;
        };
        let found = *found.unwrap().layout();
        for (mode, (extent, stride)) in shape.iter().zip(strides).enumerate() {
            let mode = found.mode(mode);
            assert_eq!(mode.size() as usize, *extent, "{layout} as {shape:?}");
            assert!(
                *extent == 1 || mode.at(1) == stride,
                "{layout} as {shape:?} is {found}"
            );
        }
        reshaped += 1;
    }
    assert!(reshaped > 500 && refused > 500, "{reshaped}, {refused}");
}

#[test]
fn shapes_that_no_reshape_has_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let x = DeviceTensor::<f32>::zeroed(&stream, layout!((4, 6):(8, 1))).unwrap();
    let said = |shape: &[usize]| x.tensor().reshape(shape).unwrap_err().to_string();
    assert_eq!(
        said(&[24]),
        "a tensor of layout (_4,_6):(_8,_1) was asked for, but modes that are one in the shape [24] do not continue one \
         another; copy it with `permute` first"
    );
    assert!(said(&[4, 5]).contains("[4, 5] has 20 elements, and it has 24; give a shape"));
    assert!(said(&[24, 0]).contains("it has no elements"));
    assert!(said(&[]).contains("from 1 to 32 modes"));
}

/// Columns in the middle are read and written where they are.
#[test]
fn a_narrow_tensor_is_an_operand() -> Result<()> {
    let stream = Device::auto().stream()?;
    let x = DeviceTensor::from_fn(&stream, [3, 8], |nth| nth as f32)?;
    let mut y = DeviceTensor::from_fn(&stream, [3, 5], |_| -1.0f32)?;
    permute(
        &stream,
        x.tensor().narrow(1, 2..=4)?,
        y.tensor_mut().narrow(1, 1..4)?,
    )?;
    let rows = [[2.0, 3.0, 4.0], [10.0, 11.0, 12.0], [18.0, 19.0, 20.0]];
    let expected = rows.map(|[a, b, c]| [-1.0, a, b, c, -1.0]).concat();
    assert_eq!(y.download(&stream)?, expected);

    let of = |tensor: Result<Tensor<'_, f32>>| tensor.map(|it| it.layout().to_string());
    assert_eq!(of(x.tensor().narrow(0, 1..))?, "(2,8):(8,_1)");
    assert_eq!(
        of(x.tensor().narrow(0, 1..)?.narrow(1, ..3))?,
        "(2,3):(8,1)"
    );
    let list = Tensor::new(&x.buffer().slice(4..)?, [20])?;
    assert_eq!(of(list.narrow(0, 5..))?, "15:1");
    let said = |mode: usize, range: std::ops::Range<usize>| {
        let refused = x.tensor().narrow(mode, range);
        refused.unwrap_err().to_string()
    };
    let found = said(1, 3..9);
    assert!(
        found.contains("the coordinates 3..9 of its mode 1 were asked for, which has 8; give"),
        "{found}"
    );
    assert!(said(0, 2..2).contains("2..2 of its mode 0"));
    assert!(said(2, 0..1).contains("there is no mode 2; modes are counted from 0"));
    let tuple = Tensor::new(x.buffer(), layout!(((2, 2), 3):((1, 12), 4)))?;
    let found = tuple.narrow(0, 1..).unwrap_err().to_string();
    assert!(
        found.contains("its mode 0 has no single stride; use `flatten`"),
        "{found}"
    );
    assert_eq!(of(tuple.flatten().narrow(1, 1..))?, "(_2,1,_3):(_1,12,_4)");
    Ok(())
}

#[test]
fn a_tensor_from_a_function_has_all_memory_that_its_layout_reaches() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = DeviceTensor::from_fn(&stream, layout!((2, 3):(1, 4)), |nth| nth as i32)?;
    assert_eq!(x.download(&stream)?, (0..10).collect::<Vec<_>>());
    let refused = DeviceTensor::from_fn(&stream, [0, 3], |_| 0u8);
    assert!(refused.unwrap_err().to_string().contains("has no elements"));
    Ok(())
}
