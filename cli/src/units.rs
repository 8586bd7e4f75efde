//! Times and speeds in words, in the unit in which they read best.

/// A time: `3.2 us`, `640 ms`.
pub fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// A speed by its unit: `715 TFLOP/s` of 7.15·10¹⁴ and `FLOP/s`.
pub fn speed(per_second: f64, unit: &str) -> String {
    let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let fitting = scales.into_iter().find(|(scale, _)| per_second >= *scale);
    let (scale, prefix) = fitting.unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", figure(per_second / scale))
}

/// A ratio of speeds: `1.069`, and `2.1e-3` where three digits after the point would say nothing.
pub fn ratio(ratio: f64) -> String {
    match ratio {
        ..0.1 => format!("{ratio:.1e}"),
        _ => format!("{ratio:.3}"),
    }
}

/// A figure with three or four digits.
pub fn figure(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_string(),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 0.1 => format!("{figure:.2}"),
        _ => format!("{figure:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_unit_that_it_reads_best_in() {
        assert_eq!(time(3.21), "3.2 us");
        assert_eq!(time(639_600.4), "639.6 ms");
        assert_eq!(time(2_000_000.0), "2.00 s");
        assert_eq!(speed(7.154e14, "FLOP/s"), "715 TFLOP/s");
        assert_eq!(speed(4.2e8, "FLOP/s"), "420 MFLOP/s");
        assert_eq!(speed(3.0, "B/s"), "3.00 B/s");
        assert_eq!(speed(0.0, "FLOP/s"), "0 FLOP/s");
        assert_eq!(ratio(1.0694), "1.069");
        assert_eq!(ratio(0.00214), "2.1e-3");
    }
}
