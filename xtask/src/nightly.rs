//! What takes too long for each change, in one command.
//!
//! | check | at each change | here |
//! |---|---|---|
//! | PTX for sm_80 is assembled | for sm_80, sm_90 and sm_120 | for sm_86, sm_87, sm_89 and sm_100 as well |
//! | kernels for f16 and e5m2 | made of the text for bf16 and e4m3, and run | assembled, compiled, and compared with what is made |
//! | the CPU backend on 64-bit Arm | compiled | its tests run on an emulator |
//! | the fit of the choice of a kernel | to a sixteenth of the problems | to half of them, judged at the other half |

use crate::{
    arm,
    process::{self, Outcome, cargo},
    ptx, setup,
};

/// Runs every check.
pub fn run() -> Outcome {
    setup::run()?;
    ptx::run_for_all()?;
    arm::run()?;
    process::run(&mut cargo(
        "run --quiet --package cutlet-fitting -- --check",
    ))
}
