//! Runs a function on several items at the same time.

use std::panic;
use std::thread;

/// Returns what `work` returns for each item, in the order of the items, or the first error in that order. Each item
/// has a thread.
pub(crate) fn at_once<T: Sync, R: Send, E: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = items
            .iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        running
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => panic::resume_unwind(panic),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors_are_in_the_order_of_items() {
        let halve = |number: &u32| match number % 2 {
            0 => Ok(number / 2),
            _ => Err(*number),
        };
        assert_eq!(at_once(&[2, 4, 6], halve), Ok(vec![1, 2, 3]));
        assert_eq!(at_once(&[2, 5, 4, 3], halve), Err(5));
        assert_eq!(at_once(&[], halve), Ok(vec![]));
    }
}
