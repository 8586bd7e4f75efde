//! Verdicts: whether a kernel is faster than the estimated one beyond the noise, and the line that says so.

use std::fmt;

use cutlet::{BetaKind, BiasAlong, Order, Precision, ProblemKey, ScalesKind};
use serde::Serialize;

use crate::measure::epilogue::Epilogue;
use crate::measure::statistics::Spread;
use crate::measure::timer::Times;

/// A kernel that was timed at a problem.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kernel {
    #[serde(rename = "kernel")]
    pub name: String,
    pub microseconds: f64,
}

impl Kernel {
    pub fn new(name: &str, microseconds: f64) -> Kernel {
        Kernel {
            name: name.to_string(),
            microseconds,
        }
    }
}

/// What was measured at a problem.
pub struct Measured {
    /// The kernel that is estimated to be the fastest.
    pub estimated: Kernel,
    /// The kernel that is the fastest.
    pub fastest: Kernel,
    /// The estimated kernel's time over the fastest one's, round by round.
    pub gain: Spread,
}

impl Measured {
    /// Compares the estimated kernel with the fastest of the others, each with its name. None if there are no others.
    pub fn new(
        estimated: &str,
        times_of_estimated: &Times,
        others: &[(String, &Times)],
    ) -> Option<Self> {
        let median = |times: &Times| Spread::of(&times.rounds).median;
        let by_median = |(_, one): &&(String, &Times), (_, other): &&(String, &Times)| {
            median(one).total_cmp(&median(other))
        };
        let (fastest, times) = others.iter().min_by(by_median)?;
        Some(Measured {
            estimated: Kernel::new(estimated, median(times_of_estimated)),
            fastest: Kernel::new(fastest, median(times)),
            gain: Spread::of_ratio(&times_of_estimated.rounds, &times.rounds),
        })
    }

    /// Whether the fastest kernel is another one than the estimated one, and faster beyond the noise.
    pub fn is_gain(&self) -> bool {
        self.fastest.name != self.estimated.name && self.gain.is_gain()
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured {
            estimated,
            fastest,
            gain,
        } = self;
        let verdict = match self.is_gain() {
            true => "written",
            false => "within the noise",
        };
        let verdict = if fastest.name == estimated.name {
            "the same"
        } else {
            verdict
        };
        write!(
            f,
            "{:<34} {:>10.2} {:<34} {:>10.2} {:>7.3}x {:>5.1}% {verdict}",
            estimated.name,
            estimated.microseconds,
            fastest.name,
            fastest.microseconds,
            gain.median,
            gain.relative() * 100.0
        )
    }
}

/// The line above the problems.
pub fn header() -> String {
    format!(
        "{:<40} {:<34} {:>10} {:<34} {:>10} {:>8} {:>6}",
        "problem", "estimated", "us", "fastest", "us", "gain", "±"
    )
}

/// The problem in a few words: `bf16 4096x4096x1024 nt bias+gelu`. What is usual is left out.
pub fn title(key: &ProblemKey) -> String {
    let [m, n, k] = key.extents;
    let letter = |order: Order| match order {
        Order::RowMajor => 'n',
        Order::ColMajor => 't',
    };
    let [a, b] = key.orders.map(letter);
    let batch = match key.batch {
        1 => String::new(),
        batch => format!("{batch} × "),
    };
    let mut title = format!("{} {batch}{m}x{n}x{k} {a}{b}", key.operands);
    let mut say = |words: String| title += &format!(" {words}");
    if key.c != key.operands {
        say(format!("into {}", key.c));
    }
    if key.precision != Precision::Exact {
        say(format!("in {}", key.precision));
    }
    match key.scales {
        ScalesKind::None => {}
        ScalesKind::Outer { in_pairs: true } => say("outer scales".to_string()),
        ScalesKind::Outer { in_pairs: false } => say("outer scales, unpaired".to_string()),
        ScalesKind::Blocks => say("block scales".to_string()),
    }
    match key.beta {
        BetaKind::Zero => {}
        BetaKind::One => say("beta 1".to_string()),
        BetaKind::Other => say("any beta".to_string()),
    }
    let epilogue = Epilogue {
        bias: key.bias.is_some(),
        activation: key.activation,
    };
    if !epilogue.is_none() {
        say(epilogue.to_string());
    }
    if key.bias == Some(BiasAlong::Rows) {
        say("of rows".to_string());
    }
    if key.residual.is_some() {
        say("residual".to_string());
    }
    match key.shared {
        [false, false] => {}
        [true, false] => say("of one A".to_string()),
        [false, true] => say("of one B".to_string()),
        [true, true] => say("of one A and B".to_string()),
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rounds: &[f64]) -> Times {
        Times {
            contestant: 0,
            rounds: rounds.to_vec(),
            sustained: Vec::new(),
            graph_runs: None,
        }
    }

    #[test]
    fn a_gain_is_beyond_the_noise_and_of_another_kernel() {
        let estimated = times(&[10.0, 10.2, 10.1]);
        for (rounds, name, is_gain) in [
            ([9.0, 9.1, 9.2], "b", true),
            ([9.0, 9.1, 9.2], "a", false),
            // One round is slower.
            ([9.0, 9.1, 10.2], "b", false),
            // Faster in every round, by half a per cent.
            ([9.95, 10.15, 10.05], "b", false),
        ] {
            let fast = times(&rounds);
            let slow = times(&[20.0, 20.0, 20.0]);
            let others = [("c".to_string(), &slow), (name.to_string(), &fast)];
            let measured = Measured::new("a", &estimated, &others).unwrap();
            assert_eq!(measured.fastest.name, name);
            assert_eq!(measured.is_gain(), is_gain, "{rounds:?} of {name}");
        }
        assert!(Measured::new("a", &estimated, &[]).is_none());
    }

    #[test]
    fn a_title_says_what_is_unusual() {
        let usual = "operands=bf16 c=bf16 precision=exact m=1 n=2 k=3 a=row b=col alignments=128,128,4 beta=0 \
                     bias=none residual=none activation=none";
        let title = |line: &str| title(&line.parse().unwrap());
        assert_eq!(title(usual), "bf16 1x2x3 nt");
        let unusual = usual
            .replace("c=bf16", "c=f32")
            .replace("beta=0", "beta=other")
            .replace("bias=none", "bias=rows")
            .replace("activation=none", "activation=gelu")
            .replace("residual=none", "residual=row");
        let expected = "bf16 1x2x3 nt into f32 any beta bias+gelu of rows residual";
        assert_eq!(title(&unusual), expected);
        let scaled = usual.replace("exact", "exact scales=blocks");
        assert_eq!(title(&scaled), "bf16 1x2x3 nt block scales");
        let batch = usual.replace("k=3", "k=3 batch=5 shared=b");
        assert_eq!(title(&batch), "bf16 5 × 1x2x3 nt of one B");
    }
}
