//! Causal attention of one head: `softmax(Q·Kᵀ · scale)·V`, where a query sees no later key.

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::sm80::Mma16816;
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, OperandTile, SwizzleSpan};
use cutlet_device::tiled::{
    CpAsync, LdMatrix, LdMatrixTransposed, accumulators_as_a, copy, gemm, load_a, load_b,
};
use cutlet_device::{
    Float, Global, GlobalMut, LogicalWarp, block_idx, exp2_approx, kernel, sync_threads, thread_idx,
};
use cutlet_layout_core::{
    ColMajor, Fragment, L, OperandC, PartitionRows, PartitionValues, RowMajor, Steps, Tensor,
    TiledCopy, TiledMma, each,
};
use half::bf16;

/// Four warps, with 16 queries each.
type Mma = TiledMma<Mma16816<bf16>, L!((4, 1):(1, 0))>;
/// Eight neighbours of a row a thread, and eight of a column.
type CopyRows = TiledCopy<CpAsync<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
type CopyColumns = TiledCopy<CpAsync<8>, L!((8, 16):(1, 8)), L!((8, 1):(1, 0))>;
/// 64 queries or keys by 64 features, 64 queries by 64 keys, and so on.
pub type Tile = L!((64, 64):(1@0, 1@1));
/// A thread's scores of a tile, and a number for each of their rows.
type Scores = Fragment<f32, PartitionValues<Mma, OperandC, Tile>>;
type Rows = Fragment<f32, PartitionRows<Mma, Tile>>;
/// Keys are rows, whose features lie side by side. Of the values, features are rows.
type Queries = OperandTile<bf16, KMajor, 64, 64>;
type Keys =
    TileRing<bf16, OperandLayout<bf16, KMajor, 64, 64, 128>, SwizzleSpan<bf16, 128>, Stages<2>>;
type Values =
    TileRing<bf16, OperandLayout<bf16, MnMajor, 64, 64, 128>, SwizzleSpan<bf16, 128>, Stages<2>>;

/// The grid has a block for each 64 of the `tokens`, of 64 features each. `scale` is that of the scores, times log₂ e.
///
/// # Safety
/// Each matrix has `tokens` × 64 elements, row by row, and begins at a multiple of 16 bytes.
#[kernel(threads = 128)]
pub unsafe fn attention_bf16(
    tokens: i32,
    scale: f32,
    q: Global<bf16>,
    k: Global<bf16>,
    v: Global<bf16>,
    o: GlobalMut<bf16>,
    #[shared] (queries, keys, values): (Queries, Keys, Values),
) {
    // SAFETY: the launcher promises the matrices. Barriers order the reads and writes of tiles.
    let (q, k, v, o, queries) = unsafe {
        (
            Tensor::new(q, RowMajor::new([tokens, 64], 64)),
            Tensor::new(k, RowMajor::new([tokens, 64], 64)),
            Tensor::new(v, ColMajor::new([64, tokens], 64)),
            Tensor::new(o, RowMajor::new([tokens, 64], 64)),
            queries.tensor(),
        )
    };
    // SAFETY: as above.
    let stage = |nth: u32| unsafe { (keys.tile(nth % 2).tensor(), values.tile(nth % 2).tensor()) };
    let first = block_idx().x;
    let mma = Mma::thread_slice(thread_idx());
    let (rows, columns) = (
        CopyRows::thread_slice(thread_idx()),
        CopyColumns::thread_slice(thread_idx()),
    );

    // Keys beyond the last one become zeros.
    let fill = |nth: u32| {
        let (keys, values) = stage(nth);
        copy(
            &rows.partition(k.local_tile::<Tile>((nth, 0))),
            &rows.partition(keys),
        );
        copy(
            &columns.partition(v.local_tile::<Tile>((0, nth))),
            &columns.partition(values),
        );
        cp_async_commit();
    };
    copy(
        &rows.partition(q.local_tile::<Tile>((first, 0))),
        &rows.partition(queries),
    );
    fill(0);

    let mut output = mma.fragment_c::<Tile, f32>(0.0);
    let mut softmax = Softmax::new();
    for nth in 0..first.get() + 1 {
        cp_async_wait::<0>();
        // The tiles have arrived, and no thread reads those before them any more.
        sync_threads();
        fill(nth + 1);
        let (keys, values) = stage(nth);

        let mut scores = mma.fragment_c::<Tile, f32>(0.0);
        each::<Steps<Mma, Tile>>(|step| {
            let (q, k) = (
                load_a(LdMatrix, mma, queries, step),
                load_b(LdMatrix, mma, keys, step),
            );
            gemm(mma, &q, &k, &mut scores);
        });
        let at =
            mma.partition_c(Tensor::identity([tokens, tokens]).local_tile::<Tile>((first, nth)));
        scores = scores.map(|v, score| {
            let [query, key] = at.coordinate(v);
            if key <= query {
                score * scale
            } else {
                f32::NEG_INFINITY
            }
        });

        let (weights, rescale) = softmax.add(&scores);
        output = output.map_by_row(&rescale, |output, rescale| output * rescale);
        each::<Steps<Mma, Tile>>(|step| {
            let weights = accumulators_as_a(mma, &weights, step);
            gemm(
                mma,
                &weights,
                &load_b(LdMatrixTransposed, mma, values, step),
                &mut output,
            );
        });
    }
    cp_async_wait::<0>();
    let sums = softmax.sums();
    let output = output.map_by_row(&sums, |output, sum| Float::from_f32(output / sum));
    mma.partition_c(o.local_tile::<Tile>((first, 0)))
        .store(&output);
}

/// What the rows of a thread have so far. Four lanes share a row.
struct Softmax {
    /// The largest score.
    largest: Rows,
    /// The sum of this thread's weights.
    sums: Rows,
}

impl Softmax {
    fn new() -> Self {
        Self {
            largest: Rows::filled(f32::NEG_INFINITY),
            sums: Rows::filled(0.0),
        }
    }

    /// The weights of more scores, and what those of earlier scores are to be multiplied by: they were for a smaller
    /// largest score.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add(&mut self, scores: &Scores) -> (Scores, Rows) {
        let before = self.largest;
        let largest = scores.fold_rows(f32::NEG_INFINITY, f32::max);
        self.largest = largest.zip(&before, |_, new, old| LogicalWarp::<4>::max(new).max(old));
        let rescale = before.zip(&self.largest, |_, old, new| exp2_approx(old - new));
        let weights =
            scores.map_by_row(&self.largest, |score, largest| exp2_approx(score - largest));
        let of_scores = weights.fold_rows(0.0, |sum, weight| sum + weight);
        let earlier = self.sums.zip(&rescale, |_, sum, rescale| sum * rescale);
        self.sums = earlier.zip(&of_scores, |_, sum, new| sum + new);
        (weights, rescale)
    }

    /// The sums of all lanes' weights.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn sums(&self) -> Rows {
        self.sums.map(|_, sum| LogicalWarp::<4>::sum(sum))
    }
}
