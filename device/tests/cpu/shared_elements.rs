//! Elements that several threads store to at the same time: added by [`RedAdd`], and replaced through [`Relaxed`].

use cutlet_device::{GlobalMut, RedAdd, RedAddElement, Relaxed, thread_idx};
use cutlet_layout_core::EngineMut;
use half::{bf16, f16};

use crate::fixture::{failure, launch, says};

/// Memory that is aligned for the widest access.
#[repr(align(16))]
struct Aligned<T, const N: usize>([T; N]);

/// Sums of a vector by each of 64 threads in each of two blocks.
fn sums<T: RedAddElement, const N: usize>(zero: T, vector: [T; N]) -> [T; N] {
    let mut elements = Aligned([zero; N]);
    let to = RedAdd::to(GlobalMut::from_ptr(elements.0.as_mut_ptr()));
    // SAFETY: the elements exist, and threads use them only by additions.
    launch(64, 2, 1, || unsafe { to.store_vector(0, vector) }).unwrap();
    elements.0
}

#[test]
fn additions_of_all_threads_count() {
    assert_eq!(
        sums(1.0f32, [1.0, 0.5, -2.0, 4.0]),
        [129.0, 65.0, -255.0, 513.0]
    );
    assert_eq!(sums(1.0f32, [0.25]), [33.0]);
    let half = |x: [f32; 2]| x.map(f16::from_f32);
    let zero = half([0.0, 1.0]);
    let found = sums(zero, [half([1.0, 2.0]), half([0.5, -1.0])]);
    assert_eq!(found, [half([128.0, 257.0]), half([64.0, -127.0])]);
    assert_eq!(
        sums(bf16::ZERO, [bf16::from_f32(0.5)]),
        [bf16::from_f32(64.0)]
    );
    // A bf16 has 8 bits: 256 + 1 is 256.
    assert_eq!(
        sums(bf16::from_f32(256.0), [bf16::ONE]),
        [bf16::from_f32(256.0)]
    );
}

#[test]
fn a_vector_that_is_added_must_be_aligned() {
    let mut elements = Aligned([0.0f32; 8]);
    let to = RedAdd::to(GlobalMut::from_ptr(elements.0.as_mut_ptr()));
    // SAFETY: the elements exist. The CPU backend ends a kernel with an access that is not aligned.
    let launched = launch(32, 1, 1, || unsafe { to.store_vector(2, [1.0; 4]) });
    says(&failure(launched), &["not a multiple of 16"]);
}

#[test]
fn one_of_the_relaxed_stores_stays() {
    let mut elements = Aligned([u32::MAX; 4]);
    let to = Relaxed::of(GlobalMut::from_ptr(elements.0.as_mut_ptr()));
    // SAFETY: the elements exist, and threads only store to them.
    launch(64, 2, 1, || unsafe {
        to.store_vector(0, [thread_idx().get(); 4]);
    })
    .unwrap();
    assert!(elements.0.iter().all(|&found| found < 64));
}

/// A plain store beside relaxed ones is a race, and so is a load.
#[test]
fn other_accesses_still_race() {
    let mut element = 0u32;
    let memory = GlobalMut::from_ptr(&raw mut element);
    let raced = launch(64, 1, 1, || {
        // SAFETY: the element exists. The CPU backend ends a kernel that has a race.
        unsafe {
            match thread_idx().is_first() {
                true => memory.store(0, 1),
                false => Relaxed::of(memory).store(0, 2),
            }
        }
    });
    says(&failure(raced), &["race", "an atomic store"]);
}
