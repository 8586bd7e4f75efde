//! The kernels that have no operation of their own, launched by their handles: `saxpy` and
//! `transpose`, on whatever device there is.

use cutlet_host::Device;
use cutlet_kernels::{PTX, saxpy, transpose};
use cutlet_layout_core::tile_extent;

const AWKWARD: [usize; 7] = [1, 7, 127, 129, 1000, 1024, 1025];

#[test]
fn saxpy_is_rounded_once() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    let function = device.load(&PTX, &saxpy::saxpy).unwrap();
    let [_, tile] = tile_extent::<saxpy::Tile>();
    for n in AWKWARD {
        let mut random = fastrand::Rng::with_seed(n as u64);
        let x: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let y: Vec<f32> = (0..n).map(|_| random.f32() - 0.5).collect();
        let (on_x, mut on_y) = (stream.upload(&x).unwrap(), stream.upload(&y).unwrap());
        let blocks = n.div_ceil(tile as usize) as u32;
        // SAFETY: both buffers have n elements.
        unsafe {
            stream
                .launch(&function, blocks, (n as i32, -1.25f32, &on_x, &mut on_y))
                .unwrap();
        }
        let found = stream.download(&on_y).unwrap();
        for i in 0..n {
            assert_eq!(
                found[i],
                (-1.25f32).mul_add(x[i], y[i]),
                "element {i} of {n}"
            );
        }
    }
}

#[test]
fn transpose_moves_every_element() {
    let device = Device::auto();
    let stream = device.stream().unwrap();
    let function = device.load(&PTX, &transpose::transpose_f32).unwrap();
    let [tile_rows, tile_columns] = tile_extent::<transpose::Tile>();
    for rows in AWKWARD {
        for columns in [1, 7, 64, 129] {
            let (ld_source, ld_destination) = (columns + 3, rows + 5);
            let source: Vec<f32> = (0..rows * ld_source).map(|i| i as f32).collect();
            let on_source = stream.upload(&source).unwrap();
            let mut on_destination = stream
                .filled::<f32>(columns * ld_destination, 0xff)
                .unwrap();
            let grid = (
                columns.div_ceil(tile_columns as usize) as u32,
                rows.div_ceil(tile_rows as usize) as u32,
            );
            let args = (
                rows as i32,
                columns as i32,
                &on_source,
                ld_source as i64,
                &mut on_destination,
                ld_destination as i64,
            );
            // SAFETY: the buffers are as large as the leading dimensions say.
            unsafe { stream.launch(&function, grid, args).unwrap() };
            let found = stream.download(&on_destination).unwrap();
            for c in 0..columns {
                let row = &found[c * ld_destination..][..ld_destination];
                for r in 0..rows {
                    assert_eq!(
                        row[r],
                        source[r * ld_source + c],
                        "({r}, {c}) of {rows}×{columns}"
                    );
                }
                assert!(
                    row[rows..].iter().all(|gap| gap.is_nan()),
                    "padding of row {c}"
                );
            }
        }
    }
}
