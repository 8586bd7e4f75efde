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
