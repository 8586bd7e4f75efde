//! `cutlet layout`: a calculator for layouts, in CuTe's notation.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufWriter, Write};
use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cutlet_calculator::cells::ColorBy;
use cutlet_calculator::json::{self, Question};
use cutlet_calculator::picture::{Holders, Picture, annotated, by_tile, colored, holders};
use cutlet_calculator::{
    Calculator, Options, Refusal, SIGNATURES, Value, analysis, caught, compare_functions, figures,
    meaning, static_hint,
};
use cutlet_layout_core::picture::{self, Figure, Panel};
use serde::Serialize;

use crate::output::{Output, complain, print};

/// Calculate with layouts (compositions, divisions, products, inverses), in words and pictures.
///
/// `4` is a dynamic integer and `_4` a static one, as CuTe prints them. Layouts are written `(4,2):(1,4)`, tilers
/// `<3:4, 8:2>`, compositions `A o B`, swizzled layouts `Sw<3,4,3> o 0 o (8,8):(8,1)`. `A(1,1)` is A's value at a
/// coordinate, and `A(_,1)` a slice.
#[derive(Args, Debug)]
pub struct LayoutArgs {
    /// The expression: `zipped_divide((8,6):(1,8), <4,2>)`.
    #[arg(value_name = "EXPR", allow_hyphen_values = true, required_unless_present_any = ["stdin", "figures", "functions", "compare"])]
    expression: Option<String>,

    /// Read one expression a line, and answer each with a line: the result, or `error: …`.
    #[arg(long, conflicts_with_all = ["expression", "table", "annotated", "tv", "svg", "latex", "explain", "banks", "coalescing", "bijective"])]
    stdin: bool,

    /// Print the result as a table, as CuTe's print_layout does.
    #[arg(long, conflicts_with = "json")]
    table: bool,

    /// Print the table with 1-D and natural coordinates above its columns.
    #[arg(long, conflicts_with = "json")]
    annotated: bool,

    /// Take the result as a thread-value layout, and print the thread of each element of a tile. The tile has this
    /// SHAPE, such as (16,8), or is a single row. Of a tiled MMA, print A, B and C of a tile (M,N,K). With --svg and
    /// --latex, draw it.
    #[arg(
        long,
        value_name = "SHAPE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with = "json"
    )]
    tv: Option<String>,

    /// Draw the result into an SVG file.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,

    /// Colour the SVG file by the tiles of this tiler, such as '<4,8>'.
    #[arg(long, value_name = "TILER", requires = "svg", conflicts_with = "tv")]
    tiles: Option<String>,

    /// Colour the SVG file by index, row, column or bank. Without it, a zipped result is coloured by its tiles. The
    /// bank is that of elements of --banks bits, else of 32. With --tv, colour it by thread or value.
    #[arg(long, value_name = "BY", requires = "svg", conflicts_with = "tiles")]
    color: Option<String>,

    /// Print the result as a LaTeX document.
    #[arg(long, conflicts_with = "json")]
    latex: bool,

    /// Read `4` as the static integer `_4`.
    #[arg(long = "static")]
    is_static: bool,

    /// Explain compositions, divisions and products step by step.
    #[arg(long)]
    explain: bool,

    /// Count the bank conflicts of the first warp's accesses to shared memory, for elements of BITS bits: 1, 2, 4, 8,
    /// 16, 32, 64 or 128. The first mode is the thread, all others are its values. The first 32 threads are the first
    /// warp.
    #[arg(long, value_name = "BITS")]
    banks: Option<i64>,

    /// Count the sectors of global memory that the first warp's requests touch, for elements of BITS bits, as --banks
    /// takes them.
    #[arg(long, value_name = "BITS")]
    coalescing: Option<i64>,

    /// Tell whether the layout reaches each index once.
    #[arg(long)]
    bijective: bool,

    /// Tell whether two layouts are the same function, and where they differ.
    #[arg(long, num_args = 2, value_names = ["A", "B"], allow_hyphen_values = true, conflicts_with_all = ["expression", "stdin"])]
    compare: Option<Vec<String>>,

    /// Draw the figures of the guide to layouts into a folder.
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    figures: Option<PathBuf>,

    /// List the functions.
    #[arg(long)]
    functions: bool,

    #[command(flatten)]
    pub output: Output,
}

impl LayoutArgs {
    fn options(&self) -> Options {
        Options {
            is_static: self.is_static,
        }
    }

    fn question(&self) -> Question {
        Question {
            options: self.options(),
            explain: self.explain,
            banks: self.banks,
            sectors: self.coalescing,
            bijective: self.bijective,
        }
    }

    /// The analyses that are asked for, each as a line.
    fn analyses(&self, value: &Value) -> Result<String, Refusal> {
        let mut lines = String::new();
        if let Some(bits) = self.banks {
            lines += &format!("{}\n", analysis::banks(value, bits)?);
        }
        if let Some(bits) = self.coalescing {
            lines += &format!("{}\n", analysis::sectors(value, bits)?);
        }
        if self.bijective {
            lines += &format!("{}\n", analysis::bijection(value)?);
        }
        Ok(lines)
    }
}

/// Runs the command.
pub fn run(args: &LayoutArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // The calculator catches panics and prints their messages as refusals.
    panic::set_hook(Box::new(|_| {}));
    if args.functions {
        args.output.result(&Functions::all())?;
    }
    if let Some(folder) = &args.figures {
        draw_figures(folder)?;
    }
    if args.stdin {
        let out = BufWriter::new(io::stdout().lock());
        answer_lines(args, io::stdin().lock(), out)?;
    }
    if let Some([left, right]) = args.compare.as_deref() {
        compare(args, left, right)?;
    }
    match &args.expression {
        Some(expression) if args.output.json => answer_as_json(args, expression),
        Some(expression) => answer(args, expression).map(|()| ExitCode::SUCCESS),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The calculator's functions, by topic.
#[derive(Serialize)]
struct Functions {
    topics: Vec<Topic>,
}

#[derive(Serialize)]
struct Topic {
    topic: &'static str,
    functions: Vec<Function>,
}

#[derive(Serialize)]
struct Function {
    signature: &'static str,
    meaning: &'static str,
}

impl Functions {
    fn all() -> Functions {
        let function = |signature: &'static str| {
            let name = signature.split('(').next().unwrap_or_default();
            Function {
                signature,
                meaning: meaning(name),
            }
        };
        let topics = SIGNATURES.iter().map(|(topic, signatures)| Topic {
            topic,
            functions: signatures.iter().map(|it| function(it)).collect(),
        });
        Functions {
            topics: topics.collect(),
        }
    }
}

impl fmt::Display for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for Topic { topic, functions } in &self.topics {
            lines.push(topic.to_string());
            for Function { signature, meaning } in functions {
                let line = format!("  {signature:<40} {meaning}");
                lines.push(line.trim_end().to_string());
            }
        }
        f.write_str(&lines.join("\n"))
    }
}

/// Answers each line with a line.
fn answer_lines(
    args: &LayoutArgs,
    mut lines: impl BufRead,
    mut answers: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        match std::str::from_utf8(&line) {
            Ok(text) if args.output.json => {
                writeln!(
                    answers,
                    "{}",
                    json::answer(text.trim_end(), &args.question())
                )?;
            }
            Ok(text) => {
                let mut calculator = Calculator::new(text.trim_end(), args.options());
                match calculator.evaluate() {
                    Ok(value) => {
                        writeln!(answers, "{}", calculator.shown(&value).replace('\n', " "))?;
                    }
                    Err(refusal) => writeln!(answers, "error: {}", one_line(&refusal))?,
                }
            }
            Err(error) => {
                writeln!(
                    answers,
                    "error: column {}: the text is not UTF-8",
                    error.valid_up_to() + 1
                )?;
            }
        }
        answers.flush()?;
        line.clear();
    }
    Ok(())
}

fn one_line(refusal: &Refusal) -> String {
    refusal.to_string().replace('\n', " ")
}

/// Answers one expression as JSON. A refusal is an error, with the expression and the column.
fn answer_as_json(
    args: &LayoutArgs,
    expression: &str,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let answer = json::answer(expression, &args.question());
    if answer.get("error").is_some() {
        complain(answer);
        return Ok(ExitCode::from(2));
    }
    args.output.answer(&answer)?;
    Ok(ExitCode::SUCCESS)
}

/// Compares two layouts.
fn compare(args: &LayoutArgs, left: &str, right: &str) -> Result<(), Box<dyn std::error::Error>> {
    let value = |text: &str| {
        let value = Calculator::new(text, args.options()).evaluate();
        value.map_err(|refusal| refusal.marked(text))
    };
    let (left, right) = (value(left)?, value(right)?);
    let comparison =
        caught(|| compare_functions(&left, &right)).map_err(|refusal| refusal.to_string())?;
    args.output.say(&comparison)?;
    args.output.answer(&json::comparison_json(&comparison))?;
    Ok(())
}

/// Answers one expression, in words and pictures.
fn answer(args: &LayoutArgs, expression: &str) -> Result<(), Box<dyn std::error::Error>> {
    let marked = |refusal: Refusal| refusal.marked(expression);
    let mut calculator = Calculator::new(expression, args.options());
    if args.explain || args.svg.is_some() {
        calculator = calculator.explaining();
    }
    let value = calculator.evaluate();
    if args.explain {
        for explanation in calculator.explanations() {
            let explanation = calculator.symbols().named(&explanation.to_string());
            args.output.say(explanation)?;
        }
    }
    let value = value.map_err(marked)?;
    let drawn = caught(|| draw(args, &value, calculator.has_zipped())).map_err(marked)?;
    if drawn.printed.is_empty() {
        print(caught(|| calculator.printed(&value)).map_err(marked)?)?;
    } else {
        print(calculator.symbols().named(&drawn.printed))?;
    }
    print(caught(|| args.analyses(&value)).map_err(marked)?)?;
    if !args.is_static
        && let Some(hint) = static_hint(expression, &value)
    {
        args.output.hint(hint);
    }
    if let (Some(file), Some(document)) = (&args.svg, &drawn.document) {
        fs::write(file, document)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

/// The pictures of a value: printed ones, and a document for a file.
struct Drawn {
    printed: String,
    document: Option<String>,
}

fn draw(args: &LayoutArgs, value: &Value, is_zipped: bool) -> Result<Drawn, Refusal> {
    let tile = match (&args.tv, value) {
        (Some(tile), _) => Some(tile.as_str()),
        // The only pictures of a tiled operation are those of its threads.
        (None, Value::Tiled(_)) if args.table || args.latex || args.svg.is_some() => Some(""),
        (None, _) => None,
    };
    let tiled = tile.map(|tile| holders(value, tile)).transpose()?;
    let mut printed = String::new();
    if args.table && !matches!(value, Value::Tiled(_)) {
        printed += &Picture::Table.draw(value)?;
    }
    if args.annotated {
        printed += &annotated(value)?;
    }
    match &tiled {
        Some(tiled) if args.latex => printed += &latex(tiled)?,
        // The picture goes into the file alone.
        Some(_) if args.tv.is_none() && !args.table => {}
        Some(tiled) => tiled.iter().for_each(|it| printed += &it.table()),
        None if args.latex => printed += &Picture::Latex.draw(value)?,
        None => {}
    }
    let document = match (&args.svg, &tiled, &args.tiles) {
        (None, ..) => None,
        (_, Some(tiled), _) => Some(thread_value_svg(args, tiled)?),
        (_, None, Some(tiler)) => Some(by_tile(value, tiler)?),
        (_, None, None) => Some(svg(args, value, is_zipped)?),
    };
    Ok(Drawn { printed, document })
}

/// The SVG document of a layout.
fn svg(args: &LayoutArgs, value: &Value, is_zipped: bool) -> Result<String, Refusal> {
    match &args.color {
        Some(name) => colored(value, ColorBy::named(name, args.banks.unwrap_or(32))?),
        None if is_zipped => colored(value, ColorBy::Column),
        None => Picture::Svg.draw(value),
    }
}

/// The LaTeX document of what threads hold.
fn latex(tiled: &[Holders]) -> Result<String, Refusal> {
    match tiled {
        [one] => Ok(picture::thread_value_latex(&one.threads).to_string()),
        several => Err(Refusal::new(format!(
            "a LaTeX document has one picture, but here are {}: use --svg, or draw one by get_layoutC_TV(…) or another",
            several.len()
        ))),
    }
}

/// The SVG document of what threads hold.
fn thread_value_svg(args: &LayoutArgs, tiled: &[Holders]) -> Result<String, Refusal> {
    let by_value = match args.color.as_deref() {
        None | Some("thread") => false,
        Some("value") => true,
        Some(other) => {
            return Err(Refusal::new(format!(
                "with --tv there is no colour by `{other}`: give thread or value"
            )));
        }
    };
    let panels: Vec<_> = tiled
        .iter()
        .map(|operand| operand.panel(by_value))
        .collect();
    let panels: Vec<&dyn Panel> = panels.iter().map(|panel| panel as &dyn Panel).collect();
    Ok(Figure::new(&panels).to_string())
}

/// Draws every figure into a folder.
fn draw_figures(folder: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot write figures into {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    for (name, draw) in figures::FIGURES {
        fs::write(folder.join(name).with_extension("svg"), draw()).map_err(failed)?;
    }
    Ok(())
}
