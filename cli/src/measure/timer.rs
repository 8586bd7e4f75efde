//! The timer: it screens contestants, chooses the finalists, and samples these against each other in rounds.

use std::time::Duration;

use cutlet::{Buffer, Stream};
use cutlet_host::Graph;

use super::case::{Case, Role, of_role};
use super::error::{Error, Result};
use super::protocol::{CHOICE, GRAPH_BELOW, Protocol};
use super::setting::Setting;
use super::statistics::Spread;
use super::stopwatch::{Events, Stopwatch};
use crate::progress::Progress;

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

/// The times of one contestant.
#[derive(Clone, Debug)]
pub struct Times {
    /// Its number.
    pub contestant: usize,
    /// Microseconds a run, of each round.
    pub rounds: Vec<f64>,
    /// The same, power-settled.
    pub sustained: Vec<f64>,
    /// Runs in a CUDA graph; `None` if each was launched by itself.
    pub graph_runs: Option<usize>,
}

/// Times problems on a stream.
pub struct Timer<'a> {
    stream: &'a Stream,
    progress: &'a Progress,
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

/// The contestants of a role that may be its fastest.
#[derive(Debug)]
pub struct Finalists {
    /// Their numbers, the fastest first.
    pub numbers: Vec<usize>,
    /// The numbers of those of which there was a second screening, with its microseconds.
    pub screened: Vec<(usize, f64)>,
    /// The numbers of contestants that do not run or are wrong, with the reason.
    pub passed_over: Vec<(usize, String)>,
}

impl Finalists {
    /// Adds a contestant, or passes it over if it is wrong.
    ///
    /// # Errors
    /// If the device fails.
    pub fn add(&mut self, case: &mut dyn Case, contestant: usize) -> Result<()> {
        let mut passed_over = self.passed_over.iter();
        if self.numbers.contains(&contestant) || passed_over.any(|(it, _)| *it == contestant) {
            return Ok(());
        }
        match case.fault(contestant)? {
            Some(fault) => self.passed_over.push((contestant, fault)),
            None => self.numbers.push(contestant),
        }
        Ok(())
    }
}

/// A contestant, ready to be sampled.
struct Ready {
    contestant: usize,
    graph: Option<Graph>,
    /// Runs of a batch: those of the graph, or single launches.
    runs: usize,
}

impl<'a> Timer<'a> {
    /// A timer for a setting's stream.
    ///
    /// # Errors
    /// If the device has too little memory.
    pub fn new(setting: &'a Setting) -> Result<Self> {
        let stream = &setting.stream;
        let blocker = match setting.on_gpu() {
            true => Some(stream.zeroed(BLOCKER_BYTES)?),
            false => None,
        };
        Ok(Timer {
            stopwatch: Box::new(Events::new(stream.device())?),
            stream,
            progress: &setting.progress,
            blocker,
            next_set: 0,
            rest: Rest::default(),
            last_sample: Duration::ZERO,
        })
    }

    /// Microseconds that `work` takes, over some repetitions after one that is not timed.
    ///
    /// # Errors
    /// If the work or the device fails.
    pub fn time(
        &mut self,
        repetitions: usize,
        mut work: impl FnMut(&Stream) -> Result<()>,
    ) -> Result<Spread> {
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

    /// At most `most` contestants of a role that may be its fastest, by a screening or two at each. Contestants that are
    /// wrong or do not run are passed over and do not count.
    ///
    /// # Errors
    /// If a contestant of cutlet's does not run, or the device fails.
    pub fn finalists(&mut self, case: &mut dyn Case, role: Role, most: usize) -> Result<Finalists> {
        let mut screened = Vec::new();
        let mut finalists = Finalists {
            numbers: Vec::new(),
            screened: Vec::new(),
            passed_over: Vec::new(),
        };
        let of_role = of_role(case.contestants(), role);
        let count = of_role.len();
        for (nth, contestant) in of_role.into_iter().enumerate() {
            let screened_now = format!("screening {} {} of {count}", role.name(), nth + 1);
            self.progress.step(&screened_now);
            match self.screen(case, contestant, SCREENING_RUNS) {
                Ok(time) => screened.push((time, contestant)),
                // The instance is for other operands, which its name does not tell: it is no contestant here.
                Err(Error::Cutlet(cutlet::Error::Instance { .. })) => {}
                Err(found) => {
                    let name = case.contestants()[contestant].name.clone();
                    let found = Box::new(found);
                    let error = Error::Contestant { name, found };
                    if role.is_ours() {
                        return Err(error);
                    }
                    finalists.passed_over.push((contestant, error.to_string()));
                }
            }
        }
        if self.screen_again(case, &mut screened)? {
            let screened = screened
                .iter()
                .map(|(time, contestant)| (*contestant, time * 1e6));
            finalists.screened = screened.collect();
        }
        screened.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut longest = f64::INFINITY;
        for (time, contestant) in screened {
            let is_far = finalists.numbers.len() > 1 && time > longest;
            if finalists.numbers.len() == most || is_far {
                break;
            }
            finalists.add(case, contestant)?;
            if finalists.numbers == [contestant] {
                longest = CHOICE.cutoff * time;
            }
        }
        Ok(finalists)
    }

    /// Times contestants against each other.
    ///
    /// # Errors
    /// If the device fails.
    pub fn compare(
        &mut self,
        case: &mut dyn Case,
        contestants: &[usize],
        protocol: &Protocol,
    ) -> Result<Vec<Times>> {
        let ready = self.ready(case, contestants, protocol)?;
        if self.blocker.is_some() {
            self.warm_up(case, &ready, WARM_UP)?;
        }
        self.rest = Rest {
            least: Duration::from_secs_f64(protocol.rest_milliseconds * 1e-3),
            of_last: protocol.rest_samples,
        };
        let rounds = self.rounds(case, &ready, protocol.rounds, 1);
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
        if let Some(sustained) = protocol.sustained {
            let settle = Duration::from_secs_f64(sustained.settle_milliseconds * 1e-3);
            self.warm_up(case, &ready, settle)?;
            let batches = sustained.batches(protocol);
            let blocker = self.blocker.take();
            let rounds = self.rounds(case, &ready, protocol.rounds, batches);
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
    /// If the device fails.
    pub fn run_as_timed(&mut self, case: &mut dyn Case, times: &Times) -> Result<()> {
        self.progress.step("checking again");
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
        case.poison()?;
        self.batches(case, &once, 1)?;
        Ok(self.stream.synchronize()?)
    }

    /// Screens contestants again whose runs will be timed inside graphs. The fastest time of the first screening decides.
    /// Returns whether it did.
    fn screen_again(
        &mut self,
        case: &mut dyn Case,
        screened: &mut Vec<(f64, usize)>,
    ) -> Result<bool> {
        let least = screened
            .iter()
            .map(|(time, _)| *time)
            .fold(f64::INFINITY, f64::min);
        if self.blocker.is_none() || least >= GRAPH_BELOW * 1e-6 {
            return Ok(false);
        }
        screened.retain(|(time, _)| *time <= SECOND_LOOK * least);
        for (time, contestant) in screened {
            *time = self.look_in_graph(case, *contestant)?;
        }
        Ok(true)
    }

    /// Seconds that a run takes among others.
    fn look_in_graph(&mut self, case: &mut dyn Case, contestant: usize) -> Result<f64> {
        let several = Ready {
            contestant,
            graph: Some(self.record(case, contestant, RUNS_OF_LOOK)?),
            runs: RUNS_OF_LOOK,
        };
        self.median(case, &several, SCREENING_RUNS)
    }

    /// Seconds that one run takes, roughly: the median of `runs`, after one that is not timed.
    fn screen(&mut self, case: &mut dyn Case, contestant: usize, runs: usize) -> Result<f64> {
        let once = Ready {
            contestant,
            graph: None,
            runs: 1,
        };
        self.median(case, &once, runs)
    }

    /// Seconds of a run: the median of `batches`, after one that is not timed. A graph may have only some of the sets.
    /// Filling the blocker evicts these from the L2 cache.
    fn median(&mut self, case: &mut dyn Case, ready: &Ready, batches: usize) -> Result<f64> {
        self.batches(case, ready, 1)?;
        let mut times = Vec::with_capacity(batches);
        for _ in 0..batches {
            self.fill_plug()?;
            times.push(self.timed(case, ready, 1)?);
        }
        Ok(Spread::of(&times).median * 1e-6)
    }

    /// Contestants, each with the number of runs of a batch. The slowest contestant decides that number: it fills a
    /// sample, or is the protocol's fewest runs if they take no longer than [`LONGEST`].
    fn ready(
        &mut self,
        case: &mut dyn Case,
        contestants: &[usize],
        protocol: &Protocol,
    ) -> Result<Vec<Ready>> {
        let screened: Vec<f64> = contestants
            .iter()
            .map(|&contestant| self.screen(case, contestant, 1))
            .collect::<Result<_>>()?;
        let least = screened.iter().copied().fold(f64::INFINITY, f64::min);
        let most = screened.iter().copied().fold(0.0, f64::max);
        let in_time = |length: f64| (length / most.max(1e-9)).ceil().max(1.0) as usize;
        let few = protocol.sample_runs.min(in_time(LONGEST.as_secs_f64()));
        let runs = in_time(protocol.sample_milliseconds * 1e-3).max(few);
        // Either all contestants are in graphs or none is.
        let in_graph = self.blocker.is_some() && least < GRAPH_BELOW * 1e-6;
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
    fn record(&self, case: &mut dyn Case, contestant: usize, runs: usize) -> Result<Graph> {
        let sets = case.sets();
        self.stream.device().capture(|stream| {
            (0..runs).try_for_each(|run| case.enqueue(stream, contestant, run % sets))
        })
    }

    /// Puts batches of runs into the stream.
    fn batches(&mut self, case: &mut dyn Case, ready: &Ready, batches: usize) -> Result<()> {
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
    fn sample(&mut self, case: &mut dyn Case, ready: &Ready, batches: usize) -> Result<f64> {
        let Rest { least, of_last } = self.rest;
        std::thread::sleep(least.max(self.last_sample.mul_f64(of_last)));
        // The host must get ahead of the device, or the sample would include the first launch.
        match ready.graph {
            Some(_) => self.batches(case, ready, 1)?,
            None => self.fill_plug()?,
        }
        self.timed(case, ready, batches)
    }

    /// Fills the blocker, if there is one.
    fn fill_plug(&mut self) -> Result<()> {
        match &mut self.blocker {
            Some(blocker) => Ok(self.stream.fill_bytes(blocker, 0)?),
            None => Ok(()),
        }
    }

    /// Microseconds a run, over some batches that begin at once.
    fn timed(&mut self, case: &mut dyn Case, ready: &Ready, batches: usize) -> Result<f64> {
        self.stopwatch.start(self.stream)?;
        self.batches(case, ready, batches)?;
        let elapsed = self.stopwatch.stop(self.stream)?;
        self.last_sample = elapsed;
        Ok(elapsed.as_secs_f64() * 1e6 / (batches * ready.runs) as f64)
    }

    /// Microseconds a run, for each contestant and round.
    fn rounds(
        &mut self,
        case: &mut dyn Case,
        ready: &[Ready],
        rounds: usize,
        batches: usize,
    ) -> Result<Vec<Vec<f64>>> {
        let mut times = vec![Vec::with_capacity(rounds); ready.len()];
        for round in 1..=rounds {
            self.progress.step(&format!("round {round} of {rounds}"));
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
    fn warm_up(&mut self, case: &mut dyn Case, ready: &[Ready], length: Duration) -> Result<()> {
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
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::measure::case::Contestant;
    use crate::measure::check::Check;
    use cutlet::Device;

    /// A clock that only the contestants' runs advance.
    type Clock = Rc<Cell<Duration>>;

    /// Measures by that clock.
    struct ByClock {
        clock: Clock,
        start: Duration,
    }

    impl Stopwatch for ByClock {
        fn start(&mut self, _: &Stream) -> Result<()> {
            self.start = self.clock.get();
            Ok(())
        }
        fn stop(&mut self, _: &Stream) -> Result<Duration> {
            Ok(self.clock.get() - self.start)
        }
    }

    /// Contestants that take given times and note who ran on which set.
    struct Noted {
        contestants: Vec<Contestant>,
        /// Milliseconds of each run of a contestant. Later runs take as long as the last.
        times: Vec<Vec<u64>>,
        clock: Clock,
        runs: Vec<(usize, usize)>,
        /// How many runs preceded the poisoning of the outputs.
        poisoned: Option<usize>,
        /// Whose output is wrong.
        wrong: Vec<usize>,
    }

    impl Case for Noted {
        fn sets(&self) -> usize {
            3
        }
        fn contestants(&self) -> &[Contestant] {
            &self.contestants
        }
        fn enqueue(&mut self, _: &Stream, contestant: usize, set: usize) -> Result<()> {
            let earlier = self.runs.iter().filter(|(who, _)| *who == contestant);
            let times = &self.times[contestant];
            let time = times[earlier.count().min(times.len() - 1)];
            self.clock
                .set(self.clock.get() + Duration::from_millis(time));
            self.runs.push((contestant, set));
            Ok(())
        }
        fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
            let wrong = self.wrong.contains(&contestant);
            Ok(wrong.then(|| "told so".to_string()))
        }
        fn check(&mut self, _: usize) -> Result<Check> {
            Ok(Check::new(0.0))
        }
        fn poison(&mut self) -> Result<()> {
            self.poisoned = Some(self.runs.len());
            Ok(())
        }
        fn recheck(&mut self, _: usize) -> Result<Check> {
            Ok(Check::new(0.0))
        }
    }

    fn on_cpu() -> Setting {
        Setting::new(&Device::cpu(), 1).unwrap()
    }

    /// A timer and contestants, each with its role and times.
    fn noted<'a>(setting: &'a Setting, contestants: &[(Role, &[u64])]) -> (Timer<'a>, Noted) {
        let clock = Clock::default();
        let mut timer = Timer::new(setting).unwrap();
        timer.stopwatch = Box::new(ByClock {
            clock: clock.clone(),
            start: Duration::ZERO,
        });
        let case = Noted {
            times: contestants
                .iter()
                .map(|(_, times)| times.to_vec())
                .collect(),
            contestants: contestants
                .iter()
                .map(|&(role, _)| Contestant {
                    name: String::new(),
                    role,
                })
                .collect(),
            clock,
            runs: Vec::new(),
            poisoned: None,
            wrong: Vec::new(),
        };
        (timer, case)
    }

    #[test]
    fn contestants_take_turns_in_an_order_and_its_reverse() {
        let setting = on_cpu();
        let (mut timer, mut case) =
            noted(&setting, &[(Role::Cutlet, &[2]), (Role::Baseline, &[3])]);
        let protocol = Protocol {
            rounds: 5,
            sample_runs: 1,
            ..Protocol::default()
        };
        let times = timer.compare(&mut case, &[0, 1], &protocol).unwrap();
        assert_eq!(times[0].rounds, [2000.0; 5]);
        assert_eq!(times[1].rounds, [3000.0; 5]);
        let order: Vec<usize> = case
            .runs
            .iter()
            .map(|&(contestant, _)| contestant)
            .collect();
        // A screening of each contestant, in two runs, precedes the rounds.
        assert_eq!(order[..4], [0, 0, 1, 1]);
        assert_eq!(order[4..], [0, 1, 1, 0].repeat(5));
        let sets: Vec<usize> = case.runs.iter().map(|&(_, set)| set).collect();
        assert!(sets.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 3));
    }

    #[test]
    fn the_first_sample_rests_after_all_of_the_work_before() {
        let setting = on_cpu();
        let (mut timer, mut case) = noted(&setting, &[(Role::Cutlet, &[1])]);
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
    fn outputs_are_computed_again_as_they_were_timed_and_by_nothing_else() {
        for (graph_runs, before) in [(None, 0), (Some(6), 6)] {
            let setting = on_cpu();
            let (mut timer, mut case) = noted(&setting, &[(Role::Cutlet, &[1])]);
            let times = Times {
                contestant: 0,
                rounds: Vec::new(),
                sustained: Vec::new(),
                graph_runs,
            };
            timer.run_as_timed(&mut case, &times).unwrap();
            // Recording a graph computes nothing. Then only the graph runs.
            assert_eq!(case.poisoned, Some(before));
            let mut after: Vec<usize> = case.runs[before..].iter().map(|&(_, set)| set).collect();
            after.sort();
            let expected: &[usize] = if before == 0 { &[0, 1, 2] } else { &[] };
            assert_eq!(after, expected);
        }
    }

    #[test]
    fn the_fastest_of_a_role_are_finalists() {
        // The screening is the median of the three runs after the first.
        let setting = on_cpu();
        let (mut timer, mut case) = noted(
            &setting,
            &[
                (Role::Cutlet, &[1]),
                (Role::Alternative, &[1]),
                (Role::Baseline, &[1, 5, 14]),
                (Role::Baseline, &[1, 13]),
                (Role::Baseline, &[1, 12, 40, 12]),
                (Role::Baseline, &[1, 50, 11]),
                (Role::Baseline, &[1, 10]),
                (Role::Baseline, &[1, 30]),
            ],
        );
        let finalists = timer
            .finalists(&mut case, Role::Baseline, CHOICE.finalists)
            .unwrap();
        assert_eq!(finalists.numbers, [6, 5, 4, 3]);
        let setting = on_cpu();
        let (mut timer, mut case) = noted(
            &setting,
            &[
                (Role::Baseline, &[10]),
                (Role::Baseline, &[14]),
                (Role::Baseline, &[12]),
            ],
        );
        let finalists = timer
            .finalists(&mut case, Role::Baseline, CHOICE.finalists)
            .unwrap();
        assert_eq!(finalists.numbers, [0, 2]);
        // The second contestant is timed, however slow it seems.
        let setting = on_cpu();
        let (mut timer, mut case) = noted(
            &setting,
            &[
                (Role::Baseline, &[10]),
                (Role::Baseline, &[40]),
                (Role::Baseline, &[30]),
            ],
        );
        let finalists = timer
            .finalists(&mut case, Role::Baseline, CHOICE.finalists)
            .unwrap();
        assert_eq!(finalists.numbers, [0, 2]);
        let setting = on_cpu();
        let (mut timer, mut case) = noted(&setting, &[(Role::Cutlet, &[1])]);
        let finalists = timer
            .finalists(&mut case, Role::Baseline, CHOICE.finalists)
            .unwrap();
        assert!(finalists.numbers.is_empty());
    }

    #[test]
    fn who_is_wrong_takes_nobodys_place() {
        let setting = on_cpu();
        let (mut timer, mut case) = noted(
            &setting,
            &[
                (Role::Baseline, &[20]),
                (Role::Baseline, &[10]),
                (Role::Baseline, &[15]),
                (Role::Baseline, &[16]),
                (Role::Baseline, &[17]),
                (Role::Baseline, &[18]),
                (Role::Baseline, &[19]),
            ],
        );
        case.wrong = vec![1, 4];
        let mut finalists = timer
            .finalists(&mut case, Role::Baseline, CHOICE.finalists)
            .unwrap();
        assert_eq!(finalists.numbers, [2, 3, 5, 6]);
        for another in [0, 1, 2] {
            finalists.add(&mut case, another).unwrap();
        }
        assert_eq!(finalists.numbers, [2, 3, 5, 6, 0]);
        let wrong = finalists.passed_over.iter().map(|(wrong, _)| *wrong);
        assert_eq!(wrong.collect::<Vec<_>>(), case.wrong);
    }
}
