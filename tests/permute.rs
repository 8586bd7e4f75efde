//! `permute` against a plain loop on the host, on a GPU if there is one: ranks, widths, orders of modes, padding, and
//! layouts that are refused.

use cutlet::{Device, DeviceData, Tensor, TensorMut, permute};
use cutlet_layout_core::{Layout, layout};

/// A packed layout of this shape, whose modes are contiguous in this order, innermost first. Each has some elements of
/// padding behind it.
fn ordered(shape: &[i64], order: &[usize], padding: i64) -> Layout {
    let mut strides = vec![0; shape.len()];
    let mut next = 1;
    for &mode in order {
        strides[mode] = next;
        next = next * shape[mode] + padding;
    }
    let tuple = |ints: &[i64]| {
        let text: Vec<String> = ints.iter().map(i64::to_string).collect();
        format!("({})", text.join(","))
    };
    format!("{}:{}", tuple(shape), tuple(&strides))
        .parse()
        .unwrap()
}

fn check<T: DeviceData + PartialEq>(
    source_layout: Layout,
    destination_layout: Layout,
    to_element: impl Fn(u64) -> T,
) {
    let mut random = fastrand::Rng::with_seed(source_layout.size() as u64);
    let mut elements = |layout: Layout| -> Vec<T> {
        (0..layout.cosize())
            .map(|_| to_element(random.u64(..)))
            .collect()
    };
    let (source, mut expected) = (elements(source_layout), elements(destination_layout));
    let stream = Device::auto().stream().unwrap();
    let on_source = stream.upload(&source).unwrap();
    let mut destination = stream.upload(&expected).unwrap();
    permute(
        &stream,
        Tensor::new(&on_source, source_layout).unwrap(),
        TensorMut::new(&mut destination, destination_layout).unwrap(),
    )
    .unwrap();
    for c in 0..source_layout.size() {
        expected[destination_layout.at(c) as usize] = source[source_layout.at(c) as usize];
    }
    let found = stream.download(&destination).unwrap();
    assert!(found == expected, "{source_layout} to {destination_layout}");
}

/// Every order of up to four modes.
fn orders(rank: usize) -> Vec<Vec<usize>> {
    match rank {
        0 => vec![vec![]],
        _ => orders(rank - 1)
            .into_iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, rank - 1);
                    longer
                })
            })
            .collect(),
    }
}

#[test]
fn every_order_of_modes() {
    for shape in [&[70][..], &[65, 40], &[5, 70, 3], &[3, 8, 2, 17]] {
        let source = ordered(shape, &(0..shape.len()).collect::<Vec<_>>(), 0);
        for order in orders(shape.len()) {
            check(source, ordered(shape, &order, 0), |x| x as u32);
            check(ordered(shape, &order, 3), ordered(shape, &order, 1), |x| {
                x as u16
            });
        }
    }
}

#[test]
fn every_width() {
    let shapes = [
        (layout!((70, 36):(36, 1)), layout!((70, 36):(1, 70))),
        (
            layout!((16, 3, 40):(1, 640, 16)),
            layout!((16, 3, 40):(1, 16, 48)),
        ),
        (layout!((300, 4):(1, 320)), layout!((300, 4):(1, 304))),
    ];
    for (source, destination) in shapes {
        check(source, destination, |x| x as u8);
        check(source, destination, |x| x as u16);
        check(source, destination, |x| x as u32);
        check(source, destination, |x| x);
        check(source, destination, |x| [x, !x]);
        check(source, destination, |x| [x as u32, 1, 2]);
        check(source, destination, |x| [x as u8; 5]);
    }
}

#[test]
fn a_source_may_repeat_its_elements() {
    check(layout!((9, 33):(0, 1)), layout!((9, 33):(33, 1)), |x| {
        x as u32
    });
    check(layout!((9, 33):(1, 0)), layout!((9, 33):(33, 1)), |x| {
        x as u32
    });
    check(layout!((9, 33):(0, 0)), layout!((9, 33):(33, 1)), |x| {
        x as u32
    });
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let source = stream.zeroed::<u32>(12).unwrap();
    let mut destination = stream.zeroed::<u32>(12).unwrap();
    let rows = layout!((3, 4):(4, 1));
    let mut said = |from: &Layout, to: &Layout| {
        let copied = Tensor::new(&source, from)
            .and_then(|source| permute(&stream, source, TensorMut::new(&mut destination, to)?));
        copied.unwrap_err().to_string()
    };
    for (from, to, why) in [
        (rows, layout!((4, 3):(3, 1)), "different shapes"),
        (
            rows,
            layout!((3, 4):(5, 1)),
            "it reaches 14 elements and the memory has 12",
        ),
        (
            layout!((3, 4):(5, 1)),
            rows,
            "a tensor of layout (_3,_4):(_5,_1) was asked for",
        ),
        (
            rows,
            layout!((3, 4):(2, 1)),
            "leads to elements that it has already",
        ),
        (
            rows,
            layout!((3, 4):(4, 0)),
            "leads to elements that it has already",
        ),
        (layout!((3, 4):({-4}, 1)), rows, "negative"),
    ] {
        let said = said(&from, &to);
        assert!(said.contains(why), "{said}");
    }
}
