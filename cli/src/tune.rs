//! `cutlet tune`: measures which kernel is the fastest at some problems, and writes a tuning file that GEMMs look in.

mod case;
mod operand;
mod problems;
mod quantized;
mod rates;
mod report;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cutlet::{Device, ProblemKey, Tuning, TuningEntry};
use cutlet_host::Backend as Kind;

use crate::backend::{Backend, NeedsGpu, RanOn, as_an_option, is_long_on_cpu, no_figures};
use crate::bench::gemm::dtypes_with_kernels;
use crate::bench::suite::Suite;
use crate::measure::case::{Case, Role};
use crate::measure::dtype::Dtype;
use crate::measure::error::Error;
use crate::measure::protocol::Protocol;
use crate::measure::setting::Setting;
use crate::measure::timer::{Timer, Times};
use crate::output::{Output, OutputError};
use crate::progress::ProgressArgs;
use case::TuneCase;
use problems::{Problems, shape, suite_of};
use report::{Counts, Outcome, ProblemReport, Rates, Report};
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
    /// Element types of shapes and of a suite, separated by commas. By default, all without scales that cutlet has
    /// kernels for.
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
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Runs the command. Fails if a kernel failed or was wrong.
pub fn run(args: &TuneArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (device, output) = (args.backend.device()?, &args.output);
    let problems = problems(args, &device)?;
    if device.backend() == Kind::Cpu && !args.backend.is_named() {
        expect_small(&problems, &device)?;
    }
    let mut tuning = there_or_new(&args.out, &device)?;
    // A file that cannot be written is refused before anything is measured.
    tuning.save(&args.out)?;
    let setting = Setting {
        progress: args.progress.beside(output),
        ..Setting::new(&device, args.seed)?
    };
    say_what_is_tuned(output, &device)?;
    let mut tuner = Tuner {
        timer: Timer::new(&setting)?,
        protocol: Protocol::bursts(args.rounds as usize, setting.on_gpu()),
        setting: &setting,
        output,
    };
    let rates = match args.device {
        true => Some(tuner.measure_rates(&mut tuning, &args.out)?),
        false => None,
    };
    let problems = match problems.keys.is_empty() {
        true => Vec::new(),
        false => tuner.tune(&problems, &mut tuning, &args.out)?,
    };
    setting.progress.end();
    let counts = Counts::of(&problems);
    output.result(&Report {
        device: RanOn::new(&device),
        file: args.out.display().to_string(),
        rates,
        problems,
        counts,
        entries: tuning.entries().len(),
    })?;
    Ok(match counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The problems that were asked for.
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
    if problems.keys.is_empty() && !args.device {
        let wrong = "nothing is tuned: there is no problem; name shapes, a suite of GEMMs or a file of recorded problems";
        return Err(wrong.into());
    }
    Ok(problems)
}

/// Says which device is tuned.
fn say_what_is_tuned(output: &Output, device: &Device) -> Result<(), OutputError> {
    output.say(device.describe())?;
    if let Some(warning) = no_figures(device) {
        output.say(warning)?;
    }
    Ok(())
}

/// Refuses problems that take the CPU backend long.
fn expect_small(problems: &Problems, device: &Device) -> Result<(), NeedsGpu> {
    let is_long = |key: &&ProblemKey| {
        let [m, n, k] = key.extents.map(|extent| extent as f64);
        is_long_on_cpu(2.0 * m * n * k * key.batch as f64, 0.0)
    };
    match problems.keys.iter().find(is_long) {
        None => Ok(()),
        Some(key) => Err(NeedsGpu::new(title(key), device)),
    }
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

/// What was found out about a problem.
enum Found {
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
    output: &'a Output,
}

impl Tuner<'_> {
    /// Measures the device's rates, and writes them to the file.
    fn measure_rates(
        &mut self,
        tuning: &mut Tuning,
        file: &Path,
    ) -> Result<Rates, Box<dyn std::error::Error>> {
        let progress = &self.setting.progress;
        progress.wait("rates of the device");
        let rates = rates::measure(self.setting, &mut self.timer)?;
        progress.above(|| self.output.say(rates::report(&rates)))?;
        tuning.set_rates(rates);
        tuning.save(file)?;
        Ok(Rates::new(&rates))
    }

    /// Tunes problems one after the other. The file is written after each, so that a run that is cut short leaves
    /// one.
    fn tune(
        &mut self,
        problems: &Problems,
        tuning: &mut Tuning,
        file: &Path,
    ) -> Result<Vec<ProblemReport>, Box<dyn std::error::Error>> {
        let progress = &self.setting.progress;
        progress.above(|| self.output.say(header()))?;
        progress.begin("", problems.keys.len());
        let mut reports = Vec::new();
        for key in &problems.keys {
            progress.now(&title(key));
            progress.step("inputs");
            let found = self
                .found(key)
                .unwrap_or_else(|error| Found::Failed(as_an_option(&error.to_string())));
            let (said, outcome) = match found {
                Found::Measured { key, measured } => {
                    enter(tuning, key, &measured);
                    tuning.save(file)?;
                    (measured.to_string(), Outcome::measured(&measured))
                }
                Found::LeftOut(reason) => {
                    (format!("left out: {reason}"), Outcome::LeftOut { reason })
                }
                Found::Failed(error) => {
                    let complaint = format!("{}: {error}", title(key));
                    progress.above(|| self.output.error(complaint));
                    (format!("FAILED: {error}"), Outcome::Failed { error })
                }
            };
            progress.above(|| self.output.say(format!("{:<40} {said}", title(key))))?;
            progress.advance(1);
            reports.push(ProblemReport::of(key, outcome));
        }
        Ok(reports)
    }

    /// Checks and times the kernels of a problem, except slow ones, by a screening.
    fn found(&mut self, key: &ProblemKey) -> Result<Found, Error> {
        let TuneCase {
            key,
            estimated,
            mut case,
        } = match case::set_up(key, self.setting)? {
            Ok(case) => case,
            Err(why) => return Ok(Found::LeftOut(why)),
        };
        let case = case.as_mut();
        if let Some(found) = case.fault(ESTIMATED)? {
            return Ok(Found::Failed(found));
        }
        let instances = self.timer.finalists(case, Role::Instance, usize::MAX)?;
        if let Some((_, found)) = instances.passed_over.into_iter().next() {
            return Ok(Found::Failed(found));
        }
        let contestants = [&[ESTIMATED], &instances.numbers[..]].concat();
        let times = self.timer.compare(case, &contestants, &self.protocol)?;
        let name = |times: &Times| case.contestants()[times.contestant].name.clone();
        let others: Vec<(String, &Times)> = times[1..].iter().map(|it| (name(it), it)).collect();
        let Some(measured) = Measured::new(estimated, &times[0], &others) else {
            return Ok(Found::LeftOut("it has no kernel instances".to_string()));
        };
        Ok(match self.recheck(case, &times, &measured)? {
            Some(found) => Found::Failed(found),
            None => Found::Measured {
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
        let fastest = &measured.fastest.name;
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
            kernel: measured.fastest.name.clone(),
            microseconds: (measured.fastest.microseconds * 1e3).round() / 1e3,
        }),
        false => tuning.remove(&problem),
    }
}
