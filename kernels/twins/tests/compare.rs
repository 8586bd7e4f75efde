//! The PTX of layout-driven kernels against the PTX of their hand-indexed twins: layouts cost no instruction.

use cutlet_device::PtxLibrary;
use cutlet_host::ptx_text;

/// The PTX of an entry for `sm_80`, from its name to its closing brace.
fn body(library: &PtxLibrary, entry: &str) -> String {
    let name = format!(".entry {entry}(");
    let modules = library.families.iter().flat_map(|family| family.modules);
    let text = modules
        .filter(|module| module.target == "sm_80")
        .filter_map(|module| ptx_text(module.ptx))
        .find(|text| text.contains(&name))
        .unwrap_or_else(|| panic!("no entry {entry} for sm_80"));
    let start = text.find(&name).expect("found above");
    let body = &text[start..];
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

fn assert_no_more_instructions(
    (library, by_layout): (&PtxLibrary, &str),
    (twins, by_hand): (&PtxLibrary, &str),
) {
    let (of_layout, of_twin) = (body(library, by_layout), body(twins, by_hand));
    let (found, allowed) = (instructions(&of_layout).len(), instructions(&of_twin).len());
    println!("{by_layout}: {found} instructions by layout, {allowed} by hand");
    assert!(
        found <= allowed,
        "{by_layout}: {found} instructions, {allowed} by hand"
    );
    for leftover in ["call", ".local", ".func"] {
        assert!(!of_layout.contains(leftover), "{by_layout} has {leftover}");
    }
}

#[test]
fn transpose_costs_no_more_than_its_twin() {
    let entry = "transpose_f32";
    assert_no_more_instructions((&cutlet_kernels::PTX, entry), (&cutlet_twins::PTX, entry));
}

#[test]
fn a_tiled_copy_costs_no_more_than_its_twin() {
    let twins = &cutlet_twins::PTX;
    assert_no_more_instructions((twins, "copy_by_layout"), (twins, "copy_by_hand"));
}

#[test]
fn a_tiled_product_costs_no_more_than_its_twin() {
    let twins = &cutlet_twins::PTX;
    assert_no_more_instructions((twins, "product_by_layout"), (twins, "product_by_hand"));
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
