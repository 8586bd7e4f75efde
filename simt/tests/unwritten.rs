//! Reads of shared memory that nothing has written are errors, which name both lines.

use cutlet_simt::{
    LaunchSpec, MemoryAccess, SimtError, access_shared, launch, ldmatrix, map_shared_rank,
    mbarrier_init, reserve_shared, store_shared, sync_threads, thread_idx,
};

const SPEC: LaunchSpec<'static> = LaunchSpec {
    kernel: "reader",
    grid: [4, 1, 1],
    block: [32, 1, 1],
    cluster: 1,
    shared_bytes: 1024,
    overlap_previous: false,
};

fn fails(body: impl Fn() + Sync) -> String {
    launch(&SPEC, &body).unwrap_err().to_string()
}

/// The line of this file on which a comment stands.
fn line_of(comment: &str) -> String {
    let source = include_str!("unwritten.rs");
    let comment = format!("// {comment}");
    let mut lines = (1..).zip(source.lines());
    let (line, _) = lines
        .find(|(_, text)| text.ends_with(&comment))
        .expect("the comment exists");
    format!("unwritten.rs:{line}:")
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn the_line_of_the_read_and_that_of_the_reservation_are_named() {
    let text = fails(|| {
        reserve_shared(0, 64);
        reserve_shared(64, 128); // the array
        let x = thread_idx()[0];
        if x < 30 {
            store_shared(64 + 4 * x, 4, &[0; 4]);
        }
        sync_threads();
        access_shared(64 + 4 * x, 4, 4, MemoryAccess::Load); // the load
    });
    let lines = [line_of("the array"), line_of("the load")];
    says(
        &text,
        &[
            "kernel `reader`, block (",
            "thread (31, 0, 0): a load of 4 bytes reads shared memory at offset 188, which nothing has written",
            "meet that thread at a barrier",
            "byte 124 of the 128 bytes that the kernel reserves at",
            &lines[0],
            &lines[1],
        ],
    );
}

/// A block does not see what the block before left.
#[test]
fn every_block_begins_with_unwritten_memory() {
    let text = fails(|| {
        if cutlet_simt::block_idx()[0] == 0 {
            store_shared(0, 4, &[1; 4]);
        }
        if cutlet_simt::block_idx()[0] == 3 {
            access_shared(0, 4, 4, MemoryAccess::Load);
        }
    });
    says(&text, &["block (3, 0, 0)", "at offset 0, which nothing"]);
}

#[test]
fn each_byte_counts() {
    let text = fails(|| {
        if thread_idx()[0] == 0 {
            store_shared(0, 1, &[1]);
            store_shared(2, 2, &[1; 2]);
            access_shared(0, 4, 4, MemoryAccess::Load);
        }
    });
    says(
        &text,
        &["a load of 4 bytes reads shared memory at offset 1"],
    );
}

#[test]
fn an_atomic_operation_reads_and_an_atomic_store_does_not() {
    launch(&SPEC, &|| {
        if thread_idx()[0] == 0 {
            access_shared(0, 4, 4, MemoryAccess::AtomicStore);
        }
        sync_threads();
        access_shared(0, 4, 4, MemoryAccess::Atomic);
    })
    .unwrap();
    let text = fails(|| {
        access_shared(0, 4, 4, MemoryAccess::Atomic);
    });
    says(&text, &["an atomic operation of 4 bytes reads"]);
}

#[test]
fn an_mbarrier_is_written_by_its_initialisation() {
    launch(&SPEC, &|| {
        if thread_idx()[0] == 0 {
            mbarrier_init(8, 1);
            access_shared(8, 8, 8, MemoryAccess::Load);
        }
    })
    .unwrap();
}

#[test]
fn a_row_of_ldmatrix_is_a_read() {
    let text = fails(|| {
        let x = thread_idx()[0];
        if x < 7 {
            store_shared(16 * x, 16, &[0; 16]);
        }
        sync_threads();
        let mut registers = [0];
        ldmatrix(16 * (x % 8), &mut registers, false); // the matrix
    });
    says(
        &text,
        &[
            "a load of 4 bytes reads",
            "at offset 1",
            &line_of("the matrix"),
        ],
    );
}

#[test]
fn memory_of_another_block_of_the_cluster_is_named() {
    let spec = LaunchSpec { cluster: 2, ..SPEC };
    let error = launch(&spec, &|| {
        reserve_shared(0, 16); // the block's array
        cutlet_simt::cluster_arrive();
        cutlet_simt::cluster_wait();
        let other = 1 - cutlet_simt::cluster_rank();
        access_shared(map_shared_rank(4, other), 4, 4, MemoryAccess::Load);
        cutlet_simt::cluster_arrive();
        cutlet_simt::cluster_wait();
    });
    let text = error.unwrap_err().to_string();
    says(
        &text,
        &[
            " of the cluster at offset 4, which nothing has written",
            &line_of("the block's array"),
        ],
    );
}

/// Whatever the value did to the thread afterwards.
#[test]
fn the_read_is_named_and_not_the_panic_that_it_causes() {
    let text = fails(|| {
        let at = access_shared(0, 4, 4, MemoryAccess::Load).cast::<u32>();
        // SAFETY: the range was just checked.
        let index = unsafe { at.read() };
        access_shared(index, 4, 4, MemoryAccess::Load);
    });
    says(&text, &["at offset 0, which nothing has written"]);
}

/// With the search for races, a missing barrier is a race between two lines and no unwritten memory.
#[test]
fn a_read_before_another_thread_s_store_is_a_race() {
    let early = || {
        let x = thread_idx()[0];
        store_shared(4 * x, 4, &[1; 4]);
        access_shared(4 * (31 - x), 4, 4, MemoryAccess::Load);
    };
    cutlet_simt::check_races(true);
    let error = launch(&SPEC, &early).unwrap_err();
    says(&error.to_string(), &["races: shared memory at offset"]);
    assert!(matches!(error, SimtError::Panic { .. }));
}
