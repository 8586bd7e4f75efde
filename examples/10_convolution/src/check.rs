//! Random operands, and whether an output is the convolution.

use std::format;
use std::string::String;
use std::vec::Vec;

use cutlet_device::Float;
use cutlet_host::{Result, Stream};
use half::bf16;

use crate::Convolution;

/// The input and the filters.
#[derive(Clone, Debug)]
pub struct Operands {
    /// n, h, w, c.
    pub input: Vec<bf16>,
    /// k, r, s, c.
    pub filters: Vec<bf16>,
}

impl Operands {
    /// Numbers from -1 to 1.
    pub fn random(of: &Convolution) -> Self {
        let mut generator = fastrand::Rng::with_seed(1);
        let mut numbers = |extents: &[u64]| {
            let count: u64 = extents.iter().product();
            (0..count)
                .map(|_| Float::from_f32(2.0 * generator.f32() - 1.0))
                .collect()
        };
        let [k, r, s] = of.filters;
        Self {
            input: numbers(&of.input),
            filters: numbers(&[k, r, s, of.input[3]]),
        }
    }

    /// An element of the output in f64, at n, p, q and k: as loops say it, without a layout.
    pub fn element(&self, of: &Convolution, [n, p, q, k]: [i64; 4]) -> f64 {
        let [_, h, w, c] = of.input.map(|it| it as i64);
        let [_, r, s] = of.filters.map(|it| it as i64);
        let [stride, dilation, padding] = [of.stride, of.dilation, of.padding].map(|it| it as i64);
        let mut sum = 0.0;
        for (r_of, s_of) in (0..r).flat_map(|r_of| (0..s).map(move |s_of| (r_of, s_of))) {
            let y = p * stride + r_of * dilation - padding;
            let x = q * stride + s_of * dilation - padding;
            if !(0..h).contains(&y) || !(0..w).contains(&x) {
                continue;
            }
            let pixel = &self.input[(((n * h + y) * w + x) * c) as usize..][..c as usize];
            let tap = &self.filters[(((k * r + r_of) * s + s_of) * c) as usize..][..c as usize];
            sum += (pixel.iter().zip(tap).map(|(a, b)| a.to_f64() * b.to_f64())).sum::<f64>();
        }
        sum
    }
}

/// Runs a convolution of random operands, and compares `samples` elements of the output with loops in f64, or all of
/// them if it has fewer. The output is NaN before.
///
/// # Errors
/// Names the first element that is further off than an f32 sum and the rounding to bf16 explain.
pub fn check(
    stream: &Stream,
    of: &Convolution,
    samples: usize,
) -> Result<core::result::Result<(), String>> {
    let operands = Operands::random(of);
    let [_, p, q, k] = of.output().map(|it| it as i64);
    let count: u64 = of.output().iter().product();
    let (input, filters) = (
        stream.upload(&operands.input)?,
        stream.upload(&operands.filters)?,
    );
    let mut output = stream.filled::<bf16>(count as usize, 0xFF)?;
    of.run(stream, (&input, &filters, &mut output))?;
    let output = stream.download(&output)?;

    let products = (of.filters[1] * of.filters[2] * of.input[3]) as f64;
    let every = output.len().div_ceil(samples);
    // A step that shares no divisor with the extents visits all channels.
    let every = if every > 1 { every | 1 } else { 1 };
    for (i, found) in output.iter().enumerate().step_by(every) {
        let at = i as i64;
        let at = [at / k / q / p, at / k / q % p, at / k % q, at % k];
        let (found, expected) = (found.to_f64(), operands.element(of, at));
        // So that NaN is not allowed either.
        if (found - expected).abs() <= expected.abs() / 256.0 + 1e-5 * products {
            continue;
        }
        let message = format!("the output of {of:?} at {at:?} is {found}, not {expected}");
        return Ok(Err(message));
    }
    Ok(Ok(()))
}
