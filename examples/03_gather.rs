//! A gather: rows of a table by index, and the error for an index that is not a row.

use cutlet::{Device, DeviceTensor, Error, Result, gather_checked};

fn main() -> Result<()> {
    let stream = Device::auto().stream()?;
    let (table_rows, columns) = (1000, 64);
    let table: Vec<f32> = (0..table_rows * columns)
        .map(|i| (i / columns) as f32)
        .collect();
    let table = DeviceTensor::upload(&stream, &table, [table_rows, columns])?;
    let mut output = DeviceTensor::<f32>::zeroed(&stream, [4, columns])?;

    let indices = stream.upload(&[999i32, 3, 3, 500])?;
    gather_checked(&stream, &table, &indices, &mut output)?;
    let rows = output.download(&stream)?;
    println!(
        "rows {}, {}, {} and {}",
        rows[0], rows[64], rows[128], rows[192]
    );

    let indices = stream.upload(&[0i32, 1, 1000, 2])?;
    match gather_checked(&stream, &table, &indices, &mut output) {
        Err(error @ Error::IndexOutOfRange { .. }) => println!("as expected: {error}"),
        other => panic!("expected an error for an index beyond the table, found {other:?}"),
    }
    Ok(())
}
