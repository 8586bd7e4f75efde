//! `#[kernel]`, `instantiate!` and `derive(DeviceData)`: their expansions and their errors.

use std::marker::PhantomData;

use cutlet_device::{
    DeviceData, KernelArgs, LaunchBounds, SharedArray, ThreadGroup, ThreadIdx, Threads,
    instantiate, kernel, thread_idx,
};

#[derive(Clone, Copy, Debug, PartialEq, DeviceData)]
#[repr(C)]
struct Problem<T: DeviceData> {
    rows: u64,
    alpha: T,
    columns: u32,
}

/// It has the alignment of a tensor map, and is taken in place like one.
#[derive(Clone, Copy)]
#[repr(C)]
struct Map([u64; 16]);

// SAFETY: sixteen numbers, without padding.
unsafe impl DeviceData for Map {
    const PARAM_ALIGN: usize = 64;
    const IN_PLACE: bool = true;
}

#[derive(Clone, Copy, DeviceData)]
#[repr(C)]
struct WithMap {
    map: Map,
    rows: u64,
}

mod dense {
    pub mod small {
        use cutlet_device::kernel;

        #[kernel(threads = 32)]
        pub fn nested() {}
    }
}

const WARPS: u32 = 4;

/// Kernels and functions with names that the macro could use itself.
mod names {
    use cutlet_device::kernel;

    fn body_with_fma(n: u32) {
        panic!("{n} of the module");
    }

    #[kernel(threads = 32)]
    pub fn body(n: u32) {
        body_with_fma(n);
    }

    #[kernel(threads = 32)]
    pub fn arguments(argument: u32) {
        body_with_fma(argument);
    }

    #[kernel(threads = 32)]
    pub fn argument_0() {}
}

/// Panics with its arguments, so that a test sees them.
#[kernel(threads = WARPS * 32, min_blocks = 2, cluster = 2, shared = 1024, arch = "sm_90a")]
fn report(mut n: u32, [a, b]: [u32; 2], _: u8) {
    n += 1;
    panic!("{n} {a} {b}");
}

/// Panics with its arguments and the addresses of what it keeps in shared memory.
#[kernel(threads = 32)]
fn with_storage(
    #[shared] bytes: SharedArray<u8, 20>,
    n: u32,
    #[shared] (words, more): (SharedArray<u32, 2>, SharedArray<u32, 1>),
) {
    let addresses = [bytes.address(), words.address(), more.address()];
    panic!("{n} {addresses:?}");
}

instantiate! {
    #[kernel(threads = 32)]
    fn with_storage_too(n: u32, #[shared] words: SharedArray<u32, 3>) = needs_storage;
}

fn needs_storage(n: u32, words: SharedArray<u32, 3>) {
    panic!("{n} {}", words.address());
}

fn counted<G: ThreadGroup>(thread: ThreadIdx<G>, n: u32) {
    panic!("{n}: thread {} of {}", thread.get(), G::THREADS);
}

instantiate! {
    #[kernel(threads = WARPS * 32)]
    fn counted_of_all(n: u32) = counted(thread_idx(), ..);
    #[kernel(threads = 32)]
    fn counted_of_first(n: u32) = counted(thread_idx().among_first::<Threads<1>>().unwrap(), ..);
}

fn scaled<const N: u32, T: DeviceData + Into<f64>>(problem: Problem<T>, _: PhantomData<T>) {
    let alpha: f64 = problem.alpha.into();
    panic!("{N} {} {alpha}", problem.columns);
}

/// # Safety
/// Never called.
unsafe fn promised(_: u64) {}

instantiate! {
    /// The instance for f32.
    #[kernel(threads = 64)]
    fn scaled_f32(problem: Problem<f32>, kind: PhantomData<f32>) = scaled::<3, f32>;
    #[kernel(threads = 64)]
    unsafe fn promised_once(address: u64) = promised;
    #[cfg(true)]
    #[kernel(threads = 96)]
    unsafe fn promised_here(address: u64) = promised;
    #[kernel(threads = 64)]
    #[cfg(false)]
    unsafe fn promised_here(address: Elsewhere) = promised_elsewhere;
}

#[kernel(threads = 64)]
#[cfg(false)]
fn configured(_: Elsewhere) {}

#[kernel(threads = 96)]
#[cfg(true)]
fn configured() {}

fn message_of(run: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
    *panic.downcast::<String>().unwrap()
}

#[test]
fn a_handle_has_name_family_and_bounds() {
    assert_eq!(report.name(), "report");
    assert_eq!(
        report.family(),
        "kernel_macro",
        "the family of a kernel at the root is the crate"
    );
    assert_eq!(report.bounds(), LaunchBounds::new(128, 2, 2, 1024));
    assert_eq!(dense::small::nested.family(), "dense::small");
    assert_eq!(
        dense::small::nested.bounds(),
        LaunchBounds::new(32, 0, 1, 0)
    );
    assert_eq!(promised_once.name(), "promised_once");
}

#[test]
fn the_body_runs_with_the_arguments() {
    // SAFETY: the body only panics.
    let message = message_of(|| unsafe { scaled_f32.body().unwrap()((problem(), PhantomData)) });
    assert_eq!(message, "3 7 2.5");
    // SAFETY: as above.
    let message = message_of(|| unsafe { report.body().unwrap()((1, [2, 3], 4)) });
    assert_eq!(message, "2 2 3");
}

#[test]
fn a_function_gets_an_index_that_counts_the_kernels_threads() {
    let said = |threads: u32, run: &(dyn Fn() + Sync)| {
        let spec = cutlet_simt::LaunchSpec {
            kernel: "counted",
            grid: [1, 1, 1],
            block: [threads, 1, 1],
            cluster: 1,
            shared_bytes: 0,
            overlap_previous: false,
        };
        cutlet_simt::launch(&spec, &|| run())
            .unwrap_err()
            .to_string()
    };
    // SAFETY: the kernels access no memory.
    let message = said(128, &|| unsafe { counted_of_all.body().unwrap()((7,)) });
    assert!(message.contains("7: thread 0 of 128"), "{message}");
    // SAFETY: as above.
    let message = said(32, &|| unsafe { counted_of_first.body().unwrap()((8,)) });
    assert!(message.contains("8: thread 0 of 1"), "{message}");
}

#[test]
fn a_kernel_exists_if_its_cfg_holds() {
    assert_eq!(configured.bounds().threads(), 96);
    assert_eq!(promised_here.bounds().threads(), 96);
}

#[test]
fn a_kernel_knows_the_names_of_its_parameters() {
    assert_eq!(names::body.parameters(), ["n"]);
    assert_eq!(report.parameters(), ["n", "", ""]);
}

#[test]
fn the_macro_does_not_capture_names() {
    for kernel in [&names::body, &names::arguments] {
        // SAFETY: the body only panics.
        let message = message_of(|| unsafe { kernel.body().unwrap()((3,)) });
        assert_eq!(message, "3 of the module");
    }
    assert_eq!(names::argument_0.name(), "argument_0");
}

#[test]
fn a_launch_visits_each_argument_with_bytes() {
    let arguments = (1u32, problem(), PhantomData::<u32>, 2u8);
    let mut seen = Vec::new();
    arguments.for_each(|pointer| seen.push(pointer.cast::<u8>()));
    assert_eq!(seen.len(), 3, "an argument of size 0 has no parameter");
    // SAFETY: `for_each` hands out pointers to the arguments, in order.
    unsafe {
        assert_eq!(*seen[0].cast::<u32>(), 1);
        assert_eq!(*seen[1].cast::<Problem<f32>>(), problem());
        assert_eq!(*seen[2], 2);
    }
}

#[test]
fn a_struct_is_aligned_like_its_most_aligned_field() {
    assert_eq!(Problem::<f32>::PARAM_ALIGN, 8);
    assert_eq!(WithMap::PARAM_ALIGN, 64);
}

#[test]
fn a_struct_with_a_map_is_taken_in_place() {
    const {
        assert!(WithMap::IN_PLACE && <[WithMap; 2]>::IN_PLACE);
        assert!(!Problem::<f32>::IN_PLACE);
    }
}

fn problem() -> Problem<f32> {
    Problem {
        rows: 5,
        alpha: 2.5,
        columns: 7,
    }
}

/// It is none of the programs below, because rustc's message has more lines if the source of `core` is installed.
#[test]
fn bounds_that_no_device_can_satisfy_are_refused_in_words() {
    let words = |threads, min_blocks, cluster, shared| {
        let bounds = || LaunchBounds::new(threads, min_blocks, cluster, shared);
        *std::panic::catch_unwind(bounds)
            .unwrap_err()
            .downcast::<&str>()
            .unwrap()
    };
    for threads in [0, 1025] {
        let words = words(threads, 0, 1, 0);
        assert_eq!(words, "#[kernel]: `threads` must be 1 to 1024");
    }
    assert!(words(1, 33, 1, 0).contains("`min_blocks` must be 0 to 32"));
    assert!(words(1, 0, 17, 0).contains("`cluster` must be 1 to 16"));
    assert!(words(1, 0, 1, 232_449).contains("at most 232448 bytes (227 KiB) of shared memory"));
}

#[test]
fn wrong_use_is_refused_at_the_users_line() {
    // A pattern without a match would pass.
    assert!(std::fs::read_dir("tests/kernel_macro").is_ok_and(|mut cases| cases.next().is_some()));
    trybuild::TestCases::new().compile_fail("tests/kernel_macro/*.rs");
}

#[test]
fn the_bounds_have_the_bytes_of_what_is_in_shared_memory() {
    assert_eq!(
        with_storage.bounds(),
        LaunchBounds::new(32, 0, 1, 32 + 16 + 4)
    );
    assert_eq!(with_storage.parameters(), ["n"]);
    assert_eq!(with_storage_too.bounds().shared_bytes(), 12);
    let spec = cutlet_simt::LaunchSpec {
        kernel: "with_storage",
        grid: [1, 1, 1],
        block: [1, 1, 1],
        cluster: 1,
        shared_bytes: 64,
        overlap_previous: false,
    };
    let said = |run: &(dyn Fn() + Sync)| {
        cutlet_simt::launch(&spec, &|| run())
            .unwrap_err()
            .to_string()
    };
    // SAFETY: the kernel accesses no memory.
    let message = said(&|| unsafe { with_storage.body().unwrap()((7,)) });
    assert!(message.contains("7 [0, 32, 48]"), "{message}");
    // SAFETY: as above.
    let message = said(&|| unsafe { with_storage_too.body().unwrap()((8,)) });
    assert!(message.contains("8 0"), "{message}");
}
