//! A matrix product in the caller's terms, and in cuBLAS' column-major terms.

use super::CublasError;

/// The contiguous direction of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    /// Rows are contiguous.
    Row,
    /// Columns are contiguous.
    Column,
}

/// The layout of a matrix in its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The contiguous direction.
    pub major: Major,
    /// Elements from one row (or column) to the next.
    pub leading: usize,
}

/// Products `C = alpha·A·B + beta·C` with `A` of `m × k`, `B` of `k × n` and `C` of `m × n`. The matrices of an operand
/// lie behind one another, without a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Rows of `A` and `C`.
    pub m: usize,
    /// Columns of `B` and `C`.
    pub n: usize,
    /// Columns of `A`, rows of `B`.
    pub k: usize,
    /// The layout of `A`.
    pub a: Operand,
    /// The layout of `B`.
    pub b: Operand,
    /// The layout of `C`.
    pub c: Operand,
    /// Factor of the product, rounded to the type of the sums.
    pub alpha: f64,
    /// Factor of the old `C`, rounded to the type of the sums.
    pub beta: f64,
    /// How many products there are, at least one.
    pub batch: usize,
}

/// A column-major matrix, and whether cuBLAS transposes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub rows: usize,
    pub columns: usize,
    pub leading: usize,
    pub transposed: bool,
}

impl Stored {
    /// Elements from the first to the first after its last column.
    pub fn len(self) -> usize {
        self.columns * self.leading
    }
}

/// The problem in cuBLAS' terms: `D = op(first)·op(second)`, all column-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnMajor {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub first: Stored,
    pub second: Stored,
    pub result: Stored,
    /// Whether `first` is `B`. A row-major `C` is computed as its transpose `Bᵀ·Aᵀ`.
    pub swapped: bool,
}

impl Problem {
    /// The problem in cuBLAS' terms.
    ///
    /// # Errors
    /// [`CublasError::BadProblem`] if an operand does not fit a buffer of its length in `lengths`.
    pub(super) fn column_major(&self, lengths: [usize; 3]) -> Result<ColumnMajor, CublasError> {
        let Problem { m, n, k, .. } = *self;
        let matrices = [
            ("A", self.a, m, k),
            ("B", self.b, k, n),
            ("C", self.c, m, n),
        ];
        for ((name, operand, rows, columns), len) in matrices.into_iter().zip(lengths) {
            fits(name, operand, rows, columns, self.batch, len)?;
        }
        Ok(match self.c.major {
            Major::Column => ColumnMajor {
                m,
                n,
                k,
                first: stored(self.a, m, k),
                second: stored(self.b, k, n),
                result: stored(self.c, m, n),
                swapped: false,
            },
            Major::Row => ColumnMajor {
                m: n,
                n: m,
                k,
                first: stored(self.b.transposed(), n, k),
                second: stored(self.a.transposed(), k, m),
                result: stored(self.c.transposed(), n, m),
                swapped: true,
            },
        })
    }
}

impl Operand {
    /// The transposed matrix in the same buffer.
    fn transposed(self) -> Operand {
        let major = match self.major {
            Major::Row => Major::Column,
            Major::Column => Major::Row,
        };
        Operand { major, ..self }
    }
}

/// A matrix of `rows × columns` in column-major terms.
fn stored(operand: Operand, rows: usize, columns: usize) -> Stored {
    let transposed = operand.major == Major::Row;
    let (rows, columns) = if transposed {
        (columns, rows)
    } else {
        (rows, columns)
    };
    Stored {
        rows,
        columns,
        leading: operand.leading,
        transposed,
    }
}

fn fits(
    name: &str,
    operand: Operand,
    rows: usize,
    columns: usize,
    batch: usize,
    len: usize,
) -> Result<(), CublasError> {
    let bad = |what: String| {
        Err(CublasError::BadProblem(format!(
            "{name} is {rows} x {columns}: {what}"
        )))
    };
    let stored = stored(operand, rows, columns);
    if rows == 0 || columns == 0 {
        return bad("an empty problem has no baseline".to_string());
    }
    if stored.leading < stored.rows {
        return bad(format!(
            "its leading dimension is {}, at least {} is needed",
            stored.leading, stored.rows
        ));
    }
    if [rows, columns, stored.leading, batch]
        .iter()
        .any(|&extent| i32::try_from(extent).is_err())
    {
        return bad("an extent is above 2147483647, which cuBLAS cannot count".to_string());
    }
    let last = (stored.columns - 1) * stored.leading + stored.rows;
    let needed = batch.saturating_sub(1) * stored.len() + last;
    if needed > len {
        return bad(format!("it needs {needed} elements, its buffer has {len}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(a: Major, b: Major, c: Major) -> Problem {
        let leading = |major, rows, columns| Operand {
            major,
            leading: if major == Major::Row { columns } else { rows },
        };
        Problem {
            m: 2,
            n: 3,
            k: 4,
            a: leading(a, 2, 4),
            b: leading(b, 4, 3),
            c: leading(c, 2, 3),
            alpha: 1.0,
            beta: 0.0,
            batch: 1,
        }
    }

    /// The element that cuBLAS reads: column-major, with optional transposition.
    fn element(matrix: Stored, data: &[f64], row: usize, column: usize) -> f64 {
        let (row, column) = if matrix.transposed {
            (column, row)
        } else {
            (row, column)
        };
        assert!(row < matrix.rows && column < matrix.columns);
        data[row + column * matrix.leading]
    }

    fn at(operand: Operand, row: usize, column: usize) -> usize {
        match operand.major {
            Major::Row => row * operand.leading + column,
            Major::Column => row + column * operand.leading,
        }
    }

    #[test]
    fn every_combination_of_majors_is_the_same_product() {
        let a: Vec<f64> = (0..8).map(f64::from).collect();
        let b: Vec<f64> = (0..12).map(|x| f64::from(x * x)).collect();
        for bits in 0..8 {
            let major = |bit: u32| {
                if bits >> bit & 1 == 0 {
                    Major::Row
                } else {
                    Major::Column
                }
            };
            let problem = problem(major(0), major(1), major(2));
            let it = problem.column_major([8, 12, 6]).unwrap();
            let (first, second) = if it.swapped { (&b, &a) } else { (&a, &b) };
            let mut result = [f64::NAN; 6];
            for (m, n) in (0..it.m).flat_map(|m| (0..it.n).map(move |n| (m, n))) {
                result[m + n * it.result.leading] = (0..it.k)
                    .map(|k| element(it.first, first, m, k) * element(it.second, second, k, n))
                    .sum();
            }
            assert!(!it.result.transposed);
            for (m, n) in (0..2).flat_map(|m| (0..3).map(move |n| (m, n))) {
                let expected: f64 = (0..4)
                    .map(|k| a[at(problem.a, m, k)] * b[at(problem.b, k, n)])
                    .sum();
                assert_eq!(result[at(problem.c, m, n)], expected, "{problem:?}");
            }
        }
    }

    #[test]
    fn buffers_that_are_too_small_are_refused() {
        let problem = problem(Major::Row, Major::Column, Major::Row);
        assert!(problem.column_major([8, 12, 6]).is_ok());
        let error = problem.column_major([8, 11, 6]).unwrap_err().to_string();
        assert!(
            error.contains("B is 4 x 3: it needs 12 elements, its buffer has 11"),
            "{error}"
        );
        let two = Problem {
            batch: 2,
            ..problem
        };
        assert!(two.column_major([16, 24, 12]).is_ok());
        assert!(two.column_major([16, 24, 11]).is_err());
        let mut narrow = problem;
        narrow.a.leading = 3;
        assert!(narrow.column_major([8, 12, 6]).is_err());
    }
}
