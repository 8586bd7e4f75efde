//! Static and dynamic integers: the same function for every operation, whatever the integers are.
//!
//! Tries 10,000 random expressions; `CUTLET_EXPRESSIONS=100000` tries more.

use cutlet_layout_core::*;
use proptest::prelude::*;

/// The number of expressions that are tried.
fn expressions() -> u32 {
    std::env::var("CUTLET_EXPRESSIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(10_000)
}

/// The largest layout that a chain of operations goes on with.
const LARGEST: i64 = 512;

/// The names of the operations, for messages. [`apply`] takes a place in this list.
const OPERATIONS: [&str; 16] = [
    "composition",
    "composition by mode",
    "complement",
    "logical_divide",
    "zipped_divide by mode",
    "tiled_divide by mode",
    "flat_divide by mode",
    "logical_product",
    "zipped_product by mode",
    "blocked_product",
    "raked_product",
    "coalesce",
    "right_inverse",
    "left_inverse",
    "max_common_layout",
    "with_shape",
];

/// Applies an operation to a layout and a list of modes, which is a layout or a tuple of tilers.
fn apply(operation: usize, a: &Layout, modes: &[Layout]) -> Result<Layout, LayoutError> {
    let b = match modes {
        [mode] => *mode,
        modes => Layout::concat(modes),
    };
    let whole = Tiler::layout(&b);
    let items: Vec<Tiler> = modes.iter().take(a.rank()).map(Tiler::layout).collect();
    let by_mode = Tiler::tuple(&items);
    match OPERATIONS[operation] {
        "composition" => try_composition(a, &b),
        "composition by mode" => try_composition_by_mode(a, &by_mode),
        "complement" => try_complement(a, &b.shape()),
        "logical_divide" => try_logical_divide(a, &whole),
        "zipped_divide by mode" => try_zipped_divide(a, &by_mode),
        "tiled_divide by mode" => try_tiled_divide(a, &by_mode),
        "flat_divide by mode" => try_flat_divide(a, &by_mode),
        "logical_product" => try_logical_product(a, &whole),
        "zipped_product by mode" => try_zipped_product(a, &by_mode),
        "blocked_product" => try_blocked_product(a, &b),
        "raked_product" => try_raked_product(a, &b),
        "coalesce" => Ok(coalesce(a)),
        "right_inverse" => try_right_inverse(a),
        "left_inverse" => try_left_inverse(a),
        "max_common_layout" => try_max_common_layout(a, &b),
        _ => a.try_with_shape(&b.shape()),
    }
}

/// What a layout maps a 1-D coordinate to: an index, or a component for each direction. Trailing
/// zeros are left out, because a coalesced layout has no mode for them.
fn value(layout: &Layout, c: i64) -> Result<(bool, Vec<i64>), ErrorKind> {
    let value = match layout.try_call(&IntTuple::from(c)) {
        Ok(value) => value,
        Err(error) => return Err(error.kind()),
    };
    let mut components: Vec<i64> = (0..value.num_leaves())
        .map(|i| value.leaf(i).value())
        .collect();
    while components.last() == Some(&0) {
        components.pop();
    }
    Ok((value.is_tuple() && !components.is_empty(), components))
}

/// Whether two layouts map each 1-D coordinate of their domain to the same.
fn same_function(a: &Layout, b: &Layout) -> bool {
    a.size() == b.size() && (0..a.size().min(2 * LARGEST)).all(|c| value(a, c) == value(b, c))
}

/// Whether two layouts have modes of the same sizes.
fn same_modes(a: &Layout, b: &Layout) -> bool {
    a.rank() == b.rank() && (0..a.rank()).all(|i| a.mode(i).size() == b.mode(i).size())
}

/// Whether the operation decides the modes of its result. The others leave them to the integers.
fn decides_modes(operation: usize) -> bool {
    let name = OPERATIONS[operation];
    ["by mode", "divide", "product"]
        .iter()
        .any(|part| name.contains(part))
}

/// A layout with the integers dynamic that `choice` has a bit for.
fn mixed(layout: &Layout, choice: u64) -> Layout {
    let int = |int: Int, bit: usize| match choice >> bit & 1 {
        0 => int,
        _ => Int::dynamic(int.value()).along(int.basis()),
    };
    let n = layout.num_leaves();
    let shape: Vec<Int> = (0..n).map(|i| int(layout.leaf_shape(i), 2 * i)).collect();
    let stride: Vec<Int> = (0..n)
        .map(|i| int(layout.leaf_stride(i), 2 * i + 1))
        .collect();
    let flat = |ints: &[Int]| {
        let ints: Vec<IntTuple> = ints.iter().map(|&int| int.into()).collect();
        match (&ints[..], layout.depth()) {
            ([int], 0) => *int,
            (ints, _) => IntTuple::tuple(ints).unflatten(&layout.shape()),
        }
    };
    Layout::from_shape_stride(&flat(&shape), &flat(&stride))
}

fn mode(direction: Option<usize>) -> impl Strategy<Value = Layout> {
    let extent = prop_oneof![2 => Just(1), 5 => 2..5i64, 2 => 5..13i64];
    let stride = prop_oneof![1 => Just(0), 4 => 1..5i64, 3 => 5..25i64];
    (extent, stride).prop_map(move |(s, d)| match direction {
        Some(b) if d > 0 => Layout::static_basis_mode(s, d, b),
        _ => Layout::static_mode(s, d),
    })
}

/// Layouts of up to three modes of up to two modes. All strides are plain, or all are in the
/// direction of a coordinate.
fn layout() -> impl Strategy<Value = Layout> {
    let of = |direction: Option<usize>| {
        let nested = prop_oneof![
            3 => mode(direction),
            1 => prop::collection::vec(mode(direction), 1..3).prop_map(|m| Layout::concat(&m)),
        ];
        prop_oneof![
            1 => mode(direction),
            4 => prop::collection::vec(nested, 1..4).prop_map(|modes| Layout::concat(&modes)),
        ]
    };
    let coordinates = (of(Some(0)), of(Some(1))).prop_map(|(a, b)| Layout::concat(&[a, b]));
    prop_oneof![12 => of(None), 1 => coordinates]
}

/// Compares one operation on static integers with the same on dynamic ones.
fn check(operation: usize, a: &Layout, b: &[Layout], choice: u64) -> Result<(), TestCaseError> {
    let as_static = apply(operation, a, b);
    let name = OPERATIONS[operation];
    for choice in [u64::MAX, choice] {
        let left = mixed(a, choice);
        let right: Vec<Layout> = b
            .iter()
            .enumerate()
            .map(|(i, mode)| mixed(mode, choice.rotate_right(11 * (i as u32 + 1))))
            .collect();
        let as_dynamic = apply(operation, &left, &right);
        match (&as_static, &as_dynamic) {
            (Ok(r), Ok(d)) => {
                prop_assert!(
                    same_function(r, d) && (!decides_modes(operation) || same_modes(r, d)),
                    "{name}: {left} and {right:?} give {d}, {a} and {b:?} give {r}"
                )
            }
            // Dynamic extents of 1 are modes, for which there may be no room.
            (_, Err(d)) if d.kind() == ErrorKind::Capacity => {}
            (Err(r), Err(d)) => prop_assert_eq!(r.kind(), d.kind()),
            _ => prop_assert!(
                false,
                "{name}: {left} and {right:?} give {as_dynamic:?}, but {a} and {b:?} give {as_static:?}"
            ),
        }
    }
    Ok(())
}

/// An operation and its right operand.
type Step = (usize, Vec<Layout>);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: expressions(), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn static_and_dynamic_expressions_are_the_same_function(
        a in layout(),
        steps in prop::collection::vec(
            (0..OPERATIONS.len(), prop::collection::vec(layout(), 1..3)), 1..4,
        ),
        choice in any::<u64>(),
    ) {
        let steps: Vec<Step> = steps;
        let mut value = a;
        for (operation, b) in &steps {
            let in_directions =
                (0..value.num_leaves()).any(|i| !value.leaf_stride(i).basis().is_none());
            if in_directions && OPERATIONS[*operation].contains("product") {
                // A block of one coordinate has a product, which has plain strides next to directions.
                continue;
            }
            check(*operation, &value, b, choice)?;
            match apply(*operation, &value, b) {
                Ok(next) if next.size() <= LARGEST && next.num_leaves() <= 16 => value = next,
                _ => break,
            }
        }
    }

    #[test]
    fn static_and_dynamic_layouts_are_the_same_function_beyond_their_size(
        a in layout(), choice in any::<u64>(),
    ) {
        let b = mixed(&a, choice);
        for c in 0..2 * a.size().min(LARGEST) {
            prop_assert_eq!(a.try_at(c), b.try_at(c));
            prop_assert_eq!(value(&a, c), value(&b, c));
            let natural = idx2crd(&IntTuple::from(c), &a.shape());
            prop_assert_eq!(a.try_call(&natural).ok(), a.try_call(&c.into()).ok());
            prop_assert_eq!(natural, idx2crd(&IntTuple::from(c), &b.shape()));
        }
    }
}
