//! Reductions compared with plain loops.

use std::fmt::Debug;

use cutlet_host::Result;
use cutlet_instructions::PTX;
use cutlet_instructions::launched::reductions::{LANES, RESULTS, THREADS, reduce};
use fastrand::Rng;

use crate::devices;

/// Compares the results of all threads.
fn check<T: Copy + Debug + PartialEq>(
    numbers: &[i32],
    found: &[T],
    of: fn(i32) -> T,
    largest: fn(&[i32]) -> i32,
    smallest: fn(&[i32]) -> i32,
) {
    for (thread, found) in found.chunks(RESULTS).enumerate() {
        for (nth, lanes) in LANES.into_iter().chain([THREADS]).enumerate() {
            let first = thread / lanes as usize * lanes as usize;
            let part = &numbers[first..][..lanes as usize];
            let expected = [part.iter().sum(), largest(part), smallest(part)].map(of);
            let found = &found[3 * nth..][..3];
            assert_eq!(found, expected, "{lanes} lanes of thread {thread}");
        }
    }
}

#[test]
fn lanes_and_blocks_are_reduced() -> Result<()> {
    let mut random = Rng::with_seed(3);
    let numbers: Vec<i32> = (0..THREADS).map(|_| random.i32(-9999..9999)).collect();
    let most = |part: &[i32]| *part.iter().max().unwrap();
    let least = |part: &[i32]| *part.iter().min().unwrap();
    let most_of_words = |part: &[i32]| *part.iter().max_by_key(|&&number| number as u32).unwrap();
    let least_of_words = |part: &[i32]| *part.iter().min_by_key(|&&number| number as u32).unwrap();
    for device in devices() {
        let function = device.load(&PTX, &reduce)?;
        let stream = device.stream()?;
        let on_device = stream.upload(&numbers)?;
        let count = THREADS as usize * RESULTS;
        let (mut ints, mut words) = (stream.zeroed(count)?, stream.zeroed(count)?);
        let (mut floats, mut doubles) = (stream.zeroed(count)?, stream.zeroed(count)?);
        let args = (&on_device, &mut ints, &mut words, &mut floats, &mut doubles);
        // SAFETY: there are as many elements as the kernel says.
        unsafe { stream.launch(&function, 1, args)? };
        check(&numbers, &stream.download(&ints)?, |n| n, most, least);
        let words = stream.download(&words)?;
        check(
            &numbers,
            &words,
            |n| n as u32,
            most_of_words,
            least_of_words,
        );
        check(
            &numbers,
            &stream.download(&floats)?,
            |n| n as f32,
            most,
            least,
        );
        check(
            &numbers,
            &stream.download(&doubles)?,
            f64::from,
            most,
            least,
        );
    }
    Ok(())
}
