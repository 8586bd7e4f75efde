//! Batches and groups of products against a plain loop, on a GPU if there is one: every type, orders, distances, sizes
//! of groups, epilogues and graphs. Elements are −1, 0 and 1, so that every sum is exact.

use crate::batches::{batch, batch_mut, strided};
use crate::convert::Convert;
use crate::small::{small, upload};
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Device, Element, Error, Gemm, Matrix, MatrixMut, Order, Result, Stream,
    Tensor, TensorMut, gemm,
};
use cutlet_host::Backend;
use half::{bf16, f16};

/// What C has where nothing writes it.
const UNTOUCHED: i32 = 77;

/// Where an operand's matrices lie.
#[derive(Clone, Copy)]
struct Place {
    order: Order,
    ld: usize,
    stride: usize,
}

impl Place {
    /// Packed matrices, with `gap` elements after each.
    fn packed([rows, columns]: [usize; 2], order: Order, gap: usize) -> Self {
        let ld = match order {
            RowMajor => columns,
            ColMajor => rows,
        };
        let stride = rows * columns + gap;
        Place { order, ld, stride }
    }

    fn index(self, nth: usize, row: usize, column: usize) -> usize {
        let inside = match self.order {
            RowMajor => row * self.ld + column,
            ColMajor => column * self.ld + row,
        };
        nth * self.stride + inside
    }

    /// Elements that `count` matrices need.
    fn len(self, count: usize, [rows, columns]: [usize; 2]) -> usize {
        match (count, rows, columns) {
            (0, ..) | (_, 0, _) | (_, _, 0) => 0,
            _ => 1 + self.index(count - 1, rows - 1, columns - 1),
        }
    }
}

/// A batch of products.
#[derive(Clone, Copy)]
struct Case {
    count: usize,
    /// m, n and k.
    extents: [usize; 3],
    orders: [Order; 3],
    /// Elements between matrices.
    gap: usize,
    /// Whether all products have the same B.
    repeats_b: bool,
    alpha: i32,
    beta: i32,
}

const PLAIN: Case = Case {
    count: 3,
    extents: [33, 40, 50],
    orders: [RowMajor, ColMajor, RowMajor],
    gap: 0,
    repeats_b: false,
    alpha: 1,
    beta: 0,
};

impl Case {
    fn places(&self) -> [Place; 3] {
        let [m, n, k] = self.extents;
        let [a, b, c] = self.orders;
        let mut b = Place::packed([k, n], b, self.gap);
        if self.repeats_b {
            b.stride = 0;
        }
        [
            Place::packed([m, k], a, self.gap),
            b,
            Place::packed([m, n], c, self.gap),
        ]
    }
}

/// Computes the case and compares all of C, with the elements between its matrices.
fn check<T: Element<D> + Convert, D: Convert>(stream: &Stream, case: Case)
where
    T::Factor: Convert,
{
    let Case {
        count,
        extents: [m, n, k],
        alpha,
        beta,
        ..
    } = case;
    let places = case.places();
    let [at_a, at_b, at_c] = places;
    let a = small(at_a.len(count, [m, k]), 1);
    let b = small(at_b.len(count, [k, n]), 2);
    let mut c = vec![UNTOUCHED; at_c.len(count, [m, n])];
    let mut expected: Vec<f64> = c.iter().map(|&it| f64::from(it)).collect();
    for nth in 0..count {
        for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let product = |i| a[at_a.index(nth, row, i)] * b[at_b.index(nth, i, column)];
            let sum: i32 = (0..k).map(product).sum();
            let at = at_c.index(nth, row, column);
            c[at] = (at % 3) as i32;
            expected[at] = f64::from(alpha * sum + beta * c[at]);
        }
    }
    let (a, b) = (
        upload::<T>(stream, &a).unwrap(),
        upload::<T>(stream, &b).unwrap(),
    );
    let mut c = upload::<D>(stream, &c).unwrap();
    let at = |place: Place, extents| strided(count, place.stride, extents, place.order, place.ld);
    gemm(
        stream,
        T::Factor::of(alpha.into()),
        Tensor::new(&a, at(at_a, [m, k])).unwrap(),
        Tensor::new(&b, at(at_b, [k, n])).unwrap(),
        T::Factor::of(beta.into()),
        TensorMut::new(&mut c, at(at_c, [m, n])).unwrap(),
    )
    .unwrap();
    let found: Vec<f64> = stream
        .download(&c)
        .unwrap()
        .into_iter()
        .map(D::number)
        .collect();
    assert_eq!(
        found, expected,
        "{count} × {m}×{n}×{k} at {:?}",
        case.orders
    );
}

fn check_type<T: Element<D> + Convert, D: Convert>(largest: usize)
where
    T::Factor: Convert,
{
    let stream = Device::auto().stream().unwrap();
    check::<T, D>(&stream, PLAIN);
    for orders in [
        [RowMajor, RowMajor, RowMajor],
        [ColMajor, ColMajor, RowMajor],
        [ColMajor, RowMajor, ColMajor],
    ] {
        check::<T, D>(&stream, Case { orders, ..PLAIN });
    }
    for extents in [[16, 16, 16], [64, 64, 64], [largest, 72, 128], [1, 24, 33]] {
        check::<T, D>(&stream, Case { extents, ..PLAIN });
    }
    // Matrices that do not begin at multiples of 16 bytes.
    check::<T, D>(&stream, Case { gap: 3, ..PLAIN });
    check::<T, D>(&stream, Case { gap: 32, ..PLAIN });
    let repeats_b = true;
    check::<T, D>(&stream, Case { repeats_b, ..PLAIN });
    check::<T, D>(&stream, Case { beta: 1, ..PLAIN });
    check::<T, D>(
        &stream,
        Case {
            alpha: -2,
            beta: 3,
            ..PLAIN
        },
    );
    for count in [1, 40] {
        let extents = [16, 24, 32];
        check::<T, D>(
            &stream,
            Case {
                count,
                extents,
                ..PLAIN
            },
        );
    }
}

#[test]
fn batches_of_f32() {
    check_type::<f32, f32>(150);
}

#[test]
fn batches_of_f64() {
    check_type::<f64, f64>(70);
}

#[test]
fn batches_of_bf16() {
    check_type::<bf16, bf16>(150);
}

#[test]
fn batches_of_f16() {
    check_type::<f16, f16>(150);
}

#[test]
fn batches_of_i8() {
    check_type::<i8, i32>(150);
}

#[test]
fn batches_into_another_type() {
    check_type::<bf16, f32>(80);
    check_type::<f32, bf16>(80);
    check_type::<f16, bf16>(80);
}

/// As many products as a grid has no room for along y.
#[test]
fn more_products_than_a_grid_has_rows() {
    if Device::auto().compute_capability().is_none() {
        cutlet_not_run::not_run("there is no GPU, and it takes minutes on the CPU");
        return;
    }
    let stream = Device::auto().stream().unwrap();
    let (count, extents) = (70_000, [2, 4, 4]);
    check::<f32, f32>(
        &stream,
        Case {
            count,
            extents,
            ..PLAIN
        },
    );
    check::<bf16, bf16>(
        &stream,
        Case {
            count,
            extents: [8, 8, 8],
            ..PLAIN
        },
    );
}

/// Heads of attention lie side by side in a row: scores = queries · keysᵀ, and outputs = scores · values.
#[test]
fn heads_side_by_side() {
    let stream = Device::auto().stream().unwrap();
    let (heads, length, size) = (4, 40, 16);
    let place = Place {
        order: RowMajor,
        ld: heads * size,
        stride: size,
    };
    let numbers = small(length * heads * size, 3);
    let values = upload::<bf16>(&stream, &numbers).unwrap();
    let weights = small(heads * length * length, 4);
    let scores = upload::<bf16>(&stream, &weights).unwrap();
    let mut output = stream.filled::<bf16>(length * heads * size, 0xff).unwrap();
    // (length, size, heads)
    let heads_of = strided(heads, place.stride, [length, size], place.order, place.ld);
    gemm(
        &stream,
        1.0,
        batch(&scores, heads, length, length, RowMajor),
        Tensor::new(&values, heads_of).unwrap(),
        0.0,
        TensorMut::new(&mut output, heads_of).unwrap(),
    )
    .unwrap();
    let output = stream.download(&output).unwrap();
    for (head, row, column) in (0..heads).flat_map(|head| {
        (0..length).flat_map(move |row| (0..size).map(move |column| (head, row, column)))
    }) {
        let product =
            |i| weights[(head * length + row) * length + i] * numbers[place.index(head, i, column)];
        let sum: i32 = (0..length).map(product).sum();
        assert_eq!(output[place.index(head, row, column)].to_f32(), sum as f32);
    }
}

/// Groups of rows.
struct Groups<'a> {
    /// The end of each group.
    ends: &'a [i32],
    /// Rows of A and C, n and k.
    extents: [usize; 3],
    b_order: Order,
    fuses: bool,
    beta: i32,
}

/// The rows of each group, as the documentation says.
fn ranges(ends: &[i32], rows: usize) -> Vec<core::ops::Range<usize>> {
    let cut = |end: i32| end.clamp(0, rows as i32) as usize;
    (0..ends.len())
        .map(|group| {
            let first = if group == 0 { 0 } else { cut(ends[group - 1]) };
            first..cut(ends[group]).max(first)
        })
        .collect()
}

fn check_groups<T: Element<D> + Convert, D: Convert>(stream: &Stream, groups: &Groups<'_>)
where
    T::Factor: Convert,
{
    let Groups {
        ends,
        extents: [m, n, k],
        b_order,
        fuses,
        beta,
    } = *groups;
    let at_b = Place::packed([k, n], b_order, 0);
    let (a, b) = (small(m * k, 5), small(ends.len() * k * n, 6));
    let bias = small(n, 7);
    let mut expected = vec![f64::from(UNTOUCHED); m * n];
    for (group, rows) in ranges(ends, m).into_iter().enumerate() {
        for (row, column) in rows.flat_map(|row| (0..n).map(move |column| (row, column))) {
            let product = |i| a[row * k + i] * b[at_b.index(group, i, column)];
            let mut sum = (0..k).map(product).sum::<i32>() + beta * UNTOUCHED;
            if fuses {
                sum = (sum + bias[column]).max(0);
            }
            expected[row * n + column] = f64::from(sum);
        }
    }
    let (a, b) = (
        upload::<T>(stream, &a).unwrap(),
        upload::<T>(stream, &b).unwrap(),
    );
    let (bias, ends_there) = (
        upload::<D>(stream, &bias).unwrap(),
        stream.upload(ends).unwrap(),
    );
    let mut c = upload::<D>(stream, &vec![UNTOUCHED; m * n]).unwrap();
    let mut gemm = Gemm::new(
        Matrix::row_major(&a, m, k).unwrap(),
        batch(&b, ends.len(), k, n, b_order),
        MatrixMut::row_major(&mut c, m, n).unwrap(),
    );
    if fuses {
        gemm = gemm.bias(Bias::columns(&bias)).activation(Activation::Relu);
    }
    gemm.beta(T::Factor::of(beta.into()))
        .group_ends(&ends_there)
        .run(stream)
        .unwrap();
    let found: Vec<f64> = stream
        .download(&c)
        .unwrap()
        .into_iter()
        .map(D::number)
        .collect();
    let expected: Vec<f64> = expected.into_iter().map(|it| D::of(it).number()).collect();
    let wrong = found
        .iter()
        .zip(&expected)
        .position(|(found, expected)| found != expected);
    assert_eq!(
        wrong, None,
        "the first wrong element; {ends:?} of {m}×{n}×{k}"
    );
}

fn check_groups_of<T: Element<D> + Convert, D: Convert>()
where
    T::Factor: Convert,
{
    let stream = Device::auto().stream().unwrap();
    for (ends, extents) in [
        (&[3, 3, 50, 51, 90][..], [90, 40, 48]),
        // The last rows are in no group.
        (&[0, 16, 100], [120, 16, 33]),
        // Ends that are wrong reach into nothing.
        (&[-5, 40, 40, 1000], [64, 72, 24]),
        (&[64], [64, 64, 64]),
        (&[130, 200, 333], [333, 136, 72]),
    ] {
        for b_order in [RowMajor, ColMajor] {
            for (fuses, beta) in [(false, 0), (true, 0), (false, 1)] {
                check_groups::<T, D>(
                    &stream,
                    &Groups {
                        ends,
                        extents,
                        b_order,
                        fuses,
                        beta,
                    },
                );
            }
        }
    }
}

#[test]
fn groups_of_f32() {
    check_groups_of::<f32, f32>();
}

#[test]
fn groups_of_bf16() {
    check_groups_of::<bf16, bf16>();
}

#[test]
fn groups_of_f16() {
    check_groups_of::<f16, f16>();
}

#[test]
fn groups_of_f64() {
    check_groups_of::<f64, f64>();
}

#[test]
fn groups_of_i8() {
    check_groups_of::<i8, i32>();
}

/// Groups whose last tile has rows for one of two consumers, and many more k-tiles than stages: the other consumer gets
/// ahead.
#[test]
fn groups_with_a_long_k() {
    if Device::auto().compute_capability().is_none() {
        cutlet_not_run::not_run("there is no GPU, and it takes minutes on the CPU");
        return;
    }
    let stream = Device::auto().stream().unwrap();
    let ends = [150, 180, 500, 560, 700, 701, 900, 1090];
    for extents in [[1100, 512, 2560], [1090, 264, 3000]] {
        let groups = Groups {
            ends: &ends,
            extents,
            b_order: ColMajor,
            fuses: false,
            beta: 0,
        };
        check_groups::<bf16, bf16>(&stream, &groups);
    }
}

/// Rows beyond a matrix' own number are neither read nor written.
fn check_masked<T: Element + Convert>() {
    let stream = Device::auto().stream().unwrap();
    let ([m, n, k], counts) = ([70, 40, 32], [0, 70, 33, -1, 99, 64]);
    let count = counts.len();
    let (a, b) = (small(count * m * k, 8), small(count * k * n, 9));
    let mut expected = vec![f64::from(UNTOUCHED); count * m * n];
    for (nth, &rows) in counts.iter().enumerate() {
        for (row, column) in (0..rows.clamp(0, m as i32) as usize)
            .flat_map(|row| (0..n).map(move |column| (row, column)))
        {
            let product = |i| a[(nth * m + row) * k + i] * b[(nth * k + i) * n + column];
            expected[(nth * m + row) * n + column] = f64::from((0..k).map(product).sum::<i32>());
        }
    }
    let (a, b) = (
        upload::<T>(&stream, &a).unwrap(),
        upload::<T>(&stream, &b).unwrap(),
    );
    let mut c = upload::<T>(&stream, &vec![UNTOUCHED; count * m * n]).unwrap();
    Gemm::new(
        batch(&a, count, m, k, RowMajor),
        batch(&b, count, k, n, RowMajor),
        batch_mut(&mut c, count, m, n, RowMajor),
    )
    .group_rows(&stream.upload(&counts).unwrap())
    .run(&stream)
    .unwrap();
    let found: Vec<f64> = stream
        .download(&c)
        .unwrap()
        .into_iter()
        .map(T::number)
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn masked_rows() {
    check_masked::<f32>();
    check_masked::<bf16>();
}

/// Rows in two groups: the CPU backend refuses them, also in a graph, and a GPU keeps all other rows right.
#[test]
fn ends_that_decrease_are_refused_on_the_cpu() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    let (m, n, k) = (200, 16, 16);
    let a = stream.upload(&vec![bf16::ONE; m * k]).unwrap();
    let b = stream.upload(&vec![bf16::ONE; 3 * 2 * k * n]).unwrap();
    let mut c = stream.zeroed::<bf16>(m * 2 * n).unwrap();
    let mut multiply = |ends: [i32; 3], is_gated: bool| {
        let ends = stream.upload(&ends).unwrap();
        let a = Matrix::row_major(&a, m, k).unwrap();
        let of_b = if is_gated { 2 * n } else { n };
        let b = batch(&b, 3, k, of_b, ColMajor);
        let c = MatrixMut::row_major(&mut c, m, n).unwrap();
        let mut gemm = Gemm::new(a, b, c).group_ends(&ends);
        match is_gated {
            false => gemm.run(&stream),
            true => gemm.swiglu().run(&stream),
        }
    };
    for is_gated in [false, true] {
        // Both are cut off at the last row.
        multiply([150, 900, 800], is_gated).unwrap();
        multiply([-5, -7, 20], is_gated).unwrap();
        let decreased = multiply([150, 20, 190], is_gated);
        match device.backend() {
            Backend::Cpu => {
                let said = decreased.unwrap_err().to_string();
                assert!(
                    said.contains("group 1 ends at row 20, and the group before at row 150"),
                    "{said}"
                );
            }
            Backend::Gpu => decreased.unwrap(),
        }
    }
}

/// A graph's groups are those of the sizes at the time of the replay.
#[test]
fn a_graph_reads_the_sizes_at_each_replay() -> Result<()> {
    let stream = Device::auto().stream()?;
    let (m, n, k) = (48, 16, 16);
    let (a, b) = (
        stream.upload(&vec![bf16::ONE; m * k])?,
        stream.upload(&[vec![bf16::ONE; k * n], vec![bf16::from_f32(2.0); k * n]].concat())?,
    );
    let mut ends = stream.upload(&[10, 20])?;
    let mut c = stream.zeroed::<bf16>(m * n)?;
    let graph = stream.device().capture(|stream| {
        Gemm::new(
            Matrix::row_major(&a, m, k)?,
            batch(&b, 2, k, n, ColMajor),
            MatrixMut::row_major(&mut c, m, n)?,
        )
        .group_ends(&ends)
        .run(stream)
    })?;
    for new_ends in [[0, 48], [30, 31]] {
        stream.copy_from_host(&new_ends, &mut ends)?;
        stream.fill_bytes(&mut c, 0)?;
        // SAFETY: all buffers live.
        unsafe { graph.launch(&stream)? };
        let c = stream.download(&c)?;
        for row in 0..m {
            let expected = match row as i32 {
                row if row < new_ends[0] => 16.0,
                row if row < new_ends[1] => 32.0,
                _ => 0.0,
            };
            assert_eq!(c[row * n].to_f32(), expected, "row {row} of {new_ends:?}");
        }
    }
    if stream.device().backend() == Backend::Cpu {
        stream.copy_from_host(&[30, 29], &mut ends)?;
        // SAFETY: as above.
        let said = unsafe { graph.launch(&stream) }.unwrap_err().to_string();
        assert!(said.contains("group 1 ends at row 29"), "{said}");
    }
    Ok(())
}

/// The error's text.
fn refused<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn wrong_batches_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let elements = stream.zeroed::<f32>(100).unwrap();
    let mut written = stream.zeroed::<f32>(100).unwrap();
    let packed = |count| strided(count, 10, [2, 5], RowMajor, 5);
    let error = refused(Tensor::new(&elements, packed(11)));
    assert!(
        error.contains("it reaches 110 elements and the memory has 100"),
        "{error}"
    );
    // Reading may overlap, writing may not.
    assert!(Tensor::new(&elements, strided(5, 1, [2, 5], RowMajor, 5)).is_ok());
    for (stride, ld) in [(9, 5), (1, 5), (5, 14)] {
        let layout = strided(3, stride, [2, 5], RowMajor, ld);
        let error = refused(TensorMut::new(&mut written, layout));
        assert!(error.contains("and it is written"), "{error}");
    }
    assert!(TensorMut::new(&mut written, strided(3, 5, [2, 5], RowMajor, 15)).is_ok());

    let a = batch(&elements, 2, 5, 5, RowMajor);
    let b = batch(&elements, 3, 5, 5, RowMajor);
    let c = batch_mut(&mut written, 2, 5, 5, RowMajor);
    let error = refused(gemm(&stream, 1.0, a, b, 0.0, c));
    assert!(
        error.contains("2 matrices A, 3 matrices B and 2 matrices C"),
        "{error}"
    );
}

#[test]
fn wrong_groups_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let a = stream.zeroed::<bf16>(64).unwrap();
    let b = stream.zeroed::<bf16>(128).unwrap();
    let ends = stream.upload(&[4, 8, 8]).unwrap();
    let a = Matrix::row_major(&a, 8, 8).unwrap();
    let b = batch(&b, 2, 8, 8, RowMajor);
    let mut written = stream.zeroed::<bf16>(64).unwrap();
    let c = MatrixMut::row_major(&mut written, 8, 8).unwrap();
    let error = refused(Gemm::new(a, b, c).group_ends(&ends).run(&stream));
    assert!(
        error.contains("there are 3 sizes of groups, and 2 matrices B"),
        "{error}"
    );
    let two = ends.slice(..2).unwrap();
    let c = MatrixMut::row_major(&mut written, 8, 8).unwrap();
    let unknown = Gemm::new(a, b, c).instance("no_such_kernel");
    let error = refused(unknown.group_ends(two).run(&stream));
    assert!(error.contains("`no_such_kernel` was asked for"), "{error}");
    assert!(error.contains("mma_bf16_64x64x64_kn"), "{error}");
    let mut of_f32 = stream.zeroed::<f32>(64).unwrap();
    let c = MatrixMut::row_major(&mut of_f32, 8, 8).unwrap();
    let error = refused(Gemm::new(a, b, c).group_ends(two).run(&stream));
    assert!(
        error.contains("no kernel has it for these element types"),
        "{error}"
    );
}
