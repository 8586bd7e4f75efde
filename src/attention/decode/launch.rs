//! The launch: checks, the blocks that run, and the arguments that they get.

use std::sync::Arc;

use cutlet_host::{Buffer, Device, LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::attention::decode::args::{CacheArgs, DecodeArgs, KEYS, ROWS, WorkArgs};
use cutlet_kernels::attention::decode::combine::ROWS_OF_BLOCK;
use cutlet_kernels::attention::decode::instances::{BF16, F16, Instance};
use half::{bf16, f16};

use super::AttentionDecode;
use crate::attention::heads::{Extents, Heads, Tensors, modes, refuse};
use crate::attention::kernels::{expect_built, strides};
use crate::attention::launch::{
    check_log_sum_exp, checked_soft_cap, null, of_heads, scale, window,
};
use crate::attention::{AttentionElement, NAME};
use crate::matrix::{divisor, in_stream, pointer, pointer_mut};
use crate::{Error, Result, Tensor};

/// The kernels for an element type.
pub trait Kernels: Sized + 'static {
    /// By the most features of a head.
    const DECODE: &'static [Instance<Self>];
}

impl Kernels for bf16 {
    const DECODE: &'static [Instance<Self>] = BF16;
}

impl Kernels for f16 {
    const DECODE: &'static [Instance<Self>] = F16;
}

impl<T: AttentionElement> Tensors<'_, T> {
    /// Checks a call of decoding, and enqueues it.
    pub fn decode(mut self, mut call: AttentionDecode<'_>, stream: &Stream) -> Result<()> {
        let ([queries, cache, output], extents, pages) = self.heads_of_cache(&call)?;
        let device = stream.device();
        supports(device)?;
        self.check(stream)?;
        let logarithms = check_log_sum_exp(&mut call.log_sum_exp, stream, &extents, &self)?;
        let Some(instance) = T::DECODE.iter().find(|it| extents.features <= it.features) else {
            return refuse(format!(
                "heads have {} features; give up to 256",
                extents.features
            ));
        };
        let splits = match call.splits {
            Some(splits) => splits,
            None => {
                let keys = call.seen(&extents);
                choose_splits(&extents, keys, Round::of(instance), Speed::of(device))
            }
        };
        let work = work(&extents, splits, instance.warps)?;
        let rows = work.blocks * ROWS as usize;
        let mut args = DecodeArgs {
            cache: call.cache(stream, &extents, pages, &cache)?,
            partials: pointer_mut(0),
            logarithms: pointer_mut(0),
            counters: pointer_mut(0),
            queries: strides(&queries),
            output: strides(&output),
            log_sum_exp: logarithms.to,
            log_sum_exp_strides: logarithms.strides,
            sinks: null(),
            work: work.args,
            window: window(Some(call.window)),
            scale: scale(call.scale, extents.features)?,
            soft_cap: checked_soft_cap(call.soft_cap)?,
            features: extents.features as i32,
            has_sinks: 0,
            writes_log_sum_exp: logarithms.are_written,
            has_counters: 0,
        };
        if let Some(sinks) = call.sinks {
            of_heads("the sinks", stream, &sinks, &extents)?;
            (args.sinks, args.has_sinks) = (pointer(sinks), 1);
        }
        if splits == 1 {
            // SAFETY: extents and strides are those of the tensors, which were checked against their memory. Lengths
            // and numbers of pages are checked by the kernel.
            return unsafe { self.attend(stream, instance, work.blocks, args) };
        }
        let partials = stream.scratch::<f32>(rows * instance.features)?;
        let logarithms = stream.scratch::<f32>(rows)?;
        args.partials = pointer_mut(partials.view().address());
        args.logarithms = pointer_mut(logarithms.view().address());
        let counters = counters(stream, work.blocks / splits);
        if let Some(counters) = &counters {
            args.counters = pointer_mut(counters.view().address());
            args.has_counters = 1;
        }
        // SAFETY: as above. Each block has its rows of scratch memory, which lives until the stream has got past the
        // launches. Stores and loads of it are those of the same blocks. There is a counter for each tile of rows.
        unsafe {
            self.attend(stream, instance, work.blocks, args)?;
            if counters.is_none() {
                let rows_of_output = extents.sequences * extents.queries * extents.heads;
                let blocks = rows_of_output.div_ceil(ROWS_OF_BLOCK as usize) as u32;
                let combine = device.load(&PTX, instance.combine)?;
                let operands = (self.output.view.reborrow(), args);
                stream.launch(&combine, LaunchConfig::dependent(blocks), operands)?;
            }
        }
        Ok(())
    }

    /// Enqueues the kernel that attends.
    ///
    /// # Safety
    /// The arguments must be those of the tensors, and of so many blocks.
    unsafe fn attend(
        &mut self,
        stream: &Stream,
        instance: &'static Instance<T>,
        blocks: usize,
        args: DecodeArgs,
    ) -> Result<()> {
        let attend = stream.device().load(&PTX, instance.attend)?;
        let output = self.output.view.reborrow();
        let operands = (
            self.queries.view,
            self.keys.view,
            self.values.view,
            output,
            args,
        );
        // SAFETY: as promised by the caller.
        unsafe { stream.launch(&attend, LaunchConfig::dependent(blocks as u32), operands)? };
        Ok(())
    }

    /// The queries, the keys and the output as kernels see them, their extents, and the pages. The keys of the extents
    /// are those of the longest sequence.
    fn heads_of_cache(&self, call: &AttentionDecode<'_>) -> Result<([Heads; 3], Extents, usize)> {
        let of = |what, tensor: &Tensor<'_, T>| {
            Heads::of::<T>(what, &tensor.layout, tensor.view.address())
        };
        let (queries, output) = (
            of("the queries", &self.queries)?,
            of("the output", &self.output.tensor())?,
        );
        let (keys, values) = (of("the keys", &self.keys)?, of("the values", &self.values)?);
        let [sequences, count, heads, features] = queries.extents;
        let [pages, of_page, heads_of_keys, _] = keys.extents;
        let columns = call
            .table
            .as_ref()
            .map(|it| columns(it, sequences))
            .transpose()?;
        let agree = values.extents == keys.extents
            && output.extents == queries.extents
            && keys.extents[3] == features
            && (columns.is_some() || pages == sequences)
            && heads_of_keys > 0
            && heads.is_multiple_of(heads_of_keys);
        let alike = (0..3)
            .all(|mode| keys.extents[mode] == 1 || keys.strides[mode] == values.strides[mode]);
        if !agree || !alike || !features.is_multiple_of(8) {
            return refuse(format!(
                "the queries have (sequences, queries, heads, features) = {:?}, the keys {:?} with strides {:?}, the \
                 values {:?} with strides {:?}, the output {:?}; give keys and values of one shape and the same \
                 strides, with a number of heads that divides the queries', their features, which are a multiple of \
                 8, and as many sequences unless they are in pages; and an output of the queries' shape",
                queries.extents,
                keys.extents,
                keys.strides,
                values.extents,
                values.strides,
                output.extents
            ));
        }
        let extents = Extents {
            sequences,
            queries: count,
            keys: columns
                .map_or(of_page, |it| it.saturating_mul(of_page))
                .min(call.longest),
            heads,
            heads_of_keys,
            features,
        };
        Ok(([queries, keys, output], extents, pages))
    }
}

impl AttentionDecode<'_> {
    /// Where keys and values lie, which numbers of the device say.
    fn cache(
        &self,
        stream: &Stream,
        extents: &Extents,
        pages: usize,
        heads: &Heads,
    ) -> Result<CacheArgs> {
        let mut args = CacheArgs {
            table: null(),
            table_stride: 0,
            lengths: null(),
            strides: strides(heads),
            page: divisor(1 << 31),
            pages: pages as i32,
            longest: extents.keys as i32,
            has_lengths: 0,
            is_paged: 0,
            unused: 0,
        };
        if let Some(table) = &self.table {
            let what = "the table of pages";
            in_stream(NAME, stream, what, table.view)?;
            table.view.use_in(stream, NAME, what)?;
            let [[_, stride], _] = modes(what, &table.layout, ["sequence", "page"])?;
            (args.table, args.table_stride, args.is_paged) =
                (pointer(table.view), stride as i64, 1);
            args.page = divisor(heads.extents[1]);
        }
        if let Some(lengths) = self.lengths {
            let what = "the lengths";
            if lengths.len() != extents.sequences {
                return refuse(format!(
                    "{what} are {} numbers for {} sequences; give one for each",
                    lengths.len(),
                    extents.sequences
                ));
            }
            in_stream(NAME, stream, what, lengths)?;
            lengths.use_in(stream, NAME, what)?;
            (args.lengths, args.has_lengths) = (pointer(lengths), 1);
        }
        Ok(args)
    }

    /// The most keys that the queries of a sequence see.
    fn seen(&self, extents: &Extents) -> usize {
        let [before, after] = self.window;
        before
            .saturating_add(after)
            .saturating_add(extents.queries)
            .min(extents.keys)
    }
}

/// The pages of a sequence in a table.
fn columns(table: &Tensor<'_, i32>, sequences: usize) -> Result<usize> {
    let [[rows, _], [columns, stride]] =
        modes("the table of pages", &table.layout, ["sequence", "page"])?;
    if rows != sequences || columns > 1 && stride != 1 {
        return refuse(format!(
            "the table of pages is {} for {sequences} sequences; give a row for each, which is contiguous",
            table.layout.to_dynamic()
        ));
    }
    Ok(columns)
}

/// The most tiles of rows whose splits count. With more, few launches have splits.
const MOST_COUNTERS: usize = 4096;

/// Key of the counters that are kept for a stream.
#[derive(PartialEq, Eq, Hash)]
struct CountersKey;

/// The stream's counters, of which there is one for each of so many tiles of rows. They are zeros between launches. None if
/// there are too few, or if the stream's launches cannot have counters: then a second kernel combines splits.
fn counters(stream: &Stream, tiles: usize) -> Option<Arc<Buffer<u32>>> {
    if tiles > MOST_COUNTERS {
        return None;
    }
    let words = stream.resident(CountersKey, || Ok(Some(vec![0; MOST_COUNTERS])));
    words.ok().flatten()
}

/// Keys of a sequence: a key's number and a window's keys fit 31 bits together.
const MOST_KEYS: usize = 1 << 29;

/// The blocks of a launch.
struct Work {
    args: WorkArgs,
    blocks: usize,
}

/// The blocks for these extents.
fn work(extents: &Extents, splits: usize, warps: u32) -> Result<Work> {
    let Extents {
        sequences,
        queries,
        heads,
        heads_of_keys,
        ..
    } = *extents;
    if extents.keys > MOST_KEYS {
        return refuse(format!(
            "a sequence may have {} keys; give up to {MOST_KEYS}, or say by `longest` that there are no more",
            extents.keys
        ));
    }
    let group = heads / heads_of_keys;
    let rows = queries.saturating_mul(group);
    let tiles = rows.div_ceil(ROWS as usize);
    let blocks = [heads_of_keys, sequences, splits]
        .into_iter()
        .fold(tiles, usize::saturating_mul);
    // Rows of scratch memory and rounds of splits are numbers of 31 bits.
    let rounds = rounds(extents.keys, warps)
        .saturating_add(1)
        .saturating_mul(splits);
    let most = (i32::MAX as usize) / ROWS as usize;
    if splits == 0 || blocks > most || rounds > i32::MAX as usize {
        return refuse(format!(
            "{splits} splits of {} keys make {blocks} blocks; give at least one split, and so few that there are up to \
             {most} blocks",
            extents.keys
        ));
    }
    Ok(Work {
        args: WorkArgs {
            queries: queries as i32,
            group: divisor(group),
            sequences: sequences as i32,
            rows: divisor(rows),
            unused: 0,
            tiles: divisor(tiles),
            heads_of_keys: divisor(heads_of_keys),
            splits: divisor(splits),
        },
        blocks,
    })
}

/// Rounds of a block of so many warps: in each, all of them have keys.
fn rounds(keys: usize, warps: u32) -> usize {
    keys.div_ceil((KEYS * warps) as usize)
}

/// What decides how fast blocks are.
#[derive(Clone, Copy)]
struct Speed {
    multiprocessors: usize,
    /// Bytes of the cache that memory supplies in a microsecond.
    bytes: f64,
}

impl Speed {
    fn of(device: &Device) -> Self {
        /// The share of the memory's rate that a step of decoding gets.
        const SHARE: f64 = 0.855;
        /// An H200's. They are for a device that does not state its own.
        const BYTES_A_CLOCK: f64 = 18.8;
        const CLOCK: f64 = 1.98e9;
        let multiprocessors = device.multiprocessors().max(1);
        let rate = device.memory_rate().unwrap_or(BYTES_A_CLOCK)
            * device.highest_clock().unwrap_or(CLOCK)
            * f64::from(multiprocessors);
        Speed {
            multiprocessors: multiprocessors as usize,
            bytes: SHARE * rate / 1e6,
        }
    }
}

/// What a round of a block takes.
#[derive(Clone, Copy)]
struct Round {
    /// The block's warps.
    warps: u32,
    /// Microseconds of its loads, on a multiprocessor that has no others.
    loads: f64,
    /// Microseconds from the first load to the last product. Two blocks do not delay each other there.
    latency: f64,
}

impl Round {
    /// That of an instance, on an H200.
    fn of<T>(instance: &Instance<T>) -> Self {
        /// Bytes that a multiprocessor loads in a microsecond.
        const RATE: f64 = 38e3;
        let keys = KEYS * instance.warps;
        let bytes = 2 * size_of::<bf16>() * keys as usize * instance.features;
        Round {
            warps: instance.warps,
            loads: bytes as f64 / RATE,
            latency: match instance.features {
                ..=64 => 0.73,
                65..=128 => 0.86,
                _ => 1.34,
            },
        }
    }

    /// Microseconds of a round of each of so many blocks on a multiprocessor, which runs two at the same time.
    fn of_blocks(&self, blocks: usize) -> f64 {
        let latency = blocks.div_ceil(2) as f64 * self.latency;
        (blocks as f64 * self.loads).max(latency)
    }
}

/// Splits of so many keys of each sequence, with which blocks end soonest. With many blocks, memory decides. The constants
/// are those of an H200, where 18 shapes of 128 features take at most 5 % longer than with the best splits that were tried.
fn choose_splits(extents: &Extents, keys: usize, round: Round, speed: Speed) -> usize {
    /// Those of the second kernel, and those of each split in it.
    const COMBINE: f64 = 2.0;
    const COMBINE_SPLIT: f64 = 0.2;
    const MOST: usize = 128;
    let Extents {
        sequences,
        queries,
        heads,
        heads_of_keys,
        features,
        ..
    } = *extents;
    let rows = queries * heads / heads_of_keys;
    let blocks = sequences * heads_of_keys * rows.div_ceil(ROWS as usize);
    let bytes = 2 * size_of::<bf16>() * sequences * heads_of_keys * keys * features;
    let rounds = rounds(keys, round.warps);
    let time = |splits: usize| {
        let waves = (blocks * splits).div_ceil(speed.multiprocessors);
        let loads = rounds.div_ceil(splits) as f64 * round.of_blocks(waves);
        let combine = match splits {
            1 => 0.0,
            _ => COMBINE + COMBINE_SPLIT * splits as f64,
        };
        loads.max(bytes as f64 / speed.bytes) + combine
    };
    let by_time = |a: &usize, b: &usize| time(*a).total_cmp(&time(*b));
    (1..=rounds.clamp(1, MOST)).min_by(by_time).unwrap_or(1)
}

/// Refuses a program without the kernels, and a GPU that they do not run on.
fn supports(device: &Device) -> Result<()> {
    expect_built()?;
    match device.compute_capability() {
        Some((major, minor)) if major < 8 => Err(Error::Device {
            asked: "attention by mma.sync, which needs compute capability 8.0,",
            found: format!("{}, compute capability {major}.{minor}", device.describe()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_of_an_h200_are_near_the_best_ones() {
        // Sequences, keys, and which splits were within 5 % of the best one.
        for (sequences, keys, near_best) in [
            (1, 1024, 8..=16),
            (1, 8192, 13..=16),
            (2, 8192, 8..=8),
            (4, 4096, 4..=4),
            (8, 2048, 2..=4),
            (8, 8192, 2..=4),
            (12, 8192, 2..=12),
            (16, 1024, 1..=1),
            (16, 8192, 1..=1),
            (20, 4096, 1..=3),
            (32, 2048, 1..=1),
            (64, 4096, 1..=1),
        ] {
            let splits = splits(sequences, keys, &BF16[1]);
            assert!(
                near_best.contains(&splits),
                "{sequences} of {keys}: {splits} splits"
            );
        }
    }

    #[test]
    fn heads_whose_blocks_mostly_wait_have_two_on_a_multiprocessor() {
        for instance in [&BF16[0], &BF16[2]] {
            assert_eq!(splits(16, 8192, instance), 2, "{}", instance.features);
            assert_eq!(splits(64, 4096, instance), 1, "{}", instance.features);
        }
    }

    /// The splits on an H200 of sequences of so many keys, of 8 heads.
    fn splits(sequences: usize, keys: usize, instance: &Instance<bf16>) -> usize {
        let extents = Extents {
            sequences,
            queries: 1,
            keys,
            heads: 32,
            heads_of_keys: 8,
            features: instance.features,
        };
        let speed = Speed {
            multiprocessors: 132,
            bytes: 4.2e6,
        };
        choose_splits(&extents, keys, Round::of(instance), speed)
    }
}
