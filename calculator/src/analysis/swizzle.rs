//! The swizzle with which accesses to shared memory have the fewest conflicts of banks.

use cutlet_layout_core::Swizzle;

use super::access::Warp;
use crate::compose::compose;
use crate::refusal::Refusal;
use crate::value::Value;

/// The swizzle with which the first warp's accesses take the fewest wavefronts together, for elements of `bits` bits.
/// Of several such, it is the one with the fewest bits. If a swizzle cannot help, it is one of 0 bits.
///
/// A swizzle keeps the elements that a thread accesses at once together, and moves them inside of their 128 bytes.
///
/// ```
/// use cutlet_calculator::{analysis::find_swizzle, evaluate};
///
/// // 32 threads read a column of a row-major matrix of f32.
/// let column = evaluate("32:32").unwrap();
/// assert_eq!(find_swizzle(&[column], 32).unwrap().to_string(), "Sw<5,0,5>");
/// ```
///
/// # Errors
/// If an access is no layout of indices, or the width is none that a thread accesses.
pub fn find_swizzle(accesses: &[Value], bits: i64) -> Result<Swizzle, Refusal> {
    let warps = accesses.iter().map(|access| Warp::of(access, bits));
    let warps: Vec<Warp> = warps.collect::<Result<_, _>>()?;
    let last = warps.iter().map(Warp::last_index).max().unwrap_or_default();
    let cost = |swizzle: Swizzle| -> u32 { warps.iter().map(|it| it.wavefronts(swizzle)).sum() };
    let mut best = Swizzle::new(0, 0, 0);
    let mut least = cost(best);
    for swizzle in candidates(&warps, bits, last) {
        let cost = cost(swizzle);
        if cost < least {
            (best, least) = (swizzle, cost);
        }
    }
    Ok(best)
}

/// An access whose indices are swizzled.
///
/// # Errors
/// If the access is no layout.
pub fn swizzled(swizzle: Swizzle, access: &Value) -> Result<Value, Refusal> {
    compose(&swizzle.into(), access)
}

/// The swizzles that change the bank: their targets are bits of the bank, above the elements that are accessed at once,
/// and their sources are bits of indices up to the last one. Those with fewer bits come first.
fn candidates(warps: &[Warp], bits: i64, last: i64) -> impl Iterator<Item = Swizzle> {
    // A word has 2^5 bits, and 2^5 banks follow each other.
    let width = bits.ilog2();
    let first = 5u32.saturating_sub(width);
    let widest = warps.iter().map(|it| it.width().ilog2()).max().unwrap_or(0);
    let (low, high) = (i64::from(first.max(widest)), i64::from(10 - width));
    let end = i64::from(64 - last.leading_zeros());
    (1..=high - low).flat_map(move |count| {
        (low..=high - count).flat_map(move |base| {
            let farthest = end - base - count;
            (count..=farthest).map(move |shift| Swizzle::new(count, base, shift))
        })
    })
}
