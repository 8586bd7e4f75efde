//! The timer: it screens contestants, and samples some of them against each other in rounds.

use std::time::Duration;

use super::stopwatch::Events;
use super::{Contestants, GRAPH_BELOW, Sampling, Spread, Stopwatch, Times};
use crate::{Backend, Buffer, Error, Graph, Result, Stream};

/// The most runs of a graph, unless there are more sets.
const GRAPH_RUNS: usize = 1024;
/// The first screening of a contestant is the median of this many runs: a single run may be an outlier.
const SCREENING_RUNS: usize = 3;
/// Where runs will be timed inside graphs, a second screening is the median of graphs of so many runs. The time of a single
/// run has its start and its end, and contestants may differ in these alone. In a graph, they overlap other runs.
const RUNS_OF_LOOK: usize = 32;
/// There is no second screening at contestants that took more than this multiple of the fastest in the first one.
const SECOND_LOOK: f64 = 2.0;
/// Samples are not made longer than this for the sake of enough runs, so that they stay bursts.
const LONGEST: Duration = Duration::from_millis(25);
/// Work before the rounds, which raises the clocks.
const WARM_UP: Duration = Duration::from_millis(40);
/// Bytes that are filled before a sample of single launches, so that the host gets ahead of the device. A graph is
/// replayed once more instead.
const BLOCKER_BYTES: usize = 256 << 20;

/// Times contestants on a stream.
pub struct Timer<'a> {
    stream: &'a Stream,
    stopwatch: Box<dyn Stopwatch>,
    blocker: Option<Buffer<u8>>,
    /// The set of the next single launch.
    next_set: usize,
    rest: Rest,
    /// How long the last sample took, or the work before the first sample.
    last_sample: Duration,
}

/// Pause before each sample.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    /// The shortest pause.
    least: Duration,
    /// The shortest pause as a multiple of the sample before.
    of_last: f64,
}

/// A contestant, ready to be sampled.
struct Ready {
    contestant: usize,
    graph: Option<Graph>,
    /// Runs of a batch: those of the graph, or single launches.
    runs: usize,
}

impl<'a> Timer<'a> {
    /// A timer for a stream.
    ///
    /// # Errors
    /// If the device has too little memory.
    pub fn new(stream: &'a Stream) -> Result<Self> {
        let blocker = match stream.device().backend() {
            Backend::Gpu => Some(stream.zeroed(BLOCKER_BYTES)?),
            Backend::Cpu => None,
        };
        Ok(Timer {
            stopwatch: Box::new(Events::new(stream.device())?),
            stream,
            blocker,
            next_set: 0,
            rest: Rest::default(),
            last_sample: Duration::ZERO,
        })
    }

    /// The timer with another stopwatch, for tests.
    pub fn with_stopwatch(self, stopwatch: Box<dyn Stopwatch>) -> Self {
        Timer { stopwatch, ..self }
    }

    /// Microseconds that `work` takes, over some repetitions after one that is not timed.
    ///
    /// # Errors
    /// If the work or the device fails.
    pub fn time<E: From<Error>>(
        &mut self,
        repetitions: usize,
        mut work: impl FnMut(&Stream) -> Result<(), E>,
    ) -> Result<Spread, E> {
        work(self.stream)?;
        let mut times = Vec::with_capacity(repetitions);
        for _ in 0..repetitions {
            self.stopwatch.start(self.stream)?;
            work(self.stream)?;
            let elapsed = self.stopwatch.stop(self.stream)?;
            times.push(elapsed.as_secs_f64() * 1e6);
        }
        Ok(Spread::of(&times))
    }

    /// The first screening of a contestant: the median of a few single runs in microseconds, after one that is not
    /// timed.
    ///
    /// # Errors
    /// If the contestant or the device fails.
    pub fn screen<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        contestant: usize,
    ) -> Result<f64, C::Error> {
        self.median_of_single(case, contestant, SCREENING_RUNS)
    }

    /// Screens contestants again, each with its microseconds, whose runs will be timed inside graphs. The fastest time of
    /// the first screening decides. Contestants far from it are removed. Returns whether it did.
    ///
    /// # Errors
    /// If a contestant or the device fails.
    pub fn screen_again<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        screened: &mut Vec<(f64, usize)>,
    ) -> Result<bool, C::Error> {
        let least = screened
            .iter()
            .map(|(time, _)| *time)
            .fold(f64::INFINITY, f64::min);
        if self.blocker.is_none() || least >= GRAPH_BELOW {
            return Ok(false);
        }
        screened.retain(|(time, _)| *time <= SECOND_LOOK * least);
        for (time, contestant) in screened {
            *time = self.look_in_graph(case, *contestant)?;
        }
        Ok(true)
    }

    /// Times contestants against each other.
    ///
    /// # Errors
    /// If a contestant or the device fails.
    pub fn compare<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        contestants: &[usize],
        sampling: &Sampling,
    ) -> Result<Vec<Times>, C::Error> {
        let ready = self.ready(case, contestants, sampling)?;
        if self.blocker.is_some() {
            self.warm_up(case, &ready, WARM_UP)?;
        }
        self.rest = Rest {
            least: sampling.rest,
            of_last: sampling.rest_samples,
        };
        let rounds = self.rounds(case, &ready, sampling.rounds, 1);
        self.rest = Rest::default();
        let rounds = rounds?;
        let mut times: Vec<Times> = ready
            .iter()
            .zip(rounds)
            .map(|(ready, rounds)| Times {
                contestant: ready.contestant,
                rounds,
                sustained: Vec::new(),
                graph_runs: ready.graph.is_some().then_some(ready.runs),
            })
            .collect();
        if let Some(sustained) = sampling.sustained {
            self.warm_up(case, &ready, sustained.settle)?;
            let blocker = self.blocker.take();
            let rounds = self.rounds(case, &ready, sampling.rounds, sustained.batches);
            self.blocker = blocker;
            for (times, sustained) in times.iter_mut().zip(rounds?) {
                times.sustained = sustained;
            }
        }
        Ok(times)
    }

    /// Poisons the outputs and has a contestant compute every set in the way that it was timed. Nothing else runs after
    /// the poisoning, so that no other launch can stand in for one that writes nothing.
    ///
    /// # Errors
    /// If the contestant or the device fails.
    pub fn run_as_timed<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        times: &Times,
        poison: impl FnOnce(&mut C) -> Result<(), C::Error>,
    ) -> Result<(), C::Error> {
        let contestant = times.contestant;
        let graph = times
            .graph_runs
            .map(|runs| self.record(case, contestant, runs));
        // A graph goes through all sets.
        let once = Ready {
            contestant,
            graph: graph.transpose()?,
            runs: case.sets(),
        };
        poison(case)?;
        self.batches(case, &once, 1)?;
        Ok(self.stream.synchronize()?)
    }

    /// Microseconds that a run takes among others.
    fn look_in_graph<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        contestant: usize,
    ) -> Result<f64, C::Error> {
        let several = Ready {
            contestant,
            graph: Some(self.record(case, contestant, RUNS_OF_LOOK)?),
            runs: RUNS_OF_LOOK,
        };
        self.median(case, &several, SCREENING_RUNS)
    }

    /// Microseconds that one run takes, roughly: the median of `runs`, after one that is not timed.
    fn median_of_single<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        contestant: usize,
        runs: usize,
    ) -> Result<f64, C::Error> {
        let once = Ready {
            contestant,
            graph: None,
            runs: 1,
        };
        self.median(case, &once, runs)
    }

    /// Microseconds of a run: the median of `batches`, after one that is not timed. A graph may have only some of the
    /// sets. Filling the blocker evicts these from the L2 cache.
    fn median<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &Ready,
        batches: usize,
    ) -> Result<f64, C::Error> {
        self.batches(case, ready, 1)?;
        let mut times = Vec::with_capacity(batches);
        for _ in 0..batches {
            self.fill_blocker()?;
            times.push(self.timed(case, ready, 1)?);
        }
        Ok(Spread::of(&times).median)
    }

    /// Contestants, each with the number of runs of a batch. The slowest contestant decides that number: it fills a
    /// sample, or is the fewest runs if they take no longer than [`LONGEST`].
    fn ready<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        contestants: &[usize],
        sampling: &Sampling,
    ) -> Result<Vec<Ready>, C::Error> {
        let screened: Vec<f64> = contestants
            .iter()
            .map(|&contestant| self.median_of_single(case, contestant, 1))
            .collect::<Result<_, _>>()?;
        let least = screened.iter().copied().fold(f64::INFINITY, f64::min);
        let most = screened.iter().copied().fold(0.0, f64::max);
        let in_time = |length: Duration| {
            (length.as_secs_f64() * 1e6 / most.max(1e-3))
                .ceil()
                .max(1.0) as usize
        };
        let few = sampling.sample_runs.min(in_time(LONGEST));
        let runs = in_time(sampling.sample).max(few);
        // Either all contestants are in graphs or none is.
        let in_graph = self.blocker.is_some() && least < GRAPH_BELOW;
        let ready = contestants.iter().map(|&contestant| {
            if !in_graph {
                return Ok(Ready {
                    contestant,
                    graph: None,
                    runs,
                });
            }
            // A multiple of the sets, so that replays keep their distance too.
            let sets = case.sets();
            let runs = runs.min(GRAPH_RUNS).next_multiple_of(sets);
            let graph = self.record(case, contestant, runs)?;
            Ok(Ready {
                contestant,
                graph: Some(graph),
                runs,
            })
        });
        ready.collect()
    }

    /// A graph of runs on one set after the other. Runs of a stream never overlap.
    fn record<C: Contestants + ?Sized>(
        &self,
        case: &mut C,
        contestant: usize,
        runs: usize,
    ) -> Result<Graph, C::Error> {
        let sets = case.sets();
        self.stream.device().capture(|stream| {
            (0..runs).try_for_each(|run| case.enqueue(stream, contestant, run % sets))
        })
    }

    /// Puts batches of runs into the stream.
    fn batches<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &Ready,
        batches: usize,
    ) -> Result<(), C::Error> {
        for _ in 0..batches {
            match &ready.graph {
                // SAFETY: the case owns all memory of the runs. It outlives the samples, each of which waits for its
                // end.
                Some(graph) => unsafe { graph.launch(self.stream)? },
                None => {
                    for _ in 0..ready.runs {
                        let set = self.next_set % case.sets();
                        self.next_set = set + 1;
                        case.enqueue(self.stream, ready.contestant, set)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Microseconds a run, over some batches.
    fn sample<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &Ready,
        batches: usize,
    ) -> Result<f64, C::Error> {
        let Rest { least, of_last } = self.rest;
        std::thread::sleep(least.max(self.last_sample.mul_f64(of_last)));
        // The host must get ahead of the device, or the sample would include the first launch.
        match ready.graph {
            Some(_) => self.batches(case, ready, 1)?,
            None => self.fill_blocker()?,
        }
        self.timed(case, ready, batches)
    }

    /// Fills the blocker, if there is one.
    fn fill_blocker(&mut self) -> Result<()> {
        match &mut self.blocker {
            Some(blocker) => self.stream.fill_bytes(blocker, 0),
            None => Ok(()),
        }
    }

    /// Microseconds a run, over some batches that begin at once.
    fn timed<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &Ready,
        batches: usize,
    ) -> Result<f64, C::Error> {
        self.stopwatch.start(self.stream)?;
        self.batches(case, ready, batches)?;
        let elapsed = self.stopwatch.stop(self.stream)?;
        self.last_sample = elapsed;
        Ok(elapsed.as_secs_f64() * 1e6 / (batches * ready.runs) as f64)
    }

    /// Microseconds a run, for each contestant and round.
    fn rounds<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &[Ready],
        rounds: usize,
        batches: usize,
    ) -> Result<Vec<Vec<f64>>, C::Error> {
        let mut times = vec![Vec::with_capacity(rounds); ready.len()];
        for round in 1..=rounds {
            case.begin_round(round, rounds);
            let mut sums = vec![0.0; ready.len()];
            let there = 0..ready.len();
            for at in there.clone().chain(there.rev()) {
                sums[at] += self.sample(case, &ready[at], batches)?;
            }
            for (times, sum) in times.iter_mut().zip(sums) {
                times.push(sum / 2.0);
            }
        }
        Ok(times)
    }

    /// Keeps the device busy with the contestants for at least `length`. The pause after it depends on its whole
    /// length.
    fn warm_up<C: Contestants + ?Sized>(
        &mut self,
        case: &mut C,
        ready: &[Ready],
        length: Duration,
    ) -> Result<(), C::Error> {
        let begin = std::time::Instant::now();
        while begin.elapsed() < length {
            for ready in ready {
                self.sample(case, ready, 1)?;
            }
        }
        self.last_sample = begin.elapsed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;
    use crate::measure::clock::Clock;

    /// Contestants that take given times and note who ran on which set.
    struct Noted {
        /// Milliseconds of a run of each contestant.
        times: Vec<u64>,
        clock: Clock,
        runs: Vec<(usize, usize)>,
        rounds: Vec<usize>,
    }

    impl Contestants for Noted {
        type Error = Error;

        fn sets(&self) -> usize {
            3
        }
        fn enqueue(&mut self, _: &Stream, contestant: usize, set: usize) -> Result<()> {
            let time = Duration::from_millis(self.times[contestant]);
            self.clock.advance(time);
            self.runs.push((contestant, set));
            Ok(())
        }
        fn begin_round(&mut self, round: usize, _: usize) {
            self.rounds.push(round);
        }
    }

    fn on_cpu() -> Stream {
        Device::cpu().stream().unwrap()
    }

    /// A timer and contestants with these times.
    fn noted<'a>(stream: &'a Stream, times: &[u64]) -> (Timer<'a>, Noted) {
        let clock = Clock::default();
        let timer = clock.timer(stream);
        let noted = Noted {
            times: times.to_vec(),
            clock,
            runs: Vec::new(),
            rounds: Vec::new(),
        };
        (timer, noted)
    }

    #[test]
    fn contestants_take_turns_in_an_order_and_its_reverse() {
        let stream = on_cpu();
        let (mut timer, mut case) = noted(&stream, &[2, 3]);
        let sampling = Sampling::bursts(5, false);
        let times = timer.compare(&mut case, &[0, 1], &sampling).unwrap();
        assert_eq!(times[0].rounds, [2000.0; 5]);
        assert_eq!(times[1].rounds, [3000.0; 5]);
        assert_eq!(case.rounds, [1, 2, 3, 4, 5]);
        let order = case.runs.iter().map(|&(contestant, _)| contestant);
        let order: Vec<usize> = order.collect();
        // A screening of each contestant, in two runs, precedes the rounds.
        assert_eq!(order[..4], [0, 0, 1, 1]);
        assert_eq!(order[4..], [0, 1, 1, 0].repeat(5));
        let sets: Vec<usize> = case.runs.iter().map(|&(_, set)| set).collect();
        assert!(sets.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 3));
    }

    #[test]
    fn the_first_sample_rests_after_all_of_the_work_before() {
        let stream = on_cpu();
        let (mut timer, mut case) = noted(&stream, &[1]);
        let ready = [Ready {
            contestant: 0,
            graph: None,
            runs: 1,
        }];
        let length = Duration::from_millis(3);
        timer.warm_up(&mut case, &ready, length).unwrap();
        assert!(timer.last_sample >= length, "{:?}", timer.last_sample);
    }

    #[test]
    fn power_settled_samples_follow_the_others_and_have_more_runs() {
        let stream = on_cpu();
        let (mut timer, mut case) = noted(&stream, &[2]);
        let sustained = crate::measure::Sustained {
            settle: Duration::ZERO,
            batches: 4,
        };
        let sampling = Sampling {
            sustained: Some(sustained),
            ..Sampling::bursts(2, false)
        };
        let times = timer.compare(&mut case, &[0], &sampling).unwrap();
        assert_eq!(times[0].sustained, [2000.0; 2]);
        // Two runs of a screening, then two rounds of two samples: of one run, and of four.
        assert_eq!(case.runs.len(), 2 + 2 * 2 + 2 * 2 * 4);
    }

    #[test]
    fn outputs_are_computed_again_as_they_were_timed_and_by_nothing_else() {
        for (graph_runs, before) in [(None, 0), (Some(6), 6)] {
            let stream = on_cpu();
            let (mut timer, mut case) = noted(&stream, &[1]);
            let times = Times {
                contestant: 0,
                rounds: Vec::new(),
                sustained: Vec::new(),
                graph_runs,
            };
            let mut poisoned = None;
            let poison = |case: &mut Noted| {
                poisoned = Some(case.runs.len());
                Ok(())
            };
            timer.run_as_timed(&mut case, &times, poison).unwrap();
            // Recording a graph computes nothing. Then only the graph runs.
            assert_eq!(poisoned, Some(before));
            let mut after: Vec<usize> = case.runs[before..].iter().map(|&(_, set)| set).collect();
            after.sort();
            let expected: &[usize] = if before == 0 { &[0, 1, 2] } else { &[] };
            assert_eq!(after, expected);
        }
    }
}
