//! `wgmma`: matrix products of a warpgroup, whose operands are found through their descriptors.
//!
//! Each thread notes its instructions; when all 128 threads of a warpgroup wait for them, the last
//! one to come computes what all have noted.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::rc::Rc;

use super::in_flight::Users;
use super::new_series;
use crate::context::{Block, Thread, current};
use crate::knowledge::{Knowledge, Meeting, Series};
use crate::shared::shared_place;
use crate::wait::{WaitKind, yield_until};

/// Threads of a warpgroup.
const THREADS: usize = 128;
/// Rows of A that an instruction reads.
const ROWS: usize = 64;
/// Bytes of k that an instruction reads.
const K_BYTES: usize = 32;
/// How products use shared memory, in a message.
const READ: &str = "is read by wgmma too early, or was filled too early";
/// Bytes of a line of a core matrix.
const UNIT: usize = 16;

/// How an instruction reads one of its operands.
#[derive(Clone, Copy, Debug)]
pub struct WgmmaOperand {
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Whether k is consecutive in memory.
    pub k_major: bool,
    /// Turns 16 bytes of elements into numbers, as many as there are.
    pub decode: fn(&[u8; 16], &mut [f32]),
}

/// An instruction: 64 × `n` sums of products.
#[derive(Clone, Copy, Debug)]
pub struct WgmmaShape {
    /// Columns of sums.
    pub n: usize,
    /// The left operand.
    pub a: WgmmaOperand,
    /// The right operand.
    pub b: WgmmaOperand,
}

/// A thread's sums, which instructions under way add to.
#[derive(Clone, Debug)]
pub struct WgmmaSums(Rc<[Cell<f32>]>);

impl WgmmaSums {
    /// `count` sums without a value: NaN.
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| Cell::new(f32::NAN)).collect())
    }

    /// Sum `v`, as it was at the last wait.
    ///
    /// # Panics
    /// If there is no such sum.
    pub fn get(&self, v: usize) -> f32 {
        self.0[v].get()
    }

    /// Sets sum `v`.
    ///
    /// # Panics
    /// If there is no such sum.
    pub fn set(&self, v: usize, value: f32) {
        self.0[v].set(value);
    }
}

/// An instruction that a thread has issued.
struct Issued {
    sums: WgmmaSums,
    shape: &'static WgmmaShape,
    a: u64,
    b: u64,
    accumulate: bool,
    /// What the thread knew then.
    knew: Knowledge,
}

impl Issued {
    /// Whether two threads mean the same instruction.
    fn agrees(&self, other: &Self) -> bool {
        let form = |shape: &WgmmaShape| {
            let of = |operand: &WgmmaOperand| (operand.element_bytes, operand.k_major);
            (shape.n, of(&shape.a), of(&shape.b))
        };
        form(self.shape) == form(other.shape)
            && (self.a, self.b, self.accumulate) == (other.a, other.b, other.accumulate)
    }
}

/// What one thread has issued and not waited for.
#[derive(Default)]
struct Lane {
    fenced: bool,
    open: Vec<Issued>,
    batches: VecDeque<Vec<Issued>>,
}

/// A warpgroup's instructions, and its meeting place.
pub(crate) struct Warpgroup {
    lanes: [RefCell<Lane>; THREADS],
    arrived: Cell<u32>,
    pending: Cell<u32>,
    phase: Cell<u32>,
    first_thread: u32,
    /// How many batches have been computed, …
    computed: Cell<u32>,
    /// … those as others know of them, …
    batches: Series,
    /// … and where threads learn of them.
    waited: Meeting,
    /// For each unit of the block's shared memory, the last batch that read it, counted from 1.
    last_read: Box<[Cell<u32>]>,
}

/// The warpgroups of a block, made when the first of them issues an instruction.
#[derive(Default)]
pub(crate) struct Warpgroups(OnceCell<Box<[Warpgroup]>>);

impl Warpgroups {
    fn make(block: &Block) -> Box<[Warpgroup]> {
        let units = block.shared.bytes().div_ceil(UNIT as u32) as usize;
        (0..block.threads / THREADS as u32)
            .map(|number| Warpgroup {
                lanes: std::array::from_fn(|_| RefCell::default()),
                arrived: Cell::new(0),
                pending: Cell::new(0),
                phase: Cell::new(0),
                first_thread: number * THREADS as u32,
                computed: Cell::new(0),
                batches: new_series(block),
                waited: Meeting::default(),
                // SAFETY: these are integers.
                last_read: unsafe { Box::new_zeroed_slice(units).assume_init() },
            })
            .collect()
    }
}

/// The thread's warpgroup among those of its block, if it is a whole one.
fn find<'a>(
    warpgroups: &'a [Warpgroup],
    thread: &Thread,
) -> Option<(&'a Warpgroup, &'a RefCell<Lane>)> {
    let warpgroup = warpgroups.get(thread.linear as usize / THREADS)?;
    Some((
        warpgroup,
        &warpgroup.lanes[thread.linear as usize % THREADS],
    ))
}

#[track_caller]
fn running<'a>() -> (&'a Warpgroup, &'a RefCell<Lane>) {
    let thread = current();
    let block: &Block = thread.block();
    let warpgroups = &block.hopper.warpgroups.0;
    match find(warpgroups.get_or_init(|| Warpgroups::make(block)), thread) {
        Some(found) => found,
        None => panic!(
            "wgmma is issued by warpgroups of {THREADS} threads, and the last one of this block is \
             not whole"
        ),
    }
}

/// Opens a batch of instructions.
///
/// # Panics
/// Outside of a whole warpgroup or of a kernel, as do the other functions of `wgmma`.
#[track_caller]
pub fn wgmma_fence() {
    running().1.borrow_mut().fenced = true;
}

/// Issues an instruction: with the operands that the descriptors `a` and `b` describe, sums are
/// replaced, or added to if `accumulate`.
///
/// # Panics
/// If no batch is open.
#[track_caller]
pub fn wgmma(sums: &WgmmaSums, shape: &'static WgmmaShape, a: u64, b: u64, accumulate: bool) {
    let mut lane = running().1.borrow_mut();
    assert!(
        lane.fenced,
        "wgmma needs a fence before the first instruction of a batch"
    );
    lane.open.push(Issued {
        sums: sums.clone(),
        shape,
        a,
        b,
        accumulate,
        knew: current().knows.borrow().clone(),
    });
}

/// Closes the batch.
#[track_caller]
pub fn wgmma_commit() {
    let mut lane = running().1.borrow_mut();
    let batch = std::mem::take(&mut lane.open);
    lane.batches.push_back(batch);
    lane.fenced = false;
}

/// Waits until at most `pending` batches of the warpgroup are under way.
///
/// # Panics
/// If the threads of the warpgroup have issued different instructions or wait for different
/// batches, if an operand is not in shared memory, if bytes are on their way there that a thread had not
/// waited for when it issued the instruction, or if instructions were not committed.
#[track_caller]
pub fn wgmma_wait(pending: u32) {
    let (warpgroup, lane) = running();
    assert!(
        lane.borrow().open.is_empty(),
        "wgmma instructions are waited for that were not committed"
    );
    let arrived = warpgroup.arrived.get() + 1;
    if arrived == 1 {
        warpgroup.pending.set(pending);
    }
    assert!(
        warpgroup.pending.get() == pending,
        "threads of one warpgroup wait until {} and until {pending} batches of wgmma are under way",
        warpgroup.pending.get()
    );
    let phase = warpgroup.phase.get();
    if arrived as usize == THREADS {
        warpgroup.compute(pending as usize);
        warpgroup.arrived.set(0);
        warpgroup.phase.set(phase.wrapping_add(1));
        warpgroup.waited.leave(current());
        return;
    }
    warpgroup.arrived.set(arrived);
    yield_until(
        WaitKind::Cluster,
        format_args!(
            "waits for wgmma with its warpgroup, of which {} threads are there",
            // As it is when the message is written, not when the wait began.
            fmt::from_fn(|f| warpgroup.arrived.get().fmt(f))
        ),
        || warpgroup.phase.get() != phase,
    );
    warpgroup.waited.leave(current());
}

/// The number of a warpgroup that has read some of these bytes of a block by products of which the one who
/// knows so much does not know that they have been waited for.
pub(super) fn unknown_reader(
    block: &Block,
    offset: u32,
    bytes: u32,
    knows: &Knowledge,
) -> Option<usize> {
    let warpgroups = block.hopper.warpgroups.0.get()?;
    let units = offset as usize / UNIT..(offset + bytes).div_ceil(UNIT as u32) as usize;
    warpgroups.iter().position(|warpgroup| {
        let known = knows.ended(warpgroup.batches);
        let last_read = &warpgroup.last_read[units.clone()];
        last_read.iter().any(|batch| batch.get() > known)
    })
}

/// A thread waits for its instructions before it ends.
pub(super) fn thread_ends(thread: &Thread) {
    let warpgroups = thread.block().hopper.warpgroups.0.get();
    let Some((_, lane)) = warpgroups.and_then(|warpgroups| find(warpgroups, thread)) else {
        return;
    };
    let lane = lane.borrow();
    assert!(
        lane.open.is_empty() && lane.batches.iter().all(Vec::is_empty),
        "a thread ends with wgmma instructions under way: wait for them first"
    );
}

impl Warpgroup {
    /// Computes all but the latest `pending` batches.
    #[track_caller]
    fn compute(&self, pending: usize) {
        let count = self.lanes[0].borrow().batches.len();
        for _ in pending..count {
            let batches: Vec<Vec<Issued>> = self
                .lanes
                .iter()
                .map(|lane| lane.borrow_mut().batches.pop_front().unwrap_or_default())
                .collect();
            for batch in &batches[1..] {
                assert!(
                    batch.len() == batches[0].len()
                        && batch.iter().zip(&batches[0]).all(|(a, b)| a.agrees(b)),
                    "threads of one warpgroup have issued different wgmma instructions: all {THREADS} \
                     issue the same ones, with the same descriptors"
                );
            }
            self.computed.set(self.computed.get() + 1);
            self.compute_batch(&batches);
            let ended = (self.batches, self.computed.get());
            self.waited.end(Some(ended));
        }
    }

    /// Computes one batch of every thread. Sums are gathered once for instructions that add to the
    /// same ones.
    #[track_caller]
    fn compute_batch(&self, batches: &[Vec<Issued>]) {
        let mut matrix = Vec::new();
        let mut first = 0;
        while first < batches[0].len() {
            let same = |i: &usize| {
                let (a, b) = (&batches[0][first], &batches[0][*i]);
                Rc::ptr_eq(&a.sums.0, &b.sums.0)
            };
            let end = (first..batches[0].len())
                .take_while(same)
                .last()
                .unwrap_or(first)
                + 1;
            let n = batches[0][first].shape.n;
            matrix.clear();
            matrix.resize(ROWS * n, 0.0);
            for (thread, batch) in batches.iter().enumerate() {
                for (v, sum) in batch[first].sums.0.iter().enumerate() {
                    matrix[index(n, thread, v)] = sum.get();
                }
            }
            for i in first..end {
                let knew = batches.iter().map(|batch| &batch[i].knew);
                let reads = Reads {
                    users: Users::new(READ, knew.zip(self.first_thread..)),
                    batch: self.computed.get(),
                    last_read: &self.last_read,
                };
                multiply(&batches[0][i], &mut matrix, &reads);
            }
            for (thread, batch) in batches.iter().enumerate() {
                for (v, sum) in batch[first].sums.0.iter().enumerate() {
                    sum.set(matrix[index(n, thread, v)]);
                }
            }
            first = end;
        }
    }
}

/// Where in the row-major sums, `n` columns wide, value `v` of a thread is.
fn index(n: usize, thread: usize, v: usize) -> usize {
    let (warp, lane) = (thread / 32, thread % 32);
    let row = 16 * warp + lane / 4 + v / 2 % 2 * 8;
    let column = lane % 4 * 2 + v % 2 + v / 4 * 8;
    row * n + column
}

/// `sums (+)= A·Bᵀ`.
#[track_caller]
fn multiply(issued: &Issued, sums: &mut [f32], reads: &Reads<'_>) {
    let Issued {
        shape,
        a,
        b,
        accumulate,
        ..
    } = *issued;
    let k = K_BYTES / shape.a.element_bytes;
    if !accumulate {
        sums.fill(0.0);
    }
    let a = read(a, &shape.a, ROWS, reads);
    let b = read(b, &shape.b, shape.n, reads);
    let mut columns = vec![0.0; b.len()];
    for (i, value) in b.iter().enumerate() {
        columns[i % k * shape.n + i / k] = *value;
    }
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        unsafe { add_products_avx2(&a, &columns, sums, k, shape.n) };
        return;
    }
    add_products(&a, &columns, sums, k, shape.n);
}

/// [`add_products`], for processors with wider vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_products_avx2(a: &[f32], columns: &[f32], sums: &mut [f32], k: usize, n: usize) {
    add_products(a, columns, sums, k, n);
}

/// Adds the products of `a` (rows of `k`) and `columns` (`k` rows of `n`) to the sums. Products of
/// the element types are exact in `f32`.
#[inline(always)]
fn add_products(a: &[f32], columns: &[f32], sums: &mut [f32], k: usize, n: usize) {
    for (row, sums) in a.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
        for (a, column) in row.iter().zip(columns.chunks_exact(n)) {
            for (sum, b) in sums.iter_mut().zip(column) {
                *sum += a * b;
            }
        }
    }
}

/// How an instruction reads shared memory.
struct Reads<'a> {
    users: Users,
    batch: u32,
    last_read: &'a [Cell<u32>],
}

impl Reads<'_> {
    /// The unit at an address, of a tile whose swizzle spans so many bytes.
    #[track_caller]
    fn unit(&self, address: usize, span: usize) -> [u8; UNIT] {
        // A descriptor has no more than 18 bits of an address.
        let address = address as u32;
        let address = address ^ (address >> 7 & (span as u32 / 16 - 1)) << 4;
        let (block, offset) = shared_place(address, UNIT as u32, UNIT as u32);
        self.users.check(block, offset, UNIT as u32);
        self.last_read[offset as usize / UNIT].set(self.batch);
        // SAFETY: `shared_place` checked the range.
        unsafe { block.shared.at(offset).cast::<[u8; UNIT]>().read() }
    }
}

/// The operand's `mn` rows of k that a descriptor describes.
#[track_caller]
fn read(descriptor: u64, operand: &WgmmaOperand, mn: usize, reads: &Reads<'_>) -> Vec<f32> {
    let field = |bit: u32| (descriptor >> bit & 0x3FFF) as usize * UNIT;
    let (start, leading, stride) = (field(0), field(16), field(32));
    assert!(
        descriptor >> 49 & 7 == 0,
        "a matrix descriptor with a base offset: align the tile so that it is 0"
    );
    let span = match descriptor >> 62 {
        0 => 16,
        1 => 128,
        2 => 64,
        _ => 32,
    };
    let elements = UNIT / operand.element_bytes;
    let k = K_BYTES / operand.element_bytes;
    let leads = span == UNIT || !operand.k_major && mn > span / operand.element_bytes;
    assert!(
        leads || leading <= UNIT,
        "a matrix descriptor with a leading offset of {leading} bytes, which this operand has no use \
         for: bits of an address beyond its lowest 18 get there, such as a block's rank in its cluster"
    );
    let mut numbers = vec![0.0; mn * k];
    let mut unit = [0.0; UNIT];
    if operand.k_major {
        for row in 0..mn {
            for u in 0..k / elements {
                let along_k = if span == 16 { u * leading } else { u * UNIT };
                let offset = row % 8 * span + row / 8 * stride + along_k;
                (operand.decode)(&reads.unit(start + offset, span), &mut unit[..elements]);
                let to = row * k + u * elements;
                numbers[to..to + elements].copy_from_slice(&unit[..elements]);
            }
        }
    } else {
        for column in 0..k {
            for u in 0..mn / elements {
                let units = span / UNIT;
                let offset = if span == 16 {
                    u * stride + column % 8 * UNIT + column / 8 * leading
                } else {
                    u % units * UNIT + u / units * leading + column % 8 * span + column / 8 * stride
                };
                (operand.decode)(&reads.unit(start + offset, span), &mut unit[..elements]);
                for (i, value) in unit[..elements].iter().enumerate() {
                    numbers[(u * elements + i) * k + column] = *value;
                }
            }
        }
    }
    numbers
}
