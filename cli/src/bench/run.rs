//! A run: the problems of its suites, one after the other. Each is checked, timed and checked again.

use std::time::{Instant, SystemTime};

use cutlet::Device;
use indicatif::{ProgressBar, ProgressStyle};
use toml::Spanned;

use super::dtype::Dtype;
use super::error::{Error, Result};
use super::family::{Case, Family, Role, Row, SetUp};
use super::gather::Gather;
use super::gemm::Gemm;
use super::machine::Machine;
use super::movement::Movement;
use super::nvml::Nvml;
use super::protocol::{CHOICE, Protocol, Timer, Times, of_role};
use super::random::random;
use super::results::{Figures, Measured, Outcome, Results, RowResult, SCHEMA, SuiteName};
use super::setting::Setting;
use super::statistics::Spread;
use super::suite::{Suite, SuiteError};
use super::table;
use super::telemetry::Recorder;
use crate::backend::as_an_option;
use crate::output::print_line;

/// Bytes of the copy that measures the memory.
const COPY_BYTES: usize = 1 << 30;
/// How often they are copied.
const COPIES: usize = 20;

/// The plan of a run.
pub struct Plan {
    /// The suites that have the problems.
    pub suites: Vec<Suite>,
    /// The families of the problems.
    pub families: Families,
    /// The element types of the problems.
    pub dtypes: Vec<Dtype>,
    /// How problems are timed.
    pub protocol: Protocol,
    /// Whether only the baselines are measured.
    pub baselines_only: bool,
    /// cutlet's kernel instances whose names contain one of these are measured too.
    pub instances: Vec<String>,
    /// Seed of the inputs.
    pub seed: u64,
}

impl Plan {
    /// The families and types of the problems, for messages.
    fn kinds(&self) -> String {
        let dtypes: Vec<&str> = self.dtypes.iter().map(|dtype| dtype.name()).collect();
        let gemm = format!("GEMM in {}", dtypes.join(" or "));
        match self.families {
            Families::Gemm => gemm,
            Families::Gather => "gather".to_string(),
            Families::Movement => "movement".to_string(),
            Families::All => format!("{gemm}, no gather and no movement"),
        }
    }
}

/// The families that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Families {
    /// GEMM.
    Gemm,
    /// Gather.
    Gather,
    /// Other operations that move rows and elements.
    Movement,
    /// All of them.
    All,
}

/// Measures the problems of a plan and prints a line for each. Before each line, `keep` gets the results so far, so
/// that a run that is cut short leaves results.
///
/// # Errors
/// If a suite has no problem of the plan's families and types, nothing can run, `keep` fails, or a line cannot be
/// printed. The errors of a row are in its result.
pub fn run(
    device: &Device,
    plan: &Plan,
    mut keep: impl FnMut(&Results) -> Result<()>,
) -> Result<()> {
    let (began, clock) = (SystemTime::now(), Instant::now());
    let mut unused: Vec<&Suite> = plan.suites.iter().collect();
    let (gemms, gathers, movements) = (
        problems(
            &Gemm,
            plan,
            |suite| &suite.gemm,
            Families::Gemm,
            &mut unused,
        )?,
        problems(
            &Gather,
            plan,
            |suite| &suite.gather,
            Families::Gather,
            &mut unused,
        )?,
        problems(
            &Movement,
            plan,
            |suite| &suite.movement,
            Families::Movement,
            &mut unused,
        )?,
    );
    if let Some(suite) = unused.first() {
        return Err(SuiteError::Nothing {
            name: suite.name.clone(),
            of: plan.kinds(),
        }
        .into());
    }
    let planned_rows = gemms.len() + gathers.len() + movements.len();
    let setting = Setting {
        baselines_only: plan.baselines_only,
        instances: plan.instances.clone(),
        ..Setting::new(device, plan.seed)?
    };
    let nvml = Nvml::of(&setting.stream);
    let mut machine = Machine::new(&setting, nvml.as_ref());
    print_line(machine.line())?;
    if !setting.on_gpu() {
        print_line(format!(
            "there is no GPU here ({}): these figures show that all works, not how fast a GPU is",
            device.describe().why
        ))?;
    }
    if setting.on_gpu()
        && let Err(why) = &setting.cublas
    {
        print_line(format!("GEMM has no baseline here: {why}"))?;
    }

    let mut bench = Bench {
        timer: Timer::new(&setting)?,
        recorder: Recorder::start(nvml),
        setting: &setting,
        protocol: plan.protocol,
        progress: progress(planned_rows),
    };
    machine.copy_gigabytes = bench.copy_speed()?;
    print_line(table::header())?;
    let mut results = Results {
        schema: SCHEMA,
        program: format!("cutlet {}", env!("CARGO_PKG_VERSION")),
        command: command(std::env::args().skip(1)),
        began: utc(began),
        seconds: 0.0,
        suites: plan
            .suites
            .iter()
            .map(|Suite { name, about, .. }| SuiteName {
                name: name.clone(),
                about: about.clone(),
            })
            .collect(),
        machine,
        protocol: plan.protocol,
        planned_rows,
        rows: Vec::new(),
    };
    let mut add = |bench: &Bench<'_>, row: RowResult| -> Result<()> {
        let line = table::line(&row);
        results.rows.push(row);
        results.seconds = clock.elapsed().as_secs_f64();
        keep(&results)?;
        bench.progress.suspend(|| print_line(line))?;
        bench.progress.inc(1);
        Ok(())
    };
    for (suite, problem) in &gemms {
        let row = bench.measure_row(&Gemm, suite, problem);
        add(&bench, row)?;
    }
    for (suite, problem) in &gathers {
        let row = bench.measure_row(&Gather, suite, problem);
        add(&bench, row)?;
    }
    for (suite, problem) in &movements {
        let row = bench.measure_row(&Movement, suite, problem);
        add(&bench, row)?;
    }
    bench.progress.finish_and_clear();
    Ok(())
}

/// The problems of a family in the plan's suites, each once, one element type after the other, with the name of the
/// first suite that has the problem. Removes suites with such problems from `unused`.
fn problems<F: Family>(
    family: &F,
    plan: &Plan,
    entries: fn(&Suite) -> &Vec<Spanned<toml::Value>>,
    of: Families,
    unused: &mut Vec<&Suite>,
) -> Result<Vec<(String, F::Problem)>> {
    if plan.families != Families::All && plan.families != of {
        return Ok(Vec::new());
    }
    let mut known = std::collections::HashSet::new();
    let mut problems = Vec::new();
    for dtype in &plan.dtypes {
        for suite in &plan.suites {
            for entry in entries(suite) {
                let found = suite.problems(entry, |entry| family.problems(entry, &[*dtype]))?;
                if !found.is_empty() {
                    unused.retain(|unused| unused.name != suite.name);
                }
                let new = found
                    .into_iter()
                    .filter(|problem| known.insert(family.row(problem).id));
                problems.extend(new.map(|problem| (suite.name.clone(), problem)));
            }
        }
    }
    Ok(problems)
}

fn progress(rows: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows, {elapsed} {msg}");
    // The template is a constant, and right.
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(rows as u64).with_style(style)
}

/// Everything that measuring a row needs.
struct Bench<'a> {
    setting: &'a Setting,
    timer: Timer,
    recorder: Recorder,
    protocol: Protocol,
    progress: ProgressBar,
}

impl Bench<'_> {
    /// Speed of a large copy in 10⁹ bytes a second, read plus written; `None` on the CPU.
    fn copy_speed(&mut self) -> Result<Option<f64>> {
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

    fn measure_row<F: Family>(
        &mut self,
        family: &F,
        suite: &str,
        problem: &F::Problem,
    ) -> RowResult {
        let row = family.row(problem);
        self.progress.set_message(row.id.clone());
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
        let ours = of_role(case.contestants(), Role::Cutlet);
        let default = of_role(case.contestants(), Role::Baseline).first().copied();
        let mut baselines = self
            .timer
            .finalists(case, Role::Baseline, CHOICE.finalists)?;
        if let Some(default) = default {
            baselines.add(case, default)?;
        }
        let asides = self.timer.finalists(case, Role::Aside, 1)?;
        let passed_over = [&baselines, &asides].into_iter();
        let passed_over: Vec<String> = passed_over
            .flat_map(|them| them.passed_over.iter().map(|(_, why)| why.clone()))
            .collect();
        let finalists = baselines.numbers;
        let Some(&first) = finalists.first() else {
            return Ok(match passed_over.as_slice() {
                [] => Outcome::Skipped {
                    reason: "there is no baseline".to_string(),
                },
                _ => Outcome::Failed {
                    error: format!("no baseline is right: {}", passed_over.join("; ")),
                },
            });
        };
        let instances = self.timer.finalists(case, Role::Instance, usize::MAX)?;
        let mut check = case.check(first)?;
        for (_, fault) in instances.passed_over {
            check.fail(fault);
        }
        if let Some(found) = check.wrong {
            return Ok(Outcome::Wrong { found });
        }
        let contestants = [
            ours.clone(),
            finalists.clone(),
            asides.numbers,
            instances.numbers,
        ]
        .concat();

        self.recorder.take();
        let mut times = self.timer.compare(case, &contestants, &self.protocol)?;
        let baseline = fastest(&times, &finalists).unwrap_or(first);
        let is_default = |times: &Times| Some(times.contestant) == default;
        times.retain(|times| {
            let contestant = times.contestant;
            !finalists.contains(&contestant) || contestant == baseline || is_default(times)
        });
        // The baseline comes before the default.
        times.sort_by_key(|times| is_default(times) && times.contestant != baseline);
        let telemetry = self.recorder.take();

        let of = |contestant: usize| times.iter().find(|times| times.contestant == contestant);
        if let Some(ours) = ours.first().and_then(|&ours| of(ours)) {
            self.timer.run_as_timed(case, ours)?;
            let recheck = case.recheck(baseline)?;
            if let Some(found) = recheck.wrong {
                return Ok(Outcome::Wrong { found });
            }
        }
        let ratio = |rounds: fn(&Times) -> &Vec<f64>| {
            let (ours, theirs) = (of(*ours.first()?)?, of(baseline)?);
            let pairs = rounds(theirs).iter().zip(rounds(ours));
            let ratios: Vec<f64> = pairs.map(|(theirs, ours)| theirs / ours).collect();
            (!ratios.is_empty()).then(|| Spread::of(&ratios))
        };
        let error = |contestant: usize| match case.contestants()[contestant].role {
            Role::Cutlet => check.distance(check.to_f64),
            _ if contestant == baseline => check.distance(check.baseline_to_f64),
            _ => None,
        };
        Ok(Outcome::Measured(Box::new(Measured {
            contestants: times
                .iter()
                .map(|times| Figures {
                    default: is_default(times),
                    error: error(times.contestant),
                    ..figures(row, case, times)
                })
                .chain(figures_of_looks(row, case, &instances.looks, &times))
                .collect(),
            ratio: ratio(|times| &times.rounds),
            sustained_ratio: ratio(|times| &times.sustained),
            passed_over,
            telemetry,
        })))
    }
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

/// The figures of instances that were looked at, but not timed. Those that were timed tell by how much a look errs: its
/// first run follows no other.
fn figures_of_looks(
    row: &Row,
    case: &dyn Case,
    looks: &[(usize, f64)],
    times: &[Times],
) -> Vec<Figures> {
    let timed = |contestant: usize| times.iter().find(|times| times.contestant == contestant);
    let errors = looks.iter().filter_map(|&(contestant, look)| {
        Some(Spread::of(&timed(contestant)?.rounds).median - look)
    });
    let errors: Vec<f64> = errors.collect();
    if errors.is_empty() {
        return Vec::new();
    }
    let error = Spread::of(&errors).median;
    let others = looks
        .iter()
        .filter(|(contestant, _)| timed(*contestant).is_none());
    let figures = others.map(|&(contestant, look)| Figures {
        role: Role::Look,
        ..figures(
            row,
            case,
            &Times {
                contestant,
                rounds: vec![look + error],
                sustained: Vec::new(),
                graph_runs: None,
            },
        )
    });
    figures.collect()
}

/// The command with these arguments, without the program's path and `--out`, which are this machine's.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["cutlet".to_string()];
    let mut is_folder = false;
    for argument in arguments {
        let names_folder = argument == "--out";
        if !is_folder && !names_folder && !argument.starts_with("--out=") {
            words.push(argument);
        }
        is_folder = names_folder;
    }
    words.join(" ")
}

/// A moment as `2026-11-21 04:26:55 UTC`.
fn utc(moment: SystemTime) -> String {
    let seconds = moment
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years of 365.2425 days that begin in March, from the year 0 on.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::check::Check;
    use crate::bench::family::Contestant;
    use std::time::Duration;

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
                broken if broken == self.broken => Err(Error::file("running", "told so")),
                unfit if unfit == self.unfit => Err(Error::Cutlet(cutlet::Error::Instance {
                    asked: "told so".to_string(),
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
            progress: ProgressBar::hidden(),
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
            let line = table::line(&result);
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
        let looks = [(0, 5.0), (1, 5.5), (3, 9.0)];
        let times = [timed(0, 4.75), timed(1, 5.25)];
        let found = figures_of_looks(&row, &case, &looks, &times);
        let [figures] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(figures.name, "instance 3");
        assert_eq!(figures.role, Role::Look);
        assert_eq!(figures.microseconds, Spread::of(&[8.75]));
        assert!(figures_of_looks(&row, &case, &looks, &[]).is_empty());
    }

    /// cutlet, an instance, two baselines and an aside.
    const ALL: [Role; 5] = [
        Role::Cutlet,
        Role::Instance,
        Role::Baseline,
        Role::Baseline,
        Role::Aside,
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
        let line = table::line(&result_of(&ALL, wrong).unwrap());
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
        let line = table::line(&alone);
        assert!(line.ends_with("right: someone 1: told so"), "{line}");
    }

    #[test]
    fn commands_are_written_without_paths_of_the_machine() {
        let command = |line: &str| command(line.split(' ').map(str::to_string));
        let short = "cutlet bench gemm --rounds 5";
        assert_eq!(command("bench gemm --out elsewhere --rounds 5"), short);
        assert_eq!(command("bench gemm --rounds 5 --out=elsewhere"), short);
        assert_eq!(command("bench gemm --rounds 5"), short);
    }

    #[test]
    fn moments_are_written_in_utc() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59 UTC");
    }
}
