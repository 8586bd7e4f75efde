//! Quantisation to e4m3 against f64: every type, scales of rows and of blocks, alignments, and values that are not
//! finite.

use cutlet::{Device, Error, F8E4M3, Quantize, QuantizedElement, Tensor, TensorMut, layout};
use half::{bf16, f16};

use crate::convert::Convert;
use crate::random;

/// Quantises random rows whose magnitudes differ, and compares all.
fn check<T: QuantizedElement + Convert>(
    [rows, columns]: [usize; 2],
    padding: usize,
    begin: usize,
    by_blocks: bool,
    powers: bool,
) {
    let case = format!("{rows}×{columns}, padding {padding}, blocks {by_blocks}, powers {powers}");
    let stream = Device::auto().stream().unwrap();
    let ld = columns + padding;
    let mut random = random::generator((rows * 7919 + columns) as u64);
    let x: Vec<T> = (0..begin + rows * ld)
        .map(|at| T::of((2.0 * random.f64() - 1.0) * 2f64.powi((at / 50 % 12) as i32 - 6)))
        .collect();
    let on_x = stream.upload(&x).unwrap();
    let mut on_y = stream.filled::<F8E4M3>(begin + rows * ld, 0xff).unwrap();
    let per_row = if by_blocks { columns.div_ceil(128) } else { 1 };
    let mut on_scales = stream.filled::<f32>(rows * per_row, 0xff).unwrap();
    let of_rows = layout!((dyn rows, dyn columns):(dyn ld, 1));
    let from = Tensor::new(on_x.slice(begin..).unwrap(), of_rows).unwrap();
    let to = TensorMut::new(on_y.slice_mut(begin..).unwrap(), of_rows).unwrap();
    // The scales of all rows' first blocks are neighbours.
    let scales = TensorMut::new(
        &mut on_scales,
        layout!((dyn rows, dyn per_row):(1, dyn rows)),
    )
    .unwrap();
    let quantize = match by_blocks {
        true => Quantize::by_blocks(),
        false => Quantize::by_rows(),
    };
    let quantize = if powers {
        quantize.powers_of_two()
    } else {
        quantize
    };
    quantize.run(&stream, from, to, scales).unwrap();
    let (y, scales) = (
        stream.download(&on_y).unwrap(),
        stream.download(&on_scales).unwrap(),
    );
    let of_scale = if by_blocks { 128 } else { columns };
    for row in 0..rows {
        let from = begin + row * ld;
        for (nth, block) in x[from..][..columns].chunks(of_scale).enumerate() {
            let scale = f64::from(scales[nth * rows + row]);
            let amax = block
                .iter()
                .fold(0f64, |amax, x| amax.max(x.number().abs()));
            match powers {
                false => assert!(
                    (scale - amax / 448.0).abs() <= 1e-6 * scale,
                    "{case}: {scale} of {amax}"
                ),
                true => assert!(
                    scale.log2().fract() == 0.0 && (amax / 448.0..amax / 224.0).contains(&scale),
                    "{case}"
                ),
            }
            for (place, x) in block.iter().enumerate() {
                let (x, found) = (
                    x.number(),
                    y[from + nth * of_scale + place].number() * scale,
                );
                // Half of the step of three bits, and of the subnormal numbers.
                let error = x.abs() / 16.0 + scale * 2f64.powi(-10);
                assert!(
                    (found - x).abs() <= 1.0001 * error,
                    "{case}, ({row}, {place}): {found}, not {x}"
                );
            }
        }
        let padding = &y[from + columns..from + ld];
        assert!(
            padding.iter().all(|it| it.to_bits() == 0xff),
            "{case}: padding was written"
        );
    }
}

fn check_all<T: QuantizedElement + Convert>() {
    let extents = [
        [1, 1],
        [9, 1],
        [3, 8],
        [17, 128],
        [16, 256],
        [5, 264],
        [33, 77],
        [2, 512],
        [2, 520],
        [1, 4096],
        [2, 4104],
        [1, 9001],
    ];
    for extent in extents {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            for (by_blocks, powers) in [(false, false), (false, true), (true, false), (true, true)]
            {
                check::<T>(extent, padding, begin, by_blocks, powers);
            }
        }
    }
}

#[test]
fn rows_and_blocks_are_quantised_to_the_nearest() {
    check_all::<f32>();
    check_all::<bf16>();
    check_all::<f16>();
}

/// Quantises what SwiGLU makes of random gates and ups, and compares all with f64.
fn check_swiglu<T: QuantizedElement + Convert>(
    [rows, columns]: [usize; 2],
    padding: usize,
    begin: usize,
    powers: bool,
) {
    let case = format!("{rows}×{columns}, padding {padding}, powers {powers}");
    let stream = Device::auto().stream().unwrap();
    let (ld, to_ld) = (2 * columns + padding, columns + padding);
    let mut random = random::generator((rows * 7919 + columns) as u64);
    let source: Vec<T> = (0..begin + rows * ld)
        .map(|_| T::of(16.0 * random.f64() - 8.0))
        .collect();
    let on_source = stream.upload(&source).unwrap();
    let mut on_y = stream.filled::<F8E4M3>(begin + rows * to_ld, 0xff).unwrap();
    let blocks = columns.div_ceil(128);
    let mut on_scales = stream.filled::<f32>(rows * blocks, 0xff).unwrap();
    let from = layout!((dyn rows, dyn (2 * columns)):(dyn ld, 1));
    let from = Tensor::new(on_source.slice(begin..).unwrap(), from).unwrap();
    let to = layout!((dyn rows, dyn columns):(dyn to_ld, 1));
    let to = TensorMut::new(on_y.slice_mut(begin..).unwrap(), to).unwrap();
    let scales = layout!((dyn rows, dyn blocks):(1, dyn rows));
    let scales = TensorMut::new(&mut on_scales, scales).unwrap();
    let quantize = match powers {
        false => Quantize::by_blocks(),
        true => Quantize::by_blocks().powers_of_two(),
    };
    quantize.swiglu(&stream, from, to, scales).unwrap();
    let (y, scales) = (
        stream.download(&on_y).unwrap(),
        stream.download(&on_scales).unwrap(),
    );
    for row in 0..rows {
        let pairs = source[begin + row * ld..][..2 * columns].chunks(2);
        let expected: Vec<f64> = pairs
            .map(|pair| {
                let (gate, up) = (pair[0].number(), pair[1].number());
                gate / (1.0 + (-gate).exp()) * up
            })
            .collect();
        let found = &y[begin + row * to_ld..][..to_ld];
        for (nth, block) in expected.chunks(128).enumerate() {
            let scale = f64::from(scales[nth * rows + row]);
            let amax = block.iter().fold(0f64, |amax, x| amax.max(x.abs()));
            match powers {
                false => assert!((scale - amax / 448.0).abs() <= 1e-5 * scale, "{case}"),
                true => assert!(
                    scale.log2().fract() == 0.0 && (amax / 448.1..amax / 223.9).contains(&scale),
                    "{case}: {scale} of {amax}"
                ),
            }
            for (place, x) in block.iter().enumerate() {
                let found = found[nth * 128 + place].number() * scale;
                // Half of the step of three bits, and of the subnormal numbers, and the error of SiLU.
                let error = x.abs() * (1.0 / 16.0 + 1e-5) + scale * 2f64.powi(-10) + 1e-6;
                assert!(
                    (found - x).abs() <= 1.0001 * error,
                    "{case}, ({row}, {place}): {found}, not {x}"
                );
            }
        }
        assert!(
            found[columns..].iter().all(|it| it.to_bits() == 0xff),
            "{case}: padding was written"
        );
    }
}

#[test]
fn what_swiglu_makes_is_quantised_to_the_nearest() {
    for extent in [[1, 1], [33, 8], [3, 77], [17, 128], [34, 264], [2, 520]] {
        for (padding, begin) in [(0, 0), (8, 0), (3, 1)] {
            for powers in [false, true] {
                check_swiglu::<f32>(extent, padding, begin, powers);
                check_swiglu::<bf16>(extent, padding, begin, powers);
                check_swiglu::<f16>(extent, padding, begin, powers);
            }
        }
    }
}

#[test]
fn swiglu_of_gates_that_are_not_finite_stays_in_its_place() {
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let stream = Device::auto().stream().unwrap();
    let source = stream
        .upload(&[
            -high, 5.0, 2.0, nan, high, 1.0, -high, -3.0, 0.0, 7.0, 0.0, -1.0,
        ])
        .unwrap();
    let source = Tensor::new(&source, [3, 4]).unwrap();
    let mut y = stream.zeroed::<F8E4M3>(6).unwrap();
    let mut scales = stream.zeroed::<f32>(3).unwrap();
    let to = TensorMut::new(&mut y, [3, 2]).unwrap();
    let of_rows = TensorMut::new(&mut scales, [3, 1]).unwrap();
    Quantize::by_blocks()
        .swiglu(&stream, source, to, of_rows)
        .unwrap();
    let y: Vec<f32> = stream
        .download(&y)
        .unwrap()
        .iter()
        .map(|y| y.to_f32())
        .collect();
    let scales = stream.download(&scales).unwrap();
    assert!(y[0] == 0.0 && y[1].is_nan() && scales[0] == 1.0);
    assert_eq!((y[2], y[3]), (448.0, 0.0));
    assert_eq!((y[4], y[5], scales[2]), (0.0, 0.0, 1.0));
}

#[test]
fn wrong_operands_of_swiglu_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(600).unwrap();
    let mut y = stream.zeroed::<F8E4M3>(600).unwrap();
    let mut scales = stream.zeroed::<f32>(6).unwrap();
    let mut refused = |quantize: Quantize, columns: usize, results: usize| {
        let x = Tensor::new(&x.slice(..2 * columns).unwrap(), [2, columns]).unwrap();
        let to = TensorMut::new(y.slice_mut(..2 * results).unwrap(), [2, results]).unwrap();
        let of_rows = TensorMut::new(scales.slice_mut(..2).unwrap(), [2, 1]).unwrap();
        let run = quantize.swiglu(&stream, x, to, of_rows);
        run.unwrap_err().to_string()
    };
    let error = refused(Quantize::by_rows(), 8, 4);
    assert!(error.contains("use `by_blocks`"), "{error}");
    let error = refused(Quantize::by_blocks(), 9, 4);
    assert!(
        error.contains("no pairs of contiguous gates and ups"),
        "{error}"
    );
    let error = refused(Quantize::by_blocks(), 8, 8);
    assert!(error.contains("give them the same shape"), "{error}");
}

#[test]
fn zeros_have_a_scale_and_what_is_not_finite_stays_in_its_place() {
    let (high, nan) = (f32::INFINITY, f32::NAN);
    let stream = Device::auto().stream().unwrap();
    let x = stream
        .upload(&[0.0, 0.0, nan, 7.0, -high, 1.0, nan, nan])
        .unwrap();
    let x = Tensor::new(&x, [4, 2]).unwrap();
    for quantize in [Quantize::by_rows(), Quantize::by_blocks().powers_of_two()] {
        let mut y = stream.zeroed::<F8E4M3>(8).unwrap();
        let mut scales = stream.zeroed::<f32>(4).unwrap();
        let (to, of_rows) = (
            TensorMut::new(&mut y, [4, 2]).unwrap(),
            TensorMut::new(&mut scales, [4, 1]).unwrap(),
        );
        quantize.run(&stream, x, to, of_rows).unwrap();
        let y: Vec<f32> = stream
            .download(&y)
            .unwrap()
            .iter()
            .map(|y| y.to_f32())
            .collect();
        let scales = stream.download(&scales).unwrap();
        assert_eq!((y[0], y[1], scales[0], scales[3]), (0.0, 0.0, 1.0, 1.0));
        assert!(y[2].is_nan() && y[6].is_nan() && y[7].is_nan());
        assert_eq!(y[3] * scales[1], 7.0);
        assert_eq!((y[4], y[5]), (-448.0, 0.0));
    }
}

#[test]
fn wrong_scales_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let x = stream.zeroed::<f32>(600).unwrap();
    let x = Tensor::new(&x, [2, 300]).unwrap();
    let mut y = stream.zeroed::<F8E4M3>(600).unwrap();
    let to = TensorMut::new(&mut y, [2, 300]).unwrap();
    let mut scales = stream.zeroed::<f32>(4).unwrap();
    let of_blocks = TensorMut::new(&mut scales, [2, 2]).unwrap();
    match Quantize::by_blocks().run(&stream, x, to, of_blocks) {
        Err(error @ Error::Extents { .. }) => {
            assert!(
                error.to_string().contains("3 scales in the last one"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
}
