//! Threads that use tensors at the same time, each in the stream that candle has for it.

use candle_core::{DType, Result};
use cutlet_candle::matmul;

use crate::close::{assert_close, in_f64};
use crate::on_device::random;

#[test]
fn threads_come_and_go() -> Result<()> {
    let work = |seed: u64| -> Result<()> {
        // A long k, which few tiles split among them.
        let (a, b) = (
            random(seed, (8, 512), DType::BF16)?,
            random(seed + 1, (512, 16), DType::BF16)?,
        );
        let exact = in_f64(&a)?.matmul(&in_f64(&b)?)?;
        for _ in 0..5 {
            assert_close(&matmul(&a, &b)?, &exact, 0.02)?;
        }
        Ok(())
    };
    for round in 0..3 {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|nth| scope.spawn(move || work(10 * round + nth)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|it| it.join().expect("a thread panicked"))
        })?;
    }
    Ok(())
}
