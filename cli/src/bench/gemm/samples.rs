//! Samples of a problem's C in f64.

use cutlet::{Stream, View};

use super::Problem;
use crate::measure::check::Number;
use crate::measure::error::Result;
use crate::measure::samples::{Samples, Vectors};
use crate::measure::scales::HostScales;

impl Problem {
    /// Samples of the product of packed `a` and `b` with these scales and the problem's epilogue.
    ///
    /// # Errors
    /// If the device fails.
    pub fn samples<T: Number, D: Number>(
        &self,
        stream: &Stream,
        a: View<'_, T>,
        b: View<'_, T>,
        bias: View<'_, D>,
        scales: &HostScales,
        seed: u64,
    ) -> Result<Samples> {
        let Problem {
            m,
            n,
            k,
            layout,
            epilogue,
            ..
        } = *self;
        let packed = |elements, count, contiguous| Vectors {
            elements,
            count,
            length: k,
            contiguous,
            ld: if contiguous { k } else { count },
        };
        let bias = stream.download(bias)?;
        Samples::new(
            stream,
            packed(a, m, !layout.a_transposed()),
            packed(b, n, layout.b_transposed()),
            seed,
            |at, l| scales.factor(at, l),
            |product, [_, column]| epilogue.apply(product, bias[column].to_f64()),
        )
    }
}
