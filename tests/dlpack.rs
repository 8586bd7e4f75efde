//! Matrices of DLPack tensors in a product: their strides, what lies between their elements, and what is refused. On a
//! GPU if there is one.

use cutlet::dlpack::dlpark::versioned;
use cutlet::dlpack::{Imported, ImportedMut};
use cutlet::{
    Device, Error, HostError, Matrix, MatrixBatch, MatrixBatchMut, MatrixMut, Order, Result,
    Stream, gemm, gemm_batched,
};

/// What C has where nothing writes it.
const UNTOUCHED: f32 = 77.0;

/// A tensor of whole numbers from 0 on, one for each element of its memory.
fn counted(stream: &Stream, shape: &[usize], strides: &[usize]) -> Result<versioned::Dlpack> {
    let reached = shape
        .iter()
        .zip(strides)
        .map(|(extent, stride)| (extent - 1) * stride);
    let len = reached.sum::<usize>() + 1;
    let elements: Vec<f32> = (0..len).map(|i| i as f32).collect();
    Ok(stream.export_dlpack(stream.upload(&elements)?, shape, Some(strides))?)
}

/// Imports a tensor for reading.
fn import(stream: &Stream, tensor: versioned::Dlpack) -> Result<Imported<'_>> {
    // SAFETY: the tensor is a buffer of the device, which nothing else uses.
    Ok(unsafe { Imported::new(stream, tensor)? })
}

/// A tensor for writing, in memory that is untouched.
fn output<'s>(stream: &'s Stream, shape: &[usize], strides: &[usize]) -> Result<ImportedMut<'s>> {
    let buffer = stream.upload(&[UNTOUCHED; 24])?;
    let tensor: versioned::Dlpack = stream.export_dlpack(buffer, shape, Some(strides))?;
    // SAFETY: as in `import`.
    Ok(unsafe { ImportedMut::new(stream, tensor)? })
}

#[test]
fn tensors_of_any_leading_dimension_are_multiplied() -> Result<()> {
    let stream = Device::auto().stream()?;
    // (0 2 4; 1 3 5), by columns, times (0 1; 4 5; 8 9), whose rows are 4 apart.
    let a = import(&stream, counted(&stream, &[2, 3], &[1, 2])?)?;
    let b = import(&stream, counted(&stream, &[3, 2], &[4, 1])?)?;
    let mut c = output(&stream, &[2, 2], &[5, 1])?;
    let a = Matrix::<f32>::from_dlpack(&a)?;
    let b = Matrix::<f32>::from_dlpack(&b)?;
    assert_eq!(
        (a.rows(), a.columns(), a.order(), a.ld()),
        (2, 3, Order::ColMajor, 2)
    );
    assert_eq!(
        (b.rows(), b.columns(), b.order(), b.ld()),
        (3, 2, Order::RowMajor, 4)
    );
    gemm(
        &stream,
        1.0,
        a,
        b,
        0.0,
        MatrixMut::<f32>::from_dlpack(&mut c)?,
    )?;

    // SAFETY: what lies between the rows has values.
    let found = stream.download(unsafe { c.span::<f32>()? })?;
    let gap = [UNTOUCHED; 3];
    assert_eq!(found, [&[40.0, 46.0], &gap[..], &[52.0, 61.0]].concat());
    Ok(())
}

#[test]
fn tensors_of_three_dimensions_are_batches() -> Result<()> {
    let stream = Device::auto().stream()?;
    // One matrix three times, times three matrices whose rows lie side by side.
    let a = import(&stream, counted(&stream, &[3, 2, 2], &[0, 2, 1])?)?;
    let b = import(&stream, counted(&stream, &[3, 2, 1], &[1, 3, 1])?)?;
    let mut c = output(&stream, &[3, 2, 1], &[2, 1, 1])?;
    let a = MatrixBatch::<f32>::from_dlpack(&a)?;
    let b = MatrixBatch::<f32>::from_dlpack(&b)?;
    assert_eq!((a.count(), a.stride(), a.rows(), a.columns()), (3, 0, 2, 2));
    gemm_batched(
        &stream,
        1.0,
        a,
        b,
        0.0,
        MatrixBatchMut::<f32>::from_dlpack(&mut c)?,
    )?;
    // (0 1; 2 3) times (0; 3), (1; 4) and (2; 5).
    assert_eq!(
        stream.download(c.view::<f32>()?)?,
        [3.0, 9.0, 4.0, 14.0, 5.0, 19.0]
    );
    Ok(())
}

/// The message of a refusal.
fn said<T>(refused: Result<T>) -> String {
    let error = refused.err().expect("the tensor is refused");
    assert!(
        matches!(error, Error::Host(HostError::Dlpack { .. })),
        "{error}"
    );
    error.to_string()
}

#[test]
fn tensors_that_are_no_matrices_are_refused() -> Result<()> {
    let stream = Device::auto().stream()?;
    let apart = import(&stream, counted(&stream, &[2, 3], &[6, 2])?)?;
    let message = said(Matrix::<f32>::from_dlpack(&apart));
    for part in [
        "a matrix was asked for, but this is a DLPack tensor of f32 with shape (2, 3) and strides (6, 2)",
        "give two dimensions, of which one has stride 1",
    ] {
        assert!(message.contains(part), "{message}");
    }
    let batch = said(MatrixBatch::<f32>::from_dlpack(&apart));
    assert!(
        batch.contains("a batch of matrices was asked for"),
        "{batch}"
    );
    assert!(batch.contains("give three dimensions"), "{batch}");

    let vectors = import(&stream, counted(&stream, &[2, 3, 4], &[12, 4, 1])?)?;
    let message = said(Matrix::<f32>::from_dlpack(&vectors));
    assert!(message.contains("shape (2, 3, 4)"), "{message}");

    let matrix = import(&stream, counted(&stream, &[2, 3], &[3, 1])?)?;
    let message = said(Matrix::<i32>::from_dlpack(&matrix));
    assert!(message.contains("a view of i32 was asked for"), "{message}");
    Ok(())
}

#[test]
fn written_matrices_have_no_element_in_common() -> Result<()> {
    let stream = Device::auto().stream()?;
    for strides in [[0, 1], [2, 1], [1, 1]] {
        let mut matrix = output(&stream, &[2, 3], &strides)?;
        said(MatrixMut::<f32>::from_dlpack(&mut matrix));
    }
    let mut batch = output(&stream, &[2, 2, 3], &[0, 3, 1])?;
    let refused = MatrixBatchMut::<f32>::from_dlpack(&mut batch).unwrap_err();
    assert!(matches!(refused, Error::Batch { .. }), "{refused}");
    Ok(())
}
