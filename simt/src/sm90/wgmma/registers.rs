//! Operand A in registers, instead of shared memory.

use std::rc::Rc;

use super::product::{K_BYTES, ROWS, UNIT, WgmmaShape};
use super::running;

/// A thread's registers with elements of A, which instructions under way read.
#[derive(Debug)]
pub struct WgmmaRegisters(Rc<Filled>);

/// Registers, and when they were filled.
#[derive(Debug)]
pub(super) struct Filled {
    words: [u32; 4],
    /// How many fences the thread had called before.
    fences: u32,
}

impl WgmmaRegisters {
    /// Registers that the running thread fills with these words.
    ///
    /// # Panics
    /// As [`wgmma_fence`](super::wgmma_fence).
    #[track_caller]
    pub fn new(words: [u32; 4]) -> Self {
        let fences = running().1.borrow().fences;
        Self(Rc::new(Filled { words, fences }))
    }

    /// The registers, for an instruction after `fences` fences.
    ///
    /// # Panics
    /// If there was no fence since the registers were filled.
    #[track_caller]
    pub(super) fn read(&self, fences: u32) -> Rc<Filled> {
        assert!(
            self.0.fences < fences,
            "wgmma reads registers of A that were filled after its fence: fill them before warpgroup_arrive"
        );
        self.0.clone()
    }

    /// To be called when the thread no longer needs the registers.
    ///
    /// # Panics
    /// If an instruction under way reads the registers, unless the thread unwinds.
    pub fn release(&self) {
        assert!(
            Rc::strong_count(&self.0) == 1 || std::thread::panicking(),
            "registers of A are given up while a wgmma reads them: keep them until the thread has waited for its group"
        );
    }
}

/// The rows of k of A, which the threads of a warpgroup have in registers.
pub(super) fn gather<'a>(
    shape: &WgmmaShape,
    threads: impl Iterator<Item = &'a Filled>,
) -> Vec<f32> {
    let k = K_BYTES / shape.a.element_bytes;
    let mut numbers = vec![0.0; ROWS * k];
    let mut own = [0.0; UNIT];
    for (thread, filled) in threads.enumerate() {
        let mut bytes = [0; UNIT];
        for (to, word) in bytes.chunks_exact_mut(4).zip(filled.words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let own = &mut own[..UNIT / shape.a.element_bytes];
        (shape.a.decode)(&bytes, own);
        for (v, number) in own.iter().enumerate() {
            numbers[index(k, thread, v)] = *number;
        }
    }
    numbers
}

/// Index of element `v` of a thread in the row-major matrix A, which has `k` columns.
fn index(k: usize, thread: usize, v: usize) -> usize {
    let (warp, lane) = (thread / 32, thread % 32);
    let in_register = k / 8;
    let (register, i) = (v / in_register, v % in_register);
    let row = 16 * warp + lane / 4 + register % 2 * 8;
    let column = (register / 2 * 4 + lane % 4) * in_register + i;
    row * k + column
}
