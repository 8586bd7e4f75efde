//! `cutlet tune`: measures which kernel is the fastest at some problems, and writes a tuning file that GEMMs look in.

mod case;
mod operand;
mod problems;
mod rates;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cutlet::{Device, ProblemKey, Tuning, TuningEntry};

use crate::backend::{Backend, as_an_option};
use crate::bench::gemm::dtypes_with_kernels;
use crate::bench::suite::Suite;
use crate::measure::case::{Case, Role};
use crate::measure::dtype::Dtype;
use crate::measure::error::Error;
use crate::measure::protocol::Protocol;
use crate::measure::setting::Setting;
use crate::measure::timer::{Timer, Times};
use crate::output::{complain, print_line};
use case::TuneCase;
use problems::{Problems, shape, suite_of};
use verdict::{Measured, header, title};

/// Measure which kernel is the fastest at some GEMMs, and write a tuning file, which CUTLET_TUNING names.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["shapes", "suite", "recorded", "device"]))]
pub struct TuneArgs {
    /// Shapes as MxNxK, separated by commas. A is row-major, and B is column-major.
    #[arg(long, value_delimiter = ',', value_parser = shape, conflicts_with_all = ["suite", "recorded"])]
    shapes: Vec<[usize; 3]>,
    /// The GEMMs of a suite of `cutlet bench`, by name or file.
    #[arg(long, conflicts_with = "recorded")]
    suite: Option<String>,
    /// The problems in this file, which a program with CUTLET_RECORD=FILE wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "dtype")]
    recorded: Option<PathBuf>,
    /// Measure the device's rates, too: of memory, of its L2 cache, and its clock under load.
    #[arg(long)]
    device: bool,
    /// Element types of shapes and of a suite, separated by commas. By default, all that cutlet has kernels for.
    #[arg(long, value_enum, value_delimiter = ',')]
    dtype: Vec<Dtype>,
    /// The tuning file. A file of the same device and versions is added to.
    #[arg(long, value_name = "FILE", default_value = "cutlet.tuning")]
    out: PathBuf,
    /// Rounds of each problem.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
    /// The device that runs the kernels.
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// Seed of the random inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command. Fails if a kernel failed or was wrong.
pub fn run(args: &TuneArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let device = args.backend.device()?;
    let problems = problems(args, &device)?;
    let mut tuning = there_or_new(&args.out, &device)?;
    let setting = Setting::new(&device, args.seed)?;
    let on_gpu = setting.on_gpu();
    print_line(device.describe())?;
    if !on_gpu {
        print_line(
            "there is no GPU here: these figures show that all works, not which kernel a GPU runs fastest",
        )?;
    }
    let mut tuner = Tuner {
        timer: Timer::new(&setting)?,
        protocol: Protocol::bursts(args.rounds as usize, on_gpu),
        setting: &setting,
    };
    if args.device {
        let rates = rates::measure(&setting, &mut tuner.timer)?;
        print_line(rates::report(&rates))?;
        tuning.set_rates(rates);
        tuning.save(&args.out)?;
    }
    let summary = match problems.keys.is_empty() {
        true => Summary::default(),
        false => tuner.tune(&problems, &mut tuning, &args.out)?,
    };
    print_line(format!(
        "{} problems measured, {} gains written, {} left out, {} failed; {} has {} entries",
        summary.measured,
        summary.written,
        summary.left_out + problems.left_out.len(),
        summary.failed,
        args.out.display(),
        tuning.entries().len()
    ))?;
    Ok(match summary.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The problems that were asked for. Prints those that are not tuned.
fn problems(args: &TuneArgs, device: &Device) -> Result<Problems, Box<dyn std::error::Error>> {
    let dtypes = match args.dtype.as_slice() {
        [] => dtypes_with_kernels(device),
        dtypes => dtypes.to_vec(),
    };
    let problems = match (&args.recorded, &args.suite) {
        (Some(file), _) => Problems::recorded(file)?,
        (None, Some(suite)) => Problems::of_suite(&Suite::load(suite)?, &dtypes)?,
        (None, None) if args.shapes.is_empty() => Problems::default(),
        (None, None) => Problems::of_suite(&suite_of(&args.shapes)?, &dtypes)?,
    };
    for line in &problems.left_out {
        print_line(line)?;
    }
    if problems.keys.is_empty() && !args.device {
        return Err("there is no problem to tune; name shapes, a suite of GEMMs or a file of recorded problems".into());
    }
    Ok(problems)
}

/// The tuning in a file, or an empty one if there is no file. Refuses a file of another device or version.
fn there_or_new(file: &Path, device: &Device) -> Result<Tuning, Box<dyn std::error::Error>> {
    if !file.exists() {
        return Ok(Tuning::new(device));
    }
    let there = Tuning::load(file)?;
    match there.merge_refusal(device) {
        None => Ok(there),
        Some(refusal) => Err(format!(
            "{} cannot be added to: {refusal}; name another file with --out, or remove this one",
            file.display()
        )
        .into()),
    }
}

/// How many problems came to which end.
#[derive(Debug, Default)]
struct Summary {
    measured: usize,
    written: usize,
    left_out: usize,
    failed: usize,
}

/// What was found out about a problem.
enum Outcome {
    Measured {
        key: ProblemKey,
        measured: Box<Measured>,
    },
    LeftOut(String),
    Failed(String),
}

/// Everything that tuning a problem needs.
struct Tuner<'a> {
    setting: &'a Setting,
    timer: Timer<'a>,
    protocol: Protocol,
}

impl Tuner<'_> {
    /// Tunes problems one after the other. The file is written after each, so that a run that is cut short leaves
    /// one.
    fn tune(
        &mut self,
        problems: &Problems,
        tuning: &mut Tuning,
        file: &Path,
    ) -> Result<Summary, Box<dyn std::error::Error>> {
        let mut summary = Summary::default();
        print_line(header())?;
        for key in &problems.keys {
            let outcome = self
                .outcome(key)
                .unwrap_or_else(|error| Outcome::Failed(as_an_option(&error.to_string())));
            let said = match outcome {
                Outcome::Measured { key, measured } => {
                    summary.measured += 1;
                    summary.written += usize::from(measured.is_gain());
                    enter(tuning, key, &measured);
                    tuning.save(file)?;
                    measured.to_string()
                }
                Outcome::LeftOut(why) => {
                    summary.left_out += 1;
                    format!("left out: {why}")
                }
                Outcome::Failed(found) => {
                    summary.failed += 1;
                    complain(format!("error: {}: {found}", title(key)));
                    format!("FAILED: {found}")
                }
            };
            print_line(format!("{:<40} {said}", title(key)))?;
        }
        Ok(summary)
    }

    /// Checks and times the kernels of a problem, except slow ones, by a screening.
    fn outcome(&mut self, key: &ProblemKey) -> Result<Outcome, Error> {
        let TuneCase {
            key,
            estimated,
            mut case,
        } = match case::set_up(key, self.setting)? {
            Ok(case) => case,
            Err(why) => return Ok(Outcome::LeftOut(why)),
        };
        let case = case.as_mut();
        if let Some(found) = case.fault(ESTIMATED)? {
            return Ok(Outcome::Failed(found));
        }
        let instances = self.timer.finalists(case, Role::Instance, usize::MAX)?;
        if let Some((_, found)) = instances.passed_over.into_iter().next() {
            return Ok(Outcome::Failed(found));
        }
        let contestants = [&[ESTIMATED], &instances.numbers[..]].concat();
        let times = self.timer.compare(case, &contestants, &self.protocol)?;
        let name = |times: &Times| case.contestants()[times.contestant].name.clone();
        let others: Vec<(String, &Times)> = times[1..].iter().map(|it| (name(it), it)).collect();
        let Some(measured) = Measured::new(estimated, &times[0], &others) else {
            return Ok(Outcome::LeftOut("it has no kernel instances".to_string()));
        };
        Ok(match self.recheck(case, &times, &measured)? {
            Some(found) => Outcome::Failed(found),
            None => Outcome::Measured {
                key,
                measured: Box::new(measured),
            },
        })
    }

    /// Has the fastest kernel compute C again in the way that was timed. Returns what is wrong, if anything.
    fn recheck(
        &mut self,
        case: &mut dyn Case,
        times: &[Times],
        measured: &Measured,
    ) -> Result<Option<String>, Error> {
        let (fastest, _) = &measured.fastest;
        let is_fastest = |it: &&Times| case.contestants()[it.contestant].name == *fastest;
        let Some(times) = times.iter().find(is_fastest) else {
            return Ok(None);
        };
        self.timer.run_as_timed(case, times)?;
        Ok(case.recheck(times.contestant)?.wrong)
    }
}

/// The number of the estimated kernel among the contestants.
const ESTIMATED: usize = 0;

/// Enters a gain, and removes an earlier entry where there is none.
fn enter(tuning: &mut Tuning, problem: ProblemKey, measured: &Measured) {
    match measured.is_gain() {
        true => tuning.insert(TuningEntry {
            problem,
            kernel: measured.fastest.0.clone(),
            microseconds: (measured.fastest.1 * 1e3).round() / 1e3,
        }),
        false => tuning.remove(&problem),
    }
}
