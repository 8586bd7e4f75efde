//! Products whose rows of A, or of C, are those of a table that indices name: the choice of a kernel, and its launch.

use cutlet_host::{Function, Stream, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::instance::{GatheredArguments, Instance, ScatteredArguments};

use super::Element;
use super::grouped::{Chosen, Stacks, choose, fits, scale, stores_c};
use crate::Result;
use crate::gemm::indexed_rows::Rows;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, Planned};
use crate::matrix::{pointer, pointer_mut};

/// A kernel that gathers A.
pub type GatheredInstance<T> = Instance<T, Scale, GatheredArguments<T>>;
/// A kernel that scatters C.
pub type ScatteredInstance<T> = Instance<T, Scale, ScatteredArguments<T>>;

/// Plans a product of named rows with the fastest kernel, or with the one of this name. None if 16 bytes of the
/// operands cannot be read at a time, or something is fused.
pub fn named_rows<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, T>>> {
    if !fits(problem) {
        return Ok(None);
    }
    let device = stream.device();
    match problem.rows {
        Rows::Own => Ok(None),
        Rows::OfA(_) => {
            let Some(chosen) = choose(stream, problem, T::gathered(), kernel) else {
                return Ok(None);
            };
            let function = device.load(&PTX, chosen.instance.kernel)?;
            Ok(Some(Planned {
                kernel: chosen.instance.name(),
                clocks: chosen.clocks,
                launch: Box::new(Gathered { function, chosen }),
            }))
        }
        Rows::OfC(_) => {
            let Some(chosen) = choose(stream, problem, T::scattered(), kernel) else {
                return Ok(None);
            };
            let function = device.load(&PTX, chosen.instance.kernel)?;
            Ok(Some(Planned {
                kernel: chosen.instance.name(),
                clocks: chosen.clocks,
                launch: Box::new(Scattered { function, chosen }),
            }))
        }
    }
}

/// A kernel that gathers A, chosen and loaded.
struct Gathered<T: TensorMapElement> {
    function: Function<GatheredArguments<T>>,
    chosen: Chosen<T, GatheredArguments<T>>,
}

impl<T: Element> Launch<T, T> for Gathered<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let Problem { a, b, c, rows, .. } = &problem;
        let Rows::OfA(rows) = rows else {
            unreachable!("a plan is launched for problems of its shape")
        };
        let stacks = Stacks::of(&problem.groups);
        let [_, box_b, box_c] = self.chosen.instance.boxes;
        let map_b = stacks.map(1, b.view, &b.extents, box_b)?;
        // An unused map may be any map.
        let map_c = match stores_c(&problem) {
            true => stacks.map(2, c.view.view(), &c.extents, box_c)?,
            false => map_b,
        };
        // SAFETY: the maps describe the matrices, which were checked against their memory. There is an index for each
        // row of C, and the kernel compares each index with the table. C overlaps no operand and is borrowed mutably.
        // There is a size for each group, if there are any.
        unsafe {
            let all = (
                pointer(a.view),
                map_b,
                map_c,
                pointer_mut(c.view.address()),
                self.chosen.args(&problem),
                scale(&problem),
                self.chosen.group_args(&problem),
                rows.named(a.rows(), a.ld()),
                a.columns() as i32,
            );
            stream.launch(&self.function, self.chosen.config(), all)?;
        }
        Ok(())
    }
}

/// A kernel that scatters C, chosen and loaded.
struct Scattered<T: TensorMapElement> {
    function: Function<ScatteredArguments<T>>,
    chosen: Chosen<T, ScatteredArguments<T>>,
}

impl<T: Element> Launch<T, T> for Scattered<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let Problem { a, b, c, rows, .. } = &problem;
        let Rows::OfC(rows) = rows else {
            unreachable!("a plan is launched for problems of its shape")
        };
        let stacks = Stacks::of(&problem.groups);
        let [box_a, box_b, _] = self.chosen.instance.boxes;
        let map_a = stacks.map(0, a.view, &a.extents, box_a)?;
        let map_b = stacks.map(1, b.view, &b.extents, box_b)?;
        // SAFETY: as for a gathered A. The table is C.
        unsafe {
            let all = (
                map_a,
                map_b,
                pointer_mut(c.view.address()),
                self.chosen.args(&problem),
                scale(&problem),
                self.chosen.group_args(&problem),
                rows.named(c.rows(), c.ld()),
            );
            stream.launch(&self.function, self.chosen.config(), all)?;
        }
        Ok(())
    }
}
