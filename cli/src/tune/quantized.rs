//! A C that is quantised to e4m3: its scales, and its numbers.

use std::ops::Range;

use cutlet::{Buffer, Gemm, MatrixMut, Order, Quantize, Stream};
use cutlet_device::fp8::F8E4M3;

use super::operand::Operand;
use crate::bench::quantized::BLOCK;
use crate::measure::check::Number;
use crate::measure::error::Result;

/// A way to give a product the scales of its C, which it writes.
pub type Quantized<T, D> = for<'a> fn(Gemm<'a, T, D>, MatrixMut<'a, f32>) -> Gemm<'a, T, D>;

/// Quantises the C of a product by blocks.
pub fn by_blocks<'a>(
    gemm: Gemm<'a, F8E4M3, F8E4M3>,
    scales: MatrixMut<'a, f32>,
) -> Gemm<'a, F8E4M3, F8E4M3> {
    gemm.quantized(Quantize::by_blocks(), scales)
}

/// The scales of each set's C: one block of all rows after another, at multiples of 16 bytes.
pub struct ScalesOfC {
    rows: usize,
    blocks: usize,
    scales: Buffer<f32>,
}

impl ScalesOfC {
    /// Those of so many Cs of these extents.
    pub fn new(stream: &Stream, sets: usize, [rows, columns]: [usize; 2]) -> Result<Self> {
        let blocks = columns.div_ceil(BLOCK);
        Ok(ScalesOfC {
            rows,
            blocks,
            scales: stream.zeroed(sets * blocks * Self::ld(rows))?,
        })
    }

    /// Scales from one block of a row to its next one.
    fn ld(rows: usize) -> usize {
        rows.next_multiple_of(4)
    }

    /// Those of a set.
    fn places(&self, set: usize) -> Range<usize> {
        let len = self.blocks * Self::ld(self.rows);
        set * len..(set + 1) * len
    }

    /// Those of a set, for writing.
    pub fn matrix_mut(&mut self, set: usize) -> cutlet::Result<MatrixMut<'_, f32>> {
        let (rows, blocks, ld) = (self.rows, self.blocks, Self::ld(self.rows));
        let scales = self.scales.slice_mut(self.places(set))?;
        MatrixMut::with_ld(scales, rows, blocks, Order::ColMajor, ld)
    }

    /// Fills them with NaN.
    pub fn poison(&mut self, stream: &Stream) -> Result<()> {
        Ok(stream.fill_bytes(self.scales.view_mut(), 0xff)?)
    }

    /// The numbers of set 0's C, whose elements lie so: each times its scale.
    pub fn numbers<D: Number>(&self, stream: &Stream, c: &[D], of: &Operand) -> Result<Vec<f32>> {
        let scales = stream.download(self.scales.slice(self.places(0))?)?;
        let ld = Self::ld(self.rows);
        let number = |(at, element): (usize, &D)| {
            let (row, column) = (at / of.ld, at % of.ld);
            // Elements between rows have no scale.
            let scale = scales.get(column / BLOCK * ld + row);
            element.to_f64() as f32 * scale.copied().unwrap_or(f32::NAN)
        };
        Ok(c.iter().enumerate().map(number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet::Device;

    #[test]
    fn each_set_has_scales_of_its_own() {
        let stream = Device::cpu().stream().unwrap();
        let [rows, columns] = [5, 300];
        let mut scales = ScalesOfC::new(&stream, 2, [rows, columns]).unwrap();
        let of_c = Operand::new(1, [rows, columns], Order::RowMajor, 4, 1);
        let ones = vec![F8E4M3::from_f32(1.0); rows * columns];
        for (set, expected) in [(1, 0.0), (0, 0.5)] {
            let halves = stream.upload(&[0.5f32; 3 * 8]).unwrap();
            let places = scales.places(set);
            let of_set = scales.scales.slice_mut(places).unwrap();
            stream.copy(&halves, of_set).unwrap();
            let numbers = scales.numbers(&stream, &ones, &of_c).unwrap();
            assert_eq!(numbers, [expected; 5 * 300], "{set}");
        }
        assert!(scales.matrix_mut(1).is_ok() && scales.matrix_mut(2).is_err());
    }
}
