//! Tensors of many modes, multiplied in einsum's notation: attention's scores and outputs from slices of one tensor of
//! queries, keys and values, without a copy.

use cutlet::{Contraction, Device, DeviceTensor, Result, shape};

fn main() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;

    // (batch, sequence, query key or value, head, dimension). Queries, keys and values lie side by side.
    let elements: Vec<f32> = (0..2 * 64 * 3 * 4 * 16)
        .map(|i| (i % 7) as f32 - 3.0)
        .collect();
    let qkv = DeviceTensor::upload(&stream, &elements, [2, 64, 3, 4, 16])?;
    let qkv = qkv.tensor();
    let queries = qkv.slice(&shape!((_, _, 0, _, _)))?;
    let keys = qkv.slice(&shape!((_, _, 1, _, _)))?;
    let values = qkv.slice(&shape!((_, _, 2, _, _)))?;
    println!("queries: {}", queries.layout());

    // Scores of each batch and head, without softmax.
    let mut scores = DeviceTensor::<f32>::zeroed(&stream, [2, 4, 64, 64])?;
    let mut product = Contraction::new("bshd,bthd->bhst", queries, keys, &mut scores)?;
    print!("scores:\n{}", product.explain(&stream)?);
    product.alpha(0.25).run(&stream)?;

    // Outputs, with heads side by side again.
    let mut outputs = DeviceTensor::<f32>::zeroed(&stream, [2, 64, 4, 16])?;
    let mut product = Contraction::new("bhst,bthd->bshd", &scores, values, &mut outputs)?;
    print!("outputs:\n{}", product.explain(&stream)?);
    product.run(&stream)?;

    // One output by loops.
    let at = |b: usize, s: usize, which: usize, h: usize, d: usize| {
        elements[12288 * b + 192 * s + 64 * which + 16 * h + d]
    };
    let (b, s, h, d) = (1, 63, 2, 5);
    let score = |t| {
        0.25 * (0..16)
            .map(|d| at(b, s, 0, h, d) * at(b, t, 1, h, d))
            .sum::<f32>()
    };
    let expected: f32 = (0..64).map(|t| score(t) * at(b, t, 2, h, d)).sum();
    let found = outputs.download(&stream)?[4096 * b + 64 * s + 16 * h + d];
    println!("{found} on {}", device.describe());
    assert_eq!(found, expected);
    Ok(())
}
