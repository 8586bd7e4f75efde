//! Rotary position embeddings against f64: every type, both pairings, alignments, and positions outside of the table.

use cutlet::{
    Buffer, Device, Error, Pairing, Rope, RopeElement, RopeTable, Tensor, TensorMut, layout,
};
use half::{bf16, f16};

use crate::convert::Convert;
use crate::random;

const POSITIONS: usize = 300;

/// The rows of `x`, rotated.
fn exact(x: &[f64], position: f64, pairing: Pairing, base: f64, direction: f64) -> Vec<f64> {
    let width = x.len();
    let mut y = x.to_vec();
    for pair in 0..width / 2 {
        let angle = direction * position * base.powf(-2.0 * pair as f64 / width as f64);
        let [first, second] = match pairing {
            Pairing::Halves => [pair, pair + width / 2],
            Pairing::Neighbours => [2 * pair, 2 * pair + 1],
        };
        y[first] = x[first] * angle.cos() - x[second] * angle.sin();
        y[second] = x[second] * angle.cos() + x[first] * angle.sin();
    }
    y
}

/// Rotates (tokens, heads, width), whose tokens are `padding` elements apart.
fn check<T: RopeElement + Convert>(
    [tokens, heads, width]: [usize; 3],
    padding: usize,
    tolerance: f64,
) {
    let stream = Device::auto().stream().unwrap();
    let ld = heads * width + padding;
    let mut random = random::generator(width as u64);
    let x: Vec<T> = (0..tokens * ld)
        .map(|_| T::of(4.0 * random.f64() - 2.0))
        .collect();
    let positions: Vec<i32> = (0..tokens)
        .map(|_| random.i32(0..POSITIONS as i32))
        .collect();
    let on_positions = stream.upload(&positions).unwrap();
    let on_positions = Tensor::new(&on_positions, layout!((dyn tokens, dyn heads):(1, 0))).unwrap();
    let layout = layout!((dyn tokens, dyn heads, dyn width):(dyn ld, dyn width, 1));
    let table = RopeTable::new(&stream, POSITIONS, width, 10_000.0).unwrap();
    for (pairing, in_place) in [
        (Pairing::Halves, false),
        (Pairing::Halves, true),
        (Pairing::Neighbours, false),
        (Pairing::Neighbours, true),
    ] {
        let rope = Rope::new(&table).pairing(pairing);
        let mut on_x = stream.upload(&x).unwrap();
        let (found, direction) = match in_place {
            true => {
                let x = TensorMut::new(&mut on_x, layout).unwrap();
                rope.backwards()
                    .run_in_place(&stream, on_positions, x)
                    .unwrap();
                (stream.download(&on_x).unwrap(), -1.0)
            }
            false => {
                let mut y = stream.upload(&x).unwrap();
                let from = Tensor::new(&on_x, layout).unwrap();
                rope.run(
                    &stream,
                    on_positions,
                    from,
                    TensorMut::new(&mut y, layout).unwrap(),
                )
                .unwrap();
                (stream.download(&y).unwrap(), 1.0)
            }
        };
        for (token, position) in positions.iter().enumerate() {
            let row = |head: usize| token * ld + head * width..token * ld + (head + 1) * width;
            for head in 0..heads {
                let wide: Vec<f64> = x[row(head)].iter().map(|it| it.number()).collect();
                let exact = exact(&wide, f64::from(*position), pairing, 10_000.0, direction);
                for (found, exact) in found[row(head)].iter().zip(exact) {
                    let found = found.number();
                    assert!(
                        (found - exact).abs() <= tolerance * exact.abs() + 1e-6,
                        "{pairing:?}, token {token}, head {head}: {found}, not {exact}"
                    );
                }
            }
            let behind = row(heads - 1).end..(token + 1) * ld;
            assert!(
                found[behind.clone()]
                    .iter()
                    .zip(&x[behind])
                    .all(|(a, b)| a.number() == b.number()),
                "{pairing:?}: padding was written"
            );
        }
    }
}

fn check_all<T: RopeElement + Convert>(tolerance: f64) {
    for extents in [
        [1, 1, 2],
        [3, 2, 64],
        [33, 1, 128],
        [2, 3, 6],
        [2, 2, 160],
        [5, 2, 24],
        [1, 9, 256],
    ] {
        for padding in [0, 1, 16] {
            check::<T>(extents, padding, tolerance);
        }
    }
}

#[test]
fn rotations_are_exact_to_the_type() {
    check_all::<f32>(1e-6);
    check_all::<bf16>(2.0f64.powi(-8));
    check_all::<f16>(2.0f64.powi(-11));
}

#[test]
fn positions_outside_of_the_table_make_their_rows_nan() {
    let stream = Device::auto().stream().unwrap();
    let table = RopeTable::new(&stream, 4, 2, 100.0).unwrap();
    let positions = stream.upload(&[0, 4, -1, 3]).unwrap();
    let positions = Tensor::new(&positions, [4]).unwrap();
    let mut x = stream.upload(&[1.0f32; 8]).unwrap();
    let rows = TensorMut::new(&mut x, [4, 2]).unwrap();
    Rope::new(&table)
        .run_in_place(&stream, positions, rows)
        .unwrap();
    let found = stream.download(&x).unwrap();
    let nan: Vec<bool> = found.iter().map(|it| it.is_nan()).collect();
    assert_eq!(nan, [false, false, true, true, true, true, false, false]);
}

/// A table that does not begin at a multiple of 16 bytes is read an element at a time.
#[test]
fn angles_of_any_alignment_are_those_of_a_table() {
    let stream = Device::auto().stream().unwrap();
    let (positions, pairs) = (5, 8);
    let of_pair =
        |at: usize| (at / pairs) as f64 * 100f64.powf(-((at % pairs) as f64) / pairs as f64);
    let angles = |function: fn(f64) -> f64| -> Vec<f32> {
        (0..positions * pairs)
            .map(|at| function(of_pair(at)) as f32)
            .collect()
    };
    let rows: Vec<f32> = (0..positions * 2 * pairs).map(|it| it as f32).collect();
    let on_positions = stream.upload(&[4, 3, 2, 1, 0]).unwrap();
    let rotated = |rope: Rope<'_>| {
        let mut x = stream.upload(&rows).unwrap();
        let to_rotate = TensorMut::new(&mut x, [positions, 2 * pairs]).unwrap();
        let on_positions = Tensor::new(&on_positions, [positions]).unwrap();
        rope.run_in_place(&stream, on_positions, to_rotate).unwrap();
        stream.download(&x).unwrap()
    };
    let table = RopeTable::new(&stream, positions, 2 * pairs, 100.0).unwrap();
    let expected = rotated(Rope::new(&table));
    for before in [0, 1] {
        let [cosines, sines] = [f64::cos, f64::sin].map(|function| {
            let numbers = [vec![0.0; before], angles(function)].concat();
            stream.upload(&numbers).unwrap()
        });
        let [of_cosines, of_sines] = [&cosines, &sines].map(|buffer: &Buffer<f32>| {
            Tensor::new(buffer.slice(before..).unwrap(), [positions, pairs]).unwrap()
        });
        let rope = Rope::of_angles(of_cosines, of_sines).unwrap();
        assert_eq!(rotated(rope), expected);
        let fewer = Tensor::new(&sines, [positions - 1, pairs]).unwrap();
        let error = Rope::of_angles(of_cosines, fewer).unwrap_err().to_string();
        assert!(
            error.contains("the cosines are 5×8 and the sines 4×8"),
            "{error}"
        );
    }
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let table = RopeTable::new(&stream, 4, 8, 100.0).unwrap();
    let positions = stream.upload(&[0; 4]).unwrap();
    let mut x = stream.zeroed::<f32>(64).unwrap();
    let mut error = |positions: Tensor<'_, i32>, shape: [usize; 2]| {
        let x = TensorMut::new(&mut x, shape).unwrap();
        match Rope::new(&table).run_in_place(&stream, positions, x) {
            Err(error @ Error::Extents { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let found = error(Tensor::new(&positions, [4]).unwrap(), [4, 6]);
    assert!(
        found.contains("a row has 6 elements, and the table has angles of 4 pairs"),
        "{found}"
    );
    let found = error(Tensor::new(&positions, [4]).unwrap(), [5, 8]);
    assert!(
        found.contains(
            "the layout of the positions is (4):(1), and the rows are those of (5,8):(8,1)"
        ),
        "{found}"
    );
    assert!(RopeTable::new(&stream, 4, 7, 100.0).is_err());
}

/// A position of a token is that of all its heads, with and without a mode for them.
#[test]
fn positions_of_the_first_modes_are_repeated() {
    let stream = Device::auto().stream().unwrap();
    let table = RopeTable::new(&stream, 9, 4, 100.0).unwrap();
    let rope = Rope::new(&table);
    let x: Vec<f32> = (0..2 * 3 * 5 * 4).map(|nth| nth as f32).collect();
    let positions = stream.upload(&[3, 1, 4, 1, 5, 8]).unwrap();
    let rotated = |positions: Tensor<'_, i32>| {
        let mut x = stream.upload(&x).unwrap();
        let heads = TensorMut::new(&mut x, [2, 3, 5, 4]).unwrap();
        rope.run_in_place(&stream, positions, heads).unwrap();
        stream.download(&x).unwrap()
    };
    let of_all = Tensor::new(&positions, layout!((2, 3, 5):(3, 1, 0))).unwrap();
    let expected = rotated(of_all);
    assert_ne!(expected, x);
    assert_eq!(rotated(Tensor::new(&positions, [2, 3]).unwrap()), expected);
    let of_sequences = Tensor::new(&positions, layout!((2):(3))).unwrap();
    let of_all = Tensor::new(&positions, layout!((2, 3, 5):(3, 0, 0))).unwrap();
    assert_eq!(rotated(of_sequences), rotated(of_all));

    let mut y = stream.upload(&x).unwrap();
    let heads = TensorMut::new(&mut y, [2, 3, 5, 4]).unwrap();
    let refused = rope.run_in_place(&stream, Tensor::new(&positions, [3, 2]).unwrap(), heads);
    let said = refused.unwrap_err().to_string();
    assert!(
        said.contains("the layout of the positions is (3,2):(2,1)"),
        "{said}"
    );
}
