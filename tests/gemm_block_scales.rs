//! A kernel of 8-bit floats with block scales, launched by its handle on the CPU: the library launches none yet, so that
//! it has no PTX.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::tile::KMajor as K;
use cutlet_device::tma::TensorMap;
use cutlet_device::{Global, GlobalMut, instantiate};
use cutlet_host::{Device, TensorMapSpec};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::args::Args;
use cutlet_kernels::gemm::config::{
    Cluster, ClusterShape, Cooperative, EpilogueTile, PingPong, Stages, Tile,
};
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::{
    BlockScaled, Config, ScalesOfB, Sm90, Storage, ToMatrix, box_a, box_b, box_c, box_scales,
    gemm_with_block_scales,
};

/// C is of f32.
type Types = BlockScaled<F8E4M3, f32>;
type Shared = Sm90<
    Types,
    K,
    K,
    K,
    Tile<128, 128, 128>,
    Stages<3>,
    Cluster<2, 1>,
    Cooperative<2>,
    EpilogueTile<32>,
>;
type InTurns =
    Sm90<Types, K, K, K, Tile<64, 64, 128>, Stages<4>, Cluster<1, 1>, PingPong, EpilogueTile<32>>;

instantiate! {
    #[kernel(threads = Shared::THREADS, min_blocks = 1, cluster = <Cluster<2, 1>>::LAUNCH_BOUND, arch = "sm_90a")]
    pub unsafe fn shared_rows(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        #[grid_constant] map_scales_a: &TensorMap,
        scales_b: ScalesOfB,
        c: GlobalMut<f32>,
        workspace: GlobalMut<f32>,
        args: Args,
        epilogue: Scale,
        #[shared] storage: Storage<Shared>,
    ) = gemm_with_block_scales::<Shared, ToMatrix<Scale>>;
}
instantiate! {
    #[kernel(threads = InTurns::THREADS, min_blocks = 1, cluster = <Cluster<1, 1>>::LAUNCH_BOUND, arch = "sm_90a")]
    pub unsafe fn in_turns(
        #[grid_constant] map_a: &TensorMap,
        #[grid_constant] map_b: &TensorMap,
        #[grid_constant] map_c: &TensorMap,
        #[grid_constant] map_scales_a: &TensorMap,
        scales_b: ScalesOfB,
        c: GlobalMut<f32>,
        workspace: GlobalMut<f32>,
        args: Args,
        epilogue: Scale,
        #[shared] storage: Storage<InTurns>,
    ) = gemm_with_block_scales::<InTurns, ToMatrix<Scale>>;
}

/// Checks C = A·B with scales, by the kernel `$kernel` of configuration `$config`, against sums in f64.
macro_rules! check {
    ($kernel:ident: $config:ty, [$m:expr, $n:expr, $k:expr], blocks $blocks:expr) => {{
        let (m, n, k): (usize, usize, usize) = ($m, $n, $k);
        let stream = Device::cpu().stream().unwrap();
        let function = stream.device().load(&PTX, &$kernel).unwrap();
        let mut random = fastrand::Rng::with_seed((m + n + k) as u64);
        let elements = |random: &mut fastrand::Rng, count: usize| -> Vec<F8E4M3> {
            let element = |_| F8E4M3::from_f32(random.f32() * 4.0 - 2.0);
            (0..count).map(element).collect()
        };
        let (a, b) = (elements(&mut random, m * k), elements(&mut random, n * k));
        let scales = |random: &mut fastrand::Rng, count: usize| -> Vec<f32> {
            (0..count).map(|_| random.f32() + 0.5).collect()
        };
        // Rows of A's scales are along m, and begin at multiples of 16 bytes.
        let (k_tiles, ld) = (k.div_ceil(128), m.next_multiple_of(4));
        let scales_a = scales(&mut random, k_tiles * ld);
        let scales_b = scales(&mut random, n.div_ceil(128) * k_tiles);

        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let on_scales_a = stream.upload(&scales_a).unwrap();
        let on_scales_b = stream.upload(&scales_b).unwrap();
        let mut on_c = stream.filled::<f32>(m * n, 0xff).unwrap();
        let rows = |rows: usize, columns: usize, ld: usize| {
            TensorMapSpec::rows(rows as u64, columns as u64, ld as u64)
        };
        let cluster = <$config as Config>::Cluster::STATIC.unwrap();
        let map_a = rows(m, k, k)
            .encode(&on_a, box_a::<$config>(cluster))
            .unwrap();
        let map_b = rows(n, k, k)
            .encode(&on_b, box_b::<$config>(cluster))
            .unwrap();
        let map_c = rows(m, n, n).encode(&on_c, box_c::<$config>()).unwrap();
        let map_scales = rows(k_tiles, m, ld).encode(&on_scales_a, box_scales::<$config>());
        let first = std::ptr::with_exposed_provenance(on_scales_b.view().address() as usize);
        let of_b = ScalesOfB {
            first: Global::from_ptr(first),
            ld: k_tiles as i64,
        };
        let mut args = Args::new::<$config>([m, n, k].map(|extent| extent as i32), n as i64);
        args.tma.stores_c = 1;
        let workspace = GlobalMut::<f32>::from_ptr(std::ptr::null_mut());
        let all = (
            map_a,
            map_b,
            map_c,
            map_scales.unwrap(),
            of_b,
            &mut on_c,
            workspace,
            args,
            Scale::ONE,
        );
        // SAFETY: the maps describe the matrices and A's scales. B has a scale for each block.
        unsafe { stream.launch(&function, $blocks, all).unwrap() };
        let found = stream.download(&on_c).unwrap();
        for i in 0..m {
            for j in 0..n {
                let products = (0..k).map(|l| {
                    let (a, b) = (a[i * k + l].to_f32(), b[j * k + l].to_f32());
                    let scale_a = scales_a[l / 128 * ld + i];
                    let scale_b = scales_b[j / 128 * k_tiles + l / 128];
                    f64::from(a) * f64::from(b) * f64::from(scale_a) * f64::from(scale_b)
                });
                let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), product| {
                    (sum + product, squares + product * product)
                });
                let error = (f64::from(found[i * n + j]) - sum).abs();
                // What the instruction drops of a k-tile's sum, and roundings that grow as √k.
                let most = 1e-6 * f64::sqrt(squares * k as f64) + 2e-4 * f64::sqrt(squares);
                assert!(
                    error <= most,
                    "C[{i}, {j}] of {m}×{n}×{k}: {error} > {most}"
                );
            }
        }
    }};
}

/// Two blocks share B. Edges, several tiles of a block, and k that is no multiple of 128.
#[test]
fn a_cluster_scales_its_products() {
    for [m, n, k] in [[128, 128, 128], [200, 264, 400], [300, 136, 528]] {
        check!(shared_rows: Shared, [m, n, k], blocks 2);
    }
}

/// Each consumer has every other tile, whose k-tiles go backwards.
#[test]
fn consumers_that_take_turns_scale_their_products() {
    for [m, n, k] in [[64, 64, 128], [130, 200, 656]] {
        check!(in_turns: InTurns, [m, n, k], blocks 2);
    }
}
