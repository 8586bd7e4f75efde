//! Operations on tensors: one body for the CPU and for GPUs, as candle's custom operations.

use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, Error, Layout, Result, Shape, Storage, StorageRef,
    Tensor,
};

#[cfg(feature = "cuda")]
use crate::place::Cuda;
use crate::place::{Cpu, Place};

/// An operand: a tensor's memory, and which elements of it the tensor has.
pub(crate) struct Operand<'a, P: Place> {
    pub storage: &'a P::Storage,
    pub layout: &'a Layout,
}

impl<P: Place> Clone for Operand<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: Place> Copy for Operand<'_, P> {}

/// An operation with this many operands.
pub(crate) trait Operation<const OPERANDS: usize>: Send + Sync + 'static {
    /// Its name in errors.
    const NAME: &'static str;

    /// Enqueues it. The result is packed.
    fn forward<P: Place>(
        &self,
        operands: [Operand<'_, P>; OPERANDS],
    ) -> Result<(P::Storage, Shape)>;

    /// The gradients of the operands, of which the result has `gradient`.
    fn backward(
        &self,
        _operands: [&Tensor; OPERANDS],
        _result: &Tensor,
        _gradient: &Tensor,
    ) -> Result<[Option<Tensor>; OPERANDS]> {
        Err(Error::BackwardNotSupported { op: Self::NAME })
    }
}

/// An operation as a custom one of candle.
pub(crate) struct Custom<O>(pub O);

macro_rules! custom {
    ($custom:ident, $operands:literal: $($storage:ident $layout:ident $tensor:ident),+ => $gradients:ty) => {
        impl<O: Operation<$operands>> $custom for Custom<O> {
            fn name(&self) -> &'static str {
                O::NAME
            }

            fn cpu_fwd(&self, $($storage: &CpuStorage, $layout: &Layout),+) -> Result<(CpuStorage, Shape)> {
                self.0.forward::<Cpu>([$(Operand { storage: $storage, layout: $layout }),+])
            }

            #[cfg(feature = "cuda")]
            fn cuda_fwd(
                &self,
                $($storage: &candle_core::CudaStorage, $layout: &Layout),+
            ) -> Result<(candle_core::CudaStorage, Shape)> {
                self.0.forward::<Cuda>([$(Operand { storage: $storage, layout: $layout }),+])
            }

            fn bwd(&self, $($tensor: &Tensor,)+ result: &Tensor, gradient: &Tensor) -> Result<$gradients> {
                self.0.backward([$($tensor),+], result, gradient).map(Into::into)
            }
        }
    };
}
custom!(CustomOp2, 2: s1 l1 t1, s2 l2 t2 => (Option<Tensor>, Option<Tensor>));
custom!(CustomOp3, 3: s1 l1 t1, s2 l2 t2, s3 l3 t3 => (Option<Tensor>, Option<Tensor>, Option<Tensor>));

impl<O: Operation<1>> CustomOp1 for Custom<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.0.forward::<Cpu>([Operand { storage, layout }])
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        self.0.forward::<Cuda>([Operand { storage, layout }])
    }

    fn bwd(&self, operand: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let [of_operand] = self.0.backward([operand], result, gradient)?;
        Ok(of_operand)
    }
}

/// Runs an operation that has no gradient and more operands than a custom one of candle.
pub(crate) fn apply<O: Operation<OPERANDS>, const OPERANDS: usize>(
    operation: &O,
    tensors: [&Tensor; OPERANDS],
) -> Result<Tensor> {
    let name = O::NAME;
    if tensors.iter().any(|it| it.track_op()) {
        let refused = format!(
            "{name}: an operand has a gradient, which this operation has not; detach the operand"
        );
        return Err(Error::Msg(refused).bt());
    }
    let lent = tensors.map(Tensor::storage_and_layout);
    let first = &*lent[0].0;
    let other = |storage: &Storage| Error::DeviceMismatchBinaryOp {
        lhs: first.device().location(),
        rhs: storage.device().location(),
        op: name,
    };
    match first {
        Storage::Cpu(_) => {
            let operands = each_operand::<Cpu, OPERANDS>(&lent, |storage| match storage {
                Storage::Cpu(storage) => Ok(storage),
                storage => Err(other(storage).bt()),
            })?;
            let (storage, shape) = operation.forward::<Cpu>(operands)?;
            Ok(Cpu::tensor(storage, shape))
        }
        #[cfg(feature = "cuda")]
        Storage::Cuda(_) => {
            let operands = each_operand::<Cuda, OPERANDS>(&lent, |storage| match storage {
                Storage::Cuda(storage) => Ok(storage),
                storage => Err(other(storage).bt()),
            })?;
            let (storage, shape) = operation.forward::<Cuda>(operands)?;
            Ok(Cuda::tensor(storage, shape))
        }
        storage => {
            let found = storage.device().location();
            let refused = format!(
                "{name}: the tensors are on {found:?}; use the CPU or, with the feature `cuda`, a GPU"
            );
            Err(Error::Msg(refused).bt())
        }
    }
}

/// The tensors' memory, which `of` takes for that of one kind of device.
fn each_operand<'a, P: Place, const OPERANDS: usize>(
    lent: &'a [(StorageRef<'a>, &'a Layout); OPERANDS],
    of: impl Fn(&'a Storage) -> Result<&'a P::Storage>,
) -> Result<[Operand<'a, P>; OPERANDS]> {
    let mut storages = [None; OPERANDS];
    for (storage, (lent, _)) in storages.iter_mut().zip(lent) {
        *storage = Some(of(lent)?);
    }
    Ok(std::array::from_fn(|nth| Operand {
        storage: storages[nth].expect("each was found"),
        layout: lent[nth].1,
    }))
}
