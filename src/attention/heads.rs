//! The operands: tensors of heads, their extents and strides.

use cutlet_device::DeviceData;
use cutlet_host::{Stream, TensorMapSpec};
use cutlet_layout_core::Layout;

use super::NAME;
use crate::into_tensor::one_stride;
use crate::matrix::{disjoint, in_stream};
use crate::{Error, Result, Tensor, TensorMut};

/// The largest extent, so that a query and a window add up to a number of 31 bits.
const MOST: usize = 1 << 29;

/// The tensors of a call.
pub(super) struct Tensors<'t, T: DeviceData> {
    pub queries: Tensor<'t, T>,
    pub keys: Tensor<'t, T>,
    pub values: Tensor<'t, T>,
    pub output: TensorMut<'t, T>,
}

/// What the tensors have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extents {
    pub sequences: usize,
    pub queries: usize,
    pub keys: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub features: usize,
}

/// The extents and strides of a tensor of four modes: (sequence, row, head, feature).
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub extents: [usize; 4],
    pub strides: [usize; 4],
}

pub(super) fn refuse<R>(found: String) -> Result<R> {
    Err(Error::Extents {
        operation: NAME,
        found,
    })
}

/// The extents and strides of `N` modes, each of which has one stride.
pub(super) fn modes<const N: usize>(
    what: &str,
    layout: &Layout,
    names: [&str; N],
) -> Result<[[usize; 2]; N]> {
    let mut all = [[0; 2]; N];
    if layout.rank() != N {
        return refuse(format!(
            "{what} is {}, of {} modes; give a tensor of ({})",
            layout.to_dynamic(),
            layout.rank(),
            names.join(", ")
        ));
    }
    for (mode, of_mode) in all.iter_mut().enumerate() {
        let Some((extent, stride)) = one_stride(layout, mode) else {
            return refuse(format!(
                "{what} is {}, whose mode {mode} ({}) has no single stride; give a tensor whose modes have one each",
                layout.to_dynamic(),
                names[mode]
            ));
        };
        *of_mode = [extent, stride];
    }
    Ok(all)
}

impl Heads {
    /// Those of an operand, as the kernels read and write it.
    pub fn of<T>(what: &str, layout: &Layout, address: u64) -> Result<Self> {
        let modes = modes(what, layout, ["sequence", "row", "head", "feature"])?;
        let (extents, strides) = (modes.map(|it| it[0]), modes.map(|it| it[1]));
        if let Some(extent) = extents.iter().find(|extent| **extent > MOST) {
            return refuse(format!(
                "{what} is {}, and a mode has at most {MOST} elements, not {extent}",
                layout.to_dynamic()
            ));
        }
        let is_unaligned = |(extent, stride): (&usize, &usize)| {
            *extent > 1 && !(stride * size_of::<T>()).is_multiple_of(16)
        };
        let rows = extents[..3].iter().zip(&strides[..3]);
        if extents[3] > 1 && strides[3] != 1
            || !(extents[3] * size_of::<T>()).is_multiple_of(16)
            || rows.clone().any(is_unaligned)
            || !address.is_multiple_of(16)
        {
            return refuse(format!(
                "{what} is {} at {address:#x}; give a tensor with contiguous features, whose heads have multiples of \
                 16 bytes and begin at such",
                layout.to_dynamic()
            ));
        }
        Ok(Self { extents, strides })
    }

    /// The tensor map's tensor: (feature, row, head, sequence).
    pub fn spec<T>(&self) -> TensorMapSpec {
        let [sequences, rows, heads, features] = self.extents.map(|extent| extent as u64);
        // The stride of a mode of one element counts nowhere, and may be none that TMA takes.
        let least = (features as usize * size_of::<T>()).next_multiple_of(16) / size_of::<T>();
        let stride = |mode: usize| match self.extents[mode] {
            1 => least as u64,
            _ => self.strides[mode] as u64,
        };
        TensorMapSpec::rows(rows, features, stride(1))
            .stacked(heads, stride(2))
            .stacked(sequences, stride(0))
    }
}

impl Extents {
    /// Those of queries, keys, values and the output.
    ///
    /// # Errors
    /// If they do not agree.
    pub fn of(tensors: [&Heads; 4]) -> Result<Self> {
        let [queries, keys, values, output] = tensors.map(|it| it.extents);
        let [sequences, count, heads, features] = queries;
        let [_, count_of_keys, heads_of_keys, _] = keys;
        let agree = keys == [sequences, count_of_keys, heads_of_keys, features]
            && values == keys
            && output == queries
            && heads_of_keys > 0
            && heads.is_multiple_of(heads_of_keys);
        if !agree {
            return refuse(format!(
                "the queries have (sequences, queries, heads, features) = {queries:?}, the keys {keys:?}, the values \
                 {values:?}, the output {output:?}; give keys and values of one shape with as many sequences and \
                 features as the queries and a number of heads that divides theirs, and an output of the queries' shape"
            ));
        }
        Ok(Extents {
            sequences,
            queries: count,
            keys: count_of_keys,
            heads,
            heads_of_keys,
            features,
        })
    }
}

impl<T: DeviceData> Tensors<'_, T> {
    /// The tensors as kernels see them, in the order queries, keys, values, output, and their extents.
    ///
    /// # Errors
    /// If extents or strides are none that kernels take, or do not agree.
    pub fn heads(&self) -> Result<([Heads; 4], Extents)> {
        let of = |what, tensor: &Tensor<'_, T>| {
            Heads::of::<T>(what, &tensor.layout, tensor.view.address())
        };
        let all = [
            of("the queries", &self.queries)?,
            of("the keys", &self.keys)?,
            of("the values", &self.values)?,
            of("the output", &self.output.tensor())?,
        ];
        let [queries, keys, values, output] = &all;
        let extents = Extents::of([queries, keys, values, output])?;
        Ok((all, extents))
    }

    /// The tensors that are read, with their names in errors.
    pub fn read(&self) -> [(&'static str, &Tensor<'_, T>); 3] {
        [
            ("the queries", &self.queries),
            ("the keys", &self.keys),
            ("the values", &self.values),
        ]
    }

    /// Returns an error unless the stream may use the tensors, and the output overlaps none of the others.
    pub fn check(&self, stream: &Stream) -> Result<()> {
        let written = self.output.addresses();
        for (what, tensor) in self.read() {
            in_stream(NAME, stream, what, tensor.view)?;
            disjoint(NAME, what, tensor.addresses(), written.clone())?;
        }
        in_stream(NAME, stream, "the output", self.output.view.view())
    }
}
