//! A problem that is autotuned: its candidates are checked, then measured on several sets of operands.

use super::candidates::{Candidate, Candidates, Failure};
use super::tuned::{Ranked, Tuned};
use crate::measure::{self, CUTOFF, Contestants, Sampling, Spread, Timer, Times};
use crate::{Backend, Error, Result, Stream};

/// What outputs are poisoned with before the first candidate's reference is computed: a NaN in every float type.
const POISON: u8 = 0xff;
/// What outputs are poisoned with before they are compared with the reference: a large number in every float type. An
/// element that no candidate writes is not that of the reference.
const OTHER_POISON: u8 = 0x7a;

/// There are no more sets of operands. Making more small ones would take longer than the measurement.
const MOST_SETS: usize = 4096;

/// The figures of contestants.
struct Measured {
    /// Of those that may be the fastest, and of all baselines.
    times: Vec<Times>,
    /// Of the others: their numbers, and microseconds by a screening.
    far: Vec<(usize, f64)>,
}

/// The candidates of a problem while they are checked and measured. Contestants have the numbers of the candidates, and
/// then those of the baselines.
pub struct Case<'a, S> {
    of: Candidates<'a, S>,
    sets: Vec<S>,
    /// The first candidate that runs, whose outputs are the reference.
    reference: Option<usize>,
    left_out: Vec<(String, String)>,
}

impl<S> Contestants for Case<'_, S> {
    type Error = Failure;

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<(), Failure> {
        let Candidates {
            candidates,
            baselines,
            ..
        } = &mut self.of;
        let launch = match contestant.checked_sub(candidates.len()) {
            None => &mut candidates[contestant].launch,
            Some(baseline) => &mut baselines[baseline].launch,
        };
        launch(stream, &mut self.sets[set])
    }
}

impl<'a, S> Case<'a, S> {
    pub fn new(of: Candidates<'a, S>) -> Self {
        Case {
            of,
            sets: Vec::new(),
            reference: None,
            left_out: Vec::new(),
        }
    }

    /// Checks the candidates, and chooses the fastest; on the CPU, the first that is right.
    pub fn choose(mut self, stream: &Stream, key: String) -> Result<Tuned> {
        let right = self.right(stream, &key)?;
        // Candidates have the lower numbers.
        let first = right.first().copied();
        let Some(first) = first.filter(|&first| !self.is_baseline(first)) else {
            return Err(self.none_remains(&key));
        };
        match stream.device().backend() {
            Backend::Gpu => self.fastest(stream, &mut Timer::new(stream)?, key, &right),
            Backend::Cpu => {
                let choice = (first, self.name(first).to_string());
                Ok(Tuned::first(key, choice, self.left_out))
            }
        }
    }

    /// The contestants that run, and are right as far as they are checked.
    fn right(&mut self, stream: &Stream, key: &str) -> Result<Vec<usize>> {
        let mut right = Vec::new();
        for contestant in 0..self.of.candidates.len() + self.of.baselines.len() {
            // New operands: an earlier launch may have changed what this one reads.
            self.sets.clear();
            self.make_set(stream, key)?;
            match self.fault(stream, contestant, key) {
                Ok(None) => right.push(contestant),
                Ok(Some(fault)) => self.leave_out(contestant, fault),
                Err(error) => self.leave_out(contestant, error.to_string()),
            }
        }
        Ok(right)
    }

    /// What is wrong with a contestant's outputs, if anything.
    fn fault(
        &mut self,
        stream: &Stream,
        contestant: usize,
        key: &str,
    ) -> Result<Option<String>, Failure> {
        if self.is_baseline(contestant) {
            self.enqueue(stream, contestant, 0)?;
        } else {
            if self.reference.is_none() {
                self.compute(stream, contestant, POISON)?;
                self.keep(stream)?;
                self.reference = Some(contestant);
                self.sets.clear();
                self.make_set(stream, key)?;
            }
            self.compute(stream, contestant, OTHER_POISON)?;
            if let Some(fault) = self.difference(stream, contestant, 0)? {
                // Nothing is compared with outputs that are wrong themselves.
                self.reference.take_if(|first| *first == contestant);
                return Ok(Some(fault));
            }
        }
        stream.synchronize()?;
        // What cannot be recorded is found here, where the contestant has a name.
        let recorded = stream
            .device()
            .capture(|stream| self.enqueue(stream, contestant, 0));
        Ok(recorded
            .err()
            .map(|error| format!("it cannot be captured into a graph: {error}")))
    }

    /// Has a contestant compute the outputs of set 0, after they were poisoned.
    fn compute(&mut self, stream: &Stream, contestant: usize, poison: u8) -> Result<(), Failure> {
        self.poison(stream, poison)?;
        self.enqueue(stream, contestant, 0)
    }

    fn poison(&mut self, stream: &Stream, byte: u8) -> Result<()> {
        for operands in &mut self.sets {
            for output in &self.of.outputs {
                output.poison(stream, operands, byte)?;
            }
        }
        Ok(())
    }

    /// Takes the outputs of set 0 as the reference.
    fn keep(&mut self, stream: &Stream) -> Result<()> {
        let mut outputs = self.of.outputs.iter_mut();
        outputs.try_for_each(|output| output.keep(stream, &mut self.sets[0]))
    }

    /// How a contestant's outputs in a set differ from the reference, if they do.
    fn difference(
        &mut self,
        stream: &Stream,
        contestant: usize,
        set: usize,
    ) -> Result<Option<String>> {
        for (nth, output) in self.of.outputs.iter().enumerate() {
            let difference = output.difference(stream, &mut self.sets[set])?;
            let (Some(difference), Some(first)) = (difference, self.reference) else {
                continue;
            };
            let output = nth + 1;
            return Ok(Some(match first == contestant {
                true => format!("output {output} is not written whole, or changes: {difference}"),
                false => {
                    let first = self.name(first);
                    format!("output {output} is not that of {first}: {difference}")
                }
            }));
        }
        Ok(None)
    }

    /// Measures contestants that are right, and chooses.
    fn fastest(
        mut self,
        stream: &Stream,
        timer: &mut Timer<'_>,
        key: String,
        right: &[usize],
    ) -> Result<Tuned> {
        self.sets.clear();
        for _ in 0..measure::sets(stream.device(), self.of.bytes).min(MOST_SETS) {
            self.make_set(stream, &key)?;
        }
        let on_gpu = stream.device().backend() == Backend::Gpu;
        let sampling = Sampling::bursts(self.of.rounds, on_gpu);
        let measured = self.measure(timer, &sampling, right);
        let Measured { mut times, far } =
            measured.map_err(|failure| self.device_error(&key, failure))?;
        while let Some(choice) = self.choice(&times) {
            let fault = self.fault_as_timed(stream, timer, &times[choice]);
            match fault.map_err(|failure| self.device_error(&key, failure))? {
                None => return Ok(self.tuned(key, &times, choice, &far)),
                Some(fault) => {
                    let wrong = times.remove(choice);
                    self.leave_out(wrong.contestant, format!("as it was timed, {fault}"));
                }
            }
        }
        Err(self.none_remains(&key))
    }

    /// Screens contestants, and times those that may be the fastest.
    fn measure(
        &mut self,
        timer: &mut Timer<'_>,
        sampling: &Sampling,
        right: &[usize],
    ) -> Result<Measured, Failure> {
        let (baselines, candidates): (Vec<usize>, Vec<usize>) = right
            .iter()
            .partition(|&&contestant| self.is_baseline(contestant));
        let mut screened = Vec::new();
        for contestant in candidates {
            screened.push((timer.screen(self, contestant)?, contestant));
        }
        let first_look = screened.clone();
        timer.screen_again(self, &mut screened)?;
        screened.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let longest = screened.first().map_or(0.0, |(least, _)| CUTOFF * least);
        let numbered = screened.iter().enumerate();
        let near = numbered.filter(|(nth, (time, _))| *nth < 2 || *time <= longest);
        let mut timed: Vec<usize> = near.map(|(_, (_, contestant))| *contestant).collect();
        timed.sort();
        let far = first_look.iter().filter(|(_, it)| !timed.contains(it));
        let far = far.map(|&(time, contestant)| (contestant, time)).collect();
        timed.extend(baselines);
        let times = timer.compare(self, &timed, sampling)?;
        Ok(Measured { times, far })
    }

    /// The position among times of the first candidate that the fastest does not beat beyond the noise.
    fn choice(&self, times: &[Times]) -> Option<usize> {
        let candidates = times.iter().filter(|it| !self.is_baseline(it.contestant));
        let fastest = candidates.min_by(|one, other| median(one).total_cmp(&median(other)))?;
        times.iter().position(|it| {
            let gain = Spread::of_ratio(&it.rounds, &fastest.rounds);
            !self.is_baseline(it.contestant) && !gain.is_gain()
        })
    }

    /// What is wrong with the outputs of a contestant that computes all sets as it was timed, if anything.
    fn fault_as_timed(
        &mut self,
        stream: &Stream,
        timer: &mut Timer<'_>,
        times: &Times,
    ) -> Result<Option<String>, Failure> {
        // What launches read and write depends on the number of launches.
        if !self.of.outputs.iter().all(|output| output.is_poisoned()) {
            return Ok(None);
        }
        timer.run_as_timed(self, times, |case| Ok(case.poison(stream, POISON)?))?;
        for set in measure::rechecked(self.sets.len()) {
            if let Some(fault) = self.difference(stream, times.contestant, set)? {
                return Ok(Some(fault));
            }
        }
        Ok(None)
    }

    /// The outcome, of which the contestant at a position among the times is the choice.
    fn tuned(self, key: String, times: &[Times], choice: usize, far: &[(usize, f64)]) -> Tuned {
        let chosen = &times[choice];
        let ranked = |contestant: usize, rounds: &[f64], ratio| Ranked {
            name: self.name(contestant).to_string(),
            microseconds: Spread::of(rounds),
            ratio,
            is_baseline: self.is_baseline(contestant),
        };
        let in_rounds = times.iter().map(|it| {
            let ratio = Spread::of_ratio(&it.rounds, &chosen.rounds);
            ranked(it.contestant, &it.rounds, Some(ratio))
        });
        let far = far.iter();
        let far = far.map(|&(contestant, time)| ranked(contestant, &[time], None));
        let mut ranking: Vec<Ranked> = in_rounds.chain(far).collect();
        ranking.sort_by(|one, other| {
            let [one, other] = [one, other].map(|it| it.microseconds.median);
            one.total_cmp(&other)
        });
        let name = self.name(chosen.contestant).to_string();
        let choice = (chosen.contestant, name);
        Tuned::measured(key, choice, median(chosen), ranking, self.left_out)
    }

    fn make_set(&mut self, stream: &Stream, key: &str) -> Result<()> {
        let operands = (self.of.make)(stream);
        // After a kernel that the device did not survive, the reason is that kernel's.
        let operands = operands.map_err(|error| match self.left_out.is_empty() {
            true => error,
            false => self.failed(key, format!("its operands cannot be made: {error}")),
        })?;
        self.sets.push(operands);
        Ok(())
    }

    fn leave_out(&mut self, contestant: usize, why: String) {
        let name = self.name(contestant).to_string();
        self.left_out.push((name, why));
    }

    fn name(&self, contestant: usize) -> &str {
        let mut all = self.of.candidates.iter().chain(&self.of.baselines);
        all.nth(contestant)
            .map_or("", |Candidate { name, .. }| name)
    }

    fn is_baseline(&self, contestant: usize) -> bool {
        contestant >= self.of.candidates.len()
    }

    fn none_remains(&self, key: &str) -> Error {
        self.failed(key, "no candidate runs and is right".to_string())
    }

    /// The error of a launch that had run before.
    fn device_error(&self, key: &str, failure: Failure) -> Error {
        match failure.downcast::<Error>() {
            Ok(error) => *error,
            Err(failure) => self.failed(key, failure.to_string()),
        }
    }

    /// The error, with the reasons of candidates that are left out.
    fn failed(&self, key: &str, mut found: String) -> Error {
        for (name, why) in &self.left_out {
            found += &format!("; {name} is left out: {why}");
        }
        Error::Autotune {
            key: key.to_string(),
            found,
        }
    }
}

fn median(times: &Times) -> f64 {
    Spread::of(&times.rounds).median
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Duration;

    use crate::measure::clock::Clock;
    use crate::{Buffer, Device};

    /// A candidate that fills two elements and takes these microseconds, of which later launches take the last.
    struct Fills {
        name: &'static str,
        microseconds: &'static [u64],
        /// From this launch on it fills them with another number.
        wrong_from: usize,
    }

    const fn fills(name: &'static str, microseconds: &'static [u64]) -> Fills {
        Fills {
            name,
            microseconds,
            wrong_from: usize::MAX,
        }
    }

    impl Fills {
        fn launch(&self, clock: Clock) -> impl FnMut(&Stream, &mut Buffer<f32>) -> Result<()> {
            let mut launches = 0;
            move |stream, y| {
                let times = self.microseconds;
                clock.advance(Duration::from_micros(times[launches.min(times.len() - 1)]));
                let byte = if launches < self.wrong_from { 1 } else { 2 };
                launches += 1;
                stream.fill_bytes(y, byte)
            }
        }
    }

    /// What is chosen of candidates and baselines, measured by a clock that only they advance.
    fn chosen(candidates: &[Fills], baselines: &[Fills]) -> Result<Tuned> {
        let stream = Device::cpu().stream().unwrap();
        let clock = Clock::default();
        let mut of = Candidates::new(8, |stream: &Stream| stream.zeroed::<f32>(2));
        for it in candidates {
            of = of.candidate(it.name, it.launch(clock.clone()));
        }
        for it in baselines {
            of = of.baseline(it.name, it.launch(clock.clone()));
        }
        let mut case = Case::new(of.output(0.0, |y| y.view_mut()));
        let key = "fill".to_string();
        let right = case.right(&stream, &key)?;
        case.fastest(&stream, &mut clock.timer(&stream), key, &right)
    }

    /// Names, with whether they were timed in rounds.
    fn ranking(tuned: &Tuned) -> Vec<(&str, bool)> {
        let ranking = tuned.ranking().iter();
        ranking
            .map(|it| (it.name.as_str(), it.ratio.is_some()))
            .collect()
    }

    #[test]
    fn the_fastest_is_chosen_and_far_ones_are_not_timed_in_rounds() {
        let candidates = [
            fills("a", &[200]),
            fills("b", &[125]),
            fills("c", &[100]),
            fills("d", &[131]),
            fills("e", &[129]),
        ];
        let tuned = chosen(&candidates, &[fills("copy", &[50]), fills("loop", &[900])]).unwrap();
        assert_eq!((tuned.index(), tuned.name()), (2, "c"));
        assert_eq!(tuned.microseconds(), Some(100.0));
        let [timed, far] = [true, false];
        let expected = [
            ("copy", timed),
            ("c", timed),
            ("b", timed),
            ("e", timed),
            ("d", far),
            ("a", far),
            ("loop", timed),
        ];
        assert_eq!(ranking(&tuned), expected);
        assert_eq!(tuned.ranking()[2].ratio.unwrap().median, 1.25);
    }

    #[test]
    fn a_candidate_is_kept_unless_another_one_is_faster_beyond_the_noise() {
        for (first, chosen_one) in [
            // Slower by less than one per cent.
            (&[1005][..], "first"),
            (&[1011], "second"),
            // Three launches of checks, four of a screening and two before the rounds, then two a round: as fast once.
            (
                &[
                    1020, 1020, 1020, 1020, 1020, 1020, 1020, 1020, 1020, 1000, 1000, 1020,
                ],
                "first",
            ),
        ] {
            let candidates = [fills("first", first), fills("second", &[1000])];
            let tuned = chosen(&candidates, &[]).unwrap();
            assert_eq!(tuned.name(), chosen_one, "{first:?} {tuned}");
        }
    }

    #[test]
    fn a_choice_that_is_wrong_as_it_was_timed_is_left_out() {
        let wrong = Fills {
            wrong_from: 10,
            ..fills("wrong", &[10])
        };
        let tuned = chosen(&[wrong, fills("right", &[90])], &[]).unwrap();
        assert_eq!((tuned.index(), tuned.name()), (1, "right"));
        let (name, why) = tuned.left_out().next().unwrap();
        assert_eq!(name, "wrong");
        assert!(
            why.starts_with("as it was timed, output 1 is not written whole, or changes: 2 of 2"),
            "{why}"
        );

        let wrong = Fills {
            wrong_from: 10,
            ..fills("wrong", &[10])
        };
        let refused = chosen(&[wrong], &[]).unwrap_err().to_string();
        assert!(
            refused.starts_with(
                "`fill` was autotuned, but no candidate runs and is right; wrong is left out"
            ),
            "{refused}"
        );
    }

    #[test]
    fn outputs_of_a_graph_are_checked_in_several_sets() {
        let stream = Device::cpu().stream().unwrap();
        // Three launches of checks precede those that are captured: of three sets, the last is wrong.
        for (wrong_from, is_right) in [(usize::MAX, true), (5, false)] {
            let fills = Fills {
                wrong_from,
                ..fills("a", &[1])
            };
            let of = Candidates::new(8, |stream: &Stream| stream.zeroed::<f32>(2));
            let of = of.candidate("a", fills.launch(Clock::default()));
            let mut case = Case::new(of.output(0.0, |y| y.view_mut()));
            assert_eq!(case.right(&stream, "fill").unwrap(), [0]);
            case.sets.clear();
            (0..3).for_each(|_| case.make_set(&stream, "fill").unwrap());
            let times = Times {
                contestant: 0,
                rounds: Vec::new(),
                sustained: Vec::new(),
                graph_runs: Some(3),
            };
            let mut timer = Timer::new(&stream).unwrap();
            let fault = case.fault_as_timed(&stream, &mut timer, &times).unwrap();
            assert_eq!(fault.is_none(), is_right, "{fault:?}");
        }
    }
}
