//! `cutlet layout`: a calculator for layouts, in CuTe's notation.

mod calculator;
mod figures;
mod functions;
mod refusal;
mod value;

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufWriter, Write};
use std::panic;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use cutlet_layout_core::picture::{self, Draw, ThreadValues};
use cutlet_layout_core::{IntTuple, Layout};

use crate::output::{OutputError, print, print_line};
use calculator::{Calculator, evaluate};
use refusal::{Refusal, caught};
use value::Value;

/// The most cells of a picture.
const MOST_CELLS: i64 = 1 << 16;

/// Calculate with layouts (compositions, divisions, products, inverses), in words and pictures.
///
/// `4` is a dynamic integer and `_4` a static one, as CuTe prints them. Layouts are written `(4,2):(1,4)`, tilers
/// `<3:4, 8:2>`, compositions `A o B`, swizzled layouts `Sw<3,4,3> o 0 o (8,8):(8,1)`. `A(1,1)` is A's value at a
/// coordinate, and `A(_,1)` a slice.
#[derive(Args, Debug)]
pub struct LayoutArgs {
    /// The expression: `zipped_divide((8,6):(1,8), <4,2>)`.
    #[arg(value_name = "EXPR", allow_hyphen_values = true, required_unless_present_any = ["stdin", "figures", "functions"])]
    expression: Option<String>,

    /// Read one expression a line, and answer each with a line: the result, or `error: …`.
    #[arg(long, conflicts_with_all = ["expression", "table", "annotated", "tv", "svg", "latex", "explain"])]
    stdin: bool,

    /// Print the result as a table, as CuTe's print_layout does.
    #[arg(long)]
    table: bool,

    /// Print the table with 1-D and natural coordinates above its columns.
    #[arg(long)]
    annotated: bool,

    /// Take the result as a thread-value layout, and print the thread of each element of a tile. The tile has this
    /// SHAPE, such as (16,8), or is a single row. With --svg and --latex, draw it.
    #[arg(long, value_name = "SHAPE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    tv: Option<String>,

    /// Draw the result into an SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Colour the SVG file by the tiles of this tiler, such as '<4,8>'.
    #[arg(long, value_name = "TILER", requires = "svg", conflicts_with = "tv")]
    tiles: Option<String>,

    /// Print the result as a LaTeX document.
    #[arg(long)]
    latex: bool,

    /// Explain compositions, divisions and products step by step.
    #[arg(long)]
    explain: bool,

    /// Draw the figures of the guide to layouts into a folder.
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,

    /// List the functions.
    #[arg(long)]
    functions: bool,
}

/// Runs the command.
pub fn run(args: &LayoutArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // The calculator catches panics and prints their messages as refusals.
    panic::set_hook(Box::new(|_| {}));
    if args.functions {
        list_functions()?;
    }
    if let Some(folder) = &args.figures {
        figures::draw_all(folder)?;
    }
    if args.stdin {
        answer_lines(io::stdin().lock(), BufWriter::new(io::stdout().lock()))?;
    }
    if let Some(expression) = &args.expression {
        answer(args, expression)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list_functions() -> Result<(), OutputError> {
    for (topic, signatures) in functions::SIGNATURES {
        print_line(topic)?;
        for signature in *signatures {
            print_line(format!("  {signature}"))?;
        }
    }
    Ok(())
}

/// Answers each line with a line.
fn answer_lines(mut lines: impl BufRead, mut answers: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        match std::str::from_utf8(&line) {
            Ok(text) => match evaluate(text.trim_end()) {
                Ok(value) => writeln!(answers, "{value}")?,
                Err(refusal) => writeln!(answers, "error: {}", one_line(&refusal))?,
            },
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

/// A refusal with its expression, and a mark at its column.
#[derive(Debug)]
struct Marked {
    refusal: Refusal,
    expression: String,
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.refusal)?;
        if let Some(column) = self.refusal.column {
            write!(f, "\n  {}\n  {:>column$}", self.expression, "^")?;
        }
        Ok(())
    }
}

impl std::error::Error for Marked {}

/// Answers one expression, in words and pictures.
fn answer(args: &LayoutArgs, expression: &str) -> Result<(), Box<dyn std::error::Error>> {
    let marked = |refusal| Marked {
        refusal,
        expression: expression.to_owned(),
    };
    let mut calculator = Calculator::new(expression);
    let value = calculator.evaluate();
    if args.explain {
        for explanation in calculator.explanations() {
            print_line(explanation)?;
        }
    }
    let drawn = value
        .and_then(|value| caught(|| draw(args, &value)))
        .map_err(marked)?;
    print(drawn.printed)?;
    if let (Some(file), Some(document)) = (&args.svg, &drawn.document) {
        fs::write(file, document)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

/// The answer for a value: printed text, and a document for a file.
struct Drawn {
    printed: String,
    document: Option<String>,
}

fn draw(args: &LayoutArgs, value: &Value) -> Result<Drawn, Refusal> {
    let tiled = args
        .tv
        .as_ref()
        .map(|tile| thread_values(value, tile))
        .transpose()?;
    let mut printed = String::new();
    if args.table {
        printed += &Picture::Table.draw(value)?;
    }
    if args.annotated {
        let layout = value.layout().and_then(drawable)?;
        printed += &picture::annotated_table(&layout).to_string();
    }
    match &tiled {
        Some(tiled) if args.latex => printed += &picture::thread_value_latex(tiled).to_string(),
        Some(tiled) => printed += &picture::thread_value_table(tiled).to_string(),
        None if args.latex => printed += &Picture::Latex.draw(value)?,
        None => {}
    }
    if printed.is_empty() {
        printed = format!("{value}\n");
    }
    let document = match (&args.svg, &tiled, &args.tiles) {
        (None, ..) => None,
        (_, Some(tiled), _) => Some(picture::thread_value_svg(tiled).to_string()),
        (_, None, Some(tiler)) => Some(by_tile(value, tiler)?),
        (_, None, None) => Some(Picture::Svg.draw(value)?),
    };
    Ok(Drawn { printed, document })
}

/// The pictures of a layout.
#[derive(Clone, Copy)]
enum Picture {
    Table,
    Latex,
    Svg,
}

impl Picture {
    fn draw(self, value: &Value) -> Result<String, Refusal> {
        match value {
            Value::Swizzled(layout) => Ok(self.of(layout, layout.size())?),
            Value::Composed(layout) => Ok(self.of(&**layout, layout.size())?),
            other => {
                let layout = other.layout()?;
                self.of(&layout, layout.size())
            }
        }
    }

    fn of(self, drawn: &impl Draw, size: i64) -> Result<String, Refusal> {
        few_enough(size)?;
        Ok(match self {
            Picture::Table => picture::table(drawn).to_string(),
            Picture::Latex => picture::latex(drawn).to_string(),
            Picture::Svg => picture::svg(drawn).to_string(),
        })
    }
}

fn few_enough(cells: i64) -> Result<(), Refusal> {
    if cells > MOST_CELLS {
        return Err(Refusal::new(format!(
            "{cells} cells are too many to draw; the most are {MOST_CELLS}"
        )));
    }
    Ok(())
}

fn drawable(layout: Layout) -> Result<Layout, Refusal> {
    few_enough(layout.size())?;
    Ok(layout)
}

/// A layout's drawing, coloured by tile.
fn by_tile(value: &Value, tiler: &str) -> Result<String, Refusal> {
    let layout = value.layout().and_then(drawable)?;
    let tiler = evaluate(tiler)?.tiler()?;
    Ok(picture::tiled_svg(&layout, &tiler)?.to_string())
}

/// A value as a thread-value layout over a tile.
fn thread_values(value: &Value, tile: &str) -> Result<ThreadValues, Refusal> {
    let layout = value.layout().and_then(drawable)?;
    let tile = match tile {
        "" if layout.has_basis() => extents(&layout),
        "" => IntTuple::from((1, layout.cosize())),
        text => evaluate(text)?.tuple()?,
    };
    few_enough(tile.size())?;
    Ok(ThreadValues::new(&layout, &tile)?)
}

/// The extents of the tile that a layout of coordinates covers.
fn extents(layout: &Layout) -> IntTuple {
    let mut extents = [1, 1];
    for leaf in 0..layout.num_leaves() {
        for (direction, extent) in extents.iter_mut().enumerate() {
            let stride = layout.leaf_stride(leaf).component(direction);
            *extent += (layout.leaf_shape(leaf).value() - 1) * stride;
        }
    }
    extents
        .map(IntTuple::from)
        .into_iter()
        .fold(IntTuple::EMPTY, |all, one| all.append(&one))
}
