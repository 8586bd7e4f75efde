//! Launch arguments: buffers and values of the caller, converted to the kernel's parameters.

use std::cell::RefCell;

use cutlet_device::{DeviceData, Global, GlobalMut, KernelArgs, KernelParam};
use cutlet_simt::Buffers;

use crate::device::Place;
use crate::order::Caller;
use crate::{Buffer, Result, Stream, View, ViewMut};

/// A value that can be written in a launch for a kernel parameter of type `P`.
///
/// `&Buffer<T>` and [`View<T>`](View) stand for [`Global<T>`](Global), `&mut Buffer<T>` and
/// [`ViewMut<T>`](ViewMut) for [`GlobalMut<T>`](GlobalMut), and plain data and `bool` for themselves.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter of type `{P}`",
    label = "the kernel takes `{P}` here",
    note = "a `Global<T>` parameter takes `&Buffer<T>` or a `View<T>`",
    note = "a `GlobalMut<T>` parameter takes `&mut Buffer<T>` or a `ViewMut<T>`",
    note = "any other parameter takes a value of exactly its own type"
)]
pub trait KernelArg<P> {
    /// Converts the value to the kernel's parameter.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) if it is memory of another device,
    /// [`Error::WrongStream`](crate::Error::WrongStream) if it is bound to another stream,
    /// [`Error::Unordered`](crate::Error::Unordered) if another stream uses it and nothing orders the two.
    #[cfg_attr(debug_assertions, track_caller)]
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<P>;
}

/// The place of an argument in a launch, for checks and error messages.
#[derive(Debug)]
pub struct ArgSite<'a> {
    kernel: &'static str,
    position: usize,
    stream: &'a Stream,
    /// The buffers of the launch, for the CPU backend's checks, and the names of the kernel's parameters.
    buffers: &'a RefCell<Buffers>,
}

impl ArgSite<'_> {
    fn name(&self) -> String {
        let name = self.buffers.borrow().name(self.position);
        format!("{name} of kernel `{}`", self.kernel)
    }

    fn caller(&self) -> Caller {
        Caller::kernel(self.kernel)
    }

    /// The address that the kernel gets for a view, which it `may_write`. The CPU backend checks its accesses against
    /// the view.
    fn address<T: DeviceData>(&self, view: View<'_, T>, may_write: bool) -> usize {
        let (address, bytes) = (view.address() as usize, view.bytes());
        match self.stream.device().place() {
            Place::Cpu => {
                let mut buffers = self.buffers.borrow_mut();
                let add = match may_write {
                    true => Buffers::add_output,
                    false => Buffers::add,
                };
                add(&mut buffers, self.position, address, bytes, size_of::<T>())
            }
            Place::Gpu(_) => address,
        }
    }
}

impl<P: KernelParam> KernelArg<P> for P {
    fn into_kernel(self, _: &ArgSite<'_>) -> Result<P> {
        Ok(self)
    }
}

impl<T: DeviceData> KernelArg<Global<T>> for View<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<Global<T>> {
        self.note_read(site.stream, site.caller(), || site.name())?;
        let address = site.address(self, false);
        Ok(Global::from_ptr(std::ptr::with_exposed_provenance(address)))
    }
}

impl<T: DeviceData> KernelArg<Global<T>> for &View<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<Global<T>> {
        (*self).into_kernel(site)
    }
}

impl<T: DeviceData> KernelArg<Global<T>> for &ViewMut<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<Global<T>> {
        self.view().into_kernel(site)
    }
}

impl<T: DeviceData> KernelArg<Global<T>> for &Buffer<T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<Global<T>> {
        self.view().into_kernel(site)
    }
}

impl<T: DeviceData> KernelArg<GlobalMut<T>> for ViewMut<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<GlobalMut<T>> {
        self.note_write(site.stream, site.caller(), || site.name())?;
        let address = site.address(self.view(), true);
        Ok(GlobalMut::from_ptr(std::ptr::with_exposed_provenance_mut(
            address,
        )))
    }
}

impl<T: DeviceData> KernelArg<GlobalMut<T>> for &mut ViewMut<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<GlobalMut<T>> {
        self.reborrow().into_kernel(site)
    }
}

impl<T: DeviceData> KernelArg<GlobalMut<T>> for &mut Buffer<T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> Result<GlobalMut<T>> {
        self.view_mut().into_kernel(site)
    }
}

/// The argument list of a launch: a tuple with one [`KernelArg`] for each parameter in `A`.
#[diagnostic::on_unimplemented(
    message = "these arguments do not fit a kernel that takes `{A}`",
    label = "found `{Self}`",
    note = "a launch takes a tuple with one value for each kernel parameter, in order; for a single one, `(value,)`"
)]
pub trait LaunchArgs<A: KernelArgs> {
    /// Converts the arguments to the kernel's parameters. On the CPU, adds the buffers among them to `buffers`.
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice) if an argument is memory of another device
    /// than that of `stream`, [`Error::WrongStream`](crate::Error::WrongStream) if it is bound to
    /// another stream, [`Error::Unordered`](crate::Error::Unordered) if another stream uses it and nothing orders the
    /// two.
    #[cfg_attr(debug_assertions, track_caller)]
    fn into_args(
        self,
        kernel: &'static str,
        stream: &Stream,
        buffers: &RefCell<Buffers>,
    ) -> Result<A>;
}

macro_rules! launch_args {
    ($($value:ident: $param:ident = $position:literal),*) => {
        #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
        impl<$($value, $param),*> LaunchArgs<($($param,)*)> for ($($value,)*)
        where
            $($param: KernelParam, $value: KernelArg<$param>,)*
        {
            fn into_args(
                self,
                kernel: &'static str,
                stream: &Stream,
                buffers: &RefCell<Buffers>,
            ) -> Result<($($param,)*)> {
                let ($($value,)*) = self;
                Ok(($($value.into_kernel(&ArgSite { kernel, position: $position, stream, buffers })?,)*))
            }
        }
    };
}

launch_args!();
launch_args!(V1: A1 = 1);
launch_args!(V1: A1 = 1, V2: A2 = 2);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7, V8: A8 = 8);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7, V8: A8 = 8, V9: A9 = 9);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7, V8: A8 = 8, V9: A9 = 9, V10: A10 = 10);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7, V8: A8 = 8, V9: A9 = 9, V10: A10 = 10, V11: A11 = 11);
launch_args!(V1: A1 = 1, V2: A2 = 2, V3: A3 = 3, V4: A4 = 4, V5: A5 = 5, V6: A6 = 6, V7: A7 = 7, V8: A8 = 8, V9: A9 = 9, V10: A10 = 10, V11: A11 = 11, V12: A12 = 12);
