//! Axes: the place of each figure, and the ticks.

/// Maps figures to places along one direction.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    figures: (f64, f64),
    places: (f64, f64),
    logarithmic: bool,
}

impl Axis {
    /// Equal differences are equal distances.
    pub fn linear(figures: (f64, f64), places: (f64, f64)) -> Axis {
        Axis {
            figures,
            places,
            logarithmic: false,
        }
    }

    /// Equal factors are equal distances.
    pub fn logarithmic(figures: (f64, f64), places: (f64, f64)) -> Axis {
        Axis {
            figures,
            places,
            logarithmic: true,
        }
    }

    /// The place of a figure. Figures beyond an end are placed at that end.
    pub fn place(&self, figure: f64) -> f64 {
        let scale = |figure: f64| match self.logarithmic {
            true => figure.max(f64::MIN_POSITIVE).ln(),
            false => figure,
        };
        let (first, last) = (scale(self.figures.0), scale(self.figures.1));
        let part = ((scale(figure) - first) / (last - first)).clamp(0.0, 1.0);
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    /// Round figures on a linear axis, about `count` of them.
    pub fn ticks(&self, count: usize) -> Vec<f64> {
        let span = self.figures.1 - self.figures.0;
        let step = round_step(span / count as f64);
        let first = (self.figures.0 / step).ceil() as i64;
        let last = (self.figures.1 / step * (1.0 + 1e-12)).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// The powers of `base` on a logarithmic axis.
    pub fn powers(&self, base: f64) -> Vec<f64> {
        let exponent = |figure: f64| figure.ln() / base.ln();
        let first = (exponent(self.figures.0) - 1e-9).ceil() as i32;
        let last = (exponent(self.figures.1) + 1e-9).floor() as i32;
        (first..=last).map(|n| base.powi(n)).collect()
    }
}

/// A tick in words, without needless zeros.
pub fn label(tick: f64) -> String {
    match tick {
        0.0 => "0".to_string(),
        ..0.001 => format!("{tick:.0e}"),
        _ => {
            let text = format!("{tick:.6}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            text.to_string()
        }
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let enough = factors
        .iter()
        .find(|&&factor| factor * power >= step * 0.999);
    enough.unwrap_or(&10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_figures() {
        let axis = Axis::linear((0.0, 1070.0), (0.0, 100.0));
        assert_eq!(axis.ticks(6), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        let axis = Axis::linear((0.0, 0.9), (0.0, 100.0));
        assert_eq!(axis.ticks(4).len(), 4);
    }

    #[test]
    fn a_tick_has_no_needless_zeros() {
        let labels = [0.0, 1000.0, 50.0, 0.25, 1e-7].map(label);
        assert_eq!(labels, ["0", "1000", "50", "0.25", "1e-7"]);
    }

    #[test]
    fn a_factor_is_a_distance_on_a_logarithmic_axis() {
        let axis = Axis::logarithmic((0.5, 2.0), (0.0, 100.0));
        assert!((axis.place(1.0) - 50.0).abs() < 1e-9);
        assert_eq!(axis.place(8.0), 100.0);
        assert_eq!(axis.powers(2.0), [0.5, 1.0, 2.0]);
    }
}
