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
