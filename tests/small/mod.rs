//! Small whole numbers, whose products and sums every element type holds exactly.

use cutlet::{Buffer, Result, Stream};

use crate::convert::Convert;

/// Numbers from −1 to 1.
pub fn small(len: usize, seed: u64) -> Vec<i32> {
    let mut random = crate::random::generator(seed);
    (0..len).map(|_| random.i32(-1..=1)).collect()
}

/// The numbers as elements of `T`.
pub fn upload<T: Convert>(stream: &Stream, numbers: &[i32]) -> Result<Buffer<T>> {
    let elements: Vec<T> = numbers.iter().map(|&number| T::of(number.into())).collect();
    Ok(stream.upload(&elements)?)
}
