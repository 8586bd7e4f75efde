//! The time of grouped products and of products of gathered rows, beside one plain product of as many rows, printed
//! with `--nocapture`. Needs a GPU; build it with `--release`.

use crate::batches::batch;
use crate::convert::Convert;
use crate::fp8_formats::{E4m3, E5m2ByE4m3, Formats};
use std::fmt;
use std::time::Duration;

use cutlet::{
    Buffer, Device, Event, Gather, Gemm, IndexedRows, Matrix, MatrixMut, Order, Precision, Result,
    Stream, gemm,
};
use cutlet_not_run::not_run;
use half::bf16;

/// Launches between two events.
const LAUNCHES: usize = 5;
const ROUNDS: usize = 9;

/// Groups of about `rows` rows each.
struct Case {
    groups: usize,
    rows: usize,
    n: usize,
    k: usize,
    /// How far a group's rows are from the mean at most.
    spread: usize,
}

impl Case {
    /// Where the groups end, and how many rows they have together.
    fn ends(&self) -> (Vec<i32>, usize) {
        let mut random = fastrand::Rng::with_seed(1);
        let mut end = 0;
        let ends = (0..self.groups).map(|_| {
            end += self.rows - self.spread + random.usize(0..=2 * self.spread);
            end as i32
        });
        (ends.collect(), end)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case {
            groups,
            rows,
            n,
            k,
            spread,
        } = self;
        write!(f, "{groups} groups of {rows} ± {spread} rows, {n}×{k}")
    }
}

/// What is timed.
const CASES: [Case; 6] = [
    Case {
        groups: 64,
        rows: 128,
        n: 4096,
        k: 7168,
        spread: 64,
    },
    Case {
        groups: 64,
        rows: 128,
        n: 4096,
        k: 7168,
        spread: 0,
    },
    Case {
        groups: 4,
        rows: 8192,
        n: 4096,
        k: 7168,
        spread: 0,
    },
    Case {
        groups: 8,
        rows: 1024,
        n: 7168,
        k: 2048,
        spread: 300,
    },
    Case {
        groups: 128,
        rows: 512,
        n: 1536,
        k: 2048,
        spread: 200,
    },
    Case {
        groups: 128,
        rows: 512,
        n: 2048,
        k: 768,
        spread: 200,
    },
];

/// The median times of `N` kinds of launches, by events around several of a kind. Kinds take turns, so that the GPU's
/// clocks are the same for all.
fn interleaved<const N: usize>(
    stream: &Stream,
    mut launch: impl FnMut(usize) -> Result<()>,
) -> Result<[Duration; N]> {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (kind, times) in times.iter_mut().enumerate() {
            let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
            start.record(stream)?;
            (0..LAUNCHES).try_for_each(|_| launch(kind))?;
            end.record(stream)?;
            times.push(end.elapsed_since(&start)? / LAUNCHES as u32);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2]
    }))
}

/// Elements that are not all alike, so that the GPU does not save power.
fn elements<T: Convert>(stream: &Stream, count: usize) -> Result<Buffer<T>> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let block: Vec<T> = (0..1 << 16).map(|_| T::of(random.f64() - 0.5)).collect();
    let mut all = stream.zeroed::<T>(count)?;
    for first in (0..count).step_by(block.len()) {
        let end = count.min(first + block.len());
        stream.copy_from_host(&block[..end - first], all.slice_mut(first..end)?)?;
    }
    Ok(all)
}

#[test]
fn groups_cost_little_more_than_one_product() -> Result<()> {
    let device = Device::auto();
    if device.compute_capability() != Some((9, 0)) {
        not_run("there is no Hopper GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    for case in CASES {
        let Case { groups, n, k, .. } = case;
        let (ends, m) = case.ends();
        let (a, b) = (
            elements::<bf16>(&stream, m * k)?,
            elements::<bf16>(&stream, groups * k * n)?,
        );
        let mut c = stream.zeroed::<bf16>(m * n)?;
        let ends = stream.upload(&ends)?;
        let a = Matrix::row_major(&a, m, k)?;
        let [grouped, plain] = interleaved(&stream, |kind| {
            let c = MatrixMut::row_major(&mut c, m, n)?;
            match kind {
                0 => {
                    let b = batch(&b, groups, k, n, Order::ColMajor);
                    Gemm::new(a, b, c).group_ends(&ends).run(&stream)
                }
                _ => gemm(&stream, 1.0, a, Matrix::col_major(&b, k, n)?, 0.0, c),
            }
        })?;
        let flops = 2.0 * (m * n * k) as f64;
        println!(
            "{case}: {:.1} µs, {:.0} TFLOP/s, weights at {:.2} TB/s; one product {:.1} µs, {:.0} TFLOP/s",
            grouped.as_secs_f64() * 1e6,
            flops / grouped.as_secs_f64() / 1e12,
            2.0 * (groups * n * k) as f64 / grouped.as_secs_f64() / 1e12,
            plain.as_secs_f64() * 1e6,
            flops / plain.as_secs_f64() / 1e12,
        );
    }
    Ok(())
}

#[test]
fn groups_of_8_bit_floats_cost_little_more_than_one_product() -> Result<()> {
    groups_of_formats_cost::<E4m3>()?;
    groups_of_formats_cost::<E5m2ByE4m3>()
}

fn groups_of_formats_cost<F: Formats>() -> Result<()> {
    let device = Device::auto();
    if device.compute_capability() != Some((9, 0)) {
        not_run("there is no Hopper GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    for case in &CASES[..3] {
        let &Case { groups, n, k, .. } = case;
        let (ends, m) = case.ends();
        let (a, b) = (
            elements::<F::A>(&stream, m * k)?,
            elements::<F::B>(&stream, groups * k * n)?,
        );
        let mut c = stream.zeroed::<bf16>(m * n)?;
        let ends = stream.upload(&ends)?;
        let [of_rows, of_columns] = [m, groups * n].map(|count| elements::<f32>(&stream, count));
        let (of_rows, of_columns) = (of_rows?, of_columns?);
        let (of_column, k_blocks, n_blocks) = (of_columns.slice(..n)?, k / 128, n / 128);
        let ld = m.next_multiple_of(4);
        let of_a = elements::<f32>(&stream, ld * k_blocks)?;
        let of_a = Matrix::with_ld(&of_a, m, k_blocks, Order::ColMajor, ld)?;
        let of_b = elements::<f32>(&stream, groups * k_blocks * n_blocks)?;
        let a = Matrix::row_major(&a, m, k)?;
        let times = interleaved::<6>(&stream, |kind| {
            let c = MatrixMut::row_major(&mut c, m, n)?;
            let several = batch(&b, groups, k, n, Order::ColMajor);
            let one = Matrix::col_major(&b, k, n)?;
            let mut gemm = match kind {
                0 | 4 => F::gemm(a, several, c).outer_scales(&of_rows, &of_columns),
                1 | 5 => F::gemm(a, one, c).outer_scales(&of_rows, of_column),
                2 => {
                    let of_b = batch(&of_b, groups, k_blocks, n_blocks, Order::ColMajor);
                    F::gemm(a, several, c).block_scales(of_a, of_b)
                }
                _ => {
                    let of_b = Matrix::col_major(&of_b, k_blocks, n_blocks)?;
                    F::gemm(a, one, c).block_scales(of_a, of_b)
                }
            };
            if kind % 2 == 0 {
                gemm = gemm.group_ends(&ends);
            }
            if kind >= 4 {
                gemm = gemm.precision(Precision::FastAccumulation);
            }
            gemm.run(&stream)
        })?;
        let flops = 2.0 * (m * n * k) as f64;
        let [outer, one_outer, blocks, one_blocks, fast, one_fast] = times.map(|time| {
            let seconds = time.as_secs_f64();
            format!(
                "{:.1} µs, {:.0} TFLOP/s",
                seconds * 1e6,
                flops / seconds / 1e12
            )
        });
        println!(
            "{}, {case}: scales of rows and columns {outer} (one product {one_outer}); scales of blocks {blocks} (one \
             product {one_blocks}); fast {fast} (one product {one_fast})",
            F::NAME
        );
    }
    Ok(())
}

/// 8192 rows of a table of 32768, in random order.
#[test]
fn gathered_rows_cost_little_more_than_rows_in_order() -> Result<()> {
    let device = Device::auto();
    if device.compute_capability() != Some((9, 0)) {
        not_run("there is no Hopper GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    let (table_rows, m, n, k) = (32_768, 8192, 8192, 8192);
    let table = elements(&stream, table_rows * k)?;
    let b = elements(&stream, k * n)?;
    let mut random = fastrand::Rng::with_seed(1);
    let mut indices: Vec<i32> = (0..table_rows as i32).collect();
    random.shuffle(&mut indices);
    let indices = stream.upload(&indices[..m])?;
    let mut gathered = stream.zeroed::<bf16>(m * k)?;
    let mut c = stream.zeroed::<bf16>(m * n)?;
    let mut of_c = stream.zeroed::<bf16>(table_rows * n)?;
    let table = Matrix::row_major(&table, table_rows, k)?;
    let b = Matrix::col_major(&b, k, n)?;
    let mut rows = IndexedRows::new(stream.device())?;
    let mut gather = Gather::new(stream.device())?;
    let flops = 2.0 * (m * n * k) as f64;
    let times: [Duration; 4] = interleaved(&stream, |kind| {
        if kind == 2 {
            let to = MatrixMut::row_major(&mut gathered, m, k)?;
            gather.enqueue(&stream, table, &indices, to)?;
        }
        let a = Matrix::row_major(&gathered, m, k)?;
        let c = MatrixMut::row_major(&mut c, m, n)?;
        match kind {
            1 => Gemm::new(table, b, c)
                .gather_a(rows.by(&indices)?)
                .run(&stream),
            3 => Gemm::new(a, b, MatrixMut::row_major(&mut of_c, table_rows, n)?)
                .scatter_c(rows.by(&indices)?)
                .run(&stream),
            _ => gemm(&stream, 1.0, a, b, 0.0, c),
        }
    })?;
    let kinds = [
        "rows in order",
        "gathered rows",
        "a gather, then the product",
        "scattered rows",
    ];
    for (kind, time) in kinds.into_iter().zip(times) {
        let seconds = time.as_secs_f64();
        println!(
            "{kind}: {:.1} µs, {:.0} TFLOP/s",
            seconds * 1e6,
            flops / seconds / 1e12
        );
    }
    rows.check(&stream)?;
    gather.check(&stream)
}
