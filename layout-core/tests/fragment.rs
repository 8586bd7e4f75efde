//! Fragments whose storage a layout of the user's names.

use cutlet_layout_core::{
    Fragment, FragmentLayout, L, Layout, StaticLayout, Tensor, Tv, compose_coordinates, layout,
};

/// The rows 0 and 2 of four columns.
#[derive(Clone, Copy)]
struct EveryOtherRow;

impl StaticLayout for EveryOtherRow {
    const LAYOUT: Layout = <L!((4, 2):(1@1, 2@0))>::LAYOUT;
}

impl FragmentLayout for EveryOtherRow {
    type Storage = [[(); 4]; 2];
}

#[test]
fn a_layout_of_the_users_holds_values_of_any_type() {
    let mut words = Fragment::<[u8; 3], EveryOtherRow>::from_fn(|v| [v as u8; 3]);
    words.set(5, [9; 3]);
    assert_eq!([4, 5, 6].map(|v| words.get(v)), [[4; 3], [9; 3], [6; 3]]);
    let units = Fragment::<(), EveryOtherRow>::filled(());
    assert_eq!(units.get(7), ());
}

type Composed = (L!(2:1), L!((3, 2):(1@0, 1@1)));

#[test]
fn a_fragment_is_aligned_and_sized_like_an_array() {
    macro_rules! check {
        ($($value:ty),*) => {$(
            assert_eq!(align_of::<Fragment<$value, EveryOtherRow>>(), align_of::<$value>());
            assert_eq!(size_of::<Fragment<$value, EveryOtherRow>>(), 8 * size_of::<$value>());
            assert_eq!(align_of::<Fragment<$value, Composed>>(), align_of::<$value>());
            assert_eq!(size_of::<Fragment<$value, Composed>>(), 12 * size_of::<$value>());
        )*};
    }
    check!(u8, u32, f64, u128, [u16; 3], &u8);
}

#[test]
fn a_partition_is_loaded_by_a_layout_of_the_users() {
    let matrix: [i32; 16] = core::array::from_fn(|i| i as i32);
    // SAFETY: the layout maps its coordinates into the array.
    let tensor = unsafe {
        Tensor::new(
            matrix.as_ptr(),
            cutlet_layout_core::Fixed::<L!((4, 4):(4, 1))>::new(),
        )
    };
    let mine = tensor.partition::<Tv<L!(2:1@0), EveryOtherRow>>(1).load(-1);
    let in_memory = compose_coordinates(&layout!((4, 4):(4, 1)), &EveryOtherRow::LAYOUT);
    for v in 0..8 {
        assert_eq!(i64::from(mine.get(v)), in_memory.at(v as i64) + 4);
    }
}

/// Checks that rows and columns count what a layout's values lie in: the value at (m, n) has the m-th row and the n-th
/// column, in the order of the layout.
fn check_grid<L: FragmentLayout>(rows: &[i64], columns: &[i64]) {
    type Places<L> = Fragment<[i64; 2], L>;
    let coordinates =
        Places::<L>::from_fn(|v| [0, 1].map(|along| L::LAYOUT.at_basis(v as i64, along)));
    assert_eq!(
        [Places::<L>::ROWS, Places::<L>::COLUMNS],
        [rows.len(), columns.len()]
    );
    let mut cleared = coordinates;
    for (m, &row) in rows.iter().enumerate() {
        for (n, &column) in columns.iter().enumerate() {
            assert_eq!(coordinates.at(m, n), [row, column]);
            cleared.set_at(m, n, [-1; 2]);
        }
    }
    for v in 0..L::SIZE {
        let [m, n] = Places::<L>::place(v);
        assert_eq!(coordinates.get(v), [rows[m], columns[n]]);
        assert_eq!(cleared.get(v), [-1; 2]);
    }
}

#[test]
fn values_are_found_by_row_and_column() {
    check_grid::<L!((2, 2, 3):(1@1, 8@0, 8@1))>(&[0, 8], &[0, 1, 8, 9, 16, 17]);
    check_grid::<L!(((4, 2), (4, 2)):((1@0, 64@0), (1@1, 64@1)))>(
        &[0, 1, 2, 3, 64, 65, 66, 67],
        &[0, 1, 2, 3, 64, 65, 66, 67],
    );
    check_grid::<L!(5:2@1)>(&[0], &[0, 2, 4, 6, 8]);
    check_grid::<EveryOtherRow>(&[0, 2], &[0, 1, 2, 3]);
    check_grid::<L!((16, 16):(1@0, 1@1))>(
        &core::array::from_fn::<_, 16, _>(|i| i as i64),
        &core::array::from_fn::<_, 16, _>(|i| i as i64),
    );

    let plain = Fragment::<usize, L!(((2, 2), 3):((1, 6), 2))>::from_fn(|v| v);
    assert_eq!((plain.at(3, 0), plain.at(1, 2)), (3, 9));
}

#[test]
#[should_panic(expected = "m < rows")]
fn there_is_no_value_beyond_the_last_row() {
    Fragment::<i32, L!((2, 3):(1@0, 1@1))>::filled(0).at(2, 0);
}
