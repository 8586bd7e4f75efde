//! The scales of 8-bit floats: how many there are, which element has which, and how a product gets them.

use std::fmt;
use std::rc::Rc;

use clap::ValueEnum;
use cutlet::{
    BlockScaledOperand, Buffer, DeviceData, Float, Gemm, ScaledOperand, Stream, Tensor, layout,
};

use crate::normal::generator;
use cutlet_cli::cublas;

/// Elements of k, and of B's columns, that have a scale together.
const BLOCK: usize = 128;
/// The scales of a column of B's blocks begin at multiples of so many: cuBLASLt reads them so.
const UNIT: usize = 4;

/// Which elements of A, and of B, have a scale in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Scales {
    /// There are no scales.
    #[default]
    None,
    /// All of A, and all of B.
    Tensor,
    /// A row of A, and a column of B.
    Outer,
    /// 1×128 elements of A, and 128×128 of B.
    Blocks,
}

impl Scales {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scales::None => "none",
            Scales::Tensor => "tensor",
            Scales::Outer => "outer",
            Scales::Blocks => "blocks",
        }
    }
}

impl fmt::Display for Scales {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the scales of a product of m, n and k lie, or of those of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Which scales there are.
    pub are: Scales,
    /// The product's m, n and k.
    pub extents: [usize; 3],
    /// How many As there are, and how many Bs. Each has scales of its own, which follow those of the one before.
    pub matrices: [usize; 2],
}

impl Places {
    /// How many numbers hold the scales of all As, and of all Bs.
    pub fn counts(self) -> [usize; 2] {
        let [of_a, of_b] = self.matrices;
        let [a, b] = self.counts_of_one();
        [of_a * a, of_b * b]
    }

    /// How many numbers hold the scales of an A, and of a B.
    fn counts_of_one(self) -> [usize; 2] {
        let [m, n, _] = self.extents;
        match self.are {
            Scales::None => [0; 2],
            Scales::Tensor => [1; 2],
            Scales::Outer => [m, n],
            Scales::Blocks => [m * self.k_blocks(), n.div_ceil(BLOCK) * self.ld_of_b()],
        }
    }

    /// The place of the scale of the last A's element at this row and column. There are scales.
    pub fn of_a(self, row: usize, column: usize) -> usize {
        let ([m, ..], [first, _]) = (self.extents, self.first_of_last());
        first
            + match self.are {
                Scales::None | Scales::Tensor => 0,
                Scales::Outer => row,
                Scales::Blocks => column / BLOCK * m + row,
            }
    }

    /// The place of the scale of the last B's element at this row and column. There are scales.
    pub fn of_b(self, row: usize, column: usize) -> usize {
        let [_, first] = self.first_of_last();
        first
            + match self.are {
                Scales::None | Scales::Tensor => 0,
                Scales::Outer => column,
                Scales::Blocks => column / BLOCK * self.ld_of_b() + row / BLOCK,
            }
    }

    /// The places of the first scales of the last A, and of the last B.
    fn first_of_last(self) -> [usize; 2] {
        let ([all_a, all_b], [a, b]) = (self.counts(), self.counts_of_one());
        [all_a - a, all_b - b]
    }

    /// Blocks along k.
    fn k_blocks(self) -> usize {
        let [_, _, k] = self.extents;
        k.div_ceil(BLOCK)
    }

    /// Numbers from the scales of a column of B's blocks to those of the next one.
    fn ld_of_b(self) -> usize {
        self.k_blocks().next_multiple_of(UNIT)
    }
}

/// The scales of a product: random numbers from a half to one and a half.
#[derive(Clone, Debug)]
pub struct HostScales {
    /// Where they lie.
    pub places: Places,
    /// Those of A.
    pub a: Vec<f32>,
    /// Those of B.
    pub b: Vec<f32>,
}

impl HostScales {
    /// Random ones.
    pub fn random(places: Places, seed: u64) -> Self {
        let mut random = generator(seed);
        let [a, b] = places
            .counts()
            .map(|count| (0..count).map(|_| random.f32() + 0.5).collect());
        HostScales { places, a, b }
    }

    /// The same with those of A multiplied by a factor.
    pub fn times(mut self, factor: f32) -> Self {
        self.a.iter_mut().for_each(|scale| *scale *= factor);
        self
    }

    /// The factor of the product of the last A's element at (`row`, `l`) and the last B's at (`l`, `column`).
    pub fn factor(&self, [row, column]: [usize; 2], l: usize) -> f64 {
        match self.places.are {
            Scales::None => 1.0,
            _ => {
                let of_a = self.a[self.places.of_a(row, l)];
                let of_b = self.b[self.places.of_b(l, column)];
                f64::from(of_a) * f64::from(of_b)
            }
        }
    }

    /// The same scales on a device.
    ///
    /// # Errors
    /// If the device has too little memory.
    pub fn upload(&self, stream: &Stream) -> cutlet::Result<DeviceScales> {
        Ok(DeviceScales {
            host: self.clone(),
            a: Rc::new(stream.upload(&self.a)?),
            b: Rc::new(stream.upload(&self.b)?),
        })
    }
}

/// The scales of a product on a device, and on the host.
pub struct DeviceScales {
    /// The same on the host.
    pub host: HostScales,
    a: Rc<Buffer<f32>>,
    b: Rc<Buffer<f32>>,
}

impl DeviceScales {
    /// cuBLASLt's scales; `None` if there are none.
    pub fn for_cublas(&self) -> Option<cublas::Scales> {
        let mode = match self.host.places.are {
            Scales::None => return None,
            Scales::Tensor => cublas::ScaleMode::Tensor,
            Scales::Outer => cublas::ScaleMode::Outer,
            Scales::Blocks => cublas::ScaleMode::Blocks,
        };
        let (a, b) = (self.a.clone(), self.b.clone());
        Some(cublas::Scales { mode, a, b })
    }
}

/// A way to give a product its scales.
pub type Scale<T, D> =
    for<'a> fn(Gemm<'a, T, D>, &'a DeviceScales) -> cutlet::Result<Gemm<'a, T, D>>;

/// Gives a product scales of any kind.
pub fn scale<'a, T: BlockScaledOperand, D: Float>(
    gemm: Gemm<'a, T, D>,
    scales: &'a DeviceScales,
) -> cutlet::Result<Gemm<'a, T, D>> {
    match scales.host.places.are {
        Scales::Blocks => scale_by_blocks(gemm, scales),
        _ => scale_but_blocks(gemm, scales),
    }
}

/// Gives a product scales of blocks.
pub fn scale_by_blocks<'a, T: BlockScaledOperand, D: DeviceData>(
    gemm: Gemm<'a, T, D>,
    DeviceScales { host, a, b }: &'a DeviceScales,
) -> cutlet::Result<Gemm<'a, T, D>> {
    let places = host.places;
    let ([m, n, _], [as_, bs], [to_next_a, to_next_b]) =
        (places.extents, places.matrices, places.counts_of_one());
    let (k_blocks, n_blocks, ld) = (places.k_blocks(), n.div_ceil(BLOCK), places.ld_of_b());
    let of_a = layout!((dyn m, dyn k_blocks, dyn as_):(1, dyn m, dyn to_next_a));
    let of_b = layout!((dyn k_blocks, dyn n_blocks, dyn bs):(1, dyn ld, dyn to_next_b));
    Ok(gemm.block_scales(Tensor::new(a.view(), of_a)?, Tensor::new(b.view(), of_b)?))
}

/// Gives a product scales of rows and columns, of which there may be one for all.
pub fn scale_but_blocks<'a, T: ScaledOperand, D: Float>(
    gemm: Gemm<'a, T, D>,
    DeviceScales { host, a, b }: &'a DeviceScales,
) -> cutlet::Result<Gemm<'a, T, D>> {
    Ok(match host.places.are {
        Scales::None => gemm,
        _ => gemm.outer_scales(&**a, &**b),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_has_its_scale() {
        let scales_of = |matrices, are| {
            let places = Places {
                are,
                extents: [3, 300, 700],
                matrices,
            };
            HostScales::random(places, 1)
        };
        let scales = |are| scales_of([1; 2], are);
        let blocks = scales(Scales::Blocks);
        assert_eq!([blocks.a.len(), blocks.b.len()], [3 * 6, 3 * 8]);
        let factor = f64::from(blocks.a[2 * 3 + 1]) * f64::from(blocks.b[8 + 2]);
        assert_eq!(blocks.factor([1, 255], 256), factor);
        let outer = scales(Scales::Outer);
        let factor = f64::from(outer.a[2]) * f64::from(outer.b[299]);
        assert_eq!(outer.factor([2, 299], 699), factor);
        let tensor = scales(Scales::Tensor);
        assert_eq!([tensor.a.len(), tensor.b.len()], [1, 1]);
        assert_eq!(scales(Scales::None).factor([2, 299], 699), 1.0);
        let of_batch = scales_of([4, 1], Scales::Outer);
        assert_eq!([of_batch.a.len(), of_batch.b.len()], [4 * 3, 300]);
        let factor = f64::from(of_batch.a[11]) * f64::from(of_batch.b[299]);
        assert_eq!(of_batch.factor([2, 299], 699), factor);
    }
}
