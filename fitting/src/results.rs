//! Adds times of instances from results of `cutlet bench gemm --instances` to the table of their device.

use std::collections::BTreeMap;
use std::fs;

use crate::Outcome;
use crate::times::GENERATIONS;

/// The tables, one for each device that instances were timed on. A line has m, n and k, then the words of its
/// [`GENERATIONS`], then instances with their microseconds.
const TABLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tables");
/// The element type of the table.
const DTYPE: &str = "bf16";
/// How names of instances begin that are not of the table's family.
const OTHER_FAMILIES: [&str; 2] = ["mma_", "gemv_"];
/// The elements of the rows that TMA reads and stores are a multiple of these.
const TMA_UNIT: u64 = 8;
/// Instances that take longer than this multiple of the fastest are left out.
const MOST: f64 = 1.6;
/// The roles of instances that were timed in rounds, and of those by a screening.
const ROLES: [&str; 2] = ["instance", "screened"];

/// Instances, without the element type, and their microseconds.
type Times = Vec<(String, f64)>;

/// What was measured at a shape.
#[derive(Default)]
struct Shape {
    /// How many of the generations of instances there were.
    generation: usize,
    times: Times,
}

/// What was measured, by m, n and k.
type Table = BTreeMap<[u64; 3], Shape>;

/// Adds the times in these files to the tables of their devices.
///
/// Times of all instances replace a shape's known times. A file with the times of named instances leaves those of the
/// others. They may be of another run, so the new times are scaled to them.
pub fn add_all(paths: &[String]) -> Outcome {
    for path in paths {
        let added = add(&read(path)?).map_err(|error| format!("{path}: {error}"))?;
        println!("{path}: {added}");
    }
    Ok(())
}

/// Adds the times in results to their device's table. Returns what was added.
fn add(results: &str) -> Outcome<String> {
    let found = found(results)?;
    if found.is_empty() {
        return Err(format!(
            "it has no times of instances: make it with `cutlet bench gemm --instances --dtype {DTYPE}`"
        ));
    }
    let table = table_of(device(results)?)?;
    let mut shapes = written(&read(&table)?)?;
    let names_instances = names_instances(results);
    let mut count = 0;
    for (extents, new) in found {
        let known = shapes.entry(extents).or_default();
        if !names_instances {
            known.generation = GENERATIONS.len();
            known.times = new;
            count += 1;
        } else if let Some(all) = merged(&known.times, &new) {
            known.times = all;
            count += 1;
        } else {
            println!("left out {extents:?}: no instance is known there");
        }
    }
    fs::write(&table, text(&shapes)).map_err(|error| format!("{table}: {error}"))?;
    let known = shapes.len();
    Ok(format!(
        "{count} shapes were added or updated in {table}, which has {known}"
    ))
}

/// Whether results have the times of named instances only, as their command says.
fn names_instances(results: &str) -> bool {
    let facts = results.lines().map_while(|line| line.strip_prefix("# "));
    let command = facts.filter_map(|fact| fact.strip_prefix("command = \"")?.strip_suffix('"'));
    let names_them = |command: &str| {
        let mut behind = command.split(' ').skip_while(|word| *word != "--instances");
        command.contains("--instances=") || behind.nth(1).is_some_and(|word| !word.starts_with('-'))
    };
    command.into_iter().any(names_them)
}

/// The name of the device that results were measured on.
fn device(results: &str) -> Outcome<&str> {
    let facts = results.lines().map_while(|line| line.strip_prefix('#'));
    let mut machine = facts.map(str::trim).skip_while(|fact| *fact != "[machine]");
    let name = machine.find_map(|fact| fact.strip_prefix("name = \"")?.strip_suffix('"'));
    name.ok_or("it does not say which device it was measured on".into())
}

/// The path of a device's table, which is named after a word of the device's name.
fn table_of(device: &str) -> Outcome<String> {
    let mut tables = device
        .split(' ')
        .map(|word| format!("{TABLES}/{}.txt", word.to_lowercase()));
    let table = tables.find(|table| matches!(fs::exists(table), Ok(true)));
    table.ok_or(format!(
        "{device} has no table: add empty files NAME.txt to {TABLES} and to the library's `fastest`, where NAME is a word of the device's \
         name, and the device to `TIMED` in measured.rs and to `TIMES` in times.rs"
    ))
}

fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// The times in the text of the table.
fn written(text: &str) -> Outcome<Table> {
    let line = |line: &str| {
        let mut words = line.split(' ').peekable();
        let mut extent = || words.next()?.parse().ok();
        let extents = [extent()?, extent()?, extent()?];
        let generations = GENERATIONS.iter();
        let generation = generations
            .take_while(|word| words.next_if_eq(*word).is_some())
            .count();
        let times = words.map(|word| {
            let (name, microseconds) = word.split_once('=')?;
            Some((name.to_string(), microseconds.parse().ok()?))
        });
        let times = times.collect::<Option<_>>()?;
        Some((extents, Shape { generation, times }))
    };
    let lines = text.lines();
    let shapes = lines.map(|text| line(text).ok_or(format!("`{text}` is no line of times")));
    shapes.collect()
}

/// The text of the table, with each shape's fastest instance first.
fn text(shapes: &Table) -> String {
    let mut text = String::new();
    for ([m, n, k], Shape { generation, times }) in shapes {
        // As they are written, so that the same are left out when the line is read and written again.
        let rounded = |microseconds: f64| (microseconds * 100.0).round() / 100.0;
        let times = times.iter().map(|(name, it)| (name.as_str(), rounded(*it)));
        let mut times: Vec<_> = times.collect();
        times.sort_by(|(_, a), (_, b)| a.total_cmp(b));
        text.push_str(&format!("{m} {n} {k}"));
        for word in &GENERATIONS[..*generation] {
            text.push_str(&format!(" {word}"));
        }
        let best = times.first().map_or(0.0, |(_, best)| *best);
        for (name, microseconds) in times {
            if microseconds <= MOST * best {
                text.push_str(&format!(" {name}={microseconds:.2}"));
            }
        }
        text.push('\n');
    }
    text
}

/// Merges a shape's known and new times. If the new times cover all known instances, they replace the known times. Else
/// they are scaled to the known times by the instances in both, which get the geometric mean of both times. Returns
/// `None` if no instance is in both.
fn merged(known: &[(String, f64)], new: &[(String, f64)]) -> Option<Times> {
    let time = |times: &[(String, f64)], name: &str| {
        let found = times.iter().find(|(other, _)| other == name);
        found.map(|(_, microseconds)| *microseconds)
    };
    let ratio = |(name, known): &(String, f64)| Some((known / time(new, name)?).ln());
    let ratios: Vec<f64> = known.iter().filter_map(ratio).collect();
    if ratios.len() == known.len() {
        return Some(new.to_vec());
    }
    let scale = (ratios.iter().sum::<f64>() / ratios.len() as f64).exp();
    let only_known = known.iter().filter(|(name, _)| time(new, name).is_none());
    let scaled = new.iter().map(|(name, microseconds)| {
        let scaled = microseconds * scale;
        let known = time(known, name).unwrap_or(scaled);
        (name.clone(), (known * scaled).sqrt())
    });
    (!ratios.is_empty()).then(|| only_known.cloned().chain(scaled).collect())
}

/// The times of instances in results, at single products without an epilogue whose operands are K-major. Rows that TMA
/// cannot read or store are left out: their times are not of one kernel alone.
fn found(results: &str) -> Outcome<BTreeMap<[u64; 3], Times>> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(results.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut shapes = BTreeMap::<_, Times>::new();
    for record in reader.records() {
        let record = record.map_err(|error| error.to_string())?;
        let text = |column: &str| {
            let at = header.iter().position(|name| name == column);
            at.and_then(|at| record.get(at)).unwrap_or("")
        };
        let kind = ["family", "type", "layout", "epilogue"].map(text);
        // Results of earlier versions have no batches.
        let is_one = matches!(text("batch"), "" | "1");
        if kind != ["gemm", DTYPE, "nt", ""] || !ROLES.contains(&text("role")) || !is_one {
            continue;
        }
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |column: &str| format!("line {line}: `{}` is no {column}", text(column));
        let extent = |column| text(column).parse().map_err(|_| wrong(column));
        let instance = text("contestant");
        if OTHER_FAMILIES.iter().any(|it| instance.starts_with(it)) {
            continue;
        }
        let (_, name) = instance
            .split_once('_')
            .ok_or_else(|| wrong("contestant"))?;
        let median = text("median_us").parse().ok();
        let median = median.filter(|&median: &f64| median > 0.0 && median.is_finite());
        let median = median.ok_or_else(|| wrong("median_us"))?;
        let [m, n, k]: [u64; 3] = [extent("m")?, extent("n")?, extent("k")?];
        if n.is_multiple_of(TMA_UNIT) && k.is_multiple_of(TMA_UNIT) {
            let times = shapes.entry([m, n, k]).or_default();
            times.push((name.to_string(), median));
        }
    }
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_written_as_it_was_read() {
        for table in fs::read_dir(TABLES).unwrap() {
            let written_before = fs::read_to_string(table.unwrap().path()).unwrap();
            assert_eq!(text(&written(&written_before).unwrap()), written_before);
        }
        for wrong in ["1 2", "1 2 x a=1", "1 2 3 a"] {
            assert!(written(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_of_some_instances_are_scaled_to_the_known_times() {
        let times = |times: &[(&str, f64)]| -> Vec<_> {
            times
                .iter()
                .map(|(name, time)| (name.to_string(), *time))
                .collect()
        };
        let known = times(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]);
        let mut found = merged(&known, &times(&[("b", 4.0), ("new", 5.0)])).unwrap();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        assert_eq!(
            found,
            times(&[("a", 1.0), ("b", 2.0), ("c", 3.0), ("new", 2.5)])
        );
        assert_eq!(merged(&known, &times(&[("new", 5.0)])), None);
        // The known times are four times the new ones on average, and sixteen times for `a`.
        let differing = times(&[("a", 16.0), ("b", 2.0), ("new", 5.0)]);
        let found = merged(&known, &differing).unwrap();
        let rounded = found
            .iter()
            .map(|(name, time)| (name.as_str(), (time * 1e6).round() / 1e6));
        assert_eq!(
            rounded.collect::<Vec<_>>(),
            [("c", 3.0), ("a", 2.0), ("b", 1.0), ("new", 1.25)]
        );

        let all = times(&[("a", 2.0), ("b", 4.0), ("c", 5.0), ("new", 5.0)]);
        assert_eq!(merged(&known, &all), Some(all.clone()));
        assert_eq!(merged(&[], &all), Some(all.clone()));
    }

    const RESULTS: &str = "\
# schema = 2
family,suite,type,m,n,k,layout,epilogue,contestant,role,median_us
gemm,own,bf16,1,8,16,nt,,cutlet,cutlet,3
gemm,own,bf16,1,8,16,nt,,bf16_b,instance,3.5
gemm,own,bf16,1,8,16,nt,,bf16_a,instance,3
gemm,own,bf16,1,8,16,nt,,mma_bf16_a,instance,3.1
gemm,own,bf16,1,8,16,nt,,bf16_c,instance,5
gemm,own,bf16,1,8,16,nt,,bf16_d,screened,4.5
";

    #[test]
    fn times_of_instances_are_found_in_results() {
        let times = found(RESULTS).unwrap().remove(&[1, 8, 16]).unwrap();
        let generation = 1;
        let table = Table::from([([1, 8, 16], Shape { generation, times })]);
        assert_eq!(text(&table), "1 8 16 streams a=3.00 b=3.50 d=4.50\n");
        let with_batch = RESULTS.replace("family,suite", "family,batch");
        for (batch, count) in [("1", 1), ("2", 0)] {
            let results = with_batch.replace(",own,", &format!(",{batch},"));
            assert_eq!(found(&results).unwrap().len(), count);
        }
        for (from, to) in [
            (",bf16,", ",f16,"),
            (",nt,", ",nn,"),
            (",nt,,", ",nt,bias,"),
            (",8,16,", ",8,17,"),
        ] {
            let others = RESULTS.replace(from, to);
            assert!(found(&others).unwrap().is_empty(), "{from} {to}");
        }
    }

    #[test]
    fn times_are_added_to_the_table_of_their_device() {
        let facts = "# schema = 2\n# [[suites]]\n# name = \"own\"\n# [machine]\n# name = \"NVIDIA H200\"\nfamily";
        assert_eq!(device(facts).unwrap(), "NVIDIA H200");
        assert!(
            table_of("NVIDIA H200")
                .unwrap()
                .ends_with("/tables/h200.txt")
        );
        let error = table_of("NVIDIA A100-SXM4-80GB").unwrap_err();
        assert!(
            error.starts_with("NVIDIA A100-SXM4-80GB has no table"),
            "{error}"
        );
        let error = add(RESULTS).unwrap_err();
        assert_eq!(error, "it does not say which device it was measured on");
    }

    #[test]
    fn the_command_says_whether_instances_were_named() {
        for (options, expected) in [
            ("--suite own --instances", false),
            ("--instances --rounds 5", false),
            ("--instances=64x64,64x96 --rounds 5", true),
            ("--instances 64x64 --rounds 5", true),
        ] {
            let results = format!("# command = \"cutlet bench gemm {options}\"\n{RESULTS}");
            assert_eq!(names_instances(&results), expected, "{options}");
        }
    }

    #[test]
    fn absurd_times_are_refused() {
        for absurd in ["0", "-3", "NaN", "inf", ""] {
            let results = RESULTS.replace("instance,5", &format!("instance,{absurd}"));
            let error = found(&results).unwrap_err().to_string();
            assert_eq!(error, format!("line 7: `{absurd}` is no median_us"));
        }
    }
}
