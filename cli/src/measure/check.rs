//! Checks of an output: all of it against another output, samples of it against f64.

use cutlet::{Stream, View};
use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_host::PinnedBuffer;
use half::{bf16, f16};
use rayon::prelude::*;
use serde::Serialize;

use super::error::Result;
use crate::deviation::Deviation;

/// The findings of a check.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// What is wrong, if anything.
    pub wrong: Option<String>,
    /// The largest relative distance from f64 that counts as right; 0 where every bit must agree.
    pub tolerance: f64,
    /// cutlet's whole output against the baseline's.
    pub to_baseline: Option<Deviation>,
    /// Samples of cutlet's output against f64.
    pub to_f64: Option<Deviation>,
    /// The same samples of the baseline's output against f64.
    pub baseline_to_f64: Option<Deviation>,
}

/// How far an output is from the reference: all 0 if they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distance {
    /// ‖found − reference‖ / ‖reference‖.
    pub relative: f64,
    /// The largest |found − reference|.
    pub max: f64,
}

impl Distance {
    /// The distance of an output that equals the reference.
    pub const NONE: Distance = Distance {
        relative: 0.0,
        max: 0.0,
    };
}

impl Check {
    /// A check that has found nothing yet.
    pub fn new(tolerance: f64) -> Check {
        Check {
            tolerance,
            ..Check::default()
        }
    }

    /// The distance that one of the deviations is, or 0 where every bit was compared.
    pub fn distance(&self, deviation: Option<Deviation>) -> Option<Distance> {
        match deviation {
            Some(Deviation { relative, max, .. }) => Some(Distance { relative, max }),
            None => (self.tolerance == 0.0).then_some(Distance::NONE),
        }
    }

    /// Notes what is wrong, unless something else is noted.
    pub fn fail(&mut self, found: impl Into<String>) {
        self.wrong.get_or_insert_with(|| found.into());
    }
}

/// What is wrong with an output of this deviation, if anything. Its relative distance may be at most `tolerance`, and
/// no entry may be off by eight times that share of `size`, an entry's typical size: a single wrong entry shows in the
/// maximum, not in the mean.
pub fn wrong(deviation: &Deviation, tolerance: f64, size: f64) -> Option<String> {
    let most = 8.0 * tolerance * size;
    let Deviation { relative, max, .. } = *deviation;
    if let Some(no_numbers) = deviation.no_numbers() {
        Some(no_numbers)
    } else if relative > tolerance {
        Some(format!(
            "the relative distance is {relative:.1e}, more than {tolerance:.1e}"
        ))
    } else if max > most {
        Some(format!(
            "an entry is off by {max:.1e}, more than {most:.1e}"
        ))
    } else {
        None
    }
}

/// An element of an operand or an output.
pub trait Number: DeviceData {
    /// Its value.
    fn to_f64(self) -> f64;

    /// Whether it is an element of memory that was filled with bytes of 0xff: NaN, or −1 of an integer.
    fn is_poison(self) -> bool {
        self.to_f64().is_nan()
    }
}

/// An element of an output.
pub trait Nearest: Number {
    /// The element nearest to a value.
    fn nearest(value: f64) -> Self;
}

impl Number for f32 {
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Nearest for f32 {
    fn nearest(value: f64) -> f32 {
        value as f32
    }
}

impl Number for f64 {
    fn to_f64(self) -> f64 {
        self
    }
}

impl Nearest for f64 {
    fn nearest(value: f64) -> f64 {
        value
    }
}

macro_rules! integer {
    ($($integer:ty),*) => {$(
        impl Number for $integer {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn is_poison(self) -> bool {
                self == -1
            }
        }

        impl Nearest for $integer {
            fn nearest(value: f64) -> $integer {
                value.round_ties_even() as $integer
            }
        }
    )*};
}
integer!(i8, i32);

macro_rules! half {
    ($($half:ty),*) => {$(
        impl Number for $half {
            fn to_f64(self) -> f64 {
                f64::from(self.to_f32())
            }
        }

        impl Nearest for $half {
            fn nearest(value: f64) -> $half {
                <$half>::from_f32(value as f32)
            }
        }
    )*};
}
half!(f16, bf16);

impl Number for F8E4M3 {
    fn to_f64(self) -> f64 {
        f64::from(self.to_f32())
    }
}

impl Nearest for F8E4M3 {
    fn nearest(value: f64) -> F8E4M3 {
        // Its largest number is 448.
        F8E4M3::from_f32(value.abs().min(448.0).copysign(value) as f32)
    }
}

impl Number for F8E5M2 {
    fn to_f64(self) -> f64 {
        f64::from(self.to_f32())
    }
}

impl Nearest for F8E5M2 {
    fn nearest(value: f64) -> F8E5M2 {
        F8E5M2::from_f32(value as f32)
    }
}

/// Elements that are copied to the host and compared at a time.
const CHUNK: usize = 8 << 20;

/// Copies `view` to the host in chunks of at most `chunk` elements, and calls `visit` with the number of each chunk's
/// first element and the chunk.
///
/// # Errors
/// If the device fails.
pub fn in_chunks<T: DeviceData>(
    stream: &Stream,
    view: View<'_, T>,
    chunk: usize,
    mut visit: impl FnMut(usize, &[T]),
) -> Result<()> {
    let mut here = PinnedBuffer::<T>::zeroed(stream.device(), chunk.min(view.len()))?;
    for first in (0..view.len()).step_by(chunk.max(1)) {
        let part = view.slice(first..(first + chunk).min(view.len()))?;
        stream.copy_to_host(part, &mut here[..part.len()])?;
        visit(first, &here[..part.len()]);
    }
    Ok(())
}

/// How far all of `found` is from `expected`.
///
/// # Errors
/// If the device fails.
pub fn whole<T: Number>(
    stream: &Stream,
    found: View<'_, T>,
    expected: View<'_, T>,
) -> Result<Deviation> {
    let mut expected_here = PinnedBuffer::<T>::zeroed(stream.device(), CHUNK.min(expected.len()))?;
    let mut sums = Sums::default();
    let mut failed = None;
    in_chunks(stream, found, CHUNK, |first, found| {
        let expected_here = &mut expected_here[..found.len()];
        let brought = expected
            .slice(first..first + found.len())
            .and_then(|part| stream.copy_to_host(part, expected_here));
        match brought {
            Ok(()) => sums = sums.and(Sums::of(found, expected_here)),
            Err(error) => failed = Some(error),
        }
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(sums.deviation()),
    }
}

/// Partial sums of the distance of two outputs.
#[derive(Clone, Copy, Default)]
struct Sums {
    squared_errors: f64,
    squares: f64,
    max: f64,
    entries: usize,
    not_numbers: usize,
}

impl Sums {
    fn of<T: Number>(found: &[T], expected: &[T]) -> Sums {
        let parts = found.par_chunks(1 << 16).zip(expected.par_chunks(1 << 16));
        parts
            .map(|(found, expected)| {
                let mut sums = Sums::default();
                for (found, expected) in found.iter().zip(expected) {
                    sums.add(found.to_f64(), expected.to_f64());
                }
                sums
            })
            .reduce(Sums::default, Sums::and)
    }

    fn add(&mut self, found: f64, expected: f64) {
        self.entries += 1;
        let error = (found - expected).abs();
        if !error.is_finite() {
            self.not_numbers += 1;
            return;
        }
        self.squared_errors += error * error;
        self.squares += expected * expected;
        self.max = self.max.max(error);
    }

    fn and(self, other: Sums) -> Sums {
        Sums {
            squared_errors: self.squared_errors + other.squared_errors,
            squares: self.squares + other.squares,
            max: self.max.max(other.max),
            entries: self.entries + other.entries,
            not_numbers: self.not_numbers + other.not_numbers,
        }
    }

    fn deviation(self) -> Deviation {
        // Against an output of zeros, the error is absolute.
        let scale = if self.squares > 0.0 {
            self.squares
        } else {
            1.0
        };
        Deviation {
            relative: (self.squared_errors / scale).sqrt(),
            max: self.max,
            entries: self.entries,
            not_numbers: self.not_numbers,
            // Random operands of a benchmark give none.
            rightly_none: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet::Device;

    #[test]
    fn the_nearest_e4m3_is_the_number_itself_and_the_even_one_between_two() {
        // 0x7f and 0xff are NaN.
        for bits in (0..=0xff).filter(|bits| bits & 0x7f != 0x7f) {
            let number = F8E4M3::from_bits(bits);
            assert_eq!(F8E4M3::nearest(number.to_f64()).to_bits(), bits);
        }
        assert_eq!(F8E4M3::nearest(1.0625).to_f32(), 1.0);
        assert_eq!(F8E4M3::nearest(-1.1875).to_f32(), -1.25);
        assert_eq!(F8E4M3::nearest(1e6).to_f32(), 448.0);
    }

    #[test]
    fn whole_outputs_are_compared_to_the_last_entry() {
        let stream = Device::auto().stream().unwrap();
        let expected = vec![3.0f32; CHUNK + 5];
        let on_expected = stream.upload(&expected).unwrap();
        let mut found = expected;
        let compare = |found: &[f32]| {
            let found = stream.upload(found).unwrap();
            whole(&stream, found.view(), on_expected.view()).unwrap()
        };
        assert_eq!(compare(&found).max, 0.0);
        found[CHUNK + 4] = 4.5;
        let deviation = compare(&found);
        assert_eq!((deviation.max, deviation.entries), (1.5, CHUNK + 5));
        found[0] = f32::NAN;
        assert_eq!(compare(&found).not_numbers, 1);
    }
}
