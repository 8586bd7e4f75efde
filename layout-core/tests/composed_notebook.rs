//! The examples of CUTLASS's notebook on composed layouts, with the texts that it prints, and the tensor of a composed
//! layout that it leaves for the future.

use cutlet_layout_core::{
    ComposedLayout, IntTuple, Layout, Named, Swizzle, ValueTensor, identity, layout, shape, tile,
};

/// `def inner(c): x, y = c; return x, y + 1`
fn increment_y(c: &IntTuple) -> IntTuple {
    (c.leaf(0).value(), c.leaf(1).value() + 1).into()
}

#[test]
fn a_custom_transformation() {
    let inner = Named::new("inner", increment_y);
    let layout = ComposedLayout::new(inner, shape!((1, 0)), identity(&shape!((8, 4))));
    assert_eq!(layout.to_string(), "inner o (_1,_0) o (_8,_4):(_1@0,_1@1)");
    // cute.printf(layout(0))
    assert_eq!(layout.call(&0.into()).to_string(), "(1,1)");
}

#[test]
fn an_offset_displaces_coordinates() {
    let inner = Named::new("inner", increment_y);
    for (x, y) in [(0, 0), (1, 0), (5, 3)] {
        let layout = ComposedLayout::new(inner, (x, y).into(), identity(&shape!((8, 4))));
        for c in 0..layout.size() {
            let expected = (c % 8 + x, c / 8 + y + 1);
            assert_eq!(layout.call(&c.into()), expected.into());
        }
    }
}

#[test]
fn a_swizzle_is_an_inner_transformation() {
    let swizzle = Swizzle::new(3, 4, 3);
    let outer = layout!((8, 64):(64, 1));
    let composed = ComposedLayout::new(swizzle, shape!(0), outer);
    assert_eq!(composed.to_string(), "Sw<3,4,3> o _0 o (_8,_64):(_64,_1)");
    for c in 0..composed.size() {
        let index = outer.at(c);
        // Bits 7 to 9 are xored into bits 4 to 6.
        assert_eq!(composed.at(c), index ^ ((index >> 7 & 7) << 4));
    }
}

/// `torch.randint(0, 256, (16,))`
const OFFSETS: [i32; 16] = [
    183, 36, 118, 245, 7, 91, 64, 64, 0, 255, 17, 142, 206, 33, 128, 75,
];

/// `def inner(c): return offset_tensor[c]`
fn lookup(c: &IntTuple) -> IntTuple {
    i64::from(OFFSETS[c.leaf(0).value() as usize]).into()
}

/// A function from coordinates to coordinates.
type Function = fn(&IntTuple) -> IntTuple;

fn gather_layout() -> ComposedLayout<Named<Function>> {
    let inner: Function = lookup;
    ComposedLayout::new(
        Named::new("inner", inner),
        shape!(0),
        Layout::col_major(&shape!((16))),
    )
}

#[test]
fn a_gather_prints_pairs_of_output_and_source() {
    let layout = gather_layout();
    for i in 0..16 {
        // cute.printf("%d -> %d", i, gather_layout(i))
        let printed = format!("{i} -> {}", layout.call(&i.into()));
        assert_eq!(printed, format!("{i} -> {}", OFFSETS[i as usize]));
    }
}

/// `gather_tensor = cute.make_tensor(data_ptr, gather_layout)`
#[test]
fn a_tensor_of_the_gather_reads_and_writes_through_the_table() {
    let data: [i32; 256] = std::array::from_fn(|i| 1000 + i as i32);
    let gather_tensor = ValueTensor::composed(&data[..], gather_layout());
    // cute.printf(gather_tensor[0])
    assert_eq!(gather_tensor[0], 1183);
    for i in 0..16 {
        assert_eq!(gather_tensor[i], 1000 + OFFSETS[i as usize]);
    }
    // Slices and partitions act on the outer layout.
    let tile = gather_tensor.local_tile(&tile!(<4>), &shape!((2)));
    assert_eq!(tile.iter().collect::<Vec<_>>(), [1000, 1255, 1017, 1142]);

    let mut scattered = [0; 256];
    let mut scatter_tensor = ValueTensor::composed(&mut scattered[..], gather_layout());
    for i in 0..16 {
        scatter_tensor[i] = i as i32 + 1;
    }
    // Two outputs have the source 64. The later one stays.
    assert_eq!([scattered[183], scattered[64], scattered[75]], [1, 8, 16]);
}
