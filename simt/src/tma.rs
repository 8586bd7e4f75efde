//! TMA: copies of boxes of a tensor between global and shared memory.

mod lines;
mod tensor_map;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;

pub use tensor_map::TensorMapModel;

use lines::{Line, lines};

use crate::access::Access;
use crate::async_copy::AsyncCopy;
use crate::context::{Thread, current, running_block};
use crate::dependent_launch::check_dependency;
use crate::global::check_global;
use crate::mbarrier::mbarrier_complete_tx;
use crate::relaxed::{load_elements, store_elements};
use crate::shadow::{MemoryAccess, Readers};
use crate::shared::{locate, map_shared_rank};
use crate::unwritten::{self, Reader};
use crate::vector_clock::VectorClock;

/// Bytes of the units that a swizzle permutes, and that a store writes whole.
const UNIT: u32 = 16;

#[track_caller]
fn decode(map: &[u64; 16], rank: usize) -> TensorMapModel {
    let Some(map) = TensorMapModel::decode(map) else {
        panic!(
            "the tensor map was not made for the CPU backend: make it on the device that the kernel is launched on"
        )
    };
    assert!(
        map.rank as usize == rank,
        "a box of a tensor of rank {} is addressed by {rank} coordinates: give one per dimension",
        map.rank
    );
    map
}

/// Checks where a box begins along the tensor's innermost dimension.
#[track_caller]
fn check_first(map: &TensorMapModel, at: &[i32]) {
    let byte = i64::from(at[0]) * i64::from(map.element_bytes);
    assert!(
        byte % i64::from(UNIT) == 0,
        "a TMA box begins at coordinate {} of the innermost dimension, which is byte {byte} of a line: begin boxes at \
         multiples of 16 bytes",
        at[0]
    );
}

#[track_caller]
fn check_alignment(map: &TensorMapModel, address: u32) {
    let align = if map.span == UNIT { 128 } else { 8 * map.span };
    assert!(
        address.is_multiple_of(align),
        "a TMA box is at shared address {address}, which is not a multiple of {align}: align boxes to 128 bytes, and \
         swizzled boxes to 8 spans"
    );
}

/// The shared address of byte `offset` of a box at `address`.
fn swizzled(map: &TensorMapModel, address: u32, offset: u32) -> u32 {
    let address = address + offset;
    address ^ (address >> 7 & (map.span / UNIT - 1)) << 4
}

/// Where a copy ends the tensor's lines, which run along its innermost dimension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// After the last element.
    Exact,
    /// After the unit of the last element, as the hardware's stores do.
    WholeUnit,
}

impl LineEnd {
    /// Elements of a line that are copied.
    fn extent(self, map: &TensorMapModel, line: &Line) -> i64 {
        let extent = map.extent[0];
        // Memory may end with the tensor's last line. The hardware writes beyond it; the model must not.
        if self == Self::Exact || line.is_last {
            return extent as i64;
        }
        let element = u64::from(map.element_bytes);
        let whole = (extent * element).next_multiple_of(u64::from(UNIT));
        // `whole` is at most the stride if TMA allows the stride. The model allows others, too.
        (whole.min(map.stride[0]) / element) as i64
    }
}

/// Checks that the running thread may access the elements of a box that are inside the tensor.
///
/// # Panics
/// If their memory is not alive, or a load reads what nothing has written.
#[track_caller]
fn check_inside(map: &TensorMapModel, at: &[i32], kind: MemoryAccess) {
    for line in lines(map, at) {
        let columns = line.columns(map, map.extent[0] as i64);
        if columns.is_empty() {
            return;
        }
        let bytes = columns.len() * map.element_bytes as usize;
        check_global(line.address(map, columns.start) as usize, bytes, kind);
    }
}

/// Calls `each` with the host address of every element of a box that is inside the tensor, and with the element's
/// offset in the box.
fn for_each_inside(
    map: &TensorMapModel,
    at: &[i32],
    line_end: LineEnd,
    mut each: impl FnMut(*mut u8, u32),
) {
    for line in lines(map, at) {
        for x in line.columns(map, line_end.extent(map, &line)) {
            let element = std::ptr::with_exposed_provenance_mut(line.address(map, x) as usize);
            each(element, (line.first_in_box + x) * map.element_bytes);
        }
    }
}

/// Copies the box at `at`, innermost coordinate first, to the shared address `to`, and counts its bytes at the mbarrier
/// at `barrier`. Elements outside the tensor are zeros.
///
/// With `multicast`, a bit per rank, the box goes to these blocks of the cluster, otherwise to the running one.
///
/// # Panics
/// If the model did not make the map, if the map has another rank, if the box does not begin at a multiple of 16 bytes,
/// if `to` is not aligned, not in shared memory or may be in use, if the mbarrier cannot count the bytes, or outside of
/// a kernel.
///
/// # Safety
/// The tensor that the map describes must be in memory, and nothing may write to it.
#[track_caller]
pub unsafe fn tma_load(map: &[u64; 16], at: &[i32], to: u32, barrier: u32, multicast: Option<u16>) {
    check_dependency();
    let map = decode(map, at.len());
    check_first(&map, at);
    check_alignment(&map, to);
    check_inside(&map, at, MemoryAccess::Load);
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

/// Loads a box to one block.
#[track_caller]
unsafe fn load_box(map: &TensorMapModel, at: &[i32], to: u32, barrier: u32) {
    let bytes = map.box_bytes();
    let copy = AsyncCopy::begin(barrier);
    for offset in (0..bytes).step_by(UNIT as usize) {
        // SAFETY: `AsyncCopy::to` checks the range.
        unsafe {
            copy.to(swizzled(map, to, offset), UNIT, UNIT)
                .write_bytes(0, UNIT as usize)
        };
    }
    for_each_inside(map, at, LineEnd::Exact, |from, offset| {
        let element = map.element_bytes;
        let (block, to) = locate(swizzled(map, to, offset), element, element);
        let element = element as usize;
        // SAFETY: the caller promises the tensor; `locate` checked the destination.
        unsafe { load_elements(from, block.shared.at(to), element, element) };
        if map.rounds_to_tf32 {
            let number = block.shared.at(to).cast::<f32>();
            // SAFETY: the element was just written, and is aligned to its size.
            unsafe { number.write(rounded_to_tf32(number.read())) };
        }
    });
    mbarrier_complete_tx(barrier, bytes);
}

/// The nearest number of tf32, which has 10 bits of mantissa. Ties round away from zero.
fn rounded_to_tf32(number: f32) -> f32 {
    match number.is_finite() {
        true => f32::from_bits((number.to_bits() + 0x1000) & !0x1FFF),
        false => number,
    }
}

/// Checks a request to fetch the box at `at`, innermost coordinate first, into the L2 cache. The model has no cache.
///
/// # Panics
/// If the model did not make the map, if the map has another rank, or if the box does not begin at a multiple of 16
/// bytes.
#[track_caller]
pub fn tma_prefetch(map: &[u64; 16], at: &[i32]) {
    check_first(&decode(map, at.len()), at);
}

/// A store that was issued and not yet done.
struct Store {
    map: TensorMapModel,
    at: Vec<i32>,
    from: u32,
    /// The thread's clock when it issued the store.
    clock: VectorClock,
    /// Where it issued the store.
    line: &'static Location<'static>,
}

/// The bulk groups of a thread's stores.
#[derive(Default)]
struct BulkGroups {
    open: Vec<Store>,
    committed: VecDeque<Vec<Store>>,
}

/// The stores of a thread.
#[derive(Default)]
struct Stores(RefCell<BulkGroups>);

/// The running thread's stores.
#[track_caller]
fn stores<'a>() -> &'a RefCell<BulkGroups> {
    &current().models.get_or_default::<Stores>().0
}

/// Issues a store of the box at shared address `from` to `at`, innermost coordinate first. It is done when its group
/// is waited for.
///
/// A store writes whole units of 16 bytes, as the hardware does. Where a line of the tensor ends within a unit, the
/// bytes after it, up to the next multiple of 16, get what the box has there. The model writes nothing after the
/// tensor's last line, where memory may end.
///
/// # Panics
/// If the model did not make the map, if the map has another rank, if the box does not begin at a multiple of 16 bytes,
/// if a coordinate is negative, if `from` is not aligned, or outside of a kernel.
///
/// # Safety
/// The tensor that the map describes must be in memory. Nothing may use the elements of the box, or the rest of their
/// units, until the store has been waited for.
#[track_caller]
pub unsafe fn tma_store(map: &[u64; 16], at: &[i32], from: u32) {
    check_dependency();
    let map = decode(map, at.len());
    check_first(&map, at);
    assert!(
        at.iter().all(|coordinate| *coordinate >= 0),
        "a TMA store begins at the coordinate {at:?}: only loads begin before the tensor, so store the part of the box \
         that is inside by threads"
    );
    check_alignment(&map, from);
    check_inside(&map, at, MemoryAccess::Store);
    stores().borrow_mut().open.push(Store {
        map,
        at: at.to_vec(),
        from,
        clock: current().clock.borrow().clone(),
        line: current().line(),
    });
}

/// Commits the stores that the thread has issued since its last commit as one group.
///
/// # Panics
/// Outside of a kernel.
#[track_caller]
pub fn bulk_store_commit() {
    let mut stores = stores().borrow_mut();
    let group = std::mem::take(&mut stores.open);
    stores.committed.push_back(group);
}

/// Waits until at most `pending` groups of the thread are in flight: does the stores of all older groups.
///
/// # Panics
/// If a box is not in shared memory, if copies to the box were in flight for the thread when it issued the store, or
/// outside of a kernel.
#[track_caller]
pub fn bulk_store_wait(pending: u32) {
    let thread = current();
    let mut stores = stores().borrow_mut();
    while stores.committed.len() > pending as usize {
        for store in stores.committed.pop_front().unwrap_or_default() {
            let Store {
                map,
                at,
                from,
                clock,
                line,
            } = store;
            let access = Access::new(
                "is read by a TMA store too early, or was filled too early",
                [(&clock, thread.linear)],
            );
            for offset in (0..map.box_bytes()).step_by(UNIT as usize) {
                let (block, from) = locate(swizzled(&map, from, offset), UNIT, UNIT);
                access.check(block, from, UNIT);
                access.check_stores(("a TMA store", Readers::One), block, from, UNIT);
            }
            // The rest of a unit after a line's last element may be unwritten: it lands between lines.
            for_each_inside(&map, &at, LineEnd::Exact, |_, offset| {
                let element = map.element_bytes;
                let (block, from) = locate(swizzled(&map, from, offset), element, element);
                unwritten::note_read(thread, block, (from, element), Reader::TmaStore, line);
            });
            for_each_inside(&map, &at, LineEnd::WholeUnit, |to, offset| {
                let element = map.element_bytes;
                let (block, from) = locate(swizzled(&map, from, offset), element, element);
                let element = element as usize;
                // SAFETY: the caller of `tma_store` promised the tensor; `locate` checked the source.
                unsafe { store_elements(block.shared.at(from), to, element, element) };
            });
        }
    }
}

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has not waited for its stores.
pub(crate) fn thread_ends(thread: &Thread) {
    let Some(Stores(stores)) = thread.models.get() else {
        return;
    };
    let stores = stores.borrow();
    assert!(
        stores.open.is_empty(),
        "the thread ends with TMA stores that it has not committed: commit them and wait for them first"
    );
    assert!(
        stores.committed.is_empty(),
        "the thread ends with {} groups of TMA stores under way, which may still read shared memory: wait for them \
         first",
        stores.committed.len()
    );
}
