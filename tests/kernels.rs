//! Kernels launched by their handles: `saxpy` and `transpose`, which the library does not call, and GEMM kernels whose
//! clusters claim slots or share k-tiles. On a device with few multiprocessors the library would not choose these GEMM
//! kernels.

use std::ptr::with_exposed_provenance_mut;

use cutlet_device::collective::{ClusterShape, SmAffinity};
use cutlet_device::tile::KMajor as K;
use cutlet_device::tma::TensorMap;
use cutlet_device::{GlobalMut, Kernel, instantiate};
use cutlet_host::{Device, Stream, TensorMapSpec};
use cutlet_kernels::gemm::args::Args;
use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile, epilogue_n};
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::instance::Arguments;
use cutlet_kernels::gemm::sm90::instances::bf16_128x256x64_2x1_coop;
use cutlet_kernels::gemm::sm90::{
    ByTma, Config, OneProduct, Sm90, Storage, ToMatrix, box_a, box_b, box_c, gemm,
};
use cutlet_kernels::{PTX, saxpy, transpose};
use cutlet_layout_core::tile_extent;
use half::bf16;

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
            // SAFETY: the buffers are as large as the leading dimensions require.
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

/// Checks C = A·B by `kernel`, of configuration `C`, in a grid of `blocks` blocks.
fn check_product<C: Config<Types = bf16>>(
    stream: &Stream,
    kernel: &'static Kernel<Arguments<bf16, Scale>>,
    [m, n, k]: [usize; 3],
    blocks: u32,
    affinity: SmAffinity,
) {
    let function = stream.device().load(&PTX, kernel).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut digits = |count: usize| -> Vec<bf16> {
        let digit = |_| bf16::from_f32(random.i32(-1..=1) as f32);
        (0..count).map(digit).collect()
    };
    let (a, b) = (digits(m * k), digits(n * k));
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut on_c = stream.filled::<bf16>(m * n, 0xff).unwrap();
    let rows = |rows: usize, columns: usize| {
        TensorMapSpec::rows(rows as u64, columns as u64, columns as u64)
    };
    let cluster = C::Cluster::STATIC.unwrap();
    let map_a = rows(m, k).encode(&on_a, box_a::<C>(cluster)).unwrap();
    let map_b = rows(n, k).encode(&on_b, box_b::<C>(cluster)).unwrap();
    let map_c = rows(m, n).encode(&on_c, box_c::<C>()).unwrap();
    let mut args = Args::new::<C>([m, n, k].map(|extent| extent as i32), n as i64);
    args.scheduler.affinity = affinity;
    args.tma.stores_c = 1;
    let workspace = GlobalMut::<f32>::from_ptr(std::ptr::null_mut());
    // SAFETY: the maps describe the matrices. If there are slots, the caller has one for each cluster.
    unsafe {
        let args = (map_a, map_b, map_c, &mut on_c, workspace, args, Scale::ONE);
        stream.launch(&function, blocks, args).unwrap();
    }
    let found = stream.download(&on_c).unwrap();
    for i in 0..m {
        for j in 0..n {
            let products = (0..k).map(|l| a[i * k + l].to_f32() * b[j * k + l].to_f32());
            let expected = products.sum::<f32>();
            assert_eq!(
                found[i * n + j].to_f32(),
                expected,
                "C[{i}, {j}] of {m}×{n}×{k} with {affinity:?}"
            );
        }
    }
}

/// Three clusters of two blocks have five pairs of tiles: first without slots, then with slots that they claim. The
/// first group of multiprocessors has too few slots.
#[test]
fn tiles_are_complete_in_any_slots() {
    let stream = Device::auto().stream().unwrap();
    let groups: Vec<u32> = (0..256).map(|i| i / 2 % 2).collect();
    let words = SmAffinity::plan(&groups, &[vec![2], vec![1, 0]]).unwrap();
    let words = stream.upload(&words).unwrap();
    let words = GlobalMut::from_ptr(with_exposed_provenance_mut(words.view().address() as usize));
    for affinity in [
        SmAffinity::NONE,
        SmAffinity::at(words),
        SmAffinity::at(words),
    ] {
        use bf16_128x256x64_2x1_coop::{Kernel, bf16_128x256x64_2x1_coop};
        let kernel = &bf16_128x256x64_2x1_coop;
        check_product::<Kernel>(&stream, kernel, [240, 1200, 200], 6, affinity);
    }
}

/// A kernel whose blocks share a tile's k-tiles by twos. The library has none, so that it has no PTX.
type Shared = Sm90<
    bf16,
    K,
    K,
    K,
    Tile<128, 128>,
    Stages<5>,
    Cluster<1, 1, 2>,
    Cooperative<2>,
    EpilogueTile<{ epilogue_n::<bf16>(128) }>,
>;
instantiate! {
    #[kernel(threads = Shared::THREADS, min_blocks = 1, cluster = <Cluster<1, 1, 2>>::LAUNCH_BOUND, arch = "sm_90a")]
    pub unsafe fn two_blocks_a_tile(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        c: GlobalMut<bf16>,
        workspace: GlobalMut<f32>,
        args: Args,
        epilogue: Scale,
        #[shared] storage: Storage<Shared>,
    ) = gemm::<Shared, OneProduct, ByTma, ToMatrix<Scale>>;
}

/// Two blocks of a cluster share a tile's k-tiles: an even number, an odd number, and one, of which one block has none.
#[test]
fn tiles_are_complete_if_two_blocks_share_their_k_tiles() {
    let stream = Device::cpu().stream().unwrap();
    for k in [256, 200, 136, 64, 8] {
        let kernel = &two_blocks_a_tile;
        check_product::<Shared>(&stream, kernel, [150, 200, k], 4, SmAffinity::NONE);
    }
}
