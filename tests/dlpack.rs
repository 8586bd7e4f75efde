//! DLPack tensors in products: their strides, what lies between their elements, and what is refused. On a GPU if there
//! is one.

use cutlet::dlpack::dlpark::versioned;
use cutlet::dlpack::{Imported, ImportedMut};
use cutlet::{
    Device, Error, HostError, Result, Stream, Tensor, TensorMut, gemm, layout, shape, tile,
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
    let a = Tensor::<f32>::from_dlpack(&a)?;
    let b = Tensor::<f32>::from_dlpack(&b)?;
    assert_eq!(a.layout().to_string(), "(2,3):(1,2)");
    let to = TensorMut::<f32>::from_dlpack(&mut c)?;
    gemm(&stream, 1.0, a, b, 0.0, to)?;

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
    // Other libraries have the batch first.
    let to = TensorMut::<f32>::from_dlpack(&mut c)?.select(&[1, 2, 0])?;
    let (a, b) = (
        Tensor::<f32>::from_dlpack(&a)?,
        Tensor::<f32>::from_dlpack(&b)?,
    );
    gemm(
        &stream,
        1.0,
        a.select(&[1, 2, 0])?,
        b.select(&[1, 2, 0])?,
        0.0,
        to,
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
fn tensors_that_do_not_fit_are_refused() -> Result<()> {
    let stream = Device::auto().stream()?;
    let apart = import(&stream, counted(&stream, &[2, 2], &[6, 2])?)?;
    let apart = Tensor::<f32>::from_dlpack(&apart)?;
    let mut c = output(&stream, &[2, 2], &[2, 1])?;
    let to = TensorMut::<f32>::from_dlpack(&mut c)?;
    let refused = gemm(&stream, 1.0, apart, apart, 0.0, to);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("A is (2,2):(6,2), and neither its rows nor"),
        "{message}"
    );

    let matrix = import(&stream, counted(&stream, &[2, 3], &[3, 1])?)?;
    let message = said(Tensor::<i32>::from_dlpack(&matrix));
    assert!(message.contains("a view of i32 was asked for"), "{message}");

    let empty: versioned::Dlpack = stream.export_dlpack(stream.zeroed::<f32>(0)?, &[2, 0], None)?;
    let message = said(Tensor::<f32>::from_dlpack(&import(&stream, empty)?));
    assert!(message.contains("give it elements"), "{message}");
    Ok(())
}

/// Their memory may be somebody else's.
#[test]
fn nothing_leads_to_elements_between_those_of_a_tensor() -> Result<()> {
    let stream = Device::auto().stream()?;
    // Rows of three elements, ten apart.
    let rows = import(&stream, counted(&stream, &[2, 3], &[10, 1])?)?;
    let rows = Tensor::<f32>::from_dlpack(&rows)?;
    let beyond = |found: Result<Tensor<'_, f32>>| found.unwrap_err().to_string();
    let message = beyond(rows.slice(&shape!((_, 3))));
    assert!(message.contains("outside of its shape"), "{message}");
    let message = beyond(rows.composition(&layout!(2:6)));
    assert!(
        message.contains("leads beyond it; stay within its 6 elements"),
        "{message}"
    );
    let message = beyond(rows.logical_divide(&tile!(<2, 2>)));
    assert!(message.contains("a tiler that divides it"), "{message}");
    let message = beyond(rows.local_tile(&tile!((1, 2)), &shape!((0, 1))));
    assert!(message.contains("a tiler that divides it"), "{message}");
    let message = beyond(rows.local_tile(&tile!((1, 3)), &shape!((2, 0))));
    assert!(message.contains("outside of its shape"), "{message}");
    let message = beyond(rows.select(&[0, 0]));
    assert!(message.contains("name each once"), "{message}");
    assert_eq!(
        rows.local_tile(&tile!((1, 3)), &shape!((1, 0)))?
            .layout()
            .to_string(),
        "(_1,_3):(10,1)"
    );
    Ok(())
}

#[test]
fn written_tensors_have_no_element_twice() -> Result<()> {
    let stream = Device::auto().stream()?;
    for strides in [[0, 1], [2, 1], [1, 1]] {
        let mut matrix = output(&stream, &[2, 3], &strides)?;
        let refused = TensorMut::<f32>::from_dlpack(&mut matrix).unwrap_err();
        assert!(matches!(refused, Error::Tensor { .. }), "{refused}");
    }
    Ok(())
}
