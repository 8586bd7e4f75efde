//! LaTeX pictures, drawn with TikZ, as CuTe's `print_latex` makes them.

use core::fmt;

use super::{Color, Draw, Grid, ThreadValues};

/// The shades of indices modulo 8, in percent of black. They are CuTe's: neighbours differ clearly.
const SHADES: [u8; 8] = [0, 40, 20, 60, 10, 50, 30, 70];

/// A layout as a LaTeX document; see [`latex`].
#[derive(Clone, Copy, Debug)]
pub struct Latex<'a, D> {
    drawn: &'a D,
}

/// A layout as a LaTeX document of its own: a table with row and column numbers, shaded by index
/// modulo 8.
///
/// ```
/// use cutlet_layout_core::{layout, picture};
///
/// let document = picture::latex(&layout!((2, 2):(1, 2))).to_string();
/// assert!(document.contains(r"\node[fill=black!20] at (0,1) {2};"));
/// ```
pub const fn latex<D: Draw>(drawn: &D) -> Latex<'_, D> {
    Latex { drawn }
}

impl<D: Draw> fmt::Display for Latex<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grid = Grid::of(&self.drawn.shape());
        begin(f, self.drawn)?;
        for row in 0..grid.rows() {
            for column in 0..grid.columns() {
                let element = self.drawn.element(grid.coordinate(row, column));
                let shade = element
                    .as_int()
                    .map_or(0, |index| SHADES[index.value().rem_euclid(8) as usize]);
                writeln!(
                    f,
                    r"\node[fill=black!{shade}] at ({row},{column}) {{{element}}};"
                )?;
            }
        }
        end(f, grid.rows(), grid.columns())
    }
}

/// A thread-value layout as a LaTeX document; see [`thread_value_latex`].
#[derive(Clone, Copy, Debug)]
pub struct ThreadValueLatex<'a> {
    drawn: &'a ThreadValues,
}

/// A thread-value layout as a LaTeX document of its own: the tile, coloured by thread, with the
/// thread and value of each element.
pub const fn thread_value_latex(drawn: &ThreadValues) -> ThreadValueLatex<'_> {
    ThreadValueLatex { drawn }
}

impl fmt::Display for ThreadValueLatex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawn = self.drawn;
        begin(f, drawn)?;
        for row in 0..drawn.rows() {
            for column in 0..drawn.columns() {
                let Some((thread, _)) = drawn.owner(row, column) else {
                    continue;
                };
                let [red, green, blue] = Color::of_thread(thread).rgb;
                write!(
                    f,
                    r"\node[fill={{rgb,255:red,{red};green,{green};blue,{blue}}},align=center]"
                )?;
                write!(f, r" at ({row},{column}) {{")?;
                for (i, (thread, value)) in drawn.holders(row, column).enumerate() {
                    let separator = if i > 0 { r" \\ " } else { "" };
                    write!(f, r"{separator}T{thread} \\ V{value}")?;
                }
                writeln!(f, "}};")?;
            }
        }
        end(f, drawn.rows(), drawn.columns())
    }
}

fn begin(f: &mut fmt::Formatter<'_>, title: &impl fmt::Display) -> fmt::Result {
    writeln!(f, "% Layout: {title}")?;
    f.write_str(concat!(
        "\\documentclass[convert]{standalone}\n",
        "\\usepackage{tikz}\n",
        "\\begin{document}\n",
        "\\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},",
        "every node/.style={minimum size=1cm, outer sep=0pt}]\n",
    ))
}

fn end(f: &mut fmt::Formatter<'_>, rows: i64, columns: i64) -> fmt::Result {
    writeln!(
        f,
        r"\draw[color=black,thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({rows},{columns});"
    )?;
    for row in 0..rows {
        writeln!(f, r"\node at ({row},-1) {{\Large{{\texttt{{{row}}}}}}};")?;
    }
    for column in 0..columns {
        writeln!(
            f,
            r"\node at (-1,{column}) {{\Large{{\texttt{{{column}}}}}}};"
        )?;
    }
    f.write_str("\\end{tikzpicture}\n\\end{document}\n")
}
