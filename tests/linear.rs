//! Linear layers that own their weights, and interleaved rows.

use cutlet::{
    Activation, Bias, Device, DeviceTensor, Error, Gemm, IntTuple, Layout, Linear, Plan, Result,
    Stream, bf16, interleave_rows, layout, silu_mul,
};

use crate::small::{small, upload};

/// What a server keeps is no borrow, and goes from thread to thread.
const _: () = {
    const fn is_kept<T: Send + Sync + 'static>() {}
    is_kept::<Linear<bf16>>();
    is_kept::<Linear<bf16, f32>>();
    is_kept::<Plan<bf16>>();
};

#[test]
fn a_layer_is_the_product_of_its_parts() {
    let stream = Device::auto().stream().unwrap();
    let [rows, outputs, inputs] = [5, 24, 16];
    let tensor = |shape: [usize; 2], seed| {
        let buffer = upload::<bf16>(&stream, &small(shape[0] * shape[1], seed)).unwrap();
        DeviceTensor::new(buffer, shape).unwrap()
    };
    let (x, weights) = (tensor([rows, inputs], 1), tensor([outputs, inputs], 2));
    let on_bias = upload::<bf16>(&stream, &small(outputs, 3)).unwrap();
    let mut expected = DeviceTensor::<bf16>::zeroed(&stream, [rows, outputs]).unwrap();
    let transposed = weights.tensor().transpose().unwrap();
    Gemm::new(&x, transposed, &mut expected)
        .bias(Bias::columns(&on_bias))
        .activation(Activation::Relu)
        .run(&stream)
        .unwrap();
    let expected = expected.download(&stream).unwrap();
    assert!(expected.iter().any(|it| *it > bf16::ZERO));

    // The layer moves to a thread that has a stream of its own.
    let layer = Linear::new(weights).unwrap();
    let layer = layer.bias(on_bias).activation(Activation::Relu);
    assert_eq!(layer.weights().layout().to_string(), "(24,16):(16,_1)");
    let found = std::thread::spawn(move || {
        let stream = Device::auto().stream().unwrap();
        let mut y = DeviceTensor::<bf16>::zeroed(&stream, [rows, outputs]).unwrap();
        layer.run(&stream, &x, &mut y).unwrap();
        let plan = layer.gemm(&x, &mut y).plan(&stream).unwrap();
        let once = y.download(&stream).unwrap();
        plan.run(&stream, &mut layer.gemm(&x, &mut y)).unwrap();
        assert_eq!(y.download(&stream).unwrap(), once);
        once
    });
    assert_eq!(found.join().unwrap(), expected);
}

#[test]
fn weights_have_two_modes_and_fit_x() {
    let stream = Device::auto().stream().unwrap();
    let weights = DeviceTensor::<f32>::zeroed(&stream, [2, 3, 4]).unwrap();
    let said = Linear::new(weights).unwrap_err().to_string();
    assert!(said.contains("a transpose has two"), "{said}");
    let layer = Linear::new(DeviceTensor::<f32>::zeroed(&stream, [3, 4]).unwrap()).unwrap();
    let x = DeviceTensor::<f32>::zeroed(&stream, [2, 5]).unwrap();
    let mut y = DeviceTensor::<f32>::zeroed(&stream, [2, 3]).unwrap();
    assert!(matches!(
        layer.run(&stream, &x, &mut y),
        Err(Error::Extents { .. })
    ));
}

/// Weights of gates and of ups that lie apart, and the gated layer of both.
#[test]
fn a_gated_layer_of_interleaved_weights() -> Result<()> {
    let stream = Device::auto().stream()?;
    let [rows, outputs, inputs] = [3, 8, 16];
    let tensor = |shape: [usize; 2], seed| {
        let buffer = upload::<f32>(&stream, &small(shape[0] * shape[1], seed))?;
        DeviceTensor::new(buffer, shape)
    };
    let x = tensor([rows, inputs], 1)?;
    let (gates, ups) = (tensor([outputs, inputs], 2)?, tensor([outputs, inputs], 3)?);
    let mut weights = DeviceTensor::zeroed(&stream, [2 * outputs, inputs])?;
    interleave_rows(&stream, &gates, &ups, &mut weights)?;
    let mut y = DeviceTensor::<f32>::zeroed(&stream, [rows, outputs])?;
    Linear::new(weights)?.swiglu().run(&stream, &x, &mut y)?;

    let product = |weights: DeviceTensor<f32>| -> Result<DeviceTensor<f32>> {
        let mut y = DeviceTensor::zeroed(&stream, [rows, outputs])?;
        Linear::new(weights)?.run(&stream, &x, &mut y)?;
        Ok(y)
    };
    let (gates, ups) = (product(gates)?, product(ups)?);
    let mut expected = DeviceTensor::<f32>::zeroed(&stream, [rows, outputs])?;
    silu_mul(&stream, &gates, &ups, &mut expected)?;
    let (found, expected) = (y.download(&stream)?, expected.download(&stream)?);
    for (found, expected) in found.iter().zip(&expected) {
        let error = (found - expected).abs();
        assert!(
            error <= 1e-5 * expected.abs().max(1.0),
            "{found} is not {expected}"
        );
    }
    Ok(())
}

/// The rows by turns, of any layouts and of several experts.
fn check_interleaved(stream: &Stream, output: Layout) -> Result<()> {
    let [rows, columns, experts] = [3usize, 5, 2];
    let layout = layout!((3, 5, 2):(10, 2, 1));
    let number = |of: usize, at: usize| (100 * of + at) as u16;
    let source = |of| {
        let elements: Vec<u16> = (0..rows * columns * experts)
            .map(|at| number(of, at))
            .collect();
        DeviceTensor::upload(stream, &elements, layout)
    };
    let mut output = DeviceTensor::<u16>::zeroed(stream, output)?;
    interleave_rows(stream, &source(1)?, &source(2)?, &mut output)?;
    let of = *output.layout();
    let found = output.download(stream)?;
    for row in 0..2 * rows {
        for column in 0..columns {
            for expert in 0..experts {
                let at = [row, column, expert].map(|it| it as i64);
                let at = of.index(IntTuple::dynamic(&at)) as usize;
                let expected = number(1 + row % 2, row / 2 * 10 + column * 2 + expert);
                assert_eq!(found[at], expected, "{of} at {row}, {column}, {expert}");
            }
        }
    }
    Ok(())
}

#[test]
fn rows_of_any_layouts_are_interleaved() {
    let stream = Device::auto().stream().unwrap();
    for output in [
        layout!((6, 5, 2):(10, 2, 1)),
        layout!((6, 5, 2):(1, 6, 30)),
        layout!((6, 5, 2):(7, 1, 60)),
    ] {
        check_interleaved(&stream, output).unwrap();
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let of = |shape: [usize; 2]| DeviceTensor::<f32>::zeroed(&stream, shape).unwrap();
    let (three, two) = (of([3, 4]), of([2, 4]));
    for (first, second, output) in [
        (&three, &two, [6, 4]),
        (&two, &two, [4, 5]),
        (&two, &two, [2, 4]),
    ] {
        let mut output = of(output);
        let said = interleave_rows(&stream, first, second, &mut output);
        let said = said.unwrap_err().to_string();
        assert!(said.starts_with("interleave_rows: the "), "{said}");
        assert!(said.contains("twice as many rows"), "{said}");
    }
}
