//! Reads a listing of `nvdisasm`, and finds the loops in its machine code.

use std::collections::{BTreeMap, BTreeSet};

/// An entry in a listing: its instructions, and the index of the instruction that follows each label.
pub struct Entry<'l> {
    name: &'l str,
    code: Vec<Instruction<'l>>,
    labels: BTreeMap<&'l str, usize>,
}

/// An instruction in a listing.
pub struct Instruction<'l> {
    /// Number of its line in the listing, from 1.
    pub line: usize,
    /// Whether it runs only under a predicate.
    guarded: bool,
    /// Its text without the predicate.
    pub text: &'l str,
}

/// A loop: its instructions, in the order of the listing. They need not be neighbours.
pub struct Loop<'e, 'l> {
    /// The instructions.
    pub code: Vec<&'e Instruction<'l>>,
}

/// The entries of a listing.
///
/// ```
/// use cutlet_machine_code::listing;
///
/// let text = "
/// .text.scale:
///         /*0000*/    MOV R1, R2 ;
/// .L_1:
///         /*0010*/    FADD R1, R1, R1 ;
///         /*0020*/    @P0 BRA `(.L_1) ;
///         /*0030*/    EXIT ;
/// ";
/// let entries = listing::read(text);
/// assert_eq!((entries[0].name(), entries[0].code().len()), ("scale", 4));
/// let hot = entries[0].hot_loop().unwrap().unwrap();
/// assert_eq!((hot.code.len(), hot.code[0].line), (2, 5));
/// ```
pub fn read(listing: &str) -> Vec<Entry<'_>> {
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

    /// The operation without its modifiers, as in `HGMMA`.
    pub fn operation(&self) -> &'l str {
        let end = self.text.find(['.', ' ']).unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// Whether it is this operation.
    pub fn is(&self, operation: &str) -> bool {
        self.operation() == operation
    }

    /// Whether it multiplies matrices: `HMMA`, `IMMA`, `HGMMA` and the like.
    fn is_mma(&self) -> bool {
        self.operation().ends_with("MMA")
    }

    /// Whether it jumps.
    fn branches(&self) -> bool {
        ["BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU"].contains(&self.operation())
    }

    /// The label in its operands.
    fn target(&self) -> Option<&'l str> {
        let (_, rest) = self.text.split_once("`(")?;
        Some(rest.split_once(')')?.0)
    }

    /// The labels of a jump by a table, which the listing has in a comment: `(*"BRANCH_TARGETS .L_1,.L_2"*)`.
    fn listed_targets(&self) -> Vec<&'l str> {
        let list = self.text.split_once("BRANCH_TARGETS ");
        let list = list.and_then(|(_, rest)| rest.split('"').next());
        list.map_or(Vec::new(), |list| list.split(',').map(str::trim).collect())
    }
}

impl<'l> Entry<'l> {
    /// Its name.
    pub fn name(&self) -> &'l str {
        self.name
    }

    /// Its instructions.
    pub fn code(&self) -> &[Instruction<'l>] {
        &self.code
    }

    /// The innermost loop with most instructions, if it has a loop.
    ///
    /// Where matrices are multiplied, loops without such an instruction do not count: loops that wait are inside of
    /// those that compute.
    ///
    /// # Errors
    /// If a branch cannot be followed.
    pub fn hot_loop(&self) -> Result<Option<Loop<'_, 'l>>, String> {
        let mut loops = self.innermost(Instruction::is_mma)?;
        if loops.is_empty() {
            loops = self.innermost(|_| true)?;
        }
        Ok(loops.into_iter().max_by_key(|one| one.code.len()))
    }

    /// The loops with an instruction that `counts`, and no other such loop inside.
    ///
    /// # Errors
    /// If a branch cannot be followed.
    pub fn innermost(
        &self,
        counts: impl Fn(&Instruction<'l>) -> bool,
    ) -> Result<Vec<Loop<'_, 'l>>, String> {
        let successors: Vec<Vec<usize>> = (0..self.code.len())
            .map(|at| self.successors(at))
            .collect::<Result<_, _>>()?;
        let counted: BTreeMap<usize, BTreeSet<usize>> = loops(&successors)
            .into_iter()
            .filter(|(_, body)| body.iter().any(|&at| counts(&self.code[at])))
            .collect();
        let innermost = counted.iter().filter(|(head, body)| {
            let mut others = counted.keys().filter(|other| other != head);
            !others.any(|other| body.contains(other))
        });
        let code = |body: &BTreeSet<usize>| body.iter().map(|&at| &self.code[at]).collect();
        Ok(innermost
            .map(|(_, body)| Loop { code: code(body) })
            .collect())
    }

    /// The instructions that may follow the one at `at`.
    fn successors(&self, at: usize) -> Result<Vec<usize>, String> {
        let instruction = &self.code[at];
        let (targets, falls_through) = match instruction.operation() {
            "EXIT" | "RET" => (Vec::new(), instruction.guarded),
            "BRX" | "BRXU" | "JMX" | "JMXU" => (instruction.listed_targets(), instruction.guarded),
            "BRA" | "JMP" => {
                // A condition may also stand before the label or in the parts of the mnemonic.
                let plain = instruction.text.starts_with("BRA `") || instruction.is("JMP");
                let target = instruction.target().into_iter().collect();
                (target, instruction.guarded || !plain)
            }
            _ => (Vec::new(), true),
        };
        let unknown = || format!("the destination of `{}` is not known", instruction.text);
        if instruction.branches() && targets.is_empty() {
            return Err(unknown());
        }
        let mut found = Vec::new();
        for target in targets {
            found.push(*self.labels.get(target).ok_or_else(unknown)?);
        }
        if falls_through {
            found.push(at + 1);
        }
        // A label at the end of the code has no instruction.
        found.retain(|&next| next < self.code.len());
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
    const GEMM: [&str; 20] = [
        "MEMBAR.ALL.GPU",
        ".L_tile:",
        "HGMMA.64x256x16.F32 R24, gdesc[UR20], RZ, !UPT",
        "@!P1 BRA `(.L_end)",
        ".L_k:",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2",
        "@!P0 BRA `(.L_wait)",
        ".L_there:",
        "HGMMA.64x256x16.F32 R24, gdesc[UR20], R24, gsb0",
        "@P0 BRA `(.L_k)",
        ".L_end:",
        "NOP",
        "@P2 BRA `(.L_tile)",
        "EXIT",
        ".L_wait:",
        "NOP",
        "@!P0 BRA `(.L_wait)",
        "BRA `(.L_there)",
        ".L_for_ever:",
        "BRA `(.L_for_ever)",
    ];

    /// The texts of the hot loop of the only entry in a listing.
    fn hot(lines: &[&str]) -> Result<Option<Vec<String>>, String> {
        let listing = listing(lines);
        let entries = read(&listing);
        let [entry] = &entries[..] else {
            panic!("there are {} entries", entries.len());
        };
        let texts = |hot: Loop<'_, '_>| hot.code.iter().map(|it| it.text.to_owned()).collect();
        Ok(entry.hot_loop()?.map(texts))
    }

    #[test]
    fn the_innermost_loop_with_wgmma_is_found_with_its_parts_elsewhere() {
        let hot = hot(&GEMM).unwrap().unwrap();
        assert_eq!(hot.len(), 7, "{hot:?}");
        assert!(hot[0].starts_with("SYNCS") && hot[2].starts_with("HGMMA"));
        assert_eq!(hot[6], "BRA `(.L_there)");
    }

    #[test]
    fn of_several_loops_the_one_with_most_instructions_is_hot() {
        let lines = [
            ".L_1:",
            "@P0 BRA `(.L_1)",
            ".L_outer:",
            "MOV R1, R2",
            ".L_2:",
            "FFMA R1, R2, R3, R4",
            "@P0 BRA `(.L_2)",
            "FADD R1, R1, R1",
            "FADD R1, R1, R1",
            "@P0 BRA `(.L_outer)",
            "EXIT",
        ];
        let hot = hot(&lines).unwrap().unwrap();
        assert_eq!(hot, ["FFMA R1, R2, R3, R4", "BRA `(.L_2)"]);
    }

    #[test]
    fn code_without_loops_has_no_hot_one() {
        assert_eq!(hot(&["FFMA R1, R2, R3, R4", "EXIT"]), Ok(None));
    }

    #[test]
    fn a_jump_by_a_table_goes_where_its_comment_says() {
        let lines = [
            ".L_1:",
            "MOV R1, R2",
            "BRX R2 -0x40 (*\"BRANCH_TARGETS .L_1,.L_2\"*)",
            "NOP",
            ".L_2:",
            "EXIT",
        ];
        assert_eq!(hot(&lines).unwrap().map(|hot| hot.len()), Some(2));
    }

    #[test]
    fn a_branch_that_is_not_understood_is_said() {
        let error = hot(&["HGMMA R24", "BRX R2 -0x40"]).unwrap_err();
        assert_eq!(error, "the destination of `BRX R2 -0x40` is not known");
        let error = hot(&["HGMMA R24", "BRA `(.L_nowhere)"]).unwrap_err();
        assert!(error.contains("is not known"), "{error}");
    }
}
