//! Sums of columns compared with plain loops.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::Result;
use cutlet_instructions::PTX;
use cutlet_instructions::launched::column_sums::{
    COLUMNS, column_sums_2, column_sums_3, column_sums_4,
};
use fastrand::Rng;

use crate::devices;

/// A kernel of any number of stages.
type ColumnSums = Kernel<(i32, Global<f32>, GlobalMut<f32>)>;

#[test]
fn columns_are_summed_through_any_number_of_stages() -> Result<()> {
    let kernels: [&'static ColumnSums; 3] = [&column_sums_2, &column_sums_3, &column_sums_4];
    let mut random = Rng::with_seed(7);
    for device in devices() {
        let stream = device.stream()?;
        for kernel in kernels {
            let function = device.load(&PTX, kernel)?;
            for rows in [0, 1, 16, 17, 50, 1000] {
                let count = rows * COLUMNS as usize;
                // Integers, so that the sums are exact.
                let x: Vec<f32> = (0..count).map(|_| random.i32(-99..99) as f32).collect();
                // A buffer has an element at least.
                let on_device = stream.upload(if x.is_empty() { &[0.0][..] } else { &x })?;
                let mut sums = stream.zeroed::<f32>(COLUMNS as usize)?;
                // SAFETY: there are as many elements as the kernel says.
                unsafe { stream.launch(&function, 1, (rows as i32, &on_device, &mut sums))? };
                for (column, sum) in stream.download(&sums)?.into_iter().enumerate() {
                    let expected = x[column.min(count)..].iter().step_by(COLUMNS as usize);
                    assert_eq!(sum, expected.sum::<f32>(), "column {column} of {rows} rows");
                }
            }
        }
    }
    Ok(())
}
