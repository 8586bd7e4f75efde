//! Random inputs, made on the device.

use cutlet::{Buffer, Stream};
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::{DeviceData, GlobalMut, Kernel};
use cutlet_kernels::fill::{self, ROW, Random};
use half::{bf16, f16};
use rayon::prelude::*;

use super::check::Nearest;
use super::error::Result;

/// A type whose random elements fill memory.
pub trait Fill: DeviceData {
    /// See [`random`].
    ///
    /// # Errors
    /// As there.
    fn filled(stream: &Stream, len: usize, seed: u64) -> Result<Buffer<Self>>;
}

macro_rules! filled {
    ($($element:ty: $kernel:ident),*) => {$(
        impl Fill for $element {
            fn filled(stream: &Stream, len: usize, seed: u64) -> Result<Buffer<Self>> {
                by_kernel(&fill::$kernel, stream, len, seed)
            }
        }
    )*};
}
filled!(
    f32: fill_f32, f64: fill_f64, f16: fill_f16, bf16: fill_bf16, F8E4M3: fill_e4m3, u32: fill_u32,
    i8: fill_i8, i32: fill_i32
);

/// No kernel makes them. The host rounds numbers of f32.
impl Fill for F8E5M2 {
    fn filled(stream: &Stream, len: usize, seed: u64) -> Result<Buffer<Self>> {
        let numbers: Vec<f32> = stream.download(&random(stream, len, seed)?)?;
        let numbers = numbers.par_iter().map(|&number| Self::from_f32(number));
        Ok(stream.upload(&numbers.collect::<Vec<_>>())?)
    }
}

/// At least `len` random elements: N(0, 1) for floats, any bits for `u32`, −128 to 127 for `i8` and `i32`.
/// Element `i` is `T::random(bits(seed, i))`.
///
/// # Errors
/// If the device has too little memory or does not run the kernel.
pub fn random<T: Fill>(stream: &Stream, len: usize, seed: u64) -> Result<Buffer<T>> {
    T::filled(stream, len, seed)
}

fn by_kernel<T: Random>(
    kernel: &'static Kernel<(i32, u64, GlobalMut<T>)>,
    stream: &Stream,
    len: usize,
    seed: u64,
) -> Result<Buffer<T>> {
    let rows = len.div_ceil(ROW);
    let mut buffer = stream.zeroed(rows * ROW)?;
    if let Ok(rows) = u32::try_from(rows)
        && rows > 0
    {
        let function = stream.device().load(&cutlet_kernels::PTX, kernel)?;
        // SAFETY: the buffer has `rows` whole rows and is aligned like every buffer.
        unsafe { stream.launch(&function, rows, (rows as i32, seed, &mut buffer))? };
    }
    Ok(buffer)
}

/// [`random`] elements, each times `scale`.
///
/// # Errors
/// As [`random`].
pub fn scaled<T: Fill + Nearest>(
    stream: &Stream,
    len: usize,
    seed: u64,
    scale: f32,
) -> Result<Buffer<T>> {
    let mut buffer = random(stream, len, seed)?;
    if scale != 1.0 {
        let mut elements: Vec<T> = stream.download(&buffer)?;
        elements
            .par_iter_mut()
            .for_each(|element| *element = T::nearest(element.to_f64() * f64::from(scale)));
        stream.copy_from_host(&elements, &mut buffer)?;
    }
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use cutlet::Device;

    #[test]
    fn floats_are_normally_distributed() {
        let stream = Device::auto().stream().unwrap();
        let numbers = random::<f32>(&stream, 4 * ROW, 7).unwrap();
        let numbers = stream.download(&numbers).unwrap();
        let moment = |power: i32| {
            let powers = numbers.iter().map(|&x| f64::from(x).powi(power));
            powers.sum::<f64>() / numbers.len() as f64
        };
        assert!(moment(1).abs() < 0.03, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.05, "variance {}", moment(2));
        assert!((moment(4) - 3.0).abs() < 0.4, "kurtosis {}", moment(4));
    }

    #[test]
    fn wide_floats_are_those_of_f32_with_more_bits() {
        let bits = (0..1000).map(|index| fill::bits(7, index));
        for (narrow, wide) in bits.map(|bits| (f32::random(bits), f64::random(bits))) {
            assert!((wide - f64::from(narrow)).abs() <= f64::from(narrow.abs()) / 8_388_608.0);
            assert_ne!(f64::from(wide as f32), wide);
        }
    }

    #[test]
    fn narrow_integers_are_from_the_whole_range() {
        let stream = Device::auto().stream().unwrap();
        let numbers = random::<i8>(&stream, 2 * ROW, 7).unwrap();
        let numbers: HashSet<i8> = stream.download(&numbers).unwrap().into_iter().collect();
        assert_eq!(numbers.len(), 256);
    }

    #[test]
    fn integers_are_what_the_host_computes() {
        let stream = Device::auto().stream().unwrap();
        let words = random::<u32>(&stream, 2 * ROW, 3).unwrap();
        let expected: Vec<u32> = (0..2 * ROW as u64)
            .map(|index| u32::random(fill::bits(3, index)))
            .collect();
        assert_eq!(stream.download(&words).unwrap(), expected);
    }

    #[test]
    fn e4m3_is_the_nearest_to_the_same_number_in_f32() {
        for index in 0..10_000 {
            let bits = fill::bits(5, index);
            let (exact, rounded) = (f32::random(bits), F8E4M3::random(bits).to_f32());
            // Three bits of mantissa, and steps of 1/512 around 0.
            let half_a_step = (exact.abs() / 16.0).max(1.0 / 1024.0);
            assert!((exact - rounded).abs() <= half_a_step, "{exact} {rounded}");
        }
    }

    #[test]
    fn scaled_numbers_are_the_same_ones_times_the_scale() {
        let stream = Device::auto().stream().unwrap();
        let of = |buffer: Buffer<f32>| stream.download(&buffer).unwrap();
        let whole = of(random(&stream, ROW, 7).unwrap());
        let halves = of(scaled(&stream, ROW, 7, 0.5).unwrap());
        let expected: Vec<f32> = whole.iter().map(|x| 0.5 * x).collect();
        assert_eq!(halves, expected);
        assert_eq!(halves.len(), ROW);
    }

    #[test]
    fn seeds_give_different_numbers() {
        let stream = Device::auto().stream().unwrap();
        let first = |seed| {
            let numbers = random::<bf16>(&stream, 1, seed).unwrap();
            stream.download(numbers.slice(..8).unwrap()).unwrap()
        };
        assert_ne!(first(1), first(2));
    }

    /// A and B of a problem are two such sequences. If they overlapped, their product would have a diagonal of sums of
    /// squares.
    #[test]
    fn sequences_of_different_seeds_have_nothing_in_common() {
        let numbers = |seed| (0..1 << 16).map(move |index| fill::bits(seed, index));
        let first: HashSet<u64> = numbers(1).collect();
        assert_eq!(first.len(), 1 << 16);
        assert!(numbers(2).all(|number| !first.contains(&number)));
    }
}
