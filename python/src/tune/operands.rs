//! The operands that products are measured on: arrays like the caller's, in memory of their own, with random numbers.

use std::iter;

use cutlet::{DeviceData, F8E4M3, Stream, bf16, f16};
use cutlet_host::{Buffer, ViewMut};

use crate::array::Array;
use crate::product::Product;

/// An element type that random numbers have.
pub trait Random: DeviceData + Into<f64> {
    /// A number of a standard normal distribution in this type; for integers, sixteen times as large.
    fn of(normal: f32) -> Self;
}

macro_rules! random {
    ($($element:ty: |$normal:ident| $number:expr;)+) => {$(
        impl Random for $element {
            fn of($normal: f32) -> $element {
                $number
            }
        }
    )+};
}
random! {
    f32: |normal| normal;
    f64: |normal| f64::from(normal);
    bf16: |normal| bf16::from_f32(normal);
    f16: |normal| f16::from_f32(normal);
    F8E4M3: |normal| F8E4M3::from_f32(normal);
    i8: |normal| (16.0 * normal) as i8;
    i32: |normal| (16.0 * normal) as i32;
}

/// Numbers before they repeat. It is prime, so that rows of a matrix differ.
const PERIOD: usize = 1_048_573;

/// Random numbers of a standard normal distribution, nearly: sums of four uniform ones. Seeds have different numbers.
fn normals(seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = move || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    let sum = move || 3f32.sqrt() * iter::repeat_with(&mut uniform).take(4).sum::<f32>();
    iter::repeat_with(sum).take(PERIOD).collect()
}

/// An array like one of the caller's: its content, and where it begins, so that it has the same alignment.
struct Like<T> {
    content: Vec<T>,
    offset: usize,
}

impl<T: Random> Like<T> {
    fn new(array: &Array, seed: u64, scale: f32) -> Like<T> {
        let numbers = normals(seed);
        let offset = array.offset_in_line();
        let repeated = numbers.iter().cycle().take(offset + array.span());
        Like {
            content: repeated.map(|it| T::of(scale * it)).collect(),
            offset,
        }
    }

    fn upload(&self, stream: &Stream) -> cutlet_host::Result<Buffer<T>> {
        stream.upload(&self.content)
    }

    fn bytes(&self) -> usize {
        self.content.len() * size_of::<T>()
    }
}

/// What the operands of a product are made of.
pub struct Template<T, D> {
    a: Like<T>,
    b: Like<T>,
    c: Like<D>,
    bias: Option<Like<D>>,
    residual: Option<Like<D>>,
}

/// Operands of a product.
pub struct Operands<T: DeviceData, D: DeviceData> {
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<D>,
    bias: Option<Buffer<D>>,
    residual: Option<Buffer<D>>,
    offset_of_c: usize,
}

impl<T: Random, D: Random> Template<T, D> {
    /// Those of a product. What an activation gets is about as large as a standard normal number.
    pub fn new(product: &Product<'_>) -> Template<T, D> {
        let k = product.a.shape()[1].max(1);
        // A power of two, so that no digit is lost.
        let scale = (-0.5 * (k as f32).log2()).round().exp2();
        // Integers have sixteen times the size, and are not scaled.
        let scale = if size_of::<T>() == 1 { 1.0 } else { scale };
        Template {
            a: Like::new(product.a, 1, scale),
            b: Like::new(product.b, 2, 1.0),
            c: Like::new(product.c, 3, 1.0),
            bias: product.bias.map(|(bias, _)| Like::new(bias, 4, 1.0)),
            residual: product.residual.map(|it| Like::new(it, 5, 1.0)),
        }
    }

    /// Operands in memory of their own. All have the same content.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn make(&self, stream: &Stream) -> cutlet_host::Result<Operands<T, D>> {
        let upload = |like: &Option<Like<D>>| like.as_ref().map(|it| it.upload(stream)).transpose();
        Ok(Operands {
            a: self.a.upload(stream)?,
            b: self.b.upload(stream)?,
            c: self.c.upload(stream)?,
            bias: upload(&self.bias)?,
            residual: upload(&self.residual)?,
            offset_of_c: self.c.offset,
        })
    }

    /// Bytes of all operands.
    pub fn bytes(&self) -> usize {
        let others = [&self.bias, &self.residual];
        let others = others.into_iter().flatten().map(Like::bytes);
        self.a.bytes() + self.b.bytes() + self.c.bytes() + others.sum::<usize>()
    }
}

impl<T: Random, D: Random> Operands<T, D> {
    /// The elements of C, from the first to the last.
    pub fn c(&mut self) -> ViewMut<'_, D> {
        let elements = self.offset_of_c..self.c.len();
        self.c.slice_mut(elements).expect("C follows its offset")
    }

    /// Does something with a product like another one, of these operands.
    pub fn with<R>(&mut self, of: &Product<'_>, work: impl FnOnce(&Product<'_>) -> R) -> R {
        let (a, b, c) = (
            placed(of.a, &self.a),
            placed(of.b, &self.b),
            placed(of.c, &self.c),
        );
        let bias = of.bias.zip(self.bias.as_ref());
        let bias = bias.map(|((array, along), buffer)| (placed(array, buffer), along));
        let residual = of.residual.zip(self.residual.as_ref());
        let residual = residual.map(|(array, buffer)| placed(array, buffer));
        work(&Product {
            a: &a,
            b: &b,
            c: &c,
            bias: bias.as_ref().map(|(array, along)| (array, *along)),
            residual: residual.as_ref(),
            scales: None,
            ..*of
        })
    }
}

/// An array like another one in a buffer.
fn placed<T: DeviceData>(array: &Array, buffer: &Buffer<T>) -> Array {
    let offset = array.offset_in_line() * size_of::<T>();
    array.at(buffer.view().address() + offset as u64)
}
