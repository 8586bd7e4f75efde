//! Rotary position embeddings of new tokens, whose keys and values are written to a cache.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::rope::{Rope8, RopeAny, RopeShape};
use cutlet_kernels::rows::rope_append::{
    AppendArgs, rope_append_halves_bf16, rope_append_halves_bf16_any, rope_append_halves_f16,
    rope_append_halves_f16_any, rope_append_neighbours_bf16, rope_append_neighbours_bf16_any,
    rope_append_neighbours_f16, rope_append_neighbours_f16_any,
};
use cutlet_layout_core::{Layout, tiles};
use half::{bf16, f16};

use super::operand::{check_read, read, written, written_rows};
use super::refuse;
use super::rope::{NAME, Pairing, Rope, RopeElement, blocks, number_of_rows};
use super::space::{HasRows, RowSet};
use crate::into_tensor::one_stride;
use crate::matrix::{disjoint, divisor, in_stream};
use crate::{IntoTensor, IntoTensorMut, MAX_EXTENT, Result, Tensor, TensorMut};

/// An element type of a cache of keys and values: `f16` or `bf16`.
pub trait CacheElement: RopeElement + sealed::Kernels {}
impl CacheElement for f16 {}
impl CacheElement for bf16 {}

/// A kernel that appends to a cache.
type AppendKernel<T> = Kernel<(
    GlobalMut<T>,
    Global<i32>,
    Global<i32>,
    Global<f32>,
    Global<f32>,
    GlobalMut<T>,
    GlobalMut<T>,
    AppendArgs,
)>;

mod sealed {
    use super::{AppendKernel, DeviceData};

    /// The kernels of an element type: each for aligned vectors, then for any alignment.
    pub trait Kernels: DeviceData {
        const APPEND_HALVES: [&'static AppendKernel<Self>; 2];
        const APPEND_NEIGHBOURS: [&'static AppendKernel<Self>; 2];
    }
}

macro_rules! kernels {
    ($($element:ty: $halves:ident $halves_any:ident $neighbours:ident $neighbours_any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const APPEND_HALVES: [&'static AppendKernel<Self>; 2] = [&$halves, &$halves_any];
            const APPEND_NEIGHBOURS: [&'static AppendKernel<Self>; 2] = [&$neighbours, &$neighbours_any];
        }
    )+};
}
kernels! {
    f16: rope_append_halves_f16 rope_append_halves_f16_any rope_append_neighbours_f16 rope_append_neighbours_f16_any;
    bf16: rope_append_halves_bf16 rope_append_halves_bf16_any rope_append_neighbours_bf16 rope_append_neighbours_bf16_any;
}

/// How many tiles cover rows of pairs: for aligned vectors, and for any alignment.
const TILES: [fn([i32; 2]) -> [u32; 2]; 2] = [
    tiles::<<Rope8 as RopeShape>::Tile>,
    tiles::<<RopeAny as RopeShape>::Tile>,
];

/// Keys or values of a cache: (slot, head, feature).
struct Cache<'a, T: DeviceData> {
    tensor: TensorMut<'a, T>,
    /// Slots, heads and features.
    extents: [usize; 3],
    /// Elements from a slot and from a head to the next.
    strides: [i64; 2],
}

impl<'a, T: DeviceData> Cache<'a, T> {
    fn of(what: &str, tensor: TensorMut<'a, T>) -> Result<Self> {
        let (layout, rank) = (tensor.layout, tensor.rank());
        let extent = |mode: usize| layout.mode(mode).size() as usize;
        if rank < 3 {
            return refuse(
                NAME,
                format!(
                    "{what} are {}; give a cache (slot, head, feature), or with more modes of slots",
                    layout.to_dynamic()
                ),
            );
        }
        let [heads, features] = [rank - 2, rank - 1].map(extent);
        let slots = tensor.size() / (heads * features);
        let tensor = tensor.reshape([slots, heads, features])?;
        let stride = |mode| one_stride(&tensor.layout, mode).map(|(_, stride)| stride as i64);
        match [0, 1, 2].map(stride) {
            [Some(of_slot), Some(of_head), Some(1)] if slots <= MAX_EXTENT => Ok(Cache {
                extents: [slots, heads, features],
                strides: [of_slot, of_head],
                tensor,
            }),
            _ => refuse(
                NAME,
                format!(
                    "{what} are {}; give contiguous features of up to {MAX_EXTENT} slots",
                    layout.to_dynamic()
                ),
            ),
        }
    }

    /// Whether accesses of this many elements of a head are aligned.
    fn is_aligned(&self, width: usize) -> bool {
        let bytes = (width * size_of::<T>()) as u64;
        self.tensor.view.view().address().is_multiple_of(bytes)
            && self.strides.iter().all(|it| it % width as i64 == 0)
    }
}

impl Rope<'_> {
    /// Enqueues what attention needs of new tokens, in one launch: their queries are rotated in place, their keys are
    /// rotated into a cache, and their values are copied to it.
    ///
    /// | tensor | shape |
    /// |---|---|
    /// | `positions`, `slots` | a number for each token, in any shape, counted by rows |
    /// | `heads` | (tokens…, heads, features): of each token the heads of queries, of keys, and of values, as one product makes them |
    /// | `keys`, `values` | (slots…, heads of keys, features): (slot, …), (sequence, slot, …) or (page, slot of a page, …) |
    ///
    /// The keys' and values' heads of `heads` are left as they are. A slot is counted along the cache's modes of slots by
    /// rows. Tokens have different slots. A token whose slot does not exist, as −1, is not written to the cache. Positions
    /// and slots stay on the device, so a graph that is replayed reads new ones.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - The modes of slots do not continue one another.
    /// - A head has not twice as many features as the table has angles.
    /// - A tensor that is written overlaps another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    ///
    /// ```
    /// use cutlet::{AttentionDecode, Device, DeviceTensor, Rope, RopeTable, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let table = RopeTable::new(&stream, 100, 64, 10_000.0)?;
    /// // Two sequences of up to 50 tokens, four heads of queries and one of keys.
    /// let mut keys = DeviceTensor::<bf16>::zeroed(&stream, [2, 50, 1, 64])?;
    /// let mut values = DeviceTensor::<bf16>::zeroed(&stream, [2, 50, 1, 64])?;
    /// // The heads of the third token of each sequence.
    /// let mut heads = DeviceTensor::upload(&stream, &[bf16::ONE; 2 * 6 * 64], [2, 1, 6, 64])?;
    /// let positions = DeviceTensor::upload(&stream, &[2, 2], [2, 1])?;
    /// let slots = DeviceTensor::upload(&stream, &[2, 50 + 2], [2, 1])?;
    /// Rope::new(&table).append(&stream, &positions, &slots, &mut heads, &mut keys, &mut values)?;
    ///
    /// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [2, 1, 4, 64])?;
    /// let lengths = stream.upload(&[3, 3])?;
    /// let queries = heads.tensor().narrow(2, ..4)?;
    /// AttentionDecode::new()
    ///     .lengths(lengths.view())
    ///     .run(&stream, queries, &keys, &values, &mut output)?;
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn append<'x, T: CacheElement>(
        &self,
        stream: &Stream,
        positions: impl IntoTensor<'x, Element = i32>,
        slots: impl IntoTensor<'x, Element = i32>,
        heads: impl IntoTensorMut<'x, Element = T>,
        keys: impl IntoTensorMut<'x, Element = T>,
        values: impl IntoTensorMut<'x, Element = T>,
    ) -> Result<()> {
        let of_tokens = (read(positions)?, read(slots)?, written(heads)?);
        match (of_tokens, written(keys)?, written(values)?) {
            ((Some(positions), Some(slots), Some(heads)), Some(keys), Some(values)) => {
                let cache = [Cache::of("the keys", keys)?, Cache::of("the values", values)?];
                self.launch_append(stream, [&positions, &slots], heads, cache)
            }
            ((_, _, None), ..) => Ok(()),
            _ => refuse(
                NAME,
                "there are no positions, no slots or no cache; give each token a position and a slot".to_string(),
            ),
        }
    }

    fn launch_append<T: CacheElement>(
        &self,
        stream: &Stream,
        [positions, slots]: [&Tensor<'_, i32>; 2],
        mut heads: TensorMut<'_, T>,
        [mut keys, mut values]: [Cache<'_, T>; 2],
    ) -> Result<()> {
        let all = of_token(&heads.layout, [&keys, &values])?;
        let key_addresses = keys.tensor.addresses();
        disjoint(NAME, "the keys", key_addresses.clone(), heads.addresses())?;
        disjoint(NAME, "the keys", key_addresses, values.tensor.addresses())?;
        disjoint(
            NAME,
            "the values",
            values.tensor.addresses(),
            heads.addresses(),
        )?;
        for (what, it) in [
            ("the heads", &heads),
            ("the keys", &keys.tensor),
            ("the values", &values.tensor),
        ] {
            in_stream(NAME, stream, what, it.view.view())?;
            check_read(NAME, stream, "the positions", positions, it)?;
            check_read(NAME, stream, "the slots", slots, it)?;
            self.check_tables(stream, it.addresses())?;
        }
        let rank = heads.rank();
        let of_tokens: Vec<usize> = (0..rank - 2)
            .map(|mode| heads.layout.mode(mode).size() as usize)
            .collect();
        let layout_of = |what, numbers: &Tensor<'_, i32>| {
            let tokens = of_tokens.iter().product();
            if numbers.size() != tokens {
                return refuse(
                    NAME,
                    format!(
                        "{what} are {}, and there are {tokens} tokens; give a number for each",
                        numbers.layout.to_dynamic()
                    ),
                );
            }
            number_of_rows(what, &numbers.reshape(&of_tokens)?.layout, &heads.layout)
        };
        let layouts = [
            layout_of("the positions", positions)?,
            layout_of("the slots", slots)?,
        ];
        let [of_positions, of_slots] = layouts.each_ref().map(|layout| HasRows {
            what: "a number of each token",
            layout,
            address: 0,
            bytes: 0,
        });
        let mut rows = RowSet::of(
            NAME,
            &[written_rows("the heads", &heads), of_positions, of_slots],
        )?;
        let is_aligned = self.take_pairs(&mut rows)?
            && [&keys, &values].iter().all(|it| it.is_aligned(rows.width));
        let of_keys = keys.extents[1];
        let args = AppendArgs {
            rope: self.args(&rows, [0, 0, 1]),
            slots: rows.strides[2],
            keys: keys.strides,
            values: values.strides,
            heads: divisor(all),
            heads_of_queries: (all - 2 * of_keys) as u32,
            heads_of_keys: of_keys as u32,
            slots_of_cache: keys.extents[0] as u32,
        };
        let nth = usize::from(!is_aligned);
        let kernel = match self.pairing {
            Pairing::Halves => T::APPEND_HALVES[nth],
            Pairing::Neighbours => T::APPEND_NEIGHBOURS[nth],
        };
        let blocks = blocks(TILES[nth], &rows)?;
        let kernel = stream.device().load(&PTX, kernel)?;
        // SAFETY: the rows were checked against the tensors' memory. There is a position and a slot for each row, which the
        // kernel compares with the table and the cache. What is written overlaps nothing else.
        unsafe {
            let args = (
                heads.view.reborrow(),
                positions.view,
                slots.view,
                self.cosines,
                self.sines,
                keys.tensor.view.reborrow(),
                values.tensor.view.reborrow(),
                args,
            );
            Ok(stream.launch(&kernel, LaunchConfig::dependent(blocks), args)?)
        }
    }
}

/// The heads of a token, of queries, keys and values together.
///
/// # Errors
/// If the cache does not suit them.
fn of_token<T: DeviceData>(heads: &Layout, [keys, values]: [&Cache<'_, T>; 2]) -> Result<usize> {
    let rank = heads.rank();
    let extent = |mode: usize| heads.mode(mode).size() as usize;
    let [_, of_keys, features] = keys.extents;
    let fits = rank >= 3
        && keys.extents == values.extents
        && extent(rank - 1) == features
        && extent(rank - 2) > 2 * of_keys;
    match fits {
        true => Ok(extent(rank - 2)),
        false => refuse(
            NAME,
            format!(
                "the heads are {}, and the cache has {:?} slots, heads and features of keys and {:?} of values; give keys \
                 and values of one shape, and with each token the heads of its queries, keys and values",
                heads.to_dynamic(),
                keys.extents,
                values.extents
            ),
        ),
    }
}
