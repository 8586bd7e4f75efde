//! What kernels ask for that the GPUs of a target do not have: instructions, and shared memory.
//!
//! Otherwise the driver would find it at the first launch, and name a line of PTX.

use crate::demangle;
use crate::families::FamilyText;
use crate::metadata::capability;
use crate::module::{Item, Kind, Module};

/// The first target that has an instruction.
#[derive(Clone, Copy)]
enum Since {
    /// It and all newer ones have it.
    Capability(u32),
    /// It alone has it.
    Only(&'static str),
}

use Since::{Capability, Only};

/// How instructions begin, and which target is the first that has them. Of two that fit, the first counts.
const INSTRUCTIONS: [(&str, Since); 19] = [
    ("wgmma.", Only("sm_90a")),
    ("setmaxnreg.", Only("sm_90a")),
    ("tensormap.replace.", Only("sm_90a")),
    ("cp.async.bulk.", Capability(90)),
    ("cp.reduce.async.bulk.", Capability(90)),
    ("st.async.", Capability(90)),
    ("red.async.", Capability(90)),
    ("mbarrier.try_wait.", Capability(90)),
    ("mbarrier.expect_tx.", Capability(90)),
    ("mbarrier.arrive.expect_tx.", Capability(90)),
    ("barrier.cluster.", Capability(90)),
    ("mapa.", Capability(90)),
    ("ld.shared::cluster.", Capability(90)),
    ("st.shared::cluster.", Capability(90)),
    ("elect.sync", Capability(90)),
    ("stmatrix.", Capability(90)),
    ("griddepcontrol.", Capability(90)),
    ("fence.proxy.async", Capability(90)),
    ("fence.mbarrier_init.", Capability(90)),
];

impl Since {
    fn is_in(self, target: &str) -> bool {
        match self {
            Capability(first) => capability(target) >= first,
            Only(one) => one == target,
        }
    }

    /// The target, as `arch` in `#[kernel]` names it.
    fn arch(self) -> String {
        match self {
            Capability(first) => format!("sm_{first}"),
            Only(one) => one.to_owned(),
        }
    }
}

/// The most bytes of shared memory that a block of a GPU of this target can have; `None` for a target that is not known
/// here.
fn most_shared_bytes(target: &str) -> Option<u32> {
    let kib = match capability(target) {
        70 | 72 => 96,
        75 => 64,
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90 | 100 | 101 | 103 | 110 => 227,
        _ => return None,
    };
    Some(kib * 1024)
}

/// A line for each kernel of the family that asks for more than the target has.
pub(crate) fn exceeded(text: &FamilyText, target: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (kernel, bytes) in &text.shared_bytes {
        if let Some(most) = most_shared_bytes(target).filter(|most| bytes > most) {
            found.push(format!(
                "kernel `{kernel}` of `{}` for {target} has {bytes} bytes of shared memory, but a block of {target} has \
                 at most {most}: keep less in it, or build the kernel for another target by `arch` in `#[kernel]`",
                text.family
            ));
        }
    }
    if INSTRUCTIONS.iter().all(|(_, since)| since.is_in(target)) {
        return Ok(found);
    }
    for item in &Module::parse(&text.ptx)?.items {
        let Some((instruction, since)) = missing_instruction(item, target) else {
            continue;
        };
        let place = match item.kind {
            Kind::Entry => format!("kernel `{}` of `{}`", item.name, text.family),
            _ => format!(
                "`{}`, which a kernel of `{}` calls,",
                demangle::path(item.name),
                text.family
            ),
        };
        let arch = since.arch();
        found.push(format!(
            "{place} for {target} uses `{instruction}`, which begins with {arch}: give the kernel `arch = \"{arch}\"`, \
             or leave {target} out of the targets"
        ));
    }
    Ok(found)
}

/// The first instruction of the item that the target lacks, and the first target that has it.
fn missing_instruction<'a>(item: &Item<'a>, target: &str) -> Option<(&'a str, Since)> {
    INSTRUCTIONS
        .iter()
        .filter(|(_, since)| !since.is_in(target))
        .find_map(|(beginning, since)| Some((instruction(item.text, beginning)?, *since)))
}

/// An instruction that begins so.
fn instruction<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let is_at_start = |at: &usize| {
        let before = &text[..*at];
        let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        line.ends_with([' ', '\t', ';', '{', '}', ':']) && !line.contains("//") || line.is_empty()
    };
    let mut places = text.match_indices(beginning).map(|(at, _)| at);
    let at = places.find(is_at_start)?;
    let end = text[at..].find([' ', '\t', '\n', ';']);
    Some(&text[at..end.map_or(text.len(), |end| at + end)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str, shared_bytes: u32, target: &str) -> Vec<String> {
        let ptx = format!(
            ".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k() {{\n{body}\n\tret;\n}}\n"
        );
        let text = FamilyText {
            family: "mat".to_owned(),
            ptx,
            also: Vec::new(),
            shared_bytes: vec![("k".to_owned(), shared_bytes)],
        };
        exceeded(&text, target).unwrap()
    }

    #[test]
    fn an_instruction_of_a_newer_target_is_named_with_it() {
        for (body, instruction, arch) in [
            (
                "\twgmma.fence.sync.aligned;",
                "wgmma.fence.sync.aligned",
                "sm_90a",
            ),
            (
                "\t{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2; }",
                "mbarrier.try_wait.parity.shared::cta.b64",
                "sm_90",
            ),
            (
                "\t@%p1 griddepcontrol.wait;",
                "griddepcontrol.wait",
                "sm_90",
            ),
            (
                "{cp.async.bulk.commit_group;}",
                "cp.async.bulk.commit_group",
                "sm_90",
            ),
        ] {
            let found = of(body, 0, "sm_80");
            let expected = format!(
                "kernel `k` of `mat` for sm_80 uses `{instruction}`, which begins with {arch}: give the kernel `arch = \
                 \"{arch}\"`"
            );
            assert!(
                found.len() == 1 && found[0].starts_with(&expected),
                "{found:?}"
            );
            assert_eq!(of(body, 0, "sm_90a"), [""; 0]);
        }
    }

    #[test]
    fn an_instruction_of_one_target_alone_is_in_no_newer_one() {
        let body = "\twgmma.fence.sync.aligned;";
        assert_eq!(of(body, 0, "sm_100a").len(), 1);
        assert_eq!(of("\tgriddepcontrol.wait;", 0, "sm_100a"), [""; 0]);
    }

    #[test]
    fn what_looks_like_an_instruction_is_none() {
        let body = "\t// wgmma.fence;\n\tcp.async.ca.shared.global [%r1], [%rd1], 4, 4;\n\tmbarrier.init.shared.b64 [%r1], \
                    1;\n\tcall.uni map_wgmma.x;";
        assert_eq!(of(body, 0, "sm_80"), [""; 0]);
    }

    #[test]
    fn shared_memory_beyond_the_target_s_is_found() {
        let found = of("", 192 * 1024, "sm_80");
        let expected = "kernel `k` of `mat` for sm_80 has 196608 bytes of shared memory, but a block of sm_80 has at most \
                        166912: keep less in it";
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{found:?}"
        );
        assert_eq!(of("", 163 * 1024, "sm_80"), [""; 0]);
        assert_eq!(of("", 227 * 1024, "sm_90a"), [""; 0]);
        assert_eq!(of("", 100 * 1024, "sm_86").len(), 1);
        assert_eq!(of("", u32::MAX, "sm_999"), [""; 0]);
    }
}
