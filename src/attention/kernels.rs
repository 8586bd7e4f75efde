//! The kernels: which ones run on a device, and their launches.

use cutlet_host::{Device, LaunchConfig, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::attention::args::OperandStrides;
use cutlet_kernels::attention::score_mod::{Modifications, ScoreMod, Unmodified};
use cutlet_kernels::attention::{sm80, sm90};
use half::{bf16, f16};

use super::heads::{Heads, Tensors, refuse};
use super::launch::Call;
use super::{AttentionElement, NAME};
use crate::{Error, Result};

/// Kernels of [`Attention`](crate::Attention).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionKernels {
    /// By `mma.sync`, for GPUs from compute capability 8.0 on.
    Sm80,
    /// By `wgmma` and TMA, for Hopper (compute capability 9.0).
    Sm90,
}

impl AttentionKernels {
    /// The kernels for a device, or those that are asked for.
    ///
    /// # Errors
    /// If the program or the device has none.
    pub(super) fn of(device: &Device, asked: Option<Self>) -> Result<Self> {
        expect_built()?;
        let Some(capability) = device.compute_capability() else {
            return Ok(asked.unwrap_or(AttentionKernels::Sm90));
        };
        let is_hopper = capability == (9, 0);
        let kernels = asked.unwrap_or(match is_hopper {
            true => AttentionKernels::Sm90,
            false => AttentionKernels::Sm80,
        });
        let asked = match kernels {
            AttentionKernels::Sm90 if !is_hopper => {
                "attention by wgmma, whose kernels are for Hopper (compute capability 9.0),"
            }
            AttentionKernels::Sm80 if capability < (8, 0) => {
                "attention by mma.sync, which needs compute capability 8.0,"
            }
            _ => return Ok(kernels),
        };
        let (major, minor) = capability;
        Err(Error::Device {
            asked,
            found: format!("{}, compute capability {major}.{minor}", device.describe()),
        })
    }
}

/// Refuses a program without the kernels.
pub(super) fn expect_built() -> Result<()> {
    match cfg!(feature = "attention") {
        true => Ok(()),
        false => Err(Error::NotBuilt {
            operation: NAME,
            family: "attention",
            feature: "attention",
        }),
    }
}

/// The kernels for an element type.
pub trait Kernels: TensorMapElement {
    /// Hopper's that leave scores as they are.
    const SM90: &'static [sm90::instances::Instance<Self, Unmodified>];
    /// Hopper's that modify scores.
    const SM90_MODIFIED: &'static [sm90::instances::Instance<Self, Modifications>];
    /// Those since Ampere that leave scores as they are.
    const SM80: &'static [sm80::instances::Instance<Self, Unmodified>];
    /// Those since Ampere that modify scores.
    const SM80_MODIFIED: &'static [sm80::instances::Instance<Self, Modifications>];
    /// Hopper's of the backward pass.
    const BACKWARD: &'static [&'static sm90::backward::instances::Instance<Self>];
}

macro_rules! kernels {
    ($($element:ty: $plain:ident, $modified:ident;)+) => {$(
        impl Kernels for $element {
            const SM90: &'static [sm90::instances::Instance<Self, Unmodified>] = sm90::instances::$plain;
            const SM90_MODIFIED: &'static [sm90::instances::Instance<Self, Modifications>] =
                sm90::instances::$modified;
            const SM80: &'static [sm80::instances::Instance<Self, Unmodified>] = sm80::instances::$plain;
            const SM80_MODIFIED: &'static [sm80::instances::Instance<Self, Modifications>] =
                sm80::instances::$modified;
            const BACKWARD: &'static [&'static sm90::backward::instances::Instance<Self>] =
                sm90::backward::instances::$plain;
        }
    )+};
}
kernels! {
    bf16: BF16, BF16_MODIFIED;
    f16: F16, F16_MODIFIED;
}

/// The first instance for heads of so many features.
fn for_features<I>(
    instances: &'static [I],
    most: impl Fn(&I) -> usize,
    features: usize,
) -> Result<&'static I> {
    match instances.iter().find(|it| features <= most(it)) {
        Some(instance) => Ok(instance),
        None => refuse(format!("heads have {features} features; give up to 256")),
    }
}

impl Call<'_> {
    /// Launches one of Hopper's kernels.
    pub fn launch_sm90<T: AttentionElement, M: ScoreMod>(
        mut self,
        instances: &'static [sm90::instances::Instance<T, M>],
        score_mod: M,
        tensors: &mut Tensors<'_, T>,
    ) -> Result<()> {
        let features = for_features(instances, |it| it.features, self.extents.features)?.features;
        let instance = (instances.iter())
            .filter(|it| it.features == features)
            .reduce(|best, it| {
                let cost = |it: &sm90::instances::Instance<T, M>| {
                    self.cost_of_keys(it.queries, it.keys as u32)
                };
                match cost(it) < cost(best) {
                    true => it,
                    false => best,
                }
            })
            .expect("there are instances for these features");
        self.args.tiles = self.tiles(instance.queries);
        let [queries, keys, values, _] = self.heads.map(|it| it.spec::<T>());
        let [box_of_queries, box_of_keys, box_of_values] = instance.boxes;
        let maps = (
            queries.encode(tensors.queries.view, box_of_queries)?,
            keys.encode(tensors.keys.view, box_of_keys)?,
            values.encode(tensors.values.view, box_of_values)?,
        );
        // TMA gets addresses alone.
        for (what, tensor) in tensors.read() {
            tensor.view.use_in(self.stream, NAME, what)?;
        }
        let device = self.stream.device();
        let function = device.load(&PTX, instance.kernel)?;
        let blocks = self.args.tiles.count().min(device.multiprocessors());
        let output = tensors.output.view.reborrow();
        let args = (maps.0, maps.1, maps.2, output, self.args, score_mod);
        // SAFETY: extents and strides are those of the tensors, which were checked against their memory. The output
        // overlaps none of the others. The kernel clamps the rows of packed sequences to the tensors'.
        unsafe {
            self.stream
                .launch(&function, LaunchConfig::dependent(blocks), args)?
        };
        Ok(())
    }

    /// Launches one of the kernels since Ampere.
    pub fn launch_sm80<T: AttentionElement, M: ScoreMod>(
        mut self,
        instances: &'static [sm80::instances::Instance<T, M>],
        score_mod: M,
        tensors: &mut Tensors<'_, T>,
    ) -> Result<()> {
        let instance = for_features(instances, |it| it.features, self.extents.features)?;
        self.args.tiles = self.tiles(instance.queries);
        let [queries, keys, values, _] = self.heads.map(|it| strides(&it));
        let strides = OperandStrides {
            queries,
            keys,
            values,
        };
        let function = self.stream.device().load(&PTX, instance.kernel)?;
        let args = (
            tensors.queries.view,
            tensors.keys.view,
            tensors.values.view,
            tensors.output.view.reborrow(),
            self.args,
            strides,
            score_mod,
        );
        // SAFETY: as above. Features are a multiple of 8 and rows begin at multiples of 16 bytes, as `Heads` checked.
        unsafe {
            self.stream
                .launch(&function, self.args.tiles.count(), args)?
        };
        Ok(())
    }
}

/// Elements from a sequence, a row and a head to the next.
pub(super) fn strides(heads: &Heads) -> [i64; 3] {
    let [sequence, row, head, _] = heads.strides;
    [sequence, row, head].map(|stride| stride as i64)
}
