//! The candidates for a problem, and what they compute.

use std::collections::HashSet;
use std::fmt;

use cutlet_device::DeviceData;

use super::output::{Elements, Output};
use crate::measure::ROUNDS;
use crate::{Result, Stream, ViewMut};

/// Why a launch failed: its error, of whatever type.
pub(super) type Failure = Box<dyn std::error::Error>;

/// Makes operands.
type Make<'a, S> = Box<dyn FnMut(&Stream) -> Result<S> + 'a>;
/// A launch into a stream, on operands.
type Launch<'a, S> = Box<dyn FnMut(&Stream, &mut S) -> Result<(), Failure> + 'a>;

/// The candidates for a problem, for [`Autotuner::tune`](crate::Autotuner::tune): launches that compute the same from
/// operands `S`, most often instances of one kernel.
///
/// A launch is captured into a graph, so it enqueues work in the stream that it gets, and does not wait for it.
pub struct Candidates<'a, S> {
    /// Bytes of the operands.
    pub(super) bytes: usize,
    pub(super) make: Make<'a, S>,
    pub(super) candidates: Vec<Candidate<'a, S>>,
    pub(super) baselines: Vec<Candidate<'a, S>>,
    pub(super) outputs: Vec<Box<dyn Output<S> + 'a>>,
    pub(super) rounds: usize,
}

/// A launch with its name.
pub(super) struct Candidate<'a, S> {
    pub(super) name: String,
    pub(super) launch: Launch<'a, S>,
}

impl<'a, S> Candidates<'a, S> {
    /// No candidates yet, for operands of so many bytes, which `make` makes: the inputs and outputs of a launch.
    ///
    /// Each call must make operands with the same contents: candidates are compared on operands of different calls. On a
    /// GPU there are as many calls as it takes to make 256 MiB.
    pub fn new(bytes: usize, make: impl FnMut(&Stream) -> Result<S> + 'a) -> Self {
        Candidates {
            bytes,
            make: Box::new(make),
            candidates: Vec::new(),
            baselines: Vec::new(),
            outputs: Vec::new(),
            rounds: ROUNDS,
        }
    }

    /// Adds a candidate, whose name is one word. Among candidates that are equally fast, the first is taken.
    ///
    /// The launch may load its kernel as well: it is loaded once, and an error leaves the candidate out.
    pub fn candidate<E: Into<Box<dyn std::error::Error>>>(
        mut self,
        name: impl Into<String>,
        launch: impl FnMut(&Stream, &mut S) -> Result<(), E> + 'a,
    ) -> Self {
        self.candidates.push(Candidate::new(name, launch));
        self
    }

    /// Adds a launch that is measured beside the candidates and never chosen, such as a copy of as many bytes. Its
    /// results are not checked.
    pub fn baseline<E: Into<Box<dyn std::error::Error>>>(
        mut self,
        name: impl Into<String>,
        launch: impl FnMut(&Stream, &mut S) -> Result<(), E> + 'a,
    ) -> Self {
        self.baselines.push(Candidate::new(name, launch));
        self
    }

    /// Has an output of all candidates compared: elements that each launch writes and does not read. They are poisoned
    /// before.
    ///
    /// An element may differ from the first candidate's by `tolerance`, as a share of its size plus the root mean square
    /// of all elements: about 10⁻⁵ for sums of f32 in another order, and 0 for results that are exact.
    pub fn output<T: DeviceData + Into<f64>>(
        mut self,
        tolerance: f64,
        view: impl Fn(&mut S) -> ViewMut<'_, T> + 'a,
    ) -> Self {
        let output = Elements::new(view, tolerance, true);
        self.outputs.push(Box::new(output));
        self
    }

    /// As [`output`](Self::output), for elements that a launch also reads. They are not poisoned, and compared after one
    /// launch on new operands.
    pub fn in_out<T: DeviceData + Into<f64>>(
        mut self,
        tolerance: f64,
        view: impl Fn(&mut S) -> ViewMut<'_, T> + 'a,
    ) -> Self {
        let output = Elements::new(view, tolerance, false);
        self.outputs.push(Box::new(output));
        self
    }

    /// Has so many rounds measured, at least one, in place of seven.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// The names of the candidates.
    pub(super) fn names(&self) -> Vec<String> {
        let candidates = self.candidates.iter();
        candidates.map(|candidate| candidate.name.clone()).collect()
    }

    /// What is wrong with a name, if anything.
    pub(super) fn wrong_name(&self) -> Option<String> {
        let all = self.candidates.iter().chain(&self.baselines);
        let mut known = HashSet::new();
        all.map(|candidate| candidate.name.as_str())
            .find_map(|name| {
                if name.is_empty() || name.contains(char::is_whitespace) {
                    return Some(format!("`{name}` is no name of a candidate; use one word"));
                }
                let is_new = known.insert(name);
                (!is_new).then(|| format!("two candidates are named `{name}`; use different names"))
            })
    }
}

impl<'a, S> Candidate<'a, S> {
    fn new<E: Into<Failure>>(
        name: impl Into<String>,
        mut launch: impl FnMut(&Stream, &mut S) -> Result<(), E> + 'a,
    ) -> Self {
        Candidate {
            name: name.into(),
            launch: Box::new(move |stream, operands| launch(stream, operands).map_err(E::into)),
        }
    }
}

impl<S> fmt::Debug for Candidates<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Candidates({})", self.names().join(", "))
    }
}
