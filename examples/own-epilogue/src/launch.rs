//! The host's side: tensor maps for the operands, and the launch.

use core::ptr::{null_mut, with_exposed_provenance};

use cutlet_device::sm90::KMajor;
use cutlet_device::{Global, GlobalMut};
use cutlet_host::{Buffer, Result, Stream, TensorMapSpec};
use cutlet_kernels::gemm_wgmma::{ColumnBias, Gelu, Problem, Then, TileC, box_a, box_b, box_c};
use cutlet_layout_core::tiles;
use half::bf16;

use crate::{CLUSTER, Cap, PIECE, PTX, SWIZZLE_BYTES, TILE, gemm_bias_gelu_cap};

/// `C = min(gelu(A·B + bias), cap)`: of extents `[m, n, k]`, A by rows, B by columns, C by rows, none
/// with gaps. k is a multiple of 8, as TMA needs rows of A and columns of B to start at multiples of
/// 16 bytes, and so is n, as TMA stores C.
///
/// # Panics
/// If an extent is 0 or beyond 2³⁰, n is no multiple of 8, or a buffer too short, or on another device than the
/// stream.
///
/// # Errors
/// If TMA cannot read A or B, or the launch fails.
pub fn launch(
    stream: &Stream,
    [m, n, k]: [usize; 3],
    a: &Buffer<bf16>,
    b: &Buffer<bf16>,
    bias: &Buffer<bf16>,
    cap: f32,
    c: &mut Buffer<bf16>,
) -> Result<()> {
    const M: usize = TILE[0];
    const N: usize = TILE[1];
    assert!(m > 0 && n > 0 && k > 0 && bias.len() >= n && c.len() >= m * n);
    // Coordinates are i32, also those of tiles that end beyond C.
    assert!(m.max(n).max(k) <= 1 << 30, "an extent is beyond 2^30");
    for operand in [a, b, bias] {
        assert_eq!(operand.view().device(), stream.device());
    }
    assert!(
        n.is_multiple_of(8),
        "TMA stores rows of multiples of 16 bytes"
    );
    let rows = |rows: usize, columns: usize| {
        TensorMapSpec::rows(rows as u64, columns as u64, columns as u64)
    };
    let map_a = rows(m, k).encode(a, box_a::<bf16, KMajor, M>(1))?;
    let map_b = rows(n, k).encode(b, box_b::<bf16, KMajor, N>(CLUSTER))?;
    let map_c = rows(m, n).encode(&*c, box_c::<bf16, KMajor, PIECE, SWIZZLE_BYTES>())?;
    let problem = Problem {
        tma_c: 1,
        ..Problem::new::<bf16>(
            [m, n, k].map(|extent| extent as i32),
            n as i64,
            [M, N].map(|extent| extent as u32),
            [CLUSTER as u32, 1, 1],
        )
    };
    let bias = Global::from_ptr(with_exposed_provenance(bias.view().address() as usize));
    let epilogue = Then {
        // SAFETY: there are n elements, which is even, at the beginning of a buffer.
        first: unsafe { ColumnBias::new(bias, problem.n) },
        second: Then {
            first: Gelu,
            second: Cap {
                most: cap,
                padding: 0,
            },
        },
    };
    let workspace = GlobalMut::<f32>::from_ptr(null_mut());

    // Whole clusters, as many as there is work or room for.
    let cluster = CLUSTER as u32;
    let [rows, columns] = tiles::<TileC<M, N>>([problem.m, problem.n]);
    let work = rows.div_ceil(cluster) * columns;
    let room = stream.device().multiprocessors() / cluster;
    let grid = work.min(room.max(1)) * cluster;

    let function = stream.device().load(&PTX, &gemm_bias_gelu_cap)?;
    // SAFETY: the maps were checked against the buffers, C and the bias above; all are on the stream's device, as the
    // launch checks of C; a buffer that is borrowed mutably overlaps no other.
    unsafe {
        let args = (map_a, map_b, map_c, c, workspace, problem, epilogue);
        stream.launch(&function, grid, args)
    }
}
