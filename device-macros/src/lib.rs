//! `#[kernel]`, `instantiate!` and `#[derive(DeviceData)]`: one Rust function becomes a PTX entry on the GPU and a
//! typed handle on the host.
//!
//! Use them through `cutlet-device`, which re-exports them and documents the types that they use.

mod argument;
mod attributes;
mod device_data;
mod instantiate;
mod kernel;
mod shared_storage;
mod thread_idx;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Makes a function a kernel: on the GPU a PTX entry of the same name, and on the host a `pub static` handle of type
/// `cutlet_device::Kernel<(Argument, Types)>`.
///
/// ```
/// use cutlet_device::{Global, GlobalMut, kernel};
///
/// /// y = a x + y, for one element.
/// ///
/// /// # Safety
/// /// `x` and `y` hold an element.
/// #[kernel(threads = 32)]
/// pub unsafe fn saxpy(a: f32, x: Global<f32>, y: GlobalMut<f32>) {
///     // SAFETY: the launcher promises an element.
///     unsafe { y.store(0, a * x.load(0) + y.load(0)) };
/// }
///
/// assert_eq!(saxpy.name(), "saxpy");
/// assert_eq!(saxpy.bounds().threads(), 32);
/// ```
///
/// | attribute | meaning |
/// |---|---|
/// | `threads = N` | threads of a block; every launch uses exactly `N`. Must be given. |
/// | `min_blocks = N` | blocks that must fit on one multiprocessor, which limits registers |
/// | `cluster = N` | blocks of a cluster, along x. With 0, each launch says it. Default: 1 |
/// | `shared = BYTES` | shared memory of a block that the kernel takes by hand, from a `SharedMemory` |
/// | `arch = "sm_90a"` | the target of the kernel. One without a letter stands for all newer ones as well. Default: every target |
/// | `also = ["f16 for bf16"]` | other kernels, whose PTX is this one's with words replaced: see below |
///
/// The numbers are constant expressions of type `u32`. The kernel returns nothing, is not generic (see `instantiate!`),
/// and takes up to 12 arguments: plain device data (`DeviceData`) and `bool`. Kernels of one crate have different names, because
/// a name is the kernel's name in the PTX as well.
///
/// In the body, `thread_idx()` is that of a thread of a block of `threads`, a `ThreadIdx<Threads<N>>`. So a tensor's
/// partition by a layout of another number of threads does not compile. A function that the body calls takes the index
/// as an argument.
///
/// `#[grid_constant] map: &Data` takes a reference to an argument where the launch put it, instead of a copy. The
/// launch passes a `Data`. Tensor maps, and types that hold one, must be taken in this way: `#[grid_constant] map:
/// &TensorMap`.
///
/// `#[shared] storage: Storage` declares what the kernel keeps in shared memory. It is no argument of a launch. The
/// launch bounds get the bytes of its type, a `SharedStorage`. Several such parameters lie one after the other.
///
/// # Kernels that differ by a word
///
/// The PTX of one function for two formats often differs only in the names of the formats. With `also = ["f16 for
/// bf16"]`, the PTX of the kernel's module serves a second time, with `f16` in place of every `bf16`, in the names of the
/// kernel and of its module as well. That halves the compiler's work, and the program has the text once. The other
/// kernel is written as usual, because the host launches it, but left out of the build for the GPU:
///
/// ```
/// use cutlet_device::{Float, GlobalMut, instantiate};
/// use half::{bf16, f16};
///
/// /// # Safety
/// /// `x` holds a number.
/// #[inline(always)]
/// unsafe fn double<T: Float>(x: GlobalMut<T>) {
///     // SAFETY: the launcher promises a number.
///     unsafe { x.store(0, T::from_f32(2.0 * x.load(0).to_f32())) };
/// }
///
/// mod double_bf16 {
///     use super::*;
///
///     instantiate! {
///         /// Doubles a bf16.
///         #[kernel(threads = 32, arch = "sm_90a", also = ["f16 for bf16"])]
///         pub unsafe fn double_bf16(x: GlobalMut<bf16>) = double::<bf16>;
///     }
/// }
///
/// #[cfg(any(not(target_arch = "nvptx64"), each_format))]
/// mod double_f16 {
///     use super::*;
///
///     instantiate! {
///         /// Doubles an f16.
///         #[kernel(threads = 32, arch = "sm_90a")]
///         pub unsafe fn double_f16(x: GlobalMut<f16>) = double::<f16>;
///     }
/// }
/// # fn main() {
/// # assert_eq!(double_bf16::double_bf16.bounds(), double_f16::double_f16.bounds());
/// # }
/// ```
///
/// A kernel for two formats takes two words, which are replaced one after the other. From a kernel `mul_e4m3_64` whose
/// `wgmma` multiplies `e4m3.e4m3`, `also = ["e4m3e5m2_ for e4m3_, e4m3.e5m2 for e4m3.e4m3"]` makes the kernel
/// `mul_e4m3e5m2_64`. The underscore and the point tell the name from the instruction.
///
/// The macro cannot see whether the two texts are the same. If both kernels are compiled, here by `--cfg each_format`,
/// the builder compares the texts, and fails if they differ.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let attributes = parse_macro_input!(attribute as attributes::KernelAttributes);
    let function = parse_macro_input!(item as syn::ItemFn);
    kernel::expand(&attributes, function)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes kernels of generic device functions, one line each.
///
/// ```
/// use cutlet_device::{DeviceData, GlobalMut, ThreadGroup, ThreadIdx, instantiate, thread_idx};
///
/// /// # Safety
/// /// `y` holds an element for each thread.
/// #[inline(always)]
/// unsafe fn fill<G: ThreadGroup, T: DeviceData>(thread: ThreadIdx<G>, value: T, y: GlobalMut<T>) {
///     // SAFETY: the launcher promises the elements.
///     unsafe { y.store(i64::from(thread.get()), value) };
/// }
///
/// instantiate! {
///     /// Fills 64 numbers.
///     #[kernel(threads = 64)]
///     pub unsafe fn fill_f32_64(value: f32, y: GlobalMut<f32>) = fill::<_, f32>(thread_idx(), ..);
/// }
///
/// assert_eq!(fill_f32_64.bounds().threads(), 64);
/// ```
///
/// Each line is `#[kernel(…)]` with a signature, `=`, and the function that the kernel calls with its arguments. The
/// function may have others before them: `function(thread_idx(), ..)`, where `..` are the kernel's. If that function is
/// unsafe, the line is an `unsafe fn`.
#[proc_macro]
pub fn instantiate(input: TokenStream) -> TokenStream {
    let instances = parse_macro_input!(input as instantiate::Instances);
    instances
        .expand()
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `cutlet_device::DeviceData` for a `#[repr(C)]` struct of device data without padding.
///
/// The struct must derive `Clone` and `Copy`, too. Padding is an error: order the fields by falling alignment, or fill
/// the gap with a field.
#[proc_macro_derive(DeviceData)]
pub fn derive_device_data(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::DeriveInput);
    device_data::expand(&item)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Derives `cutlet_device::SharedStorage` for a struct of up to eight fields that are shared storage. They lie one
/// after the other, each aligned as it needs.
#[proc_macro_derive(SharedStorage)]
pub fn derive_shared_storage(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as syn::DeriveInput);
    shared_storage::expand(&item)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
