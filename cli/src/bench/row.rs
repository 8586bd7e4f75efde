//! A row: its case is set up, checked, timed and checked again.

use super::family::{Family, Row, SetUp};
use super::results::{Figures, Measured, Outcome, RowResult};
use crate::backend::as_an_option;
use crate::measure::case::{Case, Role, of_role};
use crate::measure::check::Check;
use crate::measure::error::{Error, Result};
use crate::measure::protocol::{CHOICE, Protocol};
use crate::measure::random::random;
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;
use crate::measure::telemetry::{Recorder, Telemetry};
use crate::measure::timer::{Finalists, Timer, Times};

/// Bytes of the copy that measures the memory.
const COPY_BYTES: usize = 1 << 30;
/// How often they are copied.
const COPIES: usize = 20;

/// Everything that measuring a row needs.
pub struct Bench<'a> {
    pub setting: &'a Setting,
    pub timer: Timer<'a>,
    pub recorder: Recorder,
    pub protocol: Protocol,
}

impl Bench<'_> {
    /// Speed of a large copy in 10⁹ bytes a second, read plus written; `None` on the CPU.
    pub fn copy_speed(&mut self) -> Result<Option<f64>> {
        if !self.setting.on_gpu() {
            return Ok(None);
        }
        let stream = &self.setting.stream;
        let from = random::<u32>(stream, COPY_BYTES / 4, self.setting.seed)?;
        let mut to = stream.zeroed(from.len())?;
        let microseconds = self
            .timer
            .time(COPIES, |stream| Ok(stream.copy(&from, &mut to)?))?;
        Ok(Some(2.0 * COPY_BYTES as f64 / microseconds.median / 1e3))
    }

    /// Measures a problem of the suite of this name.
    pub fn measure_row<F: Family>(
        &mut self,
        family: &F,
        suite: &str,
        problem: &F::Problem,
    ) -> RowResult {
        let row = family.row(problem);
        self.setting.progress.now(&row.id);
        self.setting.progress.step("inputs");
        let outcome = match family.set_up(problem, self.setting) {
            Ok(SetUp::Ready(mut case)) => self
                .measure(&row, case.as_mut())
                .unwrap_or_else(|error| failed(&error)),
            Ok(SetUp::Skipped(reason)) => Outcome::Skipped { reason },
            Err(error) => failed(&error),
        };
        RowResult {
            suite: suite.to_string(),
            row,
            outcome,
        }
    }

    fn measure(&mut self, row: &Row, case: &mut dyn Case) -> Result<Outcome> {
        let contenders = match self.contenders(case)? {
            Ok(contenders) => contenders,
            Err(outcome) => return Ok(outcome),
        };
        self.recorder.take();
        let times = self
            .timer
            .compare(case, &contenders.all(), &self.protocol)?;
        let telemetry = self.recorder.take();
        let compared = Compared::new(contenders, times);
        if let Some(ours) = compared.ours() {
            self.timer.run_as_timed(case, ours)?;
            if let Some(found) = case.recheck(compared.baseline)?.wrong {
                return Ok(Outcome::Wrong { found });
            }
        }
        let measured = compared.measured(row, case, telemetry);
        Ok(Outcome::Measured(Box::new(measured)))
    }

    /// The contestants to time, or the outcome if there is no baseline or an output is wrong.
    fn contenders(
        &mut self,
        case: &mut dyn Case,
    ) -> Result<std::result::Result<Contenders, Outcome>> {
        let ours = of_role(case.contestants(), Role::Cutlet);
        let default = of_role(case.contestants(), Role::Baseline).first().copied();
        let mut baselines = self
            .timer
            .finalists(case, Role::Baseline, CHOICE.finalists)?;
        if let Some(default) = default {
            baselines.add(case, default)?;
        }
        let alternatives = self.timer.finalists(case, Role::Alternative, 1)?;
        let passed_over = [&baselines, &alternatives].into_iter();
        let passed_over = passed_over
            .flat_map(|them| them.passed_over.iter().map(|(_, why)| why.clone()))
            .collect();
        let Some(&first) = baselines.numbers.first() else {
            return Ok(Err(without_baseline(passed_over)));
        };
        let mut instances = self.timer.finalists(case, Role::Instance, usize::MAX)?;
        self.setting.progress.step("checking");
        let mut check = case.check(first)?;
        for (_, fault) in instances.passed_over.drain(..) {
            check.fail(fault);
        }
        if let Some(found) = check.wrong {
            return Ok(Err(Outcome::Wrong { found }));
        }
        Ok(Ok(Contenders {
            ours,
            default,
            baselines: baselines.numbers,
            alternatives: alternatives.numbers,
            instances,
            passed_over,
            check,
        }))
    }
}

/// The outcome of a row without a baseline: those that there were do not run, or are wrong.
fn without_baseline(passed_over: Vec<String>) -> Outcome {
    match passed_over.as_slice() {
        [] => Outcome::Skipped {
            reason: "there is no baseline".to_string(),
        },
        _ => Outcome::Failed {
            error: format!("no baseline is right: {}", passed_over.join("; ")),
        },
    }
}

/// The contestants that are timed.
struct Contenders {
    ours: Vec<usize>,
    /// The library's default.
    default: Option<usize>,
    /// There is at least one. The first took least in a screening.
    baselines: Vec<usize>,
    alternatives: Vec<usize>,
    instances: Finalists,
    /// Why others are not timed.
    passed_over: Vec<String>,
    check: Check,
}

impl Contenders {
    /// The numbers of all of them.
    fn all(&self) -> Vec<usize> {
        let Self {
            ours,
            baselines,
            alternatives,
            instances,
            ..
        } = self;
        [ours, baselines, alternatives, &instances.numbers]
            .map(Vec::as_slice)
            .concat()
    }
}

/// The times of contenders. Of the baselines, the fastest and the default are left.
struct Compared {
    contenders: Contenders,
    /// The fastest baseline.
    baseline: usize,
    times: Vec<Times>,
}

impl Compared {
    fn new(contenders: Contenders, mut times: Vec<Times>) -> Self {
        let Contenders {
            baselines, default, ..
        } = &contenders;
        let baseline = fastest(&times, baselines).unwrap_or(baselines[0]);
        times.retain(|Times { contestant, .. }| {
            let is_left = *contestant == baseline || Some(*contestant) == *default;
            is_left || !baselines.contains(contestant)
        });
        // The baseline comes before the default.
        times.sort_by_key(|Times { contestant, .. }| {
            Some(*contestant) == *default && *contestant != baseline
        });
        Self {
            contenders,
            baseline,
            times,
        }
    }

    /// cutlet's times.
    fn ours(&self) -> Option<&Times> {
        times_of(*self.contenders.ours.first()?, &self.times)
    }

    /// The baseline's times over cutlet's, round by round.
    fn ratio(&self, rounds: fn(&Times) -> &Vec<f64>) -> Option<Spread> {
        let (ours, theirs) = (self.ours()?, times_of(self.baseline, &self.times)?);
        let (ours, theirs) = (rounds(ours), rounds(theirs));
        (!ours.is_empty()).then(|| Spread::of_ratio(theirs, ours))
    }

    /// The figures of a contestant that was timed, with how far its output is off.
    fn figures(&self, row: &Row, case: &dyn Case, times: &Times) -> Figures {
        let check = &self.contenders.check;
        let contestant = times.contestant;
        Figures {
            default: Some(contestant) == self.contenders.default,
            error: match case.contestants()[contestant].role {
                Role::Cutlet => check.distance(check.to_f64),
                _ if contestant == self.baseline => check.distance(check.baseline_to_f64),
                _ => None,
            },
            ..figures(row, case, times)
        }
    }

    fn measured(self, row: &Row, case: &dyn Case, telemetry: Option<Telemetry>) -> Measured {
        let screened = &self.contenders.instances.screened;
        let timed = self
            .times
            .iter()
            .map(|times| self.figures(row, case, times));
        Measured {
            contestants: timed
                .chain(figures_of_screened(row, case, screened, &self.times))
                .collect(),
            ratio: self.ratio(|times| &times.rounds),
            sustained_ratio: self.ratio(|times| &times.sustained),
            passed_over: self.contenders.passed_over,
            telemetry,
        }
    }
}

/// The times of a contestant, if it was timed.
fn times_of(contestant: usize, times: &[Times]) -> Option<&Times> {
    times.iter().find(|times| times.contestant == contestant)
}

/// The contestant of `of` with the least median.
fn fastest(times: &[Times], of: &[usize]) -> Option<usize> {
    let median = |times: &Times| Spread::of(&times.rounds).median;
    times
        .iter()
        .filter(|times| of.contains(&times.contestant))
        .min_by(|a, b| median(a).total_cmp(&median(b)))
        .map(|times| times.contestant)
}

fn failed(error: &Error) -> Outcome {
    Outcome::Failed {
        error: as_an_option(&error.to_string()),
    }
}

/// The figures of a contestant's times.
fn figures(row: &Row, case: &dyn Case, times: &Times) -> Figures {
    let contestant = &case.contestants()[times.contestant];
    let microseconds = Spread::of(&times.rounds);
    let sustained = (!times.sustained.is_empty()).then(|| Spread::of(&times.sustained));
    Figures {
        name: contestant.name.clone(),
        role: contestant.role,
        default: false,
        microseconds,
        speed: row.speed(microseconds.median),
        sustained_microseconds: sustained.map(|times| times.median),
        error: None,
    }
}

/// The figures of instances that were screened, but not timed. Those that were timed tell by how much a screening errs: its
/// first run follows no other.
fn figures_of_screened(
    row: &Row,
    case: &dyn Case,
    screened: &[(usize, f64)],
    times: &[Times],
) -> Vec<Figures> {
    let timed = |contestant| times_of(contestant, times);
    let errors = screened.iter().filter_map(|&(contestant, screening)| {
        Some(Spread::of(&timed(contestant)?.rounds).median - screening)
    });
    let errors: Vec<f64> = errors.collect();
    if errors.is_empty() {
        return Vec::new();
    }
    let error = Spread::of(&errors).median;
    let others = screened
        .iter()
        .filter(|(contestant, _)| timed(*contestant).is_none());
    let figures = others.map(|&(contestant, screening)| Figures {
        role: Role::Screened,
        ..figures(
            row,
            case,
            &Times {
                contestant,
                rounds: vec![screening + error],
                sustained: Vec::new(),
                graph_runs: None,
            },
        )
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use cutlet::Device;
    use cutlet_cli::cublas::CublasError;

    use super::*;
    use crate::bench::gemm::Gemm;
    use crate::bench::table;
    use crate::measure::case::Contestant;
    use crate::measure::dtype::Dtype;

    /// A problem that every contestant solves at once, with prescribed findings.
    #[derive(Default)]
    struct Told {
        contestants: Vec<Contestant>,
        /// Whether cutlet is right before it is timed, and after.
        checks: [bool; 2],
        /// The contestant whose output is wrong.
        wrong: Option<usize>,
        /// The contestant that does not run.
        broken: Option<usize>,
        /// The instance that is for other operands.
        unfit: Option<usize>,
    }

    impl Told {
        fn check(&self, number: usize) -> Check {
            let mut check = Check::new(0.0);
            if !self.checks[number] {
                check.fail("told so");
            }
            check
        }
    }

    impl Case for Told {
        fn sets(&self) -> usize {
            1
        }
        fn contestants(&self) -> &[Contestant] {
            &self.contestants
        }
        fn enqueue(&mut self, _: &cutlet::Stream, contestant: usize, _: usize) -> Result<()> {
            match Some(contestant) {
                broken if broken == self.broken => {
                    Err(Error::Cublas(CublasError::Device("told so".to_string())))
                }
                unfit if unfit == self.unfit => Err(Error::Cutlet(cutlet::Error::Instance {
                    asked: "told so".to_string(),
                    names: Vec::new(),
                })),
                _ => Ok(()),
            }
        }
        fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
            let name = &self.contestants[contestant].name;
            Ok((self.wrong == Some(contestant)).then(|| format!("{name}: told so")))
        }
        fn check(&mut self, _: usize) -> Result<Check> {
            Ok(Told::check(self, 0))
        }
        fn poison(&mut self) -> Result<()> {
            Ok(())
        }
        fn recheck(&mut self, _: usize) -> Result<Check> {
            Ok(Told::check(self, 1))
        }
    }

    /// The result of a problem with these findings about cutlet.
    fn result(checks: [bool; 2]) -> RowResult {
        let told = Told {
            checks,
            ..Told::default()
        };
        result_of(&[Role::Cutlet, Role::Baseline], told).unwrap()
    }

    /// The result of a problem with contestants of these roles, numbered from 0.
    fn result_of(roles: &[Role], told: Told) -> Result<RowResult> {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        let mut bench = Bench {
            setting: &setting,
            timer: Timer::new(&setting).unwrap(),
            recorder: Recorder::start(None),
            protocol: Protocol {
                rounds: 5,
                sample_runs: 1,
                ..Protocol::default()
            },
        };
        let entry = toml::from_str("mnk = [[2, 2, 2]]").unwrap();
        let problem = &Gemm.problems(entry, &[Dtype::F32]).unwrap()[0];
        let row = Gemm.row(problem);
        let contestants = roles.iter().enumerate().map(|(number, &role)| Contestant {
            name: format!("someone {number}"),
            role,
        });
        let mut case = Told {
            contestants: contestants.collect(),
            ..told
        };
        let outcome = bench.measure(&row, &mut case)?;
        Ok(RowResult {
            suite: "own".to_string(),
            row,
            outcome,
        })
    }

    #[test]
    fn a_wrong_output_has_no_speed_whenever_it_is_found() {
        assert!(result([true, true]).measured().is_some());
        for checks in [[false, true], [true, false]] {
            let result = result(checks);
            assert!(result.is_bad());
            let line = table::line(&result, 0);
            assert!(line.ends_with("WRONG: told so"), "{line}");
            assert!(matches!(result.outcome, Outcome::Wrong { .. }));
        }
    }

    #[test]
    fn looks_are_corrected_by_those_who_were_timed() {
        let entry = toml::from_str("mnk = [[2, 2, 2]]").unwrap();
        let row = Gemm.row(&Gemm.problems(entry, &[Dtype::F32]).unwrap()[0]);
        let contestants = (0..4).map(|number| Contestant {
            name: format!("instance {number}"),
            role: Role::Instance,
        });
        let case = Told {
            contestants: contestants.collect(),
            ..Told::default()
        };
        let timed = |contestant, microseconds| Times {
            contestant,
            rounds: vec![microseconds; 5],
            sustained: Vec::new(),
            graph_runs: None,
        };
        let screened = [(0, 5.0), (1, 5.5), (3, 9.0)];
        let times = [timed(0, 4.75), timed(1, 5.25)];
        let found = figures_of_screened(&row, &case, &screened, &times);
        let [figures] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(figures.name, "instance 3");
        assert_eq!(figures.role, Role::Screened);
        assert_eq!(figures.microseconds, Spread::of(&[8.75]));
        assert!(figures_of_screened(&row, &case, &screened, &[]).is_empty());
    }

    /// cutlet, an instance, two baselines and an alternative.
    const ALL: [Role; 5] = [
        Role::Cutlet,
        Role::Instance,
        Role::Baseline,
        Role::Baseline,
        Role::Alternative,
    ];

    #[test]
    fn an_instance_that_is_wrong_or_fails_is_a_fault_of_the_row() {
        let right = || Told {
            checks: [true; 2],
            ..Told::default()
        };
        let all = result_of(&ALL, right()).unwrap();
        assert!(all.measured().is_some());
        let wrong = Told {
            wrong: Some(1),
            ..right()
        };
        let line = table::line(&result_of(&ALL, wrong).unwrap(), 0);
        assert!(line.ends_with("WRONG: someone 1: told so"), "{line}");
        let broken = Told {
            broken: Some(1),
            ..right()
        };
        let error = result_of(&ALL, broken).unwrap_err().to_string();
        assert!(error.starts_with("someone 1 did not run:"), "{error}");
        let unfit = Told {
            unfit: Some(1),
            ..right()
        };
        let result = result_of(&ALL, unfit).unwrap();
        assert!(result.measured().unwrap().passed_over.is_empty());
    }

    #[test]
    fn others_that_are_wrong_or_do_not_run_are_passed_over_and_named() {
        for other in 2..5 {
            for (wrong, broken) in [(Some(other), None), (None, Some(other))] {
                let told = Told {
                    checks: [true; 2],
                    wrong,
                    broken,
                    ..Told::default()
                };
                let result = result_of(&ALL, told).unwrap();
                let measured = result.measured().unwrap();
                let name = format!("someone {other}");
                assert!(measured.contestants.iter().all(|one| one.name != name));
                assert!(measured.passed_over[0].starts_with(&name));
                assert_eq!(measured.passed_over.len(), 1);
                // Number 2 is the default.
                assert_eq!(measured.library_default().is_some(), other != 2);
            }
        }
        let told = Told {
            checks: [true; 2],
            wrong: Some(1),
            ..Told::default()
        };
        let alone = result_of(&[Role::Cutlet, Role::Baseline], told).unwrap();
        assert!(alone.is_bad());
        let line = table::line(&alone, 0);
        assert!(line.ends_with("right: someone 1: told so"), "{line}");
    }
}
