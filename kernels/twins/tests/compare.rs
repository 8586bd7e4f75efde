//! The PTX of layout-driven kernels against the PTX of their hand-indexed twins: layouts cost no instruction.

use std::collections::BTreeSet;

use cutlet_device::PtxLibrary;

/// The PTX of an entry for `sm_80`, from its name to its closing brace.
fn body(library: &PtxLibrary, entry: &str) -> String {
    let name = format!(".entry {entry}(");
    let module = library
        .families
        .iter()
        .flat_map(|family| family.modules)
        .find(|module| module.target == "sm_80" && module.ptx.contains(&name))
        .unwrap_or_else(|| panic!("no entry {entry} for sm_80"));
    let start = module.ptx.find(&name).expect("found above");
    let body = &module.ptx[start..];
    let end = body.find("\n}").expect("an entry ends in a brace");
    body[..end].to_string()
}

/// The instructions of a body: its lines except declarations, labels and comments.
fn instructions(body: &str) -> Vec<&str> {
    body.lines()
        .map(str::trim)
        .filter(|line| line.ends_with(';') && !line.starts_with('.') && !line.starts_with("//"))
        .collect()
}

fn assert_no_more_instructions_than_the_twin(entry: &str) {
    let (by_layout, by_hand) = (
        body(&cutlet_kernels::PTX, entry),
        body(&cutlet_twins::PTX, entry),
    );
    let (found, allowed) = (instructions(&by_layout).len(), instructions(&by_hand).len());
    println!("{entry}: {found} instructions by layout, {allowed} by hand");
    assert!(
        found <= allowed,
        "{entry}: {found} instructions, {allowed} by hand"
    );
    for leftover in ["call", ".local", ".func"] {
        assert!(!by_layout.contains(leftover), "{entry} has {leftover}");
    }
}

#[test]
fn transpose_costs_no_more_than_its_twin() {
    assert_no_more_instructions_than_the_twin("transpose_f32");
}

#[test]
fn gemm_costs_no_more_than_its_twin() {
    assert_no_more_instructions_than_the_twin("gemm_f32_row_row_x4");
}

/// The register that `register` is a constant away from: itself, unless an instruction makes it of another register and
/// a constant.
fn base<'a>(instructions: &[&'a str], register: &'a str) -> &'a str {
    let added = instructions.iter().find_map(|line| {
        let operands = line.strip_prefix("add.s32")?.trim_end_matches(';');
        let mut operands = operands.split(',').map(str::trim);
        let (to, from, constant) = (operands.next()?, operands.next()?, operands.next()?);
        (to == register && constant.parse::<i64>().is_ok()).then_some(from)
    });
    added.unwrap_or(register)
}

/// A thread's accesses to one tile differ by constants, which must not be computed at run time. In the GEMM, the reads
/// of a k-tile have one base for A, one for B, and many offsets.
#[test]
fn offsets_of_values_are_immediates() {
    let gemm = body(&cutlet_kernels::PTX, "gemm_f32_row_row_x4");
    let instructions = instructions(&gemm);
    let reads = instructions.iter().filter_map(|line| {
        let (_, address) = line.strip_prefix("ld.shared")?.split_once('[')?;
        let (register, _) = address.split_once('+')?;
        Some(register)
    });
    let reads: Vec<_> = reads.collect();
    assert_eq!(reads.len(), 32, "four vectors for each of eight k");
    let bases: BTreeSet<_> = reads
        .iter()
        .map(|register| base(&instructions, register))
        .collect();
    assert!(bases.len() <= 2, "{bases:?}");
}

/// A value needs at most two multiplications by a leading dimension: one for the source, one for the destination. The
/// compiler knows everything else about its addresses.
#[test]
fn a_value_needs_two_multiplications() {
    let transpose = body(&cutlet_kernels::PTX, "transpose_f32");
    let multiplications = instructions(&transpose)
        .into_iter()
        .filter(|line| line.starts_with("mul") || line.starts_with("mad"))
        .count();
    assert!(
        multiplications <= 2 * 16 + 4,
        "{multiplications} multiplications"
    );
}
