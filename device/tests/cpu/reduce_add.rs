//! Stores that the L2 cache adds.

use cutlet_device::{GlobalMut, ReduceAdd, thread_idx};
use cutlet_layout_core::EngineMut;
use cutlet_simt::LaunchSpec;

use crate::fixture::{early, failure, says, spec};

#[test]
fn stores_are_added() {
    #[repr(align(8))]
    struct Aligned([f32; 3]);
    let mut elements = Aligned([1.0, 2.0, 3.0]);
    let memory = GlobalMut::from_ptr(elements.0.as_mut_ptr());
    let store = |spec: &LaunchSpec, to: ReduceAdd, first: i64| {
        cutlet_simt::launch(spec, &|| {
            if thread_idx().is_first() {
                // SAFETY: there are three elements, and one thread uses them.
                unsafe { to.store_vector(first, [0.5, 0.25]) };
            }
        })
    };
    store(&spec(32, 1, 1), ReduceAdd::to(memory), 0).unwrap();
    assert_eq!(elements.0, [1.5, 2.25, 3.0]);
    store(&spec(32, 1, 1), ReduceAdd::to_if(false, memory), 0).unwrap();
    assert_eq!(elements.0, [0.5, 0.25, 3.0]);

    let misplaced = failure(store(&spec(32, 1, 1), ReduceAdd::to(memory), 1));
    says(&misplaced, &["not a multiple of 8"]);
    let early = failure(store(&early(), ReduceAdd::to(memory), 0));
    says(&early, &["before grid_dependency_wait"]);
}
