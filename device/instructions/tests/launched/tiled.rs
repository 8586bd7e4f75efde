//! Tiled operations by the instructions of Hopper, compared with plain loops of integers.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::tile::{KMajorTile, MnMajorTile};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{GlobalMut, Kernel};
use cutlet_host::{Result, Stream, TensorMapElement, TensorMapSpec};
use cutlet_instructions::PTX;
use cutlet_instructions::launched::tiled::{
    StoredKeys, StoredQueries, StoredValues, registers_of_bf16, registers_of_columns,
    registers_of_e4m3, registers_of_tf32, stored_by_a_warpgroup, stored_by_four, stored_by_one,
    stored_by_two, stored_transposed, two_products,
};
use fastrand::Rng;
use half::{bf16, f16};

use crate::devices;

/// A random matrix of -1, 0 and 1.
fn matrix(rows: usize, columns: usize, random: &mut Rng) -> Vec<i32> {
    (0..rows * columns).map(|_| random.i32(-1..=1)).collect()
}

/// `a·bᵀ` of row-major matrices with `k` columns.
fn product(a: &[i32], b: &[i32], k: usize) -> Vec<i32> {
    let dot = |a: &[i32], b: &[i32]| a.iter().zip(b).map(|(a, b)| a * b).sum();
    (a.chunks(k)
        .flat_map(|a| b.chunks(k).map(move |b| dot(a, b))))
    .collect()
}

fn transposed(matrix: &[i32], columns: usize) -> Vec<i32> {
    let rows = matrix.len() / columns;
    (0..matrix.len())
        .map(|i| matrix[i % rows * columns + i / rows])
        .collect()
}

/// Fewer queries and keys than the tiles have.
#[test]
fn a_product_of_a_product_stays_in_registers() -> Result<()> {
    let (queries, keys, features) = (101, 51, 64);
    for device in devices() {
        let stream = device.stream()?;
        let function = device.load(&PTX, &two_products)?;
        let mut random = Rng::with_seed(1);
        let q = matrix(queries, features, &mut random);
        let k = matrix(keys, features, &mut random);
        let v = matrix(keys, features, &mut random);
        let upload = |matrix: &[i32]| {
            let elements: Vec<bf16> = matrix.iter().map(|x| bf16::from_f32(*x as f32)).collect();
            stream.upload(&elements)
        };
        let (on_q, on_k, on_v) = (upload(&q)?, upload(&k)?, upload(&v)?);
        let on_o = stream.filled::<bf16>(queries * features, 0xff)?;
        let rows = |rows: usize| TensorMapSpec::rows(rows as u64, features as u64, features as u64);
        let map_q = rows(queries).encode(&on_q, StoredQueries::tile_box(1))?;
        let map_k = rows(keys).encode(&on_k, StoredKeys::tile_box(1))?;
        let map_v = rows(keys).encode(&on_v, StoredValues::tile_box(1))?;
        let map_o = rows(queries).encode(&on_o, StoredQueries::tile_box(2))?;
        // SAFETY: the maps are of the kernel's tiles, and the output is as large as Q.
        unsafe { stream.launch(&function, 1, (map_q, map_k, map_v, map_o))? };
        let found = stream.download(&on_o)?;
        let expected = product(&product(&q, &k, features), &transposed(&v, features), keys);
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(
                *found,
                bf16::from_f32(expected as f32),
                "({}, {})",
                i / 64,
                i % 64
            );
        }
    }
    Ok(())
}

/// A kernel that multiplies the matrices of two maps.
type Product = Kernel<(TensorMap, TensorMap, GlobalMut<f32>)>;

/// Multiplies 128×k by n×k. `is_k_major` says whether A is stored by rows.
fn check_registers<T: TensorMapElement>(
    kernel: &Product,
    of: fn(f32) -> T,
    boxes: [TmaBox; 2],
    is_k_major: bool,
    [n, k]: [usize; 2],
) -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let function = device.load(&PTX, kernel)?;
        let mut random = Rng::with_seed(n as u64);
        let (a, b) = (matrix(128, k, &mut random), matrix(n, k, &mut random));
        let upload = |stream: &Stream, matrix: &[i32]| {
            let elements: Vec<T> = matrix.iter().map(|x| of(*x as f32)).collect();
            stream.upload(&elements)
        };
        let (stored, columns) = match is_k_major {
            true => (a.clone(), k),
            false => (transposed(&a, k), 128),
        };
        let (on_a, on_b) = (upload(&stream, &stored)?, upload(&stream, &b)?);
        let mut on_c = stream.filled::<f32>(128 * n, 0xff)?;
        let rows = |columns: usize, count: usize| {
            TensorMapSpec::rows((count / columns) as u64, columns as u64, columns as u64)
        };
        let map_a = rows(columns, a.len()).encode(&on_a, boxes[0])?;
        let map_b = rows(k, b.len()).encode(&on_b, boxes[1])?;
        // SAFETY: the maps are of the kernel's tiles, and C has its elements.
        unsafe { stream.launch(&function, 1, (map_a, map_b, &mut on_c))? };
        let expected: Vec<f32> = product(&a, &b, k).iter().map(|x| *x as f32).collect();
        assert_eq!(stream.download(&on_c)?, expected);
    }
    Ok(())
}

#[test]
fn operand_a_is_loaded_to_registers() -> Result<()> {
    let boxes = [
        KMajorTile::<bf16, 128, 64>::tile_box(1),
        KMajorTile::<bf16, 96, 64>::tile_box(1),
    ];
    check_registers(&registers_of_bf16, bf16::from_f32, boxes, true, [96, 64])?;
    let boxes = [
        MnMajorTile::<f16, 128, 32>::tile_box(1),
        KMajorTile::<f16, 32, 32, 64>::tile_box(1),
    ];
    check_registers(&registers_of_columns, f16::from_f32, boxes, false, [32, 32])?;
    let boxes = [
        KMajorTile::<F8E4M3, 128, 128>::tile_box(1),
        KMajorTile::<F8E4M3, 64, 128>::tile_box(1),
    ];
    let of = |value: f32| {
        let all = (0..=255).map(F8E4M3::from_bits);
        all.into_iter().find(|it| it.to_f32() == value).unwrap()
    };
    check_registers(&registers_of_e4m3, of, boxes, true, [64, 128])?;
    let boxes = [
        KMajorTile::<f32, 128, 32>::tile_box(1),
        KMajorTile::<f32, 8, 32>::tile_box(1),
    ];
    check_registers(&registers_of_tf32, |value| value, boxes, true, [8, 32])
}

/// A kernel that stores a number for each place of a tile.
type Stored = Kernel<(GlobalMut<bf16>,)>;

#[test]
fn accumulators_are_stored_where_loads_find_them() -> Result<()> {
    let kernels: [(&Stored, [usize; 2]); 5] = [
        (&stored_by_four, [64, 64]),
        (&stored_by_two, [32, 16]),
        (&stored_by_one, [16, 8]),
        (&stored_transposed, [64, 64]),
        (&stored_by_a_warpgroup, [64, 128]),
    ];
    for device in devices() {
        let stream = device.stream()?;
        for (kernel, [rows, columns]) in kernels {
            let function = device.load(&PTX, kernel)?;
            let mut on_c = stream.filled::<bf16>(rows * columns, 0xff)?;
            // SAFETY: C has the elements of the tile.
            unsafe { stream.launch(&function, 1, (&mut on_c,))? };
            for (i, found) in stream.download(&on_c)?.into_iter().enumerate() {
                let (row, column) = (i / columns, i % columns);
                let expected = bf16::from_f32((row * 31 + column * 7) as f32);
                assert_eq!(found, expected, "({row}, {column}) of {rows}×{columns}");
            }
        }
    }
    Ok(())
}
