//! Tiled operations, and what their threads have of a tile.

use cutlet_layout_core::{
    ComposedLayout, CopyAtom, CopyTiling, Counting, Layout, MmaTiling, Tiler, TilerKind,
    ValueTensor,
};

use crate::atoms;
use crate::refusal::Refusal;
use crate::tiled::Tiled;
use crate::value::{Sliced, Value};

/// `make_tiled_mma`, `make_tiled_copy`, and the functions of both.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    Ok(Some(match (name, arguments) {
        ("make_tiled_mma", [atom, warps]) => mma(atom, warps, None)?,
        ("make_tiled_mma", [atom, warps, permutation]) => mma(atom, warps, Some(permutation))?,
        ("make_tiled_copy", [atom, threads, values]) => copy(atom, threads, values)?,
        ("make_tiled_copy_A", [atom, mma]) => copy_for(atom, mma, CopyTiling::for_a)?,
        ("make_tiled_copy_B", [atom, mma]) => copy_for(atom, mma, CopyTiling::for_b)?,
        ("make_tiled_copy_C", [atom, mma]) => copy_for(atom, mma, CopyTiling::for_c)?,
        ("wgmma", [n, bits]) => {
            let atom = atoms::wgmma(n.int()?.value(), bits.int()?.value(), "SS")?;
            Tiled::of_mma_atom(atom).into()
        }
        ("universal", [access, bits]) => {
            let atom = atoms::universal(access.int()?.value(), bits.int()?.value())?;
            Tiled::of_copy_atom(atom).into()
        }
        (
            "ldmatrix" | "ldmatrix_transposed" | "stmatrix" | "stmatrix_transposed",
            [matrices, bits],
        ) => {
            let atom = atoms::matrices(name, matrices.int()?.value(), bits.int()?.value())?;
            Tiled::of_copy_atom(atom).into()
        }
        ("tile_shape", [tiled]) => Value::Tuple(tiled.tiled()?.tile()),
        ("get_layoutA_TV", [a]) => Value::Layout(of_mma(a)?.get_layout_a_tv()),
        ("get_layoutB_TV", [a]) => Value::Layout(of_mma(a)?.get_layout_b_tv()),
        ("get_layoutC_TV", [a]) => Value::Layout(of_mma(a)?.get_layout_c_tv()),
        ("get_layoutS_TV", [a]) => Value::Layout(of_copy(a)?.get_layout_s_tv()),
        ("get_layoutD_TV", [a]) => Value::Layout(of_copy(a)?.get_layout_d_tv()),
        ("partition_A", [mma, a, thread]) => {
            of_thread(of_mma(mma)?.partition_a(tensor(a)?, thread.int()?.value()))
        }
        ("partition_B", [mma, b, thread]) => {
            of_thread(of_mma(mma)?.partition_b(tensor(b)?, thread.int()?.value()))
        }
        ("partition_C", [mma, c, thread]) => {
            of_thread(of_mma(mma)?.partition_c(tensor(c)?, thread.int()?.value()))
        }
        ("partition_S", [copy, source, thread]) => {
            of_thread(of_copy(copy)?.partition_s(tensor(source)?, thread.int()?.value()))
        }
        ("partition_D", [copy, destination, thread]) => {
            of_thread(of_copy(copy)?.partition_d(tensor(destination)?, thread.int()?.value()))
        }
        _ => return Ok(None),
    }))
}

fn of_mma(value: &Value) -> Result<MmaTiling, Refusal> {
    match value.tiled()? {
        Tiled::Mma(mma) => Ok(**mma),
        Tiled::Copy(_) => Err(value.not("a tiled MMA")),
    }
}

fn of_copy(value: &Value) -> Result<CopyTiling, Refusal> {
    match value.tiled()? {
        Tiled::Copy(copy) => Ok(**copy),
        Tiled::Mma(_) => Err(value.not("a tiled copy")),
    }
}

/// The instruction `atom` by the warps of a layout (m, n) or (m, n, k).
pub(crate) fn mma(
    atom: &Value,
    warps: &Value,
    permutation: Option<&Value>,
) -> Result<Value, Refusal> {
    let atom = *of_mma(atom)?.atom();
    let mut modes = modes_of(&warps.layout()?.to_static());
    while modes.len() < 3 {
        modes.push(Layout::static_mode(1, 0));
    }
    let mma = MmaTiling::new(atom, &Layout::try_concat(&modes)?);
    let permuted = match permutation {
        Some(permutation) => mma.permuted(tilers(permutation)?),
        None => mma,
    };
    Ok(Tiled::from(permuted).into())
}

/// The tilers of M, N and K. Those that are not given leave their direction as it is.
fn tilers(permutation: &Value) -> Result<[Tiler; 3], Refusal> {
    let given: Vec<Tiler> = match permutation {
        Value::Layout(layout) => modes_of(layout).iter().map(Tiler::layout).collect(),
        other => {
            let tiler = other.tiler()?;
            match tiler.kind() {
                TilerKind::Underscore => Vec::new(),
                _ => (0..tiler.rank()).map(|i| tiler.mode(i)).collect(),
            }
        }
    };
    if given.len() > 3 {
        return Err(Refusal::new(format!(
            "a permutation has tilers for M, N and K, but {permutation} has {} modes",
            given.len()
        )));
    }
    let mut tilers = [Tiler::UNDERSCORE; 3];
    for (to, from) in tilers.iter_mut().zip(given) {
        *to = from.to_static();
    }
    Ok(tilers)
}

/// The copy instruction `atom` by threads and values in rows and columns.
pub(crate) fn copy(atom: &Value, threads: &Value, values: &Value) -> Result<Value, Refusal> {
    let atom = *of_copy(atom)?.atom();
    let [threads, values] = [threads.layout()?, values.layout()?].map(|it| it.to_static());
    Ok(Tiled::from(CopyTiling::new(atom, &threads, &values)).into())
}

fn copy_for(
    atom: &Value,
    mma: &Value,
    tiling: fn(CopyAtom, &MmaTiling) -> CopyTiling,
) -> Result<Value, Refusal> {
    let atom = *of_copy(atom)?.atom();
    Ok(Tiled::from(tiling(atom, &of_mma(mma)?)).into())
}

fn modes_of(layout: &Layout) -> Vec<Layout> {
    (0..layout.rank()).map(|i| layout.mode(i)).collect()
}

fn tensor(layout: &Value) -> Result<ValueTensor<Counting, ()>, Refusal> {
    let sliced = layout.sliced()?;
    Ok(ValueTensor::composed(
        Counting,
        ComposedLayout::new((), sliced.offset, sliced.layout),
    ))
}

/// A part of a tensor as the layout of its elements, and where it begins.
fn of_thread(part: ValueTensor<Counting, ()>) -> Value {
    let offset = *part.layout().offset();
    Value::Sliced(Box::new(Sliced {
        layout: *part.outer(),
        offset,
    }))
}
