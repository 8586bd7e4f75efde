//! Figures in words.

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
    fn a_ratio_has_digits_that_say_something() {
        assert_eq!(ratio(1.0694), "1.069");
        assert_eq!(ratio(0.00214), "2.1e-3");
    }
}
