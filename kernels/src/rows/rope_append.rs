//! rope_append: the heads of new tokens: queries are rotated where they are, keys into a cache, and values follow them.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, grid_dependency_wait,
    instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{Divide, Divisor, Raster, tiles};
use half::{bf16, f16};

use super::rope::{Halves, Neighbours, Pairs, Rope8, RopeAny, RopeArgs, RopeShape, Row, Tables};
use super::{Number, RowStrides, THREADS};

/// Extents and strides of an append. A row is a head of a token: of its queries, then of its keys, then of its values.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct AppendArgs {
    /// The rows, `x` and `y` being the tokens' heads.
    pub rope: RopeArgs,
    /// Strides of the rows' slots.
    pub slots: RowStrides,
    /// Elements from a slot and from a head of the keys to the next.
    pub keys: [i64; 2],
    /// The same of the values.
    pub values: [i64; 2],
    /// Heads of a token.
    pub heads: Divisor,
    /// Heads of queries.
    pub heads_of_queries: u32,
    /// Heads of keys, and of values.
    pub heads_of_keys: u32,
    /// Slots of the cache.
    pub slots_of_cache: u32,
}

/// Rotates the heads of queries where they are and those of keys into the slot of their token, and copies the values there.
/// A token whose slot does not exist is not written to the cache.
///
/// # Safety
/// The operands must have these extents, and be aligned for the accesses of `S`. No two tokens have the same slot.
#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument of the kernels"
)]
unsafe fn append<P: Pairs, S: RopeShape, T: Float + Number>(
    thread: ThreadIdx<Threads<THREADS>>,
    heads: GlobalMut<T>,
    positions: Global<i32>,
    slots: Global<i32>,
    cosines: Global<f32>,
    sines: Global<f32>,
    keys: GlobalMut<T>,
    values: GlobalMut<T>,
    args: AppendArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let tables = Tables {
        positions,
        cosines,
        sines,
        args: args.rope,
    };
    let space = args.rope.space;
    let tile = Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x);
    let angles = tables.angles::<S>(thread, tile);
    let row = tables.row::<S>(thread, tile);
    let from = heads.offset(space.begin(args.rope.x, row));
    // SAFETY: the launcher promises a slot for each row.
    let slot = unsafe { slots.load(space.begin(args.slots, row)) };
    let (_, head) = args.heads.div_rem(row as u32);
    let is_query = head < args.heads_of_queries;
    let is_key = head < args.heads_of_queries + args.heads_of_keys;
    let (cache, [of_slot, of_head], first) = match is_key {
        true => (keys, args.keys, args.heads_of_queries),
        false => (
            values,
            args.values,
            args.heads_of_queries + args.heads_of_keys,
        ),
    };
    let in_cache = i64::from(slot) * of_slot + i64::from(head.wrapping_sub(first)) * of_head;
    let exists = is_query || (slot as u32) < args.slots_of_cache;
    let row = Row {
        from: from.as_global(),
        to: match is_query {
            true => from,
            false => cache.offset(if exists { in_cache } else { 0 }),
        },
        extent: [if exists { space.rows } else { 0 }, space.columns],
        rotates: is_key,
    };
    // SAFETY: as promised by the caller.
    unsafe { P::rotate(thread, tile, angles, row) };
}

macro_rules! instances {
    ($($element:ident { $($name:ident = $pairs:ident $shape:ident, $doc:literal;)+ })+) => {
        instantiate! {$($(
            #[doc = $doc]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $name(
                heads: GlobalMut<$element>,
                positions: Global<i32>,
                slots: Global<i32>,
                cosines: Global<f32>,
                sines: Global<f32>,
                keys: GlobalMut<$element>,
                values: GlobalMut<$element>,
                args: AppendArgs,
            ) = append::<$pairs, $shape, $element>(thread_idx(), ..);
        )+)+}
    };
}
instances! {
    f16 {
        rope_append_halves_f16 = Halves Rope8, "Halves of heads whose vectors are aligned.";
        rope_append_halves_f16_any = Halves RopeAny, "Halves of heads of any alignment.";
        rope_append_neighbours_f16 = Neighbours Rope8, "Neighbours in heads whose vectors are aligned.";
        rope_append_neighbours_f16_any = Neighbours RopeAny, "Neighbours in heads of any alignment.";
    }
    bf16 {
        rope_append_halves_bf16 = Halves Rope8, "Halves of heads whose vectors are aligned.";
        rope_append_halves_bf16_any = Halves RopeAny, "Halves of heads of any alignment.";
        rope_append_neighbours_bf16 = Neighbours Rope8, "Neighbours in heads whose vectors are aligned.";
        rope_append_neighbours_bf16_any = Neighbours RopeAny, "Neighbours in heads of any alignment.";
    }
}
