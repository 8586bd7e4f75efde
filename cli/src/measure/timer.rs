//! The timer of the command: it shows progress, and chooses the finalists of a role by the screenings of the
//! [measurement's timer](measure::Timer).

use cutlet::Stream;
use cutlet_host::measure::{self, Contestants};

use super::case::{Case, Role, of_role};
use super::error::{Error, Result};
use super::protocol::{CHOICE, Protocol};
use super::setting::Setting;
use super::statistics::Spread;
use crate::progress::Progress;

pub use cutlet_host::measure::Times;

/// Times problems on a stream.
pub struct Timer<'a> {
    progress: &'a Progress,
    timer: measure::Timer<'a>,
}

/// The contestants of a case, with the progress of their rounds.
struct Shown<'a> {
    case: &'a mut dyn Case,
    progress: &'a Progress,
}

impl Contestants for Shown<'_> {
    type Error = Error;

    fn sets(&self) -> usize {
        self.case.sets()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        self.case.enqueue(stream, contestant, set)
    }

    fn begin_round(&mut self, round: usize, rounds: usize) {
        self.progress.step(&format!("round {round} of {rounds}"));
    }
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

impl<'a> Timer<'a> {
    /// A timer for a setting's stream.
    ///
    /// # Errors
    /// If the device has too little memory.
    pub fn new(setting: &'a Setting) -> Result<Self> {
        Ok(Timer {
            progress: &setting.progress,
            timer: measure::Timer::new(&setting.stream)?,
        })
    }

    /// Microseconds that `work` takes, over some repetitions after one that is not timed.
    ///
    /// # Errors
    /// If the work or the device fails.
    pub fn time(
        &mut self,
        repetitions: usize,
        work: impl FnMut(&Stream) -> Result<()>,
    ) -> Result<Spread> {
        self.timer.time(repetitions, work)
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
            match self.screen(case, contestant) {
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
                .map(|(time, contestant)| (*contestant, *time));
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
        let mut case = self.shown(case);
        self.timer
            .compare(&mut case, contestants, &protocol.sampling())
    }

    /// Poisons the outputs and has a contestant compute every set in the way that it was timed.
    ///
    /// # Errors
    /// If the device fails.
    pub fn run_as_timed(&mut self, case: &mut dyn Case, times: &Times) -> Result<()> {
        self.progress.step("checking again");
        let mut case = self.shown(case);
        self.timer
            .run_as_timed(&mut case, times, |shown| shown.case.poison())
    }

    fn screen(&mut self, case: &mut dyn Case, contestant: usize) -> Result<f64> {
        self.timer.screen(&mut self.shown(case), contestant)
    }

    fn screen_again(
        &mut self,
        case: &mut dyn Case,
        screened: &mut Vec<(f64, usize)>,
    ) -> Result<bool> {
        self.timer.screen_again(&mut self.shown(case), screened)
    }

    fn shown<'c>(&self, case: &'c mut dyn Case) -> Shown<'c>
    where
        'a: 'c,
    {
        Shown {
            case,
            progress: self.progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::measure::case::Contestant;
    use crate::measure::check::Check;
    use cutlet::Device;
    use cutlet_host::measure::Stopwatch;

    /// A clock that only the contestants' runs advance.
    type Clock = Rc<Cell<Duration>>;

    /// Measures by that clock.
    struct ByClock {
        clock: Clock,
        start: Duration,
    }

    impl Stopwatch for ByClock {
        fn start(&mut self, _: &Stream) -> cutlet_host::Result<()> {
            self.start = self.clock.get();
            Ok(())
        }
        fn stop(&mut self, _: &Stream) -> cutlet_host::Result<Duration> {
            Ok(self.clock.get() - self.start)
        }
    }

    /// Contestants that take given times and note who ran.
    struct Noted {
        contestants: Vec<Contestant>,
        /// Milliseconds of each run of a contestant. Later runs take as long as the last.
        times: Vec<Vec<u64>>,
        clock: Clock,
        /// Who ran.
        runs: Vec<usize>,
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
        fn enqueue(&mut self, _: &Stream, contestant: usize, _: usize) -> Result<()> {
            let earlier = self.runs.iter().filter(|who| **who == contestant);
            let times = &self.times[contestant];
            let time = times[earlier.count().min(times.len() - 1)];
            self.clock
                .set(self.clock.get() + Duration::from_millis(time));
            self.runs.push(contestant);
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
        let stopwatch = ByClock {
            clock: clock.clone(),
            start: Duration::ZERO,
        };
        let mut timer = Timer::new(setting).unwrap();
        timer.timer = timer.timer.with_stopwatch(Box::new(stopwatch));
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
            wrong: Vec::new(),
        };
        (timer, case)
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
