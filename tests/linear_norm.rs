//! Layers that normalise x: against f64, with one row, which takes one launch, and with several.

use cutlet::{
    Activation, Device, DeviceTensor, Element, Error, GatedElement, Linear, NormElement, TensorMut,
    bf16, f16, layout,
};

use crate::convert::Convert;
use crate::random;

const EPSILON: f32 = 1e-5;

/// What a layer does besides the product.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Nothing,
    BiasAndRelu,
    Gates,
}

/// `unit` is half of the distance of 1 to the next number of the type.
fn check<T: Element + NormElement + GatedElement + Convert>(
    [rows, outputs, inputs]: [usize; 3],
    then: Then,
    unit: f64,
) {
    let stream = Device::auto().stream().unwrap();
    let mut random = random::generator((rows + outputs + inputs) as u64);
    let mut numbers = |count: usize, size: f64| -> Vec<T> {
        (0..count)
            .map(|_| T::of(size * (2.0 * random.f64() - 1.0)))
            .collect()
    };
    let (x, weights) = (numbers(rows * inputs, 30.0), numbers(outputs * inputs, 1.0));
    let (norm, bias) = (numbers(inputs, 2.0), numbers(outputs, 5.0));
    let wide = |numbers: &[T]| -> Vec<f64> { numbers.iter().map(|it| it.number()).collect() };

    let on_weights = DeviceTensor::upload(&stream, &weights, [outputs, inputs]).unwrap();
    let on_norm = stream.upload(&norm).unwrap();
    let mut layer = Linear::new(on_weights).unwrap().rms_norm(on_norm, EPSILON);
    if then == Then::BiasAndRelu {
        let bias = stream.upload(&bias).unwrap();
        layer = layer.bias(bias).activation(Activation::Relu);
    }
    if then == Then::Gates {
        layer = layer.swiglu();
    }
    let on_x = DeviceTensor::upload(&stream, &x, [rows, inputs]).unwrap();
    let columns = if then == Then::Gates {
        outputs / 2
    } else {
        outputs
    };
    let mut y = stream.filled::<T>(rows * columns, 0xff).unwrap();
    let to = TensorMut::new(&mut y, [rows, columns]).unwrap();
    layer.run(&stream, &on_x, to).unwrap();
    let found = stream.download(&y).unwrap();

    let (x, weights, norm, bias) = (wide(&x), wide(&weights), wide(&norm), wide(&bias));
    for (row, x) in x.chunks(inputs).enumerate() {
        let mean = x.iter().map(|it| it * it).sum::<f64>() / inputs as f64;
        let root = (mean + f64::from(EPSILON)).sqrt();
        let normal: Vec<f64> = x.iter().zip(&norm).map(|(x, g)| x / root * g).collect();
        // The product, and the root of the sum of its terms' squares.
        let product = |output: usize| {
            let terms = weights[output * inputs..].iter().zip(&normal);
            let terms: Vec<f64> = terms.map(|(w, x)| w * x).collect();
            let squares: f64 = terms.iter().map(|it| it * it).sum();
            (terms.iter().sum::<f64>(), squares.sqrt())
        };
        for column in 0..columns {
            let (exact, size) = match then {
                Then::Nothing => product(column),
                Then::BiasAndRelu => {
                    let (sum, size) = product(column);
                    ((sum + bias[column]).max(0.0), size)
                }
                Then::Gates => {
                    let [(gate, of_gate), (up, of_up)] = [0, 1].map(|it| product(2 * column + it));
                    let silu = gate / (1.0 + (-gate).exp());
                    (silu * up, 1.1 * of_gate * up.abs() + silu.abs() * of_up)
                }
            };
            let found = found[row * columns + column].number();
            // The result is rounded, and the rows, each element by itself.
            let bound = unit * (2.0 * exact.abs() + 6.0 * size) + 1e-5 * size;
            assert!(
                (found - exact).abs() <= bound,
                "{rows}×{outputs}×{inputs}, {then:?}, row {row}, column {column}: {found}, not {exact}"
            );
        }
    }
}

#[test]
fn rows_are_normalised_before_they_are_multiplied() {
    for extents in [
        [1, 16, 2048],
        [1, 6, 24],
        [1, 10, 4104],
        // No multiples of 16 bytes, and several rows.
        [1, 8, 75],
        [3, 16, 264],
        [70, 24, 128],
    ] {
        for then in [Then::Nothing, Then::BiasAndRelu, Then::Gates] {
            check::<bf16>(extents, then, 2f64.powi(-9));
            check::<f16>(extents, then, 2f64.powi(-12));
            check::<f32>(extents, then, 2f64.powi(-25));
        }
    }
}

#[test]
fn norms_that_do_not_fit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let zeros = |shape: &[usize]| DeviceTensor::<bf16>::zeroed(&stream, shape).unwrap();
    let layer = |norm: usize| {
        let weights = stream.zeroed::<bf16>(norm).unwrap();
        Linear::new(zeros(&[16, 8]))
            .unwrap()
            .rms_norm(weights, EPSILON)
    };
    let (x, mut y) = (zeros(&[1, 8]), zeros(&[1, 16]));
    let error = layer(9).run(&stream, &x, &mut y).unwrap_err();
    assert!(matches!(error, Error::Extents { .. }), "{error}");
    assert!(
        error.to_string().contains("a weight for each column"),
        "{error}"
    );
    let error = layer(8).gemm(&x, &mut y).run(&stream).unwrap_err();
    assert!(error.to_string().contains("use `Linear::run`"), "{error}");
    let batch = |layout| DeviceTensor::<bf16>::zeroed(&stream, layout).unwrap();
    let x = batch(layout!((2, 8, 3):(8, 1, 16)));
    let mut y = batch(layout!((2, 16, 3):(16, 1, 32)));
    let error = layer(8).run(&stream, &x, &mut y).unwrap_err();
    assert!(error.to_string().contains("x is a batch"), "{error}");
}
