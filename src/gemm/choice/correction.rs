//! The correction: log(time / model) of a candidate, predicted from its [features](Features). The model knows what a
//! kernel has to do. The correction knows how long kernels took at the problems of the [table](super::measured), relative
//! to the model.
//!
//! It is a sum of decision trees, fitted by gradient boosting: each tree predicts what those before it leave. All nodes of
//! a level ask the same question, so the answers of a tree's levels are the bits of a leaf's number. Such trees are called
//! oblivious.

use std::sync::LazyLock;

use super::cost::{FEATURES, Features};

/// Levels of a tree.
pub const DEPTH: usize = 6;
/// Leaves of a tree.
pub const LEAVES: usize = 1 << DEPTH;
/// The unit of a leaf's value.
pub const UNIT: f32 = 1e-4;

/// Trees after which candidates are compared, and how far the logarithm of an estimate may then be from the least. What
/// is further is not looked at by the later trees, which correct less and less.
const AT_A_TIME: usize = 50;
const FAR: f32 = 0.08;

/// The trees that were fitted to all tables, as `cargo xtask measured --fit` writes them.
static FITTED: LazyLock<Trees> =
    LazyLock::new(|| Trees::read(include_str!("trees.txt")).unwrap_or_default());

/// A sum of decision trees.
#[derive(Debug, Default, PartialEq)]
pub struct Trees(Vec<Tree>);

/// A decision tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The question of each level.
    pub levels: [Question; DEPTH],
    /// The value of each leaf, in [`UNIT`]s. The answer of the first level is the highest bit of a leaf's number.
    pub leaves: [i16; LEAVES],
}

/// Whether a feature is greater than a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The feature's place.
    pub feature: usize,
    /// The threshold.
    pub threshold: f32,
}

impl Trees {
    /// The trees that were fitted to the measured times.
    pub fn fitted() -> &'static Trees {
        &FITTED
    }

    /// These trees.
    pub fn new(trees: Vec<Tree>) -> Self {
        Self(trees)
    }

    /// Trees from their text. A line is a tree: its questions, such as `12>0.5`, and the values of its leaves. None if a
    /// line is something else.
    pub fn read(text: &str) -> Option<Self> {
        text.lines()
            .map(Tree::read)
            .collect::<Option<_>>()
            .map(Self)
    }

    /// The text of the trees.
    pub fn text(&self) -> String {
        self.0.iter().map(|tree| tree.text() + "\n").collect()
    }

    /// The index of the candidate that is estimated to be the fastest, of candidates with these features and estimates of
    /// the model. None if there are none.
    pub fn fastest(&self, candidates: &[(Features, f64)]) -> Option<usize> {
        let estimates = candidates.iter().map(|(_, clocks)| clocks.ln() as f32);
        let mut left: Vec<_> = estimates.enumerate().collect();
        for trees in self.0.chunks(AT_A_TIME) {
            let mut least = f32::INFINITY;
            for (at, estimate) in &mut left {
                *estimate += UNIT * sum(trees, &candidates[*at].0);
                least = least.min(*estimate);
            }
            left.retain(|(_, estimate)| *estimate <= least + FAR);
        }
        let fastest = left.into_iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
        fastest.map(|(at, _)| at)
    }
}

/// The sum of the values that trees have for a candidate with these features.
fn sum(trees: &[Tree], features: &Features) -> f32 {
    let values = trees.iter().map(|tree| i32::from(tree.value(features)));
    values.sum::<i32>() as f32
}

impl Tree {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let mut levels = [Question {
            feature: 0,
            threshold: 0.0,
        }; DEPTH];
        for level in &mut levels {
            let (feature, threshold) = words.next()?.split_once('>')?;
            let feature = feature.parse().ok().filter(|it| *it < FEATURES)?;
            *level = Question {
                feature,
                threshold: threshold.parse().ok()?,
            };
        }
        let mut leaves = [0; LEAVES];
        for leaf in &mut leaves {
            *leaf = words.next()?.parse().ok()?;
        }
        words.next().is_none().then_some(Self { levels, leaves })
    }

    fn text(&self) -> String {
        let levels = self.levels.iter();
        let levels = levels.map(|it| format!("{}>{}", it.feature, it.threshold));
        let leaves = self.leaves.iter().map(i16::to_string);
        levels.chain(leaves).collect::<Vec<_>>().join(" ")
    }

    /// The value of the leaf that a candidate with these features comes to.
    fn value(&self, features: &Features) -> i16 {
        let answers = self.levels.iter();
        let answers = answers.map(|level| features[level.feature] > level.threshold);
        self.leaves[answers.fold(0, |leaf, is_greater| 2 * leaf + usize::from(is_greater))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_read_as_they_were_written() {
        let text = include_str!("trees.txt");
        let trees = Trees::read(text).unwrap();
        assert!(trees.0.len() > 100);
        assert!(trees.text() == text);
        let line = text.lines().next().unwrap();
        for wrong in [
            "",
            "0>1",
            &line[2..],
            &format!("{line} 1"),
            &line.replace('>', "<"),
            &format!("{FEATURES}>0 {line}"),
        ] {
            assert_eq!(Trees::read(&format!("{wrong}\n")), None, "{wrong}");
        }
    }

    #[test]
    fn answers_lead_to_a_leaf() {
        let question = |feature| Question {
            feature,
            threshold: 0.5,
        };
        let levels = std::array::from_fn(question);
        let leaves = std::array::from_fn(|leaf| leaf as i16);
        let trees = [Tree { levels, leaves }, Tree { levels, leaves }];
        let mut features = [0.0; FEATURES];
        assert_eq!(sum(&trees, &features), 0.0);
        features[DEPTH - 1] = 0.6;
        features[0] = 1.0;
        assert_eq!(sum(&trees, &features), 2.0 * (LEAVES / 2 + 1) as f32);
    }

    #[test]
    fn the_fastest_after_correction_is_chosen() {
        let level = Question {
            feature: 3,
            threshold: 0.5,
        };
        let mut leaves = [0; LEAVES];
        // e^0.03 times the model's time.
        leaves[LEAVES - 1] = 300;
        let tree = Tree {
            levels: [level; DEPTH],
            leaves,
        };
        let mut slower_than_modeled = [0.0; FEATURES];
        slower_than_modeled[3] = 1.0;
        for (clocks, expected) in [(1.02, 1), (1.04, 0)] {
            let candidates = [(slower_than_modeled, 1.0), ([0.0; FEATURES], clocks)];
            let fastest = Trees::new(vec![tree.clone()]).fastest(&candidates);
            assert_eq!(fastest, Some(expected));
            assert_eq!(Trees::default().fastest(&candidates), Some(0));
        }
        assert_eq!(Trees::fitted().fastest(&[]), None);
    }
}
