//! `wgmma`: matrix products of a warpgroup.
//!
//! Each thread records the instructions that it issues. When all 128 threads of a warpgroup wait for a group, the last
//! one to arrive computes it.

mod product;
mod registers;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::rc::Rc;

use crate::access::Access;
use crate::context::{Block, Thread, current, thread_in_message};
use crate::shared::SharedAddress;
use crate::shown_wait::Awaited;
use crate::suspend::wait_for;
use crate::timelines::{Events, Timelines};
use crate::unwritten::forget_reads;
use crate::vector_clock::{SyncClock, Timeline, VectorClock};
use crate::wait::WaitKind;

use product::{ROWS, Reader, UNIT, index, multiply};
pub use product::{WgmmaArithmetic, WgmmaOperand, WgmmaShape};
pub use registers::WgmmaRegisters;
use registers::{Filled, gather};

/// Threads of a warpgroup.
const THREADS: usize = 128;
/// What an instruction does with shared memory, in a message.
const READ: &str = "is read by wgmma too early, or was filled too early";

/// A thread's accumulators, to which instructions under way add: the bits of `f32` or of `i32`.
#[derive(Clone, Debug)]
pub struct WgmmaSums(Rc<[Cell<u32>]>);

impl WgmmaSums {
    /// `count` accumulators without a value: the bits of NaN.
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| Cell::new(f32::NAN.to_bits())).collect())
    }

    /// Accumulator `v`, as of the last wait.
    ///
    /// # Panics
    /// If there is no such accumulator.
    pub fn get(&self, v: usize) -> u32 {
        self.0[v].get()
    }

    /// Sets accumulator `v`.
    ///
    /// # Panics
    /// If there is no such accumulator.
    pub fn set(&self, v: usize, value: u32) {
        self.0[v].set(value);
    }
}

/// Where an instruction finds its operand A.
#[derive(Clone, Copy, Debug)]
pub enum WgmmaA<'a> {
    /// In shared memory, where this matrix descriptor says.
    Shared(u64),
    /// In the registers of the warpgroup's threads, of which these are the running thread's.
    Registers(&'a WgmmaRegisters),
}

/// The operand A of an instruction that a thread has issued.
enum A {
    Shared(u64),
    Registers(Rc<Filled>),
}

impl A {
    /// Its matrix descriptor, if it is in shared memory.
    fn descriptor(&self) -> Option<u64> {
        match self {
            Self::Shared(descriptor) => Some(*descriptor),
            Self::Registers(_) => None,
        }
    }

    /// The thread's registers, if it is in registers.
    fn registers(&self) -> Option<&Filled> {
        match self {
            Self::Shared(_) => None,
            Self::Registers(registers) => Some(registers),
        }
    }
}

/// An instruction that a thread has issued.
struct Issued {
    sums: WgmmaSums,
    shape: &'static WgmmaShape,
    a: A,
    /// Matrix descriptor of B.
    b: u64,
    accumulate: bool,
    /// The thread's clock when it issued the instruction.
    clock: VectorClock,
}

impl Issued {
    /// Whether two threads have issued the same instruction.
    fn agrees(&self, other: &Self) -> bool {
        let form = |shape: &WgmmaShape| {
            let of = |operand: &WgmmaOperand| (operand.element_bytes, operand.k_major);
            (shape.n, shape.sums, of(&shape.a), of(&shape.b))
        };
        form(self.shape) == form(other.shape)
            && (self.a.descriptor(), self.b, self.accumulate)
                == (other.a.descriptor(), other.b, other.accumulate)
    }
}

/// The instructions that one thread has issued and that were not computed.
#[derive(Default)]
struct Queue {
    fenced: bool,
    /// How many fences the thread has called.
    fences: u32,
    open: Vec<Issued>,
    committed: VecDeque<Vec<Issued>>,
}

/// A warpgroup: the queues of its threads, and their wait.
struct Warpgroup {
    queues: [RefCell<Queue>; THREADS],
    first_thread: u32,
    /// How many threads wait in the current phase.
    arrived: Cell<u32>,
    /// The argument of the waits of the current phase.
    pending: Cell<u32>,
    phase: Cell<u32>,
    /// How many groups have been computed.
    computed: Cell<u32>,
    /// The timeline of the groups.
    timeline: Timeline,
    clock: SyncClock,
    /// For each unit of the block's shared memory, the last group that read it, counted from 1.
    last_read: Box<[Cell<u32>]>,
}

/// The warpgroups of a block, made when the first of them issues an instruction.
#[derive(Default)]
struct Warpgroups(OnceCell<Box<[Warpgroup]>>);

impl Warpgroups {
    fn make(block: &Block) -> Box<[Warpgroup]> {
        let units = block.shared.bytes().div_ceil(UNIT as u32) as usize;
        (0..block.threads / THREADS as u32)
            .map(|number| Warpgroup {
                queues: std::array::from_fn(|_| RefCell::default()),
                first_thread: number * THREADS as u32,
                arrived: Cell::new(0),
                pending: Cell::new(0),
                phase: Cell::new(0),
                computed: Cell::new(0),
                timeline: Timelines::add(block, Events::WgmmaGroups),
                clock: SyncClock::default(),
                // SAFETY: the elements are integers.
                last_read: unsafe { Box::new_zeroed_slice(units).assume_init() },
            })
            .collect()
    }
}

/// The warpgroups of a block; none before the first instruction.
fn warpgroups(block: &Block) -> &[Warpgroup] {
    match block.models.get() {
        Some(Warpgroups(all)) => all.get().map_or(&[], |all| all),
        None => &[],
    }
}

/// A thread's warpgroup and queue, if its warpgroup is whole.
fn find<'a>(
    warpgroups: &'a [Warpgroup],
    thread: &Thread,
) -> Option<(&'a Warpgroup, &'a RefCell<Queue>)> {
    let warpgroup = warpgroups.get(thread.linear as usize / THREADS)?;
    Some((
        warpgroup,
        &warpgroup.queues[thread.linear as usize % THREADS],
    ))
}

/// The running thread's warpgroup and queue.
#[track_caller]
fn running<'a>() -> (&'a Warpgroup, &'a RefCell<Queue>) {
    let thread = current();
    let block = thread.block();
    let Warpgroups(all) = block.models.get_or_default();
    match find(all.get_or_init(|| Warpgroups::make(block)), thread) {
        Some(found) => found,
        None => panic!(
            "wgmma is called by warpgroups of {THREADS} threads, but the thread's warpgroup has {}: launch blocks of \
             a multiple of {THREADS} threads",
            block.threads as usize % THREADS
        ),
    }
}

/// The fence that must precede the first instruction of a group.
///
/// # Panics
/// Outside of a whole warpgroup or of a kernel. So do the other functions of `wgmma`.
#[track_caller]
pub fn wgmma_fence() {
    let mut queue = running().1.borrow_mut();
    queue.fenced = true;
    queue.fences += 1;
}

/// Issues an instruction. The product of the operand `a` and of the operand that the descriptor `b` describes replaces
/// the accumulators, or is added to them if `accumulate`.
///
/// # Panics
/// If there was no fence since the last commit, or since A's registers were filled.
#[track_caller]
pub fn wgmma(
    sums: &WgmmaSums,
    shape: &'static WgmmaShape,
    a: WgmmaA<'_>,
    b: u64,
    accumulate: bool,
) {
    let mut queue = running().1.borrow_mut();
    assert!(
        queue.fenced,
        "wgmma is issued without a fence: call wgmma_fence before the first instruction of a group"
    );
    let a = match a {
        WgmmaA::Shared(descriptor) => A::Shared(descriptor),
        WgmmaA::Registers(registers) => A::Registers(registers.read(queue.fences)),
    };
    queue.open.push(Issued {
        sums: sums.clone(),
        shape,
        a,
        b,
        accumulate,
        clock: current().clock.borrow().clone(),
    });
}

/// Commits the instructions that the thread has issued since its last commit as one group.
#[track_caller]
pub fn wgmma_commit() {
    let mut queue = running().1.borrow_mut();
    let group = std::mem::take(&mut queue.open);
    queue.committed.push_back(group);
    queue.fenced = false;
}

/// Waits until at most `pending` groups of the warpgroup are in flight.
///
/// # Panics
/// - If the threads of the warpgroup have issued different instructions, or wait with different `pending`.
/// - If an operand is not in shared memory.
/// - If copies to an operand were in flight for a thread when that thread issued the instruction.
/// - If instructions were not committed.
#[track_caller]
pub fn wgmma_wait(pending: u32) {
    let (warpgroup, queue) = running();
    assert!(
        queue.borrow().open.is_empty(),
        "the thread waits for wgmma with instructions that it has not committed: call wgmma_commit first"
    );
    let arrived = warpgroup.arrived.get() + 1;
    if arrived == 1 {
        warpgroup.pending.set(pending);
    }
    assert!(
        warpgroup.pending.get() == pending,
        "the thread waits until at most {pending} wgmma groups are in flight, other threads of its warpgroup until at \
         most {}: all must give the same number",
        warpgroup.pending.get()
    );
    let phase = warpgroup.phase.get();
    if arrived as usize == THREADS {
        warpgroup.compute(pending as usize);
        warpgroup.arrived.set(0);
        warpgroup.phase.set(phase.wrapping_add(1));
        current().acquire(&warpgroup.clock);
        return;
    }
    warpgroup.arrived.set(arrived);
    wait_for(
        WaitKind::Cluster,
        Awaited::Warpgroup,
        format_args!(
            "waits for wgmma with its warpgroup, of which {} threads are there",
            // Read when the message is written, not when the wait begins.
            fmt::from_fn(|f| warpgroup.arrived.get().fmt(f))
        ),
        || warpgroup.phase.get() != phase,
    );
    current().acquire(&warpgroup.clock);
}

/// Checks that the running thread may copy to these bytes of a block's shared memory.
///
/// # Panics
/// If a warpgroup has read some of them in a group that the thread has not synchronised with.
#[inline]
#[track_caller]
pub(crate) fn check_not_read(block: &Block, offset: u32, bytes: u32) {
    let warpgroups = warpgroups(block);
    if warpgroups.is_empty() {
        return;
    }
    let thread = current();
    let clock = thread.clock.borrow();
    let units = offset as usize / UNIT..(offset + bytes).div_ceil(UNIT as u32) as usize;
    let reader = warpgroups.iter().position(|warpgroup| {
        let known = clock.completed(warpgroup.timeline);
        let last_read = &warpgroup.last_read[units.clone()];
        last_read.iter().any(|group| group.get() > known)
    });
    if let Some(warpgroup) = reader {
        forget_reads(thread);
        panic!(
            "shared memory at address {} is overwritten too early, or was read too early: warpgroup {warpgroup} of \
             its block has read it by wgmma, and {} has not synchronised since with a thread that waited for these \
             products; a consumer waits until its stage is full, waits for the products, and releases the stage, and \
             the producer waits for that release",
            SharedAddress::of(block, offset),
            thread_in_message(thread.block(), thread.linear)
        );
    }
}

/// To be called by a thread when its kernel body returns.
///
/// # Panics
/// If the thread has not waited for its instructions.
pub(crate) fn thread_ends(thread: &Thread) {
    let Some((_, queue)) = find(warpgroups(thread.block()), thread) else {
        return;
    };
    let queue = queue.borrow();
    assert!(
        queue.open.is_empty() && queue.committed.iter().all(Vec::is_empty),
        "the thread ends with wgmma instructions under way: wait for them first"
    );
}

impl Warpgroup {
    /// Computes all but the latest `pending` groups.
    #[track_caller]
    fn compute(&self, pending: usize) {
        let count = self.queues[0].borrow().committed.len();
        for _ in pending..count {
            let groups: Vec<Vec<Issued>> = self
                .queues
                .iter()
                .map(|queue| queue.borrow_mut().committed.pop_front().unwrap_or_default())
                .collect();
            for group in &groups[1..] {
                assert!(
                    group.len() == groups[0].len()
                        && group.iter().zip(&groups[0]).all(|(a, b)| a.agrees(b)),
                    "threads of one warpgroup have issued different wgmma instructions: all {THREADS} must issue the \
                     same instructions with the same descriptors"
                );
            }
            self.computed.set(self.computed.get() + 1);
            self.compute_group(&groups);
            self.clock
                .publish(Some((self.timeline, self.computed.get())));
        }
    }

    /// Computes one group of every thread. Accumulators are gathered once for neighbouring instructions that add to
    /// the same ones.
    #[track_caller]
    fn compute_group(&self, groups: &[Vec<Issued>]) {
        let mut matrix = Vec::new();
        let mut first = 0;
        while first < groups[0].len() {
            let same = |i: &usize| {
                let (a, b) = (&groups[0][first], &groups[0][*i]);
                Rc::ptr_eq(&a.sums.0, &b.sums.0)
            };
            let end = (first..groups[0].len())
                .take_while(same)
                .last()
                .unwrap_or(first)
                + 1;
            let n = groups[0][first].shape.n;
            matrix.clear();
            matrix.resize(ROWS * n, 0);
            for (thread, group) in groups.iter().enumerate() {
                for (v, sum) in group[first].sums.0.iter().enumerate() {
                    matrix[index(n, thread, v)] = sum.get();
                }
            }
            for i in first..end {
                let clocks = groups.iter().map(|group| &group[i].clock);
                let reader = Reader {
                    access: Access::new(READ, clocks.zip(self.first_thread..)),
                    group: self.computed.get(),
                    last_read: &self.last_read,
                };
                let Issued {
                    shape,
                    ref a,
                    b,
                    accumulate,
                    ..
                } = groups[0][i];
                let a = match a.descriptor() {
                    Some(descriptor) => reader.operand(descriptor, &shape.a, ROWS),
                    // All threads have issued the same instruction.
                    None => gather(
                        shape,
                        groups.iter().filter_map(|group| group[i].a.registers()),
                    ),
                };
                let b = reader.operand(b, &shape.b, shape.n);
                multiply(shape, &a, &b, accumulate, &mut matrix);
            }
            for (thread, group) in groups.iter().enumerate() {
                for (v, sum) in group[first].sums.0.iter().enumerate() {
                    sum.set(matrix[index(n, thread, v)]);
                }
            }
            first = end;
        }
    }
}
