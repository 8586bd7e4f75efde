//! The fit: the trees of the correction, by gradient boosting to the times of the tables.

use std::array;
use std::collections::HashMap;

use cutlet::__choice::{
    FEATURES, Features, LEAVES, Question, REACH, Tree, Trees, UNIT, any_type, by_model,
};
use cutlet_kernels::gemm::sm90::instances::BF16;
use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;

use crate::times::{GENERATIONS, Line, generations, measured, times};

/// How many trees are fitted.
pub const TREES: usize = 300;
/// How much of what is left each tree takes.
const RATE: f32 = 0.2;
/// Weight without an error in each leaf, which draws the leaf's value towards 0.
const DRAWN_BY: f32 = 5.0;
/// The share of the samples that a tree is fitted to, and of the features that may be a level's question.
const SHARE_OF_SAMPLES: f32 = 0.7;
const SHARE_OF_FEATURES: f32 = 0.7;
/// The most values that are told apart of a feature.
const BINS: usize = 64;
/// Candidates that the model takes for slower than this multiple of the fastest are no samples.
const MOST: f64 = 1.6;
/// Lines of fewer microseconds are not fitted if they are of an earlier generation than the last. Their instances were
/// looked at in single runs, so that fast ones are missing.
const SHORT: f64 = 40.0;
/// A sample's weight falls by a factor of e with this distance from the fastest, but not below the least weight: what
/// matters is which instances are the fastest.
const NEAR: f32 = 0.1;
const LEAST_WEIGHT: f32 = 0.15;
/// The largest error that counts as such.
const MOST_ERROR: f32 = 0.4;

/// A line of a table, with all candidates that were there to be timed.
pub struct Problem {
    pub device: usize,
    pub extents: [usize; 3],
    /// Microseconds of the fastest instance of the line.
    fastest: f64,
    /// Microseconds of the slowest one. Instances that the line leaves out take longer.
    slowest: f64,
    candidates: Vec<Known>,
}

/// A candidate at a problem.
struct Known {
    features: Features,
    /// The model's clocks.
    clocks: f64,
    /// Microseconds. None if the line leaves the instance out.
    time: Option<f64>,
}

/// What a candidate shows.
struct Sample {
    features: Features,
    /// log(time / model), relative to the least time and the least estimate at its problem.
    error: f32,
    /// Whether this is only the least that the error may be.
    is_least: bool,
    weight: f32,
}

impl Problem {
    /// The problems of all tables that are fitted.
    pub fn all() -> Vec<Problem> {
        let traits = BF16.iter().map(|it| &it.traits);
        let k_major = traits.filter(|it| it.k_major == [true; 2]);
        let by_name: HashMap<_, _> = k_major.map(|it| (any_type(it.name()), it)).collect();
        let generations = times().map(generations);
        let is_fitted = |line: &Line| {
            let is_long = line
                .times()
                .next()
                .is_some_and(|(_, fastest)| fastest >= SHORT);
            line.generation == GENERATIONS.len() || is_long
        };
        let fitted = measured().filter(|(_, _, line)| is_fitted(line));
        let problems = fitted.map(|(device, speed, line)| {
            let names = &generations[device][line.generation];
            let timed: HashMap<_, _> = line.times().collect();
            let input = line.input(speed);
            let mut instances: Vec<_> = names
                .iter()
                .filter_map(|name| Some((*name, *by_name.get(name)?)))
                .collect();
            instances.sort_by_key(|(_, it): &(_, &KernelTraits)| it.nth);
            let candidates = instances.into_iter().filter_map(|(name, instance)| {
                let candidate = by_model(instance, &input, 0.0, f64::INFINITY)?;
                Some(Known {
                    features: candidate.features(&input),
                    clocks: candidate.clocks,
                    time: timed.get(name).copied(),
                })
            });
            let microseconds = || line.times().map(|(_, microseconds)| microseconds);
            Problem {
                device,
                extents: line.extents,
                fastest: microseconds().fold(f64::INFINITY, f64::min),
                slowest: microseconds().fold(0.0, f64::max),
                candidates: candidates.collect(),
            }
        });
        problems.collect()
    }

    /// What the choice by the model and these trees loses, relative to the fastest instance. One that the line leaves
    /// out counts as the slowest that it has.
    pub fn loss(&self, trees: &Trees) -> f64 {
        let most = REACH * self.least();
        let within_reach = self.candidates.iter().filter(|it| it.clocks <= most);
        let within_reach: Vec<_> = within_reach.collect();
        let estimates: Vec<_> = within_reach
            .iter()
            .map(|it| (it.features, it.clocks))
            .collect();
        let chosen = trees
            .fastest(&estimates)
            .and_then(|at| within_reach[at].time);
        let time = chosen.unwrap_or(self.slowest);
        time / self.fastest - 1.0
    }

    /// The model's least estimate.
    fn least(&self) -> f64 {
        let clocks = self.candidates.iter().map(|it| it.clocks);
        clocks.fold(f64::INFINITY, f64::min)
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        let least = self.least();
        let near = self.candidates.iter();
        let near = near.filter(move |it| it.clocks <= MOST * least);
        near.map(move |it| {
            let time = it.time.unwrap_or(self.slowest);
            let slower = (time / self.fastest).ln() as f32;
            Sample {
                features: it.features,
                error: slower - (it.clocks / least).ln() as f32,
                is_least: it.time.is_none(),
                weight: (-slower / NEAR).exp() + LEAST_WEIGHT,
            }
        })
    }
}

/// Fits so many trees to problems.
pub fn fit(problems: &[&Problem], trees: usize) -> Trees {
    let samples: Vec<_> = problems.iter().flat_map(|it| it.samples()).collect();
    let binned = Binned::of(&samples);
    let mut predicted = vec![0.0; samples.len()];
    let mut random = Random(1);
    let trees = (0..trees).map(|_| {
        let chosen = (0..samples.len()).filter(|_| random.below(SHARE_OF_SAMPLES));
        let left = chosen.collect::<Vec<_>>().into_iter().map(|at| {
            let sample = &samples[at];
            let error = (sample.error - predicted[at]).clamp(-MOST_ERROR, MOST_ERROR);
            match sample.is_least && error < 0.0 {
                true => (at, [0.0; 2]),
                false => (at, [sample.weight * error, sample.weight]),
            }
        });
        let (tree, leaf_of) = binned.tree(&left.collect::<Vec<_>>(), &mut random);
        for (predicted, leaf) in predicted.iter_mut().zip(leaf_of) {
            *predicted += f32::from(tree.leaves[leaf]) * UNIT;
        }
        tree
    });
    Trees::new(trees.collect())
}

/// The features of samples, as numbers of bins.
struct Binned {
    /// Between the bins of each feature.
    thresholds: [Vec<f32>; FEATURES],
    /// The bin of each sample, for each feature.
    bins: [Vec<u8>; FEATURES],
}

/// An index of a sample, and its weight times what is left of its error, and its weight.
type Left = (usize, [f32; 2]);

impl Binned {
    fn of(samples: &[Sample]) -> Self {
        let values = |feature: usize| samples.iter().map(move |it| it.features[feature]);
        let thresholds = array::from_fn(|feature| thresholds(values(feature).collect()));
        let bins = array::from_fn(|feature| {
            let thresholds: &Vec<f32> = &thresholds[feature];
            let bin = |value| thresholds.partition_point(|it| *it < value) as u8;
            values(feature).map(bin).collect()
        });
        Self { thresholds, bins }
    }

    /// The tree that takes the most of what is left, and each sample's leaf.
    fn tree(&self, left: &[Left], random: &mut Random) -> (Tree, Vec<usize>) {
        let mut leaf_of = vec![0; self.bins[0].len()];
        let levels = array::from_fn(|level| {
            let (feature, bin) = self.question(left, &leaf_of, 1 << level, random);
            for (leaf, bin_of) in leaf_of.iter_mut().zip(&self.bins[feature]) {
                *leaf = 2 * *leaf + usize::from(usize::from(*bin_of) > bin);
            }
            Question {
                feature,
                threshold: self.thresholds[feature][bin],
            }
        });
        let mut sums = [[0.0; 2]; LEAVES];
        for &(at, [error, weight]) in left {
            sums[leaf_of[at]][0] += error;
            sums[leaf_of[at]][1] += weight;
        }
        let leaves =
            sums.map(|[error, weight]| (RATE * error / (weight + DRAWN_BY) / UNIT).round() as i16);
        (Tree { levels, leaves }, leaf_of)
    }

    /// The feature and the bin that halve these leaves best.
    fn question(
        &self,
        left: &[Left],
        leaf_of: &[usize],
        leaves: usize,
        random: &mut Random,
    ) -> (usize, usize) {
        let mut best = (0.0, (0, 0));
        for feature in 0..FEATURES {
            let count = self.thresholds[feature].len();
            if count == 0 || !random.below(SHARE_OF_FEATURES) {
                continue;
            }
            let mut sums = vec![[[0.0f32; 2]; BINS]; leaves];
            for &(at, [error, weight]) in left {
                let sum = &mut sums[leaf_of[at]][usize::from(self.bins[feature][at])];
                sum[0] += error;
                sum[1] += weight;
            }
            let mut gains = vec![0.0; count];
            for sums in &sums {
                let all = sums
                    .iter()
                    .fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
                let mut below = [0.0; 2];
                for (gain, sum) in gains.iter_mut().zip(sums) {
                    below = [below[0] + sum[0], below[1] + sum[1]];
                    *gain += taken(below) + taken([all[0] - below[0], all[1] - below[1]]);
                }
            }
            for (bin, gain) in gains.into_iter().enumerate() {
                if gain > best.0 {
                    best = (gain, (feature, bin));
                }
            }
        }
        best.1
    }
}

/// By how much a leaf of these sums lessens the squares of errors.
fn taken([error, weight]: [f32; 2]) -> f32 {
    error * error / (weight + DRAWN_BY)
}

/// Thresholds between the values of a feature: between any two of them if they are few, and between equally many if not.
fn thresholds(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_by(f32::total_cmp);
    let mut few = values.clone();
    few.dedup();
    if few.len() <= BINS {
        return few.windows(2).map(|it| (it[0] + it[1]) / 2.0).collect();
    }
    let between = (1..BINS).map(|bin| values[bin * values.len() / BINS]);
    let mut between: Vec<_> = between.collect();
    between.dedup();
    between
}

/// Numbers that are random enough.
struct Random(u64);

impl Random {
    /// Whether the next number of those from 0 to 1 is below a share.
    fn below(&mut self, share: f32) -> bool {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 40) as f32) < share * (1 << 24) as f32
    }
}

/// The mean of losses, the least of the largest tenth, and the largest, in percent.
fn spread(losses: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut losses: Vec<_> = losses.map(|loss| 100.0 * loss).collect();
    losses.sort_by(f64::total_cmp);
    let mean = losses.iter().sum::<f64>() / losses.len() as f64;
    [
        mean,
        losses[losses.len() * 9 / 10],
        losses[losses.len() - 1],
    ]
}

/// One of two halves of all problems. A problem that was timed on several devices is in the same half for each.
fn half([m, n, k]: [usize; 3]) -> usize {
    (m.wrapping_mul(31) ^ n.wrapping_mul(17) ^ k.wrapping_mul(7)).wrapping_mul(0x9E37_79B9) >> 16
        & 1
}

/// Prints what choices lose if the correction is fitted to half of the problems: there, and at the other half.
pub fn check() {
    let problems = Problem::all();
    let halves = [0, 1].map(|which| {
        let of_half = problems.iter().filter(|it| half(it.extents) == which);
        of_half.collect::<Vec<_>>()
    });
    let trees = [&halves[1], &halves[0]].map(|others| fit(others, TREES));
    for (device, name) in [(0, "H200"), (1, "H100")] {
        let on_device = |half: usize, judged: usize| {
            let of_half = halves[half].iter().filter(move |it| it.device == device);
            let trees = &trees[judged];
            of_half.map(|it| it.loss(trees))
        };
        for (which, [mean, tenth, worst]) in [
            (
                "their own half of the problems",
                spread(on_device(0, 1).chain(on_device(1, 0))),
            ),
            (
                "the other half",
                spread(on_device(0, 0).chain(on_device(1, 1))),
            ),
        ] {
            println!(
                "{name}: at {which}, choices lose {mean:.1} % on average, a tenth of them {tenth:.1} % or more, and \
                 {worst:.1} % at most"
            );
        }
    }
}

/// The trees that are fitted to all problems.
pub fn fit_all() -> Trees {
    let problems = Problem::all();
    fit(&problems.iter().collect::<Vec<_>>(), TREES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trees_fit_the_model_and_the_tables() {
        let losses = Problem::all()
            .into_iter()
            .map(|it| it.loss(Trees::fitted()));
        let [mean, ..] = spread(losses);
        assert!(
            mean < 2.0,
            "{mean}: `cargo xtask measured --fit` fits them anew"
        );
    }

    #[test]
    fn trees_lessen_what_choices_lose() {
        let problems = Problem::all();
        let some: Vec<_> = problems.iter().step_by(16).collect();
        let mean = |trees: &Trees| {
            let [mean, ..] = spread(some.iter().map(|it| it.loss(trees)));
            mean
        };
        let without = mean(&Trees::default());
        assert!(mean(&fit(&some, 60)) < 0.8 * without, "{without}");
    }
}
