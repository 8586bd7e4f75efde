//! A product of e4m3 with scales of blocks, whose C is quantised.

use cutlet::{Buffer, F8E4M3, Gemm, Matrix, MatrixMut, Quantize, Stream};
use cutlet_host::measure::Contestants;
use half::bf16;

use super::{LARGE, ONE, Quantised, TOLERANCE, Work};
use crate::measure::check;
use crate::measure::error::{Error, Result};
use crate::measure::random::random;
use crate::measure::samples::{Samples, Vectors};
use crate::measure::scales::{DeviceScales, HostScales, Places, Scales, scale_by_blocks};
use crate::measure::setting::Setting;

/// A product of m, n and k.
pub struct Product<'a> {
    setting: &'a Setting,
    extents: [usize; 3],
    /// All sets share them.
    scales: DeviceScales,
    sets: Vec<Set>,
}

/// Operands and results of a run.
struct Set {
    a: Buffer<F8E4M3>,
    b: Buffer<F8E4M3>,
    /// C between two launches.
    between: Buffer<bf16>,
    c: Quantised,
}

impl<'a> Product<'a> {
    /// The product of random operands.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(extents: [usize; 3], setting: &'a Setting) -> Result<Self> {
        let [m, n, k] = extents;
        let (stream, seed) = (&setting.stream, setting.seed);
        let places = Places {
            are: Scales::Blocks,
            extents,
            matrices: [1; 2],
        };
        let set = |nth: u64| -> Result<Set> {
            Ok(Set {
                a: random(stream, m * k, seed.wrapping_add(2 * nth))?,
                b: random(stream, n * k, seed.wrapping_add(2 * nth + 1))?,
                between: stream.zeroed(m * n)?,
                c: Quantised::new(stream, m, n)?,
            })
        };
        let bytes = (m + n) * k + Quantised::bytes(m, n);
        let sets = (0..setting.sets(bytes) as u64).map(set);
        Ok(Product {
            setting,
            extents,
            scales: HostScales::random(places, seed).upload(stream)?,
            sets: sets.collect::<Result<_>>()?,
        })
    }
}

impl Contestants for Product<'_> {
    type Error = Error;

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let [m, n, k] = self.extents;
        let Set { a, b, between, c } = &mut self.sets[set];
        let a = Matrix::row_major(a.slice(..m * k)?, m, k)?;
        let b = Matrix::col_major(b.slice(..n * k)?, k, n)?;
        let (codes, scales) = c.parts()?;
        if contestant == ONE {
            let product = scale_by_blocks(Gemm::new(a, b, codes), &self.scales)?;
            let mut product = product.quantized(Quantize::by_blocks(), scales);
            return Ok(product.run(stream)?);
        }
        let to = MatrixMut::row_major(&mut *between, m, n)?;
        scale_by_blocks(Gemm::new(a, b, to), &self.scales)?.run(stream)?;
        let between = Matrix::row_major(&*between, m, n)?;
        Ok(Quantize::by_blocks().run(stream, between, codes, scales)?)
    }
}

impl Work for Product<'_> {
    fn wrong(&mut self, contestant: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        let [m, n, k] = self.extents;
        self.sets[0].c.poison(stream)?;
        self.enqueue(stream, contestant, 0)?;
        let Set { a, b, c, .. } = &self.sets[0];
        let vectors = |elements, count| Vectors {
            elements,
            count,
            length: k,
            contiguous: true,
            ld: k,
        };
        let samples = Samples::new(
            stream,
            vectors(a.view(), m),
            vectors(b.view(), n),
            self.setting.seed,
            |at, l| self.scales.host.factor(at, l),
            |product, _| product,
        )?;
        let numbers = stream.upload(&c.numbers(stream)?)?;
        let deviation = samples.deviation(stream, numbers.view(), n)?;
        Ok(check::wrong(
            &deviation,
            TOLERANCE,
            LARGE * (k as f64).sqrt(),
        ))
    }
}
