//! Outputs of candidates: how they are poisoned, read and compared.

use std::rc::Rc;

use cutlet_device::DeviceData;

use crate::{Result, Stream, ViewMut};

/// Fills an output with a byte.
type Poison<'a, S> = Box<dyn Fn(&Stream, &mut S, u8) -> Result<()> + 'a>;
/// Reads an output.
type Read<'a, S> = Box<dyn Fn(&Stream, &mut S) -> Result<Vec<f64>> + 'a>;

/// An output in operands `S`.
pub struct Output<'a, S> {
    /// None if launches read the elements, too.
    poison: Option<Poison<'a, S>>,
    read: Read<'a, S>,
    tolerance: f64,
}

impl<'a, S> Output<'a, S> {
    /// The elements of a view.
    pub fn new<T: DeviceData + Into<f64>>(
        view: impl Fn(&mut S) -> ViewMut<'_, T> + 'a,
        tolerance: f64,
        is_poisoned: bool,
    ) -> Self {
        let view = Rc::new(view);
        let of_poison = view.clone();
        let poison: Poison<'a, S> =
            Box::new(move |stream, operands, byte| stream.fill_bytes(of_poison(operands), byte));
        Output {
            poison: is_poisoned.then_some(poison),
            read: Box::new(move |stream, operands| {
                let elements = stream.download(view(operands).view())?;
                Ok(elements.into_iter().map(T::into).collect())
            }),
            tolerance,
        }
    }

    /// Whether launches do not read the elements.
    pub fn is_poisoned(&self) -> bool {
        self.poison.is_some()
    }

    /// Fills the elements with a byte, unless launches read them.
    pub fn poison(&self, stream: &Stream, operands: &mut S, byte: u8) -> Result<()> {
        match &self.poison {
            Some(poison) => poison(stream, operands, byte),
            None => Ok(()),
        }
    }

    /// The elements, once the stream's work is done.
    pub fn read(&self, stream: &Stream, operands: &mut S) -> Result<Vec<f64>> {
        (self.read)(stream, operands)
    }

    /// How the elements that were found differ from those that were expected, if they do.
    pub fn difference(&self, found: &[f64], expected: &[f64]) -> Option<String> {
        difference(found, expected, self.tolerance)
    }
}

fn difference(found: &[f64], expected: &[f64], tolerance: f64) -> Option<String> {
    if found.len() != expected.len() {
        let (found, expected) = (found.len(), expected.len());
        return Some(format!("it has {found} elements in place of {expected}"));
    }
    let size = root_mean_square(expected);
    let excess = |(&found, &expected): (&f64, &f64)| {
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
    };
    let excesses = found.iter().zip(expected).map(excess).enumerate();
    let wrong: Vec<(usize, f64)> = excesses.filter(|(_, excess)| *excess > 0.0).collect();
    let (worst, _) = *wrong.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(format!(
        "{} of {} elements differ, most of all element {worst}, which is {:e} in place of {:e}",
        wrong.len(),
        found.len(),
        found[worst],
        expected[worst]
    ))
}

/// The typical size of an element that is a finite number.
fn root_mean_square(elements: &[f64]) -> f64 {
    let finite = || elements.iter().filter(|element| element.is_finite());
    let squares: f64 = finite().map(|element| element * element).sum();
    (squares / finite().count().max(1) as f64).sqrt()
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
