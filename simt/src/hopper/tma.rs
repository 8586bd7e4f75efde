//! TMA: boxes of tensors between global and shared memory.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::dependent_launch::check_dependency;
use super::in_flight::{Copy, Users};
use super::mbarrier::mbarrier_complete_tx;
use super::running_block;
use super::tensor_map::TensorMapModel;
use crate::context::{Thread, current};
use crate::knowledge::Knowledge;
use crate::shared::{map_shared_rank, shared_place};

/// Bytes that a swizzle leaves together, and that a store writes together.
const UNIT: u32 = 16;

#[track_caller]
fn decode(map: &[u64; 16], rank: usize) -> TensorMapModel {
    let Some(map) = TensorMapModel::decode(map) else {
        panic!(
            "this tensor map was not made for the CPU backend: make it on the device that the \
             kernel is launched on"
        )
    };
    assert!(
        map.rank as usize == rank,
        "a box of a tensor of rank {} is moved by {rank} coordinates",
        map.rank
    );
    map
}

#[track_caller]
fn check_place(map: &TensorMapModel, address: u32) {
    let align = if map.span == UNIT { 128 } else { 8 * map.span };
    assert!(
        address.is_multiple_of(align),
        "a TMA box at shared address {address}, which is not a multiple of {align}: a box is \
         128-byte aligned, and one with a swizzle to 8 lines of its span"
    );
}

/// Where byte `offset` of a box at `address` lies.
fn swizzled(map: &TensorMapModel, address: u32, offset: u32) -> u32 {
    let address = address + offset;
    address ^ (address >> 7 & (map.span / UNIT - 1)) << 4
}

/// How far the lines of a tensor, along its innermost dimension, are moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// To their last element.
    Exact,
    /// To the end of the last element's unit, as the hardware stores them.
    InUnits,
}

impl Lines {
    /// How many elements of a line are moved.
    fn extent(self, map: &TensorMapModel, [y, z]: [i64; 2]) -> i64 {
        let extent = map.extent[0];
        // Memory may end with the last line. The hardware does not know that; the model must not
        // write there.
        let last = [y, z] == [map.extent[1] as i64 - 1, map.extent[2] as i64 - 1];
        if self == Lines::Exact || last {
            return extent as i64;
        }
        let element = u64::from(map.element_bytes);
        let whole = (extent * element).next_multiple_of(u64::from(UNIT));
        // The next line begins later. With strides that TMA allows, `whole` is no more.
        (whole.min(map.stride[0]) / element) as i64
    }
}

/// Calls `each` with the host address and the offset in the box of every element of a box that lies
/// inside the tensor, whose lines end as `lines` says.
fn for_each_inside(
    map: &TensorMapModel,
    at: &[i32],
    lines: Lines,
    mut each: impl FnMut(*mut u8, u32),
) {
    let start = |d: usize| i64::from(at.get(d).copied().unwrap_or(0));
    // The part of the box along dimension `d` that is below `extent`.
    let inside = |d: usize, extent: i64| {
        let first = (-start(d)).clamp(0, i64::from(map.box_extent[d]));
        let end = (extent - start(d)).clamp(0, i64::from(map.box_extent[d]));
        first as u32..end as u32
    };
    let base: *mut u8 = std::ptr::with_exposed_provenance_mut(map.address as usize);
    for z in inside(2, map.extent[2] as i64) {
        for y in inside(1, map.extent[1] as i64) {
            let place = [start(1) + i64::from(y), start(2) + i64::from(z)];
            let line = place[1] * map.stride[1] as i64 + place[0] * map.stride[0] as i64;
            for x in inside(0, lines.extent(map, place)) {
                let byte = line + (start(0) + i64::from(x)) * i64::from(map.element_bytes);
                let index = (z * map.box_extent[1] + y) * map.box_extent[0] + x;
                each(
                    base.wrapping_offset(byte as isize),
                    index * map.element_bytes,
                );
            }
        }
    }
}

/// Copies the box at `at`, innermost coordinate first, to shared memory at `to`, zeros where it is
/// outside the tensor, and counts its bytes at the mbarrier at `barrier`; with a `multicast`, a bit
/// for each rank, in all these blocks of the cluster, else in the running one.
///
/// # Panics
/// If the map is not the model's or of another rank, on a wrong alignment, on a place that is not
/// in shared memory or may be in use, if the barrier complains, or outside of a kernel.
///
/// # Safety
/// The tensor that the map describes must be there, with nobody writing to it.
#[track_caller]
pub unsafe fn tma_load(map: &[u64; 16], at: &[i32], to: u32, barrier: u32, multicast: Option<u16>) {
    check_dependency();
    let map = decode(map, at.len());
    check_place(&map, to);
    let Some(mask) = multicast else {
        // SAFETY: as promised by the caller.
        unsafe { load_box(&map, at, to, barrier) };
        return;
    };
    for rank in (0..16).filter(|rank| mask >> rank & 1 == 1) {
        running_block(rank);
        let (to, barrier) = (map_shared_rank(to, rank), map_shared_rank(barrier, rank));
        // SAFETY: as promised by the caller.
        unsafe { load_box(&map, at, to, barrier) };
    }
}

/// [`tma_load`] to one block.
#[track_caller]
unsafe fn load_box(map: &TensorMapModel, at: &[i32], to: u32, barrier: u32) {
    let bytes = map.box_bytes();
    let copy = Copy::begin(barrier);
    for offset in (0..bytes).step_by(UNIT as usize) {
        // SAFETY: `Copy::to` checks the range.
        unsafe {
            copy.to(swizzled(map, to, offset), UNIT, UNIT)
                .write_bytes(0, UNIT as usize)
        };
    }
    for_each_inside(map, at, Lines::Exact, |from, offset| {
        let element = map.element_bytes;
        let (block, to) = shared_place(swizzled(map, to, offset), element, element);
        // SAFETY: the caller promises the tensor; `shared_place` checked the other range.
        unsafe { from.copy_to_nonoverlapping(block.shared.at(to), element as usize) };
    });
    mbarrier_complete_tx(barrier, bytes);
}

/// A store that has not been done yet.
struct Store {
    map: TensorMapModel,
    at: Vec<i32>,
    from: u32,
    /// What the thread knew when it asked for it.
    knew: Knowledge,
}

/// A thread's stores.
#[derive(Default)]
pub(crate) struct Stores(RefCell<Groups>);

#[derive(Default)]
struct Groups {
    open: Vec<Store>,
    closed: VecDeque<Vec<Store>>,
}

/// Takes note of a store of the box at shared address `from` to `at`, innermost coordinate first. It
/// is done when its group is waited for.
///
/// It writes whole units of 16 bytes, as the hardware does: where the tensor's lines end within one,
/// the bytes after them, up to the next multiple of 16, get what the box has there. The model leaves
/// alone those after the tensor's last line, where memory may end.
///
/// # Panics
/// As [`tma_load`].
///
/// # Safety
/// The tensor that the map describes must be there, with nobody using the elements of the box, or
/// what lies in one unit with them, until the store has been waited for.
#[track_caller]
pub unsafe fn tma_store(map: &[u64; 16], at: &[i32], from: u32) {
    check_dependency();
    let map = decode(map, at.len());
    check_place(&map, from);
    let thread = current();
    let mut stores = thread.hopper.stores.0.borrow_mut();
    stores.open.push(Store {
        map,
        at: at.to_vec(),
        from,
        knew: thread.knows.borrow().clone(),
    });
}

/// Closes the thread's group of stores.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn bulk_store_commit() {
    let mut stores = current().hopper.stores.0.borrow_mut();
    let group = std::mem::take(&mut stores.open);
    stores.closed.push_back(group);
}

/// Does the stores of all but the latest `pending` groups of the thread.
///
/// # Panics
/// If a box is not in shared memory, if bytes are on their way there that the thread had not waited for when
/// it asked for the store, or outside of a kernel.
#[track_caller]
pub fn bulk_store_wait(pending: u32) {
    let thread = current();
    let mut stores = thread.hopper.stores.0.borrow_mut();
    while stores.closed.len() > pending as usize {
        for store in stores.closed.pop_front().unwrap_or_default() {
            let Store {
                map,
                at,
                from,
                knew,
            } = store;
            let user = Users::new(
                "is read by a TMA store too early, or was filled too early",
                [(&knew, thread.linear)],
            );
            for offset in (0..map.box_bytes()).step_by(UNIT as usize) {
                let (block, from) = shared_place(swizzled(&map, from, offset), UNIT, UNIT);
                user.check(block, from, UNIT);
            }
            for_each_inside(&map, &at, Lines::InUnits, |to, offset| {
                let element = map.element_bytes;
                let (block, from) = shared_place(swizzled(&map, from, offset), element, element);
                // SAFETY: the caller of `tma_store` promised the tensor; `shared_place` checked
                // the other range.
                unsafe { to.copy_from_nonoverlapping(block.shared.at(from), element as usize) };
            });
        }
    }
}

/// A thread waits for its stores before it ends.
pub(super) fn thread_ends(thread: &Thread) {
    let stores = thread.hopper.stores.0.borrow();
    assert!(
        stores.open.is_empty(),
        "a thread ends with TMA stores that it never committed"
    );
    assert!(
        stores.closed.is_empty(),
        "a thread ends with {} groups of TMA stores under way, which may still read shared memory: \
         wait for them first",
        stores.closed.len()
    );
}
