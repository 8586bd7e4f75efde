//! Sums and extremes along any modes against f64: every type, each set of modes, orders, alignments, many rows, and
//! values that are not finite.

use cutlet::{
    Device, DeviceTensor, Error, Layout, ReducedElement, Reduction, Tensor, TensorMut, layout,
    reduce_modes,
};
use half::{bf16, f16};

use crate::convert::Convert;
use crate::random;
use crate::turns::has_turn;

const REDUCTIONS: [Reduction; 5] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Max,
    Reduction::Min,
    Reduction::Amax,
];

/// A tensor in host memory.
struct Host {
    extents: Vec<usize>,
    strides: Vec<usize>,
    begin: usize,
}

impl Host {
    /// The modes of these extents in memory, the `order`'s first one innermost, with padding after each run.
    fn new(extents: &[usize], order: &[usize], padding: usize, begin: usize) -> Self {
        let mut strides = vec![0; extents.len()];
        let mut next = 1;
        for &mode in order {
            strides[mode] = next;
            next = next * extents[mode] + padding;
        }
        Host {
            extents: extents.to_vec(),
            strides,
            begin,
        }
    }

    fn len(&self) -> usize {
        let last = self.extents.iter().zip(&self.strides);
        self.begin
            + 1
            + last
                .map(|(extent, stride)| (extent - 1) * stride)
                .sum::<usize>()
    }

    /// Calls `visit` with each coordinate.
    fn each(&self, mut visit: impl FnMut(&[usize])) {
        let count: usize = self.extents.iter().product();
        for nth in 0..count {
            let mut rest = nth;
            let coordinate: Vec<usize> = self
                .extents
                .iter()
                .map(|extent| {
                    let at = rest % extent;
                    rest /= extent;
                    at
                })
                .collect();
            visit(&coordinate);
        }
    }

    fn index(&self, coordinate: &[usize]) -> usize {
        let all = coordinate.iter().zip(&self.strides);
        self.begin + all.map(|(at, stride)| at * stride).sum::<usize>()
    }

    fn layout(&self) -> Layout {
        let leaf = |(&extent, &stride): (&usize, &usize)| layout!((dyn extent):(dyn stride));
        let all: Vec<Layout> = self.extents.iter().zip(&self.strides).map(leaf).collect();
        Layout::concat(&all)
    }
}

/// Reduces these modes of a tensor of random numbers, to results that lie in the opposite order.
fn check<T: ReducedElement + Convert>(x: &Host, modes: &[usize], keeps_all: bool, tolerance: f64) {
    let stream = Device::auto().stream().unwrap();
    let mut random = random::generator(x.len() as u64);
    let numbers: Vec<T> = (0..x.len())
        .map(|_| T::of(f64::from(random.i32(-40..=40)) / 8.0))
        .collect();
    let on_x = stream.upload(&numbers).unwrap();
    let tensor = Tensor::new(on_x.slice(x.begin..).unwrap(), x.layout()).unwrap();
    let kept: Vec<usize> = (0..x.extents.len())
        .filter(|it| !modes.contains(it))
        .collect();
    let in_y: Vec<usize> = match keeps_all {
        true => (0..x.extents.len()).collect(),
        false if kept.is_empty() => vec![modes[0]],
        false => kept.clone(),
    };
    let extent_of = |mode: &usize| {
        if modes.contains(mode) {
            1
        } else {
            x.extents[*mode]
        }
    };
    let extents: Vec<usize> = in_y.iter().map(extent_of).collect();
    let order: Vec<usize> = (0..in_y.len()).collect();
    let y = Host::new(&extents, &order, 1, 0);
    let of_y = |coordinate: &[usize]| -> usize {
        let at = |mode: &usize| {
            if modes.contains(mode) {
                0
            } else {
                coordinate[*mode]
            }
        };
        y.index(&in_y.iter().map(at).collect::<Vec<usize>>())
    };
    for (nth, reduction) in REDUCTIONS.into_iter().enumerate() {
        if !has_turn(nth + x.len() + modes.len(), 2) {
            continue;
        }
        let mut on_y = stream.filled::<T>(y.len(), 0xff).unwrap();
        let to = TensorMut::new(&mut on_y, y.layout()).unwrap();
        reduce_modes(&stream, reduction, tensor, modes, to).unwrap();
        let found = stream.download(&on_y).unwrap();
        let neutral = match reduction {
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
            Reduction::Sum | Reduction::Mean | Reduction::Amax => 0.0,
        };
        let mut exact = vec![None; y.len()];
        let count: usize = modes.iter().map(|mode| x.extents[*mode]).product();
        x.each(|coordinate| {
            let number = numbers[x.index(coordinate)].number();
            let (sum, magnitude) = exact[of_y(coordinate)].get_or_insert((neutral, 0.0));
            *magnitude += number.abs();
            *sum = match reduction {
                Reduction::Sum => *sum + number,
                Reduction::Mean => *sum + number / count as f64,
                Reduction::Max => sum.max(number),
                Reduction::Min => sum.min(number),
                Reduction::Amax => sum.max(number.abs()),
            };
        });
        for (at, (found, exact)) in found.iter().zip(exact).enumerate() {
            let Some((exact, magnitude)) = exact else {
                let untouched = found.number().is_nan();
                assert!(untouched, "{reduction:?} of {:?}: element {at}", x.extents);
                continue;
            };
            // Errors of additions are independent.
            let error = tolerance * exact.abs() + 1e-7 * magnitude / (count as f64).sqrt();
            let found = found.number();
            assert!(
                (found - exact).abs() <= error,
                "{reduction:?} of modes {modes:?} of {:?}:{:?}, element {at}: {found}, not {exact}",
                x.extents,
                x.strides,
            );
        }
    }
}

fn check_all<T: ReducedElement + Convert>(tolerance: f64) {
    // Columns of matrices, of which one has enough rows for many splits.
    for extents in [[1, 1], [2, 300], [33, 8], [70, 264], [9, 77], [1000, 24]] {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            let x = Host::new(&extents, &[1, 0], padding, begin);
            check::<T>(&x, &[0], false, tolerance);
            check::<T>(&x, &[0], true, tolerance);
        }
        let by_columns = Host::new(&extents, &[0, 1], 0, 0);
        check::<T>(&by_columns, &[0], false, tolerance);
        check::<T>(&by_columns, &[1], false, tolerance);
        check::<T>(&by_columns, &[1, 0], false, tolerance);
    }
    // Every set of modes.
    let extents = [3, 20, 2, 24];
    for (order, padding) in [([3, 2, 1, 0], 0), ([0, 3, 1, 2], 0), ([3, 0, 2, 1], 8)] {
        let x = Host::new(&extents, &order, padding, 0);
        for set in 0..16 {
            let modes: Vec<usize> = (0..4).filter(|mode| set >> mode & 1 == 1).collect();
            check::<T>(&x, &modes, set % 3 == 0 || modes.is_empty(), tolerance);
        }
    }
}

#[test]
fn reductions_of_modes_are_exact_to_the_type() {
    check_all::<f32>(1e-6);
    check_all::<bf16>(2.0f64.powi(-8));
    check_all::<f16>(2.0f64.powi(-11));
}

#[test]
fn values_that_are_not_finite_are_extremes_of_their_columns() {
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let stream = Device::auto().stream().unwrap();
    let mut x = vec![1.0; 400 * 4];
    x[4 * 399..].copy_from_slice(&[nan, high, -high, 1.0]);
    let x = DeviceTensor::upload(&stream, &x, [400, 4]).unwrap();
    for (reduction, expected) in [
        (Reduction::Sum, [nan, high, -high, 400.0]),
        (Reduction::Mean, [nan, high, -high, 1.0]),
        (Reduction::Max, [nan, high, 1.0, 1.0]),
        (Reduction::Min, [nan, 1.0, -high, 1.0]),
        (Reduction::Amax, [nan, high, high, 1.0]),
    ] {
        let mut y = DeviceTensor::<f32>::zeroed(&stream, [4]).unwrap();
        reduce_modes(&stream, reduction, &x, &[0], &mut y).unwrap();
        let found = y.download(&stream).unwrap();
        assert!(found[0].is_nan(), "{reduction:?}: {found:?}");
        assert_eq!(found[1..], expected[1..], "{reduction:?}");
    }
}

#[test]
fn wrong_modes_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(48).unwrap();
    let mut y = stream.zeroed::<f32>(48).unwrap();
    let mut refused = |of_x: Layout, modes: &[usize], of_y: Layout, expected: &str| {
        let x = Tensor::new(&x, of_x).unwrap();
        let y = TensorMut::new(&mut y, of_y).unwrap();
        match reduce_modes(&stream, Reduction::Sum, x, modes, y) {
            Err(error @ Error::Extents { .. }) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            other => panic!("{other:?}"),
        }
    };
    let of_x = layout!((2, 3, 4):(12, 4, 1));
    for modes in [&[3][..], &[1, 1]] {
        refused(
            of_x,
            modes,
            layout!((2, 4):(4, 1)),
            "give different modes from 0 to 2",
        );
    }
    let kept = "give y the other modes, or one element in those";
    refused(of_x, &[1], layout!((2, 3):(3, 1)), kept);
    refused(of_x, &[1], layout!((2, 4, 1, 1):(4, 1, 1, 1)), kept);
    refused(of_x, &[0, 1, 2], layout!((2, 4):(4, 1)), kept);
    let of_x = layout!((2, 3):(6, 2));
    refused(of_x, &[0], layout!(3:1), "no mode of x is contiguous");
}

#[test]
fn modes_of_nothing_have_no_results() {
    use cutlet::{Matrix, MatrixMut};
    let stream = Device::auto().stream().unwrap();
    let none = stream.zeroed::<f32>(0).unwrap();
    let mut y = stream.zeroed::<f32>(4).unwrap();
    let x = Matrix::row_major(&none, 0, 4).unwrap();
    let to = MatrixMut::row_major(&mut y, 1, 4).unwrap();
    let error = reduce_modes(&stream, Reduction::Sum, x, &[0], to).unwrap_err();
    assert!(error.to_string().contains("has no elements"), "{error}");
    let mut nothing = stream.zeroed::<f32>(0).unwrap();
    let to = MatrixMut::row_major(&mut nothing, 0, 1).unwrap();
    reduce_modes(&stream, Reduction::Sum, x, &[1], to).unwrap();
}
