//! Instructions that slow down loops with `wgmma`.
//!
//! A memory barrier (`MEMBAR`) in such a loop costs a third of a GEMM's speed. An `mbarrier.arrive` of the wrong kind
//! becomes one, which nobody sees in the source. A `YIELD` costs a sixth if tiles are small. ptxas puts it into a loop
//! if it cannot tell that all lanes of a warp run the loop equally often. A `YIELD` after the loop's last `wgmma` is in
//! order: code that waits is out of line there. So is a memory barrier of the block that belongs to a fence of proxies:
//! a loop needs it where its threads write an operand of `wgmma` to shared memory.

use std::collections::BTreeMap;

use cutlet_machine_code::listing::{self, Instruction, Loop};

/// Whether an instruction of machine code is a `wgmma`: of 16-bit floats and tf32, of 8-bit floats, or of i8.
fn is_wgmma(instruction: &Instruction<'_>) -> bool {
    ["HGMMA", "QGMMA", "IGMMA"]
        .iter()
        .any(|name| instruction.is(name))
}

/// A loop that issues `wgmma` and has no other such loop inside.
#[derive(Debug, PartialEq, Eq)]
pub struct HotLoop {
    /// How many instructions it has.
    pub instructions: usize,
    /// How many of them are `wgmma`.
    pub wgmma: usize,
    /// Line in the listing and text of each instruction that does not belong in it.
    pub misplaced: Vec<(usize, String)>,
}

/// The hot loops of every entry in a listing of `nvdisasm` that issues `wgmma`.
///
/// # Errors
/// If the branches of an entry cannot be followed, or its `wgmma` is in no loop.
pub fn find(listing: &str) -> Result<BTreeMap<String, Vec<HotLoop>>, String> {
    let mut entries = BTreeMap::new();
    for entry in listing::read(listing) {
        if !entry.code().iter().any(is_wgmma) {
            continue;
        }
        let loops = entry
            .innermost(is_wgmma)
            .map_err(|error| format!("{}: {error}", entry.name()))?;
        if loops.is_empty() {
            return Err(format!("{}: its wgmma is in no loop", entry.name()));
        }
        let loops = loops.iter().map(HotLoop::of).collect();
        entries.insert(entry.name().to_owned(), loops);
    }
    Ok(entries)
}

impl HotLoop {
    fn of(found: &Loop<'_, '_>) -> Self {
        let wgmma = || found.code.iter().filter(|i| is_wgmma(i));
        let last_wgmma = wgmma().map(|i| i.line).max();
        let is_of_fence = |i: &Instruction<'_>| {
            let next = found.code.iter().find(|next| next.line > i.line);
            i.text.contains("MEMBAR.ALL.CTA") && next.is_some_and(|next| next.is("FENCE"))
        };
        let misplaced = |i: &&&Instruction<'_>| {
            i.is("MEMBAR") && !is_of_fence(i) || i.is("YIELD") && Some(i.line) < last_wgmma
        };
        let misplaced = found.code.iter().filter(misplaced);
        Self {
            instructions: found.code.len(),
            wgmma: wgmma().count(),
            misplaced: misplaced.map(|i| (i.line, i.text.to_owned())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop over tiles around a loop over k.
    fn gemm(in_loop: &str, in_wait: &str, in_tile: &str) -> String {
        format!(
            ".text.gemm:
        /*0000*/ MEMBAR.ALL.GPU ;
.L_tile:
        /*0010*/ HGMMA.64x256x16.F32 R24, gdesc[UR20], RZ, !UPT ;
.L_k:
        /*0020*/ {in_loop} ;
        /*0030*/ @!P0 BRA `(.L_wait) ;
.L_there:
        /*0040*/ HGMMA.64x256x16.F32 R24, gdesc[UR20], R24, gsb0 ;
        /*0050*/ @P0 BRA `(.L_k) ;
        /*0060*/ {in_tile} ;
        /*0070*/ @P2 BRA `(.L_tile) ;
        /*0080*/ EXIT ;
.L_wait:
        /*0090*/ {in_wait} ;
        /*00a0*/ @!P0 BRA `(.L_wait) ;
        /*00b0*/ BRA `(.L_there) ;
"
        )
    }

    #[test]
    fn instructions_of_the_loop_over_k_are_counted() {
        let found = find(&gemm("NOP", "YIELD", "MEMBAR.ALL.CTA")).unwrap();
        let expected = HotLoop {
            instructions: 7,
            wgmma: 1,
            misplaced: Vec::new(),
        };
        assert_eq!(found["gemm"], [expected]);
    }

    #[test]
    fn what_has_no_place_in_it_is_found() {
        let found = find(&gemm("YIELD", "@P3 MEMBAR.ALL.GPU", "YIELD")).unwrap();
        assert_eq!(
            found["gemm"][0].misplaced,
            [(6, "YIELD".to_owned()), (15, "MEMBAR.ALL.GPU".to_owned())]
        );
    }

    #[test]
    fn a_fence_of_proxies_has_a_place_in_it() {
        let misplaced = |fence: &str| {
            let found = find(&gemm(fence, "YIELD", "NOP")).unwrap();
            found["gemm"][0].misplaced.len()
        };
        let next = "        /*0028*/ FENCE.VIEW.ASYNC.S";
        assert_eq!(misplaced(&format!("MEMBAR.ALL.CTA ;\n{next}")), 0);
        assert_eq!(misplaced(&format!("MEMBAR.ALL.GPU ;\n{next}")), 1);
        assert_eq!(misplaced("MEMBAR.ALL.CTA"), 1);
    }

    #[test]
    fn entries_without_wgmma_pass() {
        let found = find(".text.a:\n/*0000*/ FFMA R1, R2, R3, R4 ;\n/*0010*/ EXIT ;\n").unwrap();
        assert!(found.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let error = find(".text.gemm:\n/*0000*/ HGMMA R24 ;\n/*0010*/ EXIT ;\n").unwrap_err();
        assert_eq!(error, "gemm: its wgmma is in no loop");
        let error =
            find(".text.gemm:\n/*0000*/ HGMMA R24 ;\n/*0010*/ BRX R2 -0x40 ;\n").unwrap_err();
        assert_eq!(
            error,
            "gemm: the destination of `BRX R2 -0x40` is not known"
        );
    }
}
