//! A run: the problems of its suites, one after the other.

use std::time::{Instant, SystemTime};

use cutlet::Device;
use toml::Spanned;

use super::contract::Contract;
use super::error::Result;
use super::family::{Family, Row};
use super::gather::Gather;
use super::gemm::Gemm;
use super::machine::Machine;
use super::movement::Movement;
use super::results::{Results, SCHEMA, SuiteName};
use super::row::Bench;
use super::suite::{Suite, SuiteError};
use super::table;
use crate::backend::{NeedsGpu, is_long_on_cpu, no_figures};
use crate::measure::dtype::Dtype;
use crate::measure::nvml::Nvml;
use crate::measure::protocol::Protocol;
use crate::measure::setting::Setting;
use crate::measure::telemetry::Recorder;
use crate::measure::timer::Timer;
use crate::output::Output;
use crate::progress::Progress;

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
    /// Whether the device was named. Otherwise, problems for a GPU are refused where there is none.
    pub on_any_device: bool,
    /// How rows are printed.
    pub output: Output,
    /// Shows how far the run is.
    pub progress: Progress,
}

impl Plan {
    /// The families and types of the problems, for messages.
    fn kinds(&self) -> String {
        let dtypes: Vec<&str> = self.dtypes.iter().map(|dtype| dtype.name()).collect();
        let dtypes = dtypes.join(" or ");
        match self.families {
            Families::Gemm => format!("GEMM in {dtypes}"),
            Families::Contract => format!("contraction in {dtypes}"),
            Families::Gather => "gather".to_string(),
            Families::Movement => "movement".to_string(),
            Families::All => {
                format!("GEMM and no contraction in {dtypes}, no gather and no movement")
            }
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
    /// Contractions of tensors.
    Contract,
    /// All of them.
    All,
}

/// Measures the problems of a plan and prints a line for each. Before each line, `keep` gets the results so far, so
/// that a run that is cut short leaves results.
///
/// # Errors
/// If a suite has no problem of the plan's families and types, nothing can run, `keep` fails, or a line cannot be
/// printed. The errors of a row are in its result.
pub fn run(device: &Device, plan: &Plan, keep: impl FnMut(&Results) -> Result<()>) -> Result<()> {
    let (began, clock) = (SystemTime::now(), Instant::now());
    let problems = Problems::of(plan)?;
    let output = &plan.output;
    let setting = Setting {
        baselines_only: plan.baselines_only,
        instances: plan.instances.clone(),
        progress: plan.progress.clone(),
        ..Setting::new(device, plan.seed)?
    };
    if !setting.on_gpu() && !plan.on_any_device {
        problems.expect_small(device)?;
    }
    let nvml = Nvml::of(&setting.stream);
    let mut machine = Machine::new(&setting, nvml.as_ref());
    output.say(machine.line())?;
    say_what_is_missing(output, device, &setting)?;
    setting.progress.wait("copy of memory");
    let mut bench = Bench {
        timer: Timer::new(&setting)?,
        recorder: Recorder::start(nvml),
        setting: &setting,
        protocol: plan.protocol,
    };
    machine.copy_gigabytes = bench.copy_speed()?;
    let all = problems.rows();
    let width = table::width(&all);
    setting
        .progress
        .above(|| output.say(table::header(width)))?;
    setting.progress.begin("", all.len());
    let mut rows = Rows {
        output,
        width,
        results: no_results(plan, machine, all.len(), began),
        clock,
        keep,
    };
    rows.measure(&mut bench, &Gemm, &problems.gemms)?;
    rows.measure(&mut bench, &Gather, &problems.gathers)?;
    rows.measure(&mut bench, &Movement, &problems.movements)?;
    rows.measure(&mut bench, &Contract, &problems.contractions)?;
    setting.progress.end();
    Ok(())
}

/// Problems of a family, with the names of their suites.
type OfSuites<F> = Vec<(String, <F as Family>::Problem)>;

/// The problems of a plan.
struct Problems {
    gemms: OfSuites<Gemm>,
    gathers: OfSuites<Gather>,
    movements: OfSuites<Movement>,
    contractions: OfSuites<Contract>,
}

impl Problems {
    /// Finds them.
    ///
    /// # Errors
    /// If an entry is wrong, or a suite has none of the plan's problems.
    fn of(plan: &Plan) -> Result<Self> {
        let mut unused: Vec<&Suite> = plan.suites.iter().collect();
        let unused_of = &mut unused;
        let problems = Self {
            gemms: problems(&Gemm, plan, |it| &it.gemm, Families::Gemm, unused_of)?,
            gathers: problems(&Gather, plan, |it| &it.gather, Families::Gather, unused_of)?,
            movements: problems(
                &Movement,
                plan,
                |it| &it.movement,
                Families::Movement,
                unused_of,
            )?,
            contractions: problems(
                &Contract,
                plan,
                |it| &it.contract,
                Families::Contract,
                unused_of,
            )?,
        };
        match unused.first() {
            None => Ok(problems),
            Some(suite) => Err(SuiteError::Nothing {
                name: suite.name.clone(),
                of: plan.kinds(),
            }
            .into()),
        }
    }

    /// Their rows.
    fn rows(&self) -> Vec<Row> {
        let mut all = rows(&Gemm, &self.gemms);
        all.extend(rows(&Gather, &self.gathers));
        all.extend(rows(&Movement, &self.movements));
        all.extend(rows(&Contract, &self.contractions));
        all
    }

    /// Refuses problems that take the CPU backend long.
    fn expect_small(&self, device: &Device) -> Result<()> {
        let mut rows = self.rows().into_iter();
        match rows.find(|row| is_long_on_cpu(row.operations, row.bytes)) {
            None => Ok(()),
            Some(row) => Err(NeedsGpu::new(row.id, device).into()),
        }
    }
}

/// The rows of a family's problems.
fn rows<F: Family>(family: &F, problems: &OfSuites<F>) -> Vec<Row> {
    problems
        .iter()
        .map(|(_, problem)| family.row(problem))
        .collect()
}

/// Says what these figures do not show: a GPU's speed, or cuBLASLt's.
fn say_what_is_missing(output: &Output, device: &Device, setting: &Setting) -> Result<()> {
    match (no_figures(device), &setting.cublas) {
        (Some(warning), _) => output.say(warning)?,
        (None, Err(why)) => output.say(format!("GEMM has no baseline here: {why}"))?,
        (None, Ok(_)) => {}
    }
    Ok(())
}

/// The results of a run before its first row.
fn no_results(plan: &Plan, machine: Machine, planned_rows: usize, began: SystemTime) -> Results {
    let suites = plan
        .suites
        .iter()
        .map(|Suite { name, about, .. }| SuiteName {
            name: name.clone(),
            about: about.clone(),
        });
    Results {
        schema: SCHEMA,
        program: format!("cutlet {}", env!("CARGO_PKG_VERSION")),
        command: command(std::env::args().skip(1)),
        began: utc(began),
        seconds: 0.0,
        suites: suites.collect(),
        machine,
        protocol: plan.protocol,
        planned_rows,
        rows: Vec::new(),
    }
}

/// The rows of a run, which are kept and printed one by one.
struct Rows<'a, K> {
    output: &'a Output,
    /// That of the shapes' column.
    width: usize,
    results: Results,
    /// It runs since the run began.
    clock: Instant,
    keep: K,
}

impl<K: FnMut(&Results) -> Result<()>> Rows<'_, K> {
    /// Measures the problems of a family.
    fn measure<F: Family>(
        &mut self,
        bench: &mut Bench<'_>,
        family: &F,
        problems: &OfSuites<F>,
    ) -> Result<()> {
        for (suite, problem) in problems {
            let row = bench.measure_row(family, suite, problem);
            let line = table::line(&row, self.width);
            self.results.rows.push(row);
            self.results.seconds = self.clock.elapsed().as_secs_f64();
            (self.keep)(&self.results)?;
            let progress = &bench.setting.progress;
            progress.above(|| self.output.say(line))?;
            progress.advance(1);
        }
        Ok(())
    }
}

/// The problems of a family in the plan's suites, each once, one element type after the other, with the name of the
/// first suite that has the problem. Removes suites with such problems from `unused`.
fn problems<F: Family>(
    family: &F,
    plan: &Plan,
    entries: fn(&Suite) -> &Vec<Spanned<toml::Value>>,
    of: Families,
    unused: &mut Vec<&Suite>,
) -> Result<OfSuites<F>> {
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

/// The command with these arguments, without the program's path and `--out`, which are this machine's, and without what
/// decides only how it prints.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["cutlet".to_string()];
    let mut is_folder = false;
    for argument in arguments {
        let names_folder = argument == "--out";
        let is_printing = ["--json", "--quiet", "-q"].contains(&argument.as_str());
        if !is_folder && !names_folder && !is_printing && !argument.starts_with("--out=") {
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
    use std::time::Duration;

    #[test]
    fn commands_are_written_without_paths_of_the_machine() {
        let command = |line: &str| command(line.split(' ').map(str::to_string));
        let short = "cutlet bench gemm --rounds 5";
        assert_eq!(command("bench gemm --out elsewhere --rounds 5"), short);
        assert_eq!(command("bench gemm --rounds 5 --out=elsewhere"), short);
        assert_eq!(command("bench gemm --json --rounds 5 -q"), short);
    }

    #[test]
    fn moments_are_written_in_utc() {
        let at = |seconds| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59 UTC");
    }
}
