//! The list of the steps.

use cutlet_host::Stream;

use crate::{
    Error, Operands, Result, step1_naive, step2_shared_tiles, step3_register_tiles,
    step4_vector_loads, step5_cp_async, step6_mma_sync, step7_tma, step8_wgmma, step9_clusters,
};

/// A step: a kernel, and what it needs.
#[derive(Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// What m, n and k must be multiples of.
    pub multiples: [usize; 3],
    /// Whether it runs on Hopper alone, among GPUs.
    pub needs_hopper: bool,
    launch: fn(&Stream, Operands<'_>) -> Result<()>,
}

const ANY: [usize; 3] = [1, 1, 1];
/// Rows of A and B have whole vectors.
const VECTORS: [usize; 3] = [1, 1, 8];
/// Rows of C have whole pairs, too.
const PAIRS_OF_C: [usize; 3] = [1, 2, 8];
/// Rows of C have whole vectors, too.
const VECTORS_OF_C: [usize; 3] = [1, 8, 8];

/// The steps in order.
pub const STEPS: [Step; 9] = [
    step("1 naive", ANY, false, step1_naive::gemm),
    step("2 shared tiles", ANY, false, step2_shared_tiles::gemm),
    step("3 register tiles", ANY, false, step3_register_tiles::gemm),
    step("4 vector loads", VECTORS, false, step4_vector_loads::gemm),
    step("5 cp.async", VECTORS, false, step5_cp_async::gemm),
    step("6 mma.sync", PAIRS_OF_C, false, step6_mma_sync::gemm),
    step("7 TMA", PAIRS_OF_C, true, step7_tma::gemm),
    step("8 wgmma", PAIRS_OF_C, true, step8_wgmma::gemm),
    step("9 clusters", VECTORS_OF_C, true, step9_clusters::gemm),
];

const fn step(
    name: &'static str,
    multiples: [usize; 3],
    needs_hopper: bool,
    launch: fn(&Stream, Operands<'_>) -> Result<()>,
) -> Step {
    Step {
        name,
        multiples,
        needs_hopper,
        launch,
    }
}

impl Step {
    /// The extents of a product `[m, n, k]` after padding with as few zeros as the step needs.
    pub fn rounded_up(&self, [m, n, k]: [usize; 3]) -> [usize; 3] {
        let [of_m, of_n, of_k] = self.multiples;
        [
            m.next_multiple_of(of_m),
            n.next_multiple_of(of_n),
            k.next_multiple_of(of_k),
        ]
    }

    /// Computes C.
    ///
    /// # Errors
    /// [`Error::Multiple`] if an extent is not a multiple of what the step needs; [`Error::Host`] if the device
    /// refuses.
    pub fn gemm(&self, stream: &Stream, operands: Operands<'_>) -> Result<()> {
        let extents = [("m", operands.m), ("n", operands.n), ("k", operands.k)];
        for ((name, found), multiple) in extents.into_iter().zip(self.multiples) {
            if !found.is_multiple_of(multiple) {
                let step = self.name;
                return Err(Error::Multiple {
                    step,
                    name,
                    found,
                    multiple,
                });
            }
        }
        (self.launch)(stream, operands)
    }
}
