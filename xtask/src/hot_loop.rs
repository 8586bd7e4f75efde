//! Finds the loops in machine code that issue `wgmma`, and instructions that slow such loops down.
//!
//! A memory barrier (`MEMBAR`) in such a loop costs a third of a GEMM's speed. An `mbarrier.arrive` of the wrong kind
//! becomes one, which nobody sees in the source. A `YIELD` costs a sixth if tiles are small. ptxas puts it into a loop
//! if it cannot tell that all lanes of a warp run the loop equally often. A `YIELD` after the loop's last `wgmma` is in
//! order: code that waits is out of line there.

use std::collections::{BTreeMap, BTreeSet};

/// The instruction in machine code that `wgmma` becomes.
const WGMMA: &str = "HGMMA";

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
    for entry in read(listing) {
        if entry.code.iter().all(|i| !i.is(WGMMA)) {
            continue;
        }
        let loops = entry
            .hot_loops()
            .map_err(|error| format!("{}: {error}", entry.name))?;
        if loops.is_empty() {
            return Err(format!("{}: its {WGMMA} is in no loop", entry.name));
        }
        entries.insert(entry.name.to_owned(), loops);
    }
    Ok(entries)
}

/// An entry: its instructions, and the index of the instruction that follows each label.
struct Entry<'l> {
    name: &'l str,
    code: Vec<Instruction<'l>>,
    labels: BTreeMap<&'l str, usize>,
}

struct Instruction<'l> {
    /// Number of its line in the listing, from 1.
    line: usize,
    /// Whether it runs only under a predicate.
    guarded: bool,
    /// Without the predicate.
    text: &'l str,
}

impl<'l> Instruction<'l> {
    /// Reads the text between an instruction's address and its semicolon.
    fn read(line: usize, text: &'l str) -> Self {
        let text = text.trim();
        match text.strip_prefix('@').and_then(|rest| rest.split_once(' ')) {
            Some((_, text)) => Self {
                line,
                guarded: true,
                text: text.trim(),
            },
            None => Self {
                line,
                guarded: false,
                text,
            },
        }
    }

    fn mnemonic(&self) -> &'l str {
        let end = self.text.find(' ').unwrap_or(self.text.len());
        &self.text[..end]
    }

    fn is(&self, operation: &str) -> bool {
        self.mnemonic().split('.').next() == Some(operation)
    }

    /// The label in its operands.
    fn target(&self) -> Option<&'l str> {
        let (_, rest) = self.text.split_once("`(")?;
        Some(rest.split_once(')')?.0)
    }
}

fn read(listing: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for (number, line) in listing.lines().enumerate() {
        let line = line.trim();
        if let Some(label) = line.strip_suffix(':').filter(|_| line.starts_with('.')) {
            if let Some(name) = label.strip_prefix(".text.") {
                entries.push(Entry {
                    name,
                    code: Vec::new(),
                    labels: BTreeMap::new(),
                });
            } else if let Some(entry) = entries.last_mut() {
                entry.labels.insert(label, entry.code.len());
            }
        } else if let Some((_, text)) = line.strip_prefix("/*").and_then(|l| l.split_once("*/"))
            && let Some((text, _)) = text.split_once(';')
            && let Some(entry) = entries.last_mut()
        {
            entry.code.push(Instruction::read(number + 1, text));
        }
    }
    entries
}

impl Entry<'_> {
    /// The loops with `wgmma` that have no other such loop inside.
    fn hot_loops(&self) -> Result<Vec<HotLoop>, String> {
        let successors: Vec<Vec<usize>> = (0..self.code.len())
            .map(|at| self.successors(at))
            .collect::<Result<_, _>>()?;
        let with_wgmma: BTreeMap<usize, BTreeSet<usize>> = loops(&successors)
            .into_iter()
            .filter(|(_, body)| body.iter().any(|&at| self.code[at].is(WGMMA)))
            .collect();
        let innermost = with_wgmma.iter().filter(|(head, body)| {
            let mut others = with_wgmma.keys().filter(|other| other != head);
            !others.any(|other| body.contains(other))
        });
        Ok(innermost.map(|(_, body)| self.hot_loop(body)).collect())
    }

    fn hot_loop(&self, body: &BTreeSet<usize>) -> HotLoop {
        let all = || body.iter().map(|&at| &self.code[at]);
        let wgmma = || all().filter(|i| i.is(WGMMA));
        let last_wgmma = wgmma().map(|i| i.line).max();
        let misplaced =
            |i: &&Instruction<'_>| i.is("MEMBAR") || (i.is("YIELD") && Some(i.line) < last_wgmma);
        HotLoop {
            instructions: body.len(),
            wgmma: wgmma().count(),
            misplaced: all()
                .filter(misplaced)
                .map(|i| (i.line, i.text.to_owned()))
                .collect(),
        }
    }

    /// The instructions that may follow the one at `at`.
    fn successors(&self, at: usize) -> Result<Vec<usize>, String> {
        let instruction = &self.code[at];
        let mut found = Vec::new();
        let mut falls_through = at + 1 < self.code.len();
        if instruction.is("EXIT") || instruction.is("RET") {
            falls_through &= instruction.guarded;
        } else if instruction.is("BRX") || instruction.is("JMX") {
            return Err(format!(
                "the destination of `{}` is not known",
                instruction.text
            ));
        } else if instruction.is("BRA") || instruction.is("JMP") {
            let label = instruction
                .target()
                .and_then(|label| self.labels.get(label))
                .ok_or_else(|| format!("the destination of `{}` is not known", instruction.text))?;
            // A label at the end of the code has no instruction.
            found.extend(Some(*label).filter(|&label| label < self.code.len()));
            // A condition may also stand before the label or in the parts of the mnemonic.
            let plain = instruction.text.starts_with("BRA `") || instruction.is("JMP");
            falls_through &= instruction.guarded || !plain;
        }
        if falls_through {
            found.push(at + 1);
        }
        Ok(found)
    }
}

/// The natural loops of code that starts at 0: the instructions of each, by its head. They may lie anywhere in memory.
fn loops(successors: &[Vec<usize>]) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (at, next) in successors.iter().enumerate() {
        for &next in next {
            predecessors[next].push(at);
        }
    }
    let reached = closure(0, None, successors);
    let mut loops: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (tail, next) in successors.iter().enumerate() {
        for &head in next.iter().filter(|&&head| head <= tail) {
            // A jump back closes a loop if every way to the jump leads through its destination.
            let dominated = reached.contains(&tail)
                && (head == 0 || !closure(0, Some(head), successors).contains(&tail));
            if dominated {
                let body = loops.entry(head).or_default();
                body.insert(head);
                if tail != head {
                    body.extend(closure(tail, Some(head), &predecessors));
                }
            }
        }
    }
    loops
}

/// The indices that are reached from `start`, which is one of them, by steps that do not enter `wall`.
fn closure(start: usize, wall: Option<usize>, steps: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for &next in &steps[at] {
            if Some(next) != wall && reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listing of one entry: every line is a label or an instruction.
    fn listing(lines: &[&str]) -> String {
        let mut listing =
            "\t.section\t.text.gemm,\"ax\",@progbits\ngemm:\n.text.gemm:\n".to_owned();
        for (number, line) in lines.iter().enumerate() {
            listing += &match line.strip_suffix(':') {
                Some(_) => format!("{line}\n"),
                None => format!(
                    "        /*{:04x}*/                   {line} ;\n",
                    16 * number
                ),
            };
        }
        listing
    }

    /// A loop over tiles around a loop over k, whose waiting code is out of line, as ptxas arranges it.
    fn gemm(in_loop: &str, in_wait: &str, in_tile: &str) -> String {
        listing(&[
            "MEMBAR.ALL.GPU",
            ".L_tile:",
            "HGMMA.64x256x16.F32 R24, gdesc[UR20], RZ, !UPT",
            "@!P1 BRA `(.L_end)",
            ".L_k:",
            in_loop,
            "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2",
            "@!P0 BRA `(.L_wait)",
            ".L_there:",
            "HGMMA.64x256x16.F32 R24, gdesc[UR20], R24, gsb0",
            "@P0 BRA `(.L_k)",
            ".L_end:",
            in_tile,
            "@P2 BRA `(.L_tile)",
            "EXIT",
            ".L_wait:",
            in_wait,
            "@!P0 BRA `(.L_wait)",
            "BRA `(.L_there)",
            ".L_for_ever:",
            "BRA `(.L_for_ever)",
        ])
    }

    #[test]
    fn the_innermost_loop_with_wgmma_is_found_with_its_parts_elsewhere() {
        let found = find(&gemm("NOP", "YIELD", "MEMBAR.ALL.CTA")).unwrap();
        let expected = HotLoop {
            instructions: 8,
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
            [(9, "YIELD".to_owned()), (20, "MEMBAR.ALL.GPU".to_owned())]
        );
    }

    #[test]
    fn entries_without_wgmma_pass() {
        let found = find(&listing(&["FFMA R1, R2, R3, R4", "EXIT"])).unwrap();
        assert!(found.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let error = find(&listing(&["HGMMA R24, gdesc[UR20], RZ", "EXIT"])).unwrap_err();
        assert_eq!(error, "gemm: its HGMMA is in no loop");
        let error = find(&listing(&["HGMMA R24", "BRX R2 -0x40"])).unwrap_err();
        assert_eq!(
            error,
            "gemm: the destination of `BRX R2 -0x40` is not known"
        );
        let error = find(&listing(&["HGMMA R24", "BRA `(.L_nowhere)"])).unwrap_err();
        assert!(error.contains("is not known"), "{error}");
    }
}
