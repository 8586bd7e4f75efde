//! Whether the ratios in results follow from the times beside them.

use super::{Figures, Measured};
use crate::measure::statistics::Spread;

/// How far a ratio may be from its bounds, relatively. Some stored times were computed from printed speeds of three
/// digits.
const ROUNDING: f64 = 1e-2;

/// The contradiction between a problem's ratios and times, if there is one. It names the column.
pub fn contradiction(measured: &Measured) -> Option<String> {
    let both = measured.cutlet().zip(measured.baseline());
    let sustained = |figures: &Figures| figures.sustained_microseconds;
    let sustained = both.and_then(|(ours, theirs)| Some((sustained(ours)?, sustained(theirs)?)));
    let medians = both.map(|(Figures { microseconds, .. }, theirs)| {
        (microseconds.median, theirs.microseconds.median)
    });
    within_medians("ratio", measured.ratio, medians)
        .or_else(|| {
            let (ours, theirs) = both?;
            within_extremes(
                "ratio",
                &measured.ratio?,
                &ours.microseconds,
                &theirs.microseconds,
            )
        })
        .or_else(|| within_medians("sustained_ratio", measured.sustained_ratio, sustained))
}

/// If every round's ratio is at least r, so is the ratio of the medians. The same holds for at most. `times` are those
/// of cutlet and of the baseline.
fn within_medians(
    column: &str,
    ratio: Option<Spread>,
    times: Option<(f64, f64)>,
) -> Option<String> {
    let Spread { min, max, .. } = ratio?;
    let Some((ours, theirs)) = times else {
        return Some(format!(
            "there is a {column}, but no time of both cutlet and a baseline"
        ));
    };
    let expected = theirs / ours;
    let is_within = min * (1.0 - ROUNDING) <= expected && expected <= max * (1.0 + ROUNDING);
    (!is_within).then(|| {
        format!(
            "the ratio of the median times is {}, which is not from {column}_min, {min}, to {column}_max, {max}",
            rounded(expected)
        )
    })
}

/// No round's ratio is beyond that of the extreme times. Where all extremes are their median, they are unknown.
fn within_extremes(column: &str, ratio: &Spread, ours: &Spread, theirs: &Spread) -> Option<String> {
    if [ours, theirs].iter().all(|times| times.min == times.max) {
        return None;
    }
    let (least, most) = (theirs.min / ours.max, theirs.max / ours.min);
    let bounds = least * (1.0 - ROUNDING)..=most * (1.0 + ROUNDING);
    let extremes = [("min", ratio.min), ("max", ratio.max)];
    let (end, found) = extremes.iter().find(|(_, found)| !bounds.contains(found))?;
    Some(format!(
        "{column}_{end} is {found}, but the times allow {} to {} only",
        rounded(least),
        rounded(most)
    ))
}

/// A figure with six digits.
fn rounded(figure: f64) -> f64 {
    format!("{figure:.5e}").parse().unwrap_or(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::case::Role;

    fn spread(median: f64, min: f64, max: f64) -> Spread {
        Spread { median, min, max }
    }

    fn measured(ratio: Spread, sustained_ratio: Option<Spread>) -> Measured {
        let figures = |role, microseconds: Spread| Figures {
            name: String::new(),
            role,
            default: false,
            microseconds,
            speed: 1.0,
            sustained_microseconds: Some(microseconds.median),
            error: None,
        };
        Measured {
            contestants: vec![
                figures(Role::Cutlet, spread(2.0, 1.75, 2.5)),
                figures(Role::Baseline, spread(3.0, 2.75, 3.5)),
            ],
            ratio: Some(ratio),
            sustained_ratio,
            passed_over: Vec::new(),
            telemetry: None,
        }
    }

    #[test]
    fn ratios_of_rounds_are_those_of_the_times() {
        let right = spread(1.5, 1.25, 1.75);
        for sustained in [None, Some(right)] {
            assert_eq!(contradiction(&measured(right, sustained)), None);
        }
        for (wrong, found) in [
            (
                spread(1.2, 1.1, 1.4),
                "the ratio of the median times is 1.5",
            ),
            (
                spread(1.5, 1.0, 1.75),
                "ratio_min is 1, but the times allow 1.1 to 2 only",
            ),
            (spread(1.5, 1.25, 2.1), "ratio_max is 2.1, but"),
        ] {
            let contradiction = contradiction(&measured(wrong, None)).unwrap();
            assert!(contradiction.starts_with(found), "{contradiction}");
        }
        let sustained = spread(2.0, 1.9, 2.1);
        let contradiction = contradiction(&measured(right, Some(sustained))).unwrap();
        assert!(
            contradiction.contains("sustained_ratio_min, 1.9"),
            "{contradiction}"
        );
    }

    #[test]
    fn a_ratio_needs_the_times_of_both() {
        let mut alone = measured(spread(1.5, 1.25, 1.75), None);
        alone.contestants.pop();
        let contradiction = contradiction(&alone).unwrap();
        assert!(
            contradiction.starts_with("there is a ratio, but no time"),
            "{contradiction}"
        );
    }
}
