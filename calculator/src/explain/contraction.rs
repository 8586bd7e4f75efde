//! The steps of a contraction: the role of each mode, and which modes become one.

use cutlet_layout_core::contraction::{Mode, Modes, Notation, Role, TENSORS};
use cutlet_layout_core::{IntTuple, Layout};

/// The roles of the modes, and how they are merged.
pub(super) fn steps(notation: &Notation, layouts: [&Layout; 3]) -> Vec<String> {
    let Ok(modes) = notation.modes(layouts) else {
        return Vec::new();
    };
    let roles = modes.as_slice().iter().map(|mode| role(notation, mode));
    let merged = modes.merged().by_role();
    roles.chain(merges(&merged)).chain(gaps(&merged)).collect()
}

/// `  s 2048 is in A and C: M`.
fn role(notation: &Notation, mode: &Mode) -> String {
    let has = |tensor: &usize| {
        notation
            .names(*tensor)
            .as_str()
            .contains(mode.names.as_str())
    };
    let tensors: Vec<&str> = (0..3).filter(has).map(|tensor| TENSORS[tensor]).collect();
    let more = match (tensors.as_slice(), mode.role) {
        ([_], _) => " alone, and summed",
        ([_, _, _], Role::N) => ", and A repeats it",
        ([_, _, _], Role::M) => ", and B repeats it",
        (_, Role::K) => ", and summed",
        _ => "",
    };
    format!("  {mode} is in {}{more}: {}", list(&tensors), mode.role)
}

/// The modes that were several: `  j and b continue each other in A and B: jb 150`.
fn merges(modes: &Modes) -> Vec<String> {
    let several = modes.as_slice().iter().filter(|mode| mode.names.len() > 1);
    let words = several.map(|mode| {
        let letters = mode.names.as_str().split("").filter(|it| !it.is_empty());
        let letters = list(&letters.collect::<Vec<_>>());
        let tensors = (0..3).filter(|tensor| mode.role.is_of(*tensor));
        let tensors = list(&tensors.map(|tensor| TENSORS[tensor]).collect::<Vec<_>>());
        format!("  {letters} continue each other in {tensors}: {mode}")
    });
    words.collect()
}

/// Where modes of a role are apart.
fn gaps(modes: &Modes) -> Vec<String> {
    let neighbours = modes.as_slice().windows(2);
    let of_role = neighbours.filter(|both| both[0].role == both[1].role);
    of_role.filter_map(|both| gap(&both[0], &both[1])).collect()
}

/// The first tensor in which a mode does not begin where another ends.
fn gap(inner: &Mode, outer: &Mode) -> Option<String> {
    (0..3).find_map(|tensor| {
        let stride = outer.strides[tensor];
        let end = inner.strides[tensor].checked_mul(inner.extent)?;
        let [end, of_outer] = [end, stride].map(|int| IntTuple::int(int).to_dynamic());
        let tensor = TENSORS[tensor];
        (end != of_outer).then(|| {
            format!(
                "  {outer} does not continue {inner}: in {tensor}, {inner} ends at {end}, and {outer} has the stride {of_outer}"
            )
        })
    })
}

/// `A`, `A and B` or `A, B and C`.
fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
