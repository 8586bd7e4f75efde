//! Host memory for the data of a problem: room for it, or an error where there is not so much.

/// An empty vector with room for `len` elements.
pub fn room<T>(len: usize) -> Result<Vec<T>, String> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(len) {
        Ok(()) => Ok(vector),
        Err(_) => Err(format!(
            "{} bytes were asked for on the host, where there is not that much memory; \
             take a smaller problem",
            len as u128 * size_of::<T>() as u128
        )),
    }
}
