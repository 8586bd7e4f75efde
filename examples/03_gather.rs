//! A gather: rows of a table by index, and the error for an index that is not a row.

use cutlet::{Device, Error, Matrix, MatrixMut, Result, gather};

fn main() -> Result<()> {
    let stream = Device::auto().stream()?;
    let (table_rows, columns) = (1000, 64);
    let table: Vec<f32> = (0..table_rows * columns)
        .map(|i| (i / columns) as f32)
        .collect();
    let on_table = stream.upload(&table)?;
    let table = Matrix::row_major(&on_table, table_rows, columns)?;
    let mut output = stream.zeroed::<f32>(4 * columns)?;

    let indices = stream.upload(&[999i32, 3, 3, 500])?;
    gather(
        &stream,
        table,
        &indices,
        MatrixMut::row_major(&mut output, 4, columns)?,
    )?;
    let rows = stream.download(&output)?;
    println!(
        "rows {}, {}, {} and {}",
        rows[0], rows[64], rows[128], rows[192]
    );

    let indices = stream.upload(&[0i32, 1, 1000, 2])?;
    match gather(
        &stream,
        table,
        &indices,
        MatrixMut::row_major(&mut output, 4, columns)?,
    ) {
        Err(error @ Error::IndexOutOfRange { .. }) => println!("as expected: {error}"),
        other => panic!("expected an error for an index beyond the table, found {other:?}"),
    }
    Ok(())
}
