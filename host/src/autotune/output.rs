//! Outputs of candidates: how they are poisoned, read and compared.

use cutlet_device::DeviceData;

use crate::{Result, Stream, ViewMut};

/// An output in operands `S`, with its reference.
pub trait Output<S> {
    /// Whether launches do not read the elements.
    fn is_poisoned(&self) -> bool;

    /// Fills the elements with a byte, unless launches read them.
    fn poison(&self, stream: &Stream, operands: &mut S, byte: u8) -> Result<()>;

    /// Takes the elements as the reference, once the stream's work is done.
    fn keep(&mut self, stream: &Stream, operands: &mut S) -> Result<()>;

    /// How the elements differ from the reference, if they do.
    fn difference(&self, stream: &Stream, operands: &mut S) -> Result<Option<String>>;
}

/// The elements of a view.
pub struct Elements<T, F> {
    view: F,
    /// How far an element may be off.
    tolerance: f64,
    is_poisoned: bool,
    reference: Vec<T>,
}

impl<T, F> Elements<T, F> {
    /// No reference yet.
    pub fn new(view: F, tolerance: f64, is_poisoned: bool) -> Self {
        Elements {
            view,
            tolerance,
            is_poisoned,
            reference: Vec::new(),
        }
    }
}

impl<S, T: DeviceData + Into<f64>, F: Fn(&mut S) -> ViewMut<'_, T>> Output<S> for Elements<T, F> {
    fn is_poisoned(&self) -> bool {
        self.is_poisoned
    }

    fn poison(&self, stream: &Stream, operands: &mut S, byte: u8) -> Result<()> {
        match self.is_poisoned {
            true => stream.fill_bytes((self.view)(operands), byte),
            false => Ok(()),
        }
    }

    fn keep(&mut self, stream: &Stream, operands: &mut S) -> Result<()> {
        self.reference = stream.download((self.view)(operands).view())?;
        Ok(())
    }

    fn difference(&self, stream: &Stream, operands: &mut S) -> Result<Option<String>> {
        let found = stream.download((self.view)(operands).view())?;
        Ok(difference(&found, &self.reference, self.tolerance))
    }
}

fn difference<T: Copy + Into<f64>>(found: &[T], expected: &[T], tolerance: f64) -> Option<String> {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Some(format!("it has {found} elements in place of {expected}"));
    }
    let size = root_mean_square(expected);
    let (mut count, mut worst, mut most) = (0, 0, 0.0);
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let excess = excess(found.into(), expected.into(), tolerance, size);
        count += usize::from(excess > 0.0);
        if excess > most {
            (worst, most) = (at, excess);
        }
    }
    (count > 0).then(|| {
        let [was, should]: [f64; 2] = [found[worst].into(), expected[worst].into()];
        format!(
            "{count} of {} elements differ, most of all element {worst}, which is {was:e} in place of {should:e}",
            found.len()
        )
    })
}

/// By how much an element is further from the expected one than it may be.
fn excess(found: f64, expected: f64, tolerance: f64, size: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let excess = (found - expected).abs() - tolerance * (expected.abs() + size);
    // NaN if one of the two is no finite number.
    if excess.is_nan() {
        f64::INFINITY
    } else {
        excess
    }
}

/// The typical size of an element that is a finite number.
fn root_mean_square<T: Copy + Into<f64>>(elements: &[T]) -> f64 {
    let numbers = elements.iter().map(|&element| element.into());
    let finite = numbers.filter(|number: &f64| number.is_finite());
    let (squares, count) = finite.fold((0.0, 0), |(squares, count), number| {
        (squares + number * number, count + 1)
    });
    (squares / f64::from(count.max(1))).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_may_differ_by_a_share_of_their_size_and_of_the_typical_size() {
        let expected = [3.0, -4.0, 0.0];
        // The root mean square is 2.89.
        assert_eq!(difference(&expected, &expected, 0.0), None);
        assert_eq!(difference(&[3.05, -4.06, 0.02], &expected, 0.01), None);
        let found = difference(&[3.05, -4.06, 0.04], &expected, 0.01).unwrap();
        let worst = "1 of 3 elements differ, most of all element 2, which is 4e-2 in place of 0e0";
        assert_eq!(found, worst);
        let found = difference(&[3.1, -4.2, 0.0], &expected, 0.01).unwrap();
        assert!(
            found.contains("2 of 3 elements differ, most of all element 1"),
            "{found}"
        );
    }

    #[test]
    fn what_is_no_number_is_right_where_none_is_expected() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert_eq!(difference(&[nan, infinity], &[nan, infinity], 0.0), None);
        for (found, expected) in [
            (nan, 1.0),
            (1.0, nan),
            (infinity, 1.0),
            (1.0, infinity),
            (infinity, -infinity),
            (nan, infinity),
        ] {
            assert!(
                difference(&[found], &[expected], 1e-2).is_some(),
                "{found} {expected}"
            );
        }
        assert!(difference(&[1.0], &[1.0, 2.0], 1.0).is_some());
    }
}
