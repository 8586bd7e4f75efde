//! Checks that every instruction of the device crate is in the PTX of the kernels, so that the assembler checks all of
//! them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cutlet_device::{__wgmma_n, __wgmma_types, PtxModule};
use cutlet_host::ptx_text;
use proc_macro2::{TokenStream, TokenTree};

/// The text of a module.
fn text(module: &PtxModule) -> Cow<'static, str> {
    ptx_text(module.ptx).expect("the builder packed the text")
}

/// The PTX of all families and targets.
fn ptx() -> impl Iterator<Item = Cow<'static, str>> {
    let families = cutlet_instructions::PTX.families.iter();
    families.flat_map(|family| family.modules.iter().map(text))
}

/// An instruction: its name, whether A is in registers, and its last operands. If it has majors, these are numbers: of
/// each operand in shared memory, whether it is MN-major.
type Instruction = (String, bool, Vec<u32>);

/// How often a kernel issues an instruction with A in shared memory: once by `WgmmaGroup::mma`, and four times by
/// `WgmmaGroup::mma_x4`.
const TIMES_SHARED: usize = 5;
/// How often a kernel issues an instruction with A in registers, by `WgmmaGroup::mma_from_registers`.
const TIMES_REGISTERS: usize = 1;

/// Every instruction of the device crate's table.
fn table() -> Vec<Instruction> {
    let mut all = Vec::new();
    let mut add = |n: u32, operands: &str, k: u32, types: &str, form: &str| {
        if (operands, form) == ("floats", "integers") {
            return;
        }
        let name = format!("wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types}");
        let (shared, registers): (&[&[u32]], &[&[u32]]) = match form {
            "any" => (&[&[0, 0], &[0, 1], &[1, 0], &[1, 1]], &[&[0], &[1]]),
            "k" | "integers" => (&[&[]], &[&[]]),
            _ => panic!("{name} has the form `{form}`, which is unknown"),
        };
        all.extend(shared.iter().map(|of| (name.clone(), false, of.to_vec())));
        all.extend(registers.iter().map(|of| (name.clone(), true, of.to_vec())));
    };
    macro_rules! of_n {
        ({ $k:literal, $types:literal, $form:ident, $add:ident } $($n:literal: $operands:ident $registers:tt,)*) => {
            $($add($n, stringify!($operands), $k, $types, stringify!($form));)*
        };
    }
    macro_rules! of_types {
        ({ $add:ident } $($name:ident: $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal, $form:ident;)*) => {
            $(__wgmma_n! { of_n! { $k, $types, $form, $add } })*
        };
    }
    __wgmma_types! { of_types! { add } }
    all
}

/// The instruction of a line of PTX, in the form of [`table`].
fn wgmma(line: &str) -> Option<Instruction> {
    let line = line.strip_suffix(';')?;
    if !line.starts_with("wgmma.mma_async") {
        return None;
    }
    let (name, operands) = line.split_once(' ')?;
    // Integers have neither factors nor majors.
    let (operands, end) = operands.split_once(", 1, 1").unwrap_or((operands, ""));
    let majors = end.split(", ").skip(1).map(|major| major.parse().unwrap());
    // The accumulators are in braces, and A is if it is in registers.
    let in_registers = operands.matches('{').count() == 2;
    Some((name.to_owned(), in_registers, majors.collect()))
}

#[test]
fn every_row_of_the_table_is_issued_in_every_major() {
    let mut expected = BTreeMap::new();
    for instruction in table() {
        let times = match instruction.1 {
            false => TIMES_SHARED,
            true => TIMES_REGISTERS,
        };
        let before = expected.insert(instruction.clone(), times);
        assert_eq!(before, None, "{instruction:?} is in the table twice");
    }
    // For every N: two 16-bit types in four majors each, and two with A in registers; tf32 and four pairs of 8-bit
    // floats in one. For 18 of them, i8 in one.
    let least = 32 * (2 * (4 + 2) + 5 * (1 + 1)) + 18 * (1 + 1);
    assert!(expected.len() >= least, "{}", expected.len());

    let mut found = BTreeMap::new();
    // The family `wgmma` itself issues some instructions again.
    let families = cutlet_instructions::PTX.families.iter();
    for family in families.filter(|family| family.name.starts_with("wgmma::")) {
        for module in family.modules {
            for instruction in text(module).lines().filter_map(wgmma) {
                *found.entry(instruction).or_insert(0) += 1;
            }
        }
    }
    for (instruction, times) in &expected {
        let found = found.get(instruction).copied().unwrap_or(0);
        assert_eq!(found, *times, "{instruction:?} is not issued {times} times");
    }
    assert_eq!(
        found, expected,
        "an instruction is issued that the table lacks"
    );
}

/// Collects the Rust files in a folder and its subfolders.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Calls `each` with every string literal of the code, except doc comments.
fn strings(code: TokenStream, each: &mut impl FnMut(&str)) {
    let mut in_doc = false;
    for token in code {
        match token {
            TokenTree::Group(group) => strings(group.stream(), each),
            TokenTree::Ident(name) => in_doc = name == "doc",
            TokenTree::Literal(literal) if !in_doc => {
                let text = literal.to_string();
                if let Some(text) = text
                    .strip_prefix('"')
                    .and_then(|text| text.strip_suffix('"'))
                {
                    each(text);
                }
            }
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Whether a string is assembly that begins with an instruction, or a part of an instruction's name.
fn is_instruction(text: &str) -> bool {
    let text = match text.strip_prefix('@') {
        Some(predicated) => predicated.split_once(' ').map_or("", |(_, rest)| rest),
        None => text,
    };
    let name = text.split([' ', ';']).next().unwrap_or_default();
    let in_names = |letter: char| letter.is_ascii_alphanumeric() || "_.:".contains(letter);
    // Names that begin with `llvm.` are intrinsics, which rustc checks.
    name.contains('.')
        && name.contains(char::is_alphabetic)
        && name.chars().all(in_names)
        && !name.starts_with("llvm.")
}

/// The pieces of assembly between its operands.
fn between_operands(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '{' | '}' if letters.next_if_eq(&letter).is_none() => {
                letters.by_ref().find(|letter| *letter == '}');
                pieces.push(String::new());
            }
            _ => pieces.last_mut().unwrap().push(letter),
        }
    }
    pieces
}

/// Whether the line contains these pieces, in this order.
fn has(line: &str, pieces: &[String]) -> bool {
    let mut rest = line;
    pieces.iter().all(|piece| match rest.split_once(piece) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn instructions_are_distinguished_from_other_strings_and_found() {
    for (text, line) in [
        ("fence.acq_rel.cta;", "fence.acq_rel.cta;"),
        ("@!p bra.uni AGAIN;", "@!p bra.uni AGAIN;"),
        ("max.NaN.f32 {}, {a};", "max.NaN.f32 %r1, %r2;"),
        ("mov.u32 {}, %smid;", "mov.u32 %r1, %smid;"),
        (
            "d.shared::cluster.b16 [{to}], {{{a}, {b}}}",
            "st.2d.shared::cluster.b16 [%r1], {%r2, %r3};",
        ),
    ] {
        assert!(is_instruction(text), "{text}");
        assert!(has(line, &between_operands(text)), "{text}");
        assert!(
            !has("mov.u32 %r1, %laneid;", &between_operands(text)),
            "{text}"
        );
    }
    for other in [
        "{{",
        " {}, {};",
        "AGAIN:",
        "nvptx64",
        "// settled: {",
        "llvm.fma.f32",
        "1.0",
    ] {
        assert!(!is_instruction(other), "{other}");
    }
}

#[test]
fn every_instruction_of_the_source_is_in_the_ptx() {
    let texts: Vec<_> = ptx().collect();
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"),
        &mut files,
    );
    let mut count = 0;
    let mut missing = Vec::new();
    for file in files {
        let code: TokenStream = fs::read_to_string(&file).unwrap().parse().unwrap();
        strings(code, &mut |text| {
            if is_instruction(text) {
                count += 1;

                let pieces = between_operands(text);
                if !lines.iter().any(|line| has(line, &pieces)) {
                    missing.push(format!("`{text}` of {}", file.display()));
                }
            }
        });
    }

    assert!(count > 100, "only {count} instructions were found");
    assert!(
        missing.is_empty(),
        "kernels of `cutlet-instructions` must use the functions that write these instructions:\n{}",
        missing.join("\n")
    );
}
