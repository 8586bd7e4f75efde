//! Products of rows of a table by two kernels: the rows go to scratch memory, and the product reads them there.

use cutlet_device::DeviceData;
use cutlet_host::{Scratch, Stream};

use super::indexed_rows::{RowIndices, Rows};
use super::operand::Operand;
use super::problem::{Problem, Sizes};
use super::registry::{Launch, LaunchPlan, Planner};
use crate::matrix::Extents;
use crate::{Matrix, MatrixMut, Order, Result, permute};

/// Bytes at multiples of which the gathered rows begin.
const UNIT: usize = 16;

/// Whether a problem's rows may be gathered before they are multiplied: if one A has those of all products.
pub fn takes<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>) -> bool {
    let is_one = problem.groups.are_one() || matches!(problem.groups.sizes, Sizes::Ends(_));
    matches!(problem.rows, Rows::OfA(_)) && is_one && problem.outer_k.count == 1
}

/// Gathers rows, and then plans and launches their product.
pub fn plan<T: Operand, D: DeviceData>(planner: Planner<T, D>) -> LaunchPlan<T, D> {
    LaunchPlan::of_several(GatheredFirst(planner))
}

/// The product of rows that are gathered first.
struct GatheredFirst<T: Operand, D: DeviceData>(Planner<T, D>);

impl<T: Operand, D: DeviceData> Launch<T, D> for GatheredFirst<T, D> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let Rows::OfA(rows) = &problem.rows else {
            unreachable!("a plan is launched for problems of its shape")
        };
        let mut memory = Gathered::new(stream, &problem)?;
        memory.gather(stream, rows, &problem)?;
        let Self(planner) = self;
        let product = memory.product(problem);
        planner.plan(stream, &product)?.launch(stream, product)
    }
}

/// Memory for the rows of A, and for their scales.
struct Gathered<'s, T: DeviceData> {
    rows: Scratch<'s, T>,
    extents: Extents,
    scales: Option<(Scratch<'s, f32>, Extents)>,
}

impl<'s, T: Operand> Gathered<'s, T> {
    fn new<D: DeviceData>(stream: &'s Stream, problem: &Problem<'_, T, D>) -> Result<Self> {
        let (m, _, k) = problem.extents();
        let unit = UNIT / size_of::<T>();
        let extents = row_major(m, k, k.next_multiple_of(unit));
        let of_row = problem.scales.of_rows()?.map(|scales| scales.columns());
        let scales = match of_row {
            Some(count) => Some((stream.scratch(m * count)?, row_major(m, count, count))),
            None => None,
        };
        Ok(Gathered {
            rows: stream.scratch(m * extents.ld)?,
            extents,
            scales,
        })
    }

    /// Enqueues the gathers.
    fn gather<D: DeviceData>(
        &mut self,
        stream: &Stream,
        rows: &RowIndices<'_>,
        problem: &Problem<'_, T, D>,
    ) -> Result<()> {
        let to = MatrixMut {
            view: self.rows.view_mut(),
            extents: self.extents,
        };
        rows.gather(stream, problem.a, to)?;
        let table = problem.scales.of_rows()?;
        let (Some(table), Some((scales, extents))) = (table, &mut self.scales) else {
            return Ok(());
        };
        let to = MatrixMut {
            view: scales.view_mut(),
            extents: *extents,
        };
        if table.order() == Order::RowMajor {
            return rows.gather(stream, table, to);
        }
        // The scales of a row are gathered as one.
        let (count, of_row) = (table.rows(), table.columns());
        let extents = row_major(count, of_row, of_row);
        let mut copy = stream.scratch(count * of_row)?;
        let copied = MatrixMut {
            view: copy.view_mut(),
            extents,
        };
        permute(stream, table, copied)?;
        let view = copy.view();
        rows.gather(stream, Matrix { view, extents }, to)
    }

    /// The problem whose A is the gathered rows.
    fn product<'p, D: DeviceData>(&'p self, problem: Problem<'p, T, D>) -> Problem<'p, T, D> {
        let scales = match &self.scales {
            None => problem.scales,
            Some((scales, extents)) => problem.scales.with_rows(Matrix {
                view: scales.view(),
                extents: *extents,
            }),
        };
        Problem {
            a: Matrix {
                view: self.rows.view(),
                extents: self.extents,
            },
            rows: Rows::Own,
            scales,
            ..problem
        }
    }
}

/// Extents of a row-major matrix.
fn row_major(rows: usize, columns: usize, ld: usize) -> Extents {
    Extents {
        rows,
        columns,
        ld,
        order: Order::RowMajor,
    }
}
