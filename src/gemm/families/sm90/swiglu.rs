//! Products whose columns are gates and ups by turns: the choice of a kernel, and its launch.

use cutlet_host::{Function, Stream, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::instance::{Instance, SwigluArguments};

use super::Element;
use super::grouped::{Chosen, Stacks, choose, fits, stores_c};
use crate::Result;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, Planned};
use crate::matrix::pointer_mut;

/// A kernel that fuses SwiGLU.
pub type SwigluInstance<T> = Instance<T, Scale, SwigluArguments<T>>;

/// Plans a gated product with the fastest kernel, or with the one of this name. None if TMA cannot read the operands.
pub fn swiglu<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, T>>> {
    if !fits(problem) {
        return Ok(None);
    }
    let Some(chosen) = choose(stream, problem, T::swiglu(), kernel) else {
        return Ok(None);
    };
    let function = stream.device().load(&PTX, chosen.instance.kernel)?;
    Ok(Some(Planned {
        kernel: chosen.instance.name(),
        clocks: chosen.clocks,
        launch: Box::new(SwigluLaunch { function, chosen }),
    }))
}

/// A kernel that fuses SwiGLU, chosen and loaded.
struct SwigluLaunch<T: TensorMapElement> {
    function: Function<SwigluArguments<T>>,
    chosen: Chosen<T, SwigluArguments<T>>,
}

impl<T: Element> Launch<T, T> for SwigluLaunch<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let Problem { alpha, a, b, c, .. } = &problem;
        let stacks = Stacks::of(&problem.groups);
        let [box_a, box_b, box_c] = self.chosen.instance.boxes;
        let map_a = stacks.map(0, a.view, &a.extents, box_a)?;
        let map_b = stacks.map(1, b.view, &b.extents, box_b)?;
        // An unused map may be any map.
        let map_c = match stores_c(&problem) {
            true => stacks.map(2, c.view.view(), &c.extents, box_c)?,
            false => map_a,
        };
        // SAFETY: the maps describe the matrices, which were checked against their memory. C has half as many columns
        // as B, overlaps neither A nor B, and is borrowed mutably. There is a size for each group, if there are any.
        unsafe {
            let all = (
                map_a,
                map_b,
                map_c,
                pointer_mut(c.view.address()),
                self.chosen.args(&problem),
                *alpha,
                self.chosen.group_args(&problem),
            );
            stream.launch(&self.function, self.chosen.config(), all)?;
        }
        Ok(())
    }
}
