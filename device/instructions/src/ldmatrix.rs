//! `ldmatrix`.

use cutlet_device::{
    GlobalMut, SharedArray, kernel, ldmatrix, ldmatrix_transposed, sync_threads, thread_idx,
};

/// Loads of one, two and four matrices, by rows and transposed.
///
/// # Safety
/// `results` has 14 elements for each thread.
#[kernel(threads = 32)]
pub unsafe fn loads_of_matrices(results: GlobalMut<u32>, #[shared] row: SharedArray<u16, 8>) {
    let row = *row;
    let results = results.offset(14 * i64::from(thread_idx().get()));
    // SAFETY: there is one row, which all lanes write and then read. The caller promises the results.
    unsafe {
        row.store_vec(0, [1; 8]);
        sync_threads();
        let [a] = ldmatrix::<_, 1>(row);
        let [b] = ldmatrix_transposed::<_, 1>(row);
        results.store_vec(0, [a, b]);
        results.store_vec(2, ldmatrix::<_, 2>(row));
        results.store_vec(4, ldmatrix_transposed::<_, 2>(row));
        let [a, b, c, d] = ldmatrix::<_, 4>(row);
        results.store_vec(6, [a, b]);
        results.store_vec(8, [c, d]);
        let [a, b, c, d] = ldmatrix_transposed::<_, 4>(row);
        results.store_vec(10, [a, b]);
        results.store_vec(12, [c, d]);
    }
}
