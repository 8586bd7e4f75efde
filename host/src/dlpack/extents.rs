//! Shapes with strides: the memory that they reach.

use std::fmt;

/// Elements from the first to the last of a tensor, with gaps. The strides are in elements, one for each dimension.
///
/// # Errors
/// What is wrong with the strides: one is negative, or they reach beyond 64 bits.
pub(super) fn span(shape: &[usize], strides: &[i64]) -> Result<usize, String> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let mut last: usize = 0;
    for (dimension, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
        // The stride of a single element is never taken.
        if extent == 1 {
            continue;
        }
        let stride = usize::try_from(stride)
            .map_err(|_| format!("the stride along dimension {dimension} is negative"))?;
        let reach = (extent - 1).checked_mul(stride);
        last = reach
            .and_then(|reach| last.checked_add(reach))
            .ok_or("the strides reach beyond 64 bits")?;
    }
    last.checked_add(1)
        .ok_or_else(|| "the strides reach beyond 64 bits".to_string())
}

/// Whether the elements lie one behind the other, in any order of the dimensions: without gaps, and none of them twice.
pub(super) fn are_consecutive(shape: &[usize], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let taken = shape.iter().zip(strides).filter(|&(&extent, _)| extent > 1);
    let mut taken: Vec<(i64, usize)> = taken.map(|(&extent, &stride)| (stride, extent)).collect();
    taken.sort_unstable();
    let mut size: usize = 1;
    taken.into_iter().all(|(stride, extent)| {
        let is_next = usize::try_from(stride) == Ok(size);
        size = size.saturating_mul(extent);
        is_next
    })
}

/// Strides of row-major order: the last dimension is contiguous. `None` if they exceed 63 bits.
pub(super) fn row_major(shape: &[usize]) -> Option<Vec<i64>> {
    let mut strides = vec![1; shape.len()];
    for dimension in (1..shape.len()).rev() {
        let extent = i64::try_from(shape[dimension]).ok()?;
        strides[dimension - 1] = i64::checked_mul(strides[dimension], extent)?;
    }
    Some(strides)
}

/// Numbers in parentheses: `(2, 3)`.
pub(super) struct Tuple<'a, N>(pub(super) &'a [N]);

impl<N: fmt::Display> fmt::Display for Tuple<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(N::to_string).collect();
        write!(f, "({})", numbers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_counts_gaps_and_no_free_stride() {
        assert_eq!(span(&[], &[]), Ok(1));
        assert_eq!(span(&[2, 3], &[3, 1]), Ok(6));
        assert_eq!(span(&[2, 3], &[8, 2]), Ok(13));
        assert_eq!(span(&[1, 3], &[-7, 1]), Ok(3));
        assert_eq!(span(&[4, 3], &[0, 1]), Ok(3));
        assert_eq!(span(&[0, 3], &[i64::MAX, -1]), Ok(0));
        assert!(span(&[2, 3], &[3, -1]).unwrap_err().contains("dimension 1"));
        for strides in [[i64::MAX, i64::MAX], [i64::MAX, 1]] {
            let reached = span(&[3, 3], &strides).unwrap_err();
            assert!(reached.contains("beyond 64 bits"), "{reached}");
        }
    }

    #[test]
    fn consecutive_elements_have_no_gaps_and_no_second_place() {
        for (shape, strides) in [
            ([2, 3, 4], [12, 4, 1]),
            ([2, 3, 4], [1, 2, 6]),
            ([2, 1, 4], [4, -9, 1]),
            ([2, 0, 4], [0, 0, 0]),
        ] {
            assert!(are_consecutive(&shape, &strides), "{strides:?}");
        }
        for strides in [[12, 4, 2], [0, 4, 1], [13, 4, 1], [1, 1, 5]] {
            assert!(!are_consecutive(&[2, 3, 4], &strides), "{strides:?}");
        }
        // As many as the span, but one is missing and one is there twice.
        assert_eq!(span(&[2, 2, 2], &[1, 1, 5]), Ok(8));
        assert!(!are_consecutive(&[2, 2, 2], &[1, 1, 5]));
    }

    #[test]
    fn rows_are_contiguous_by_default() {
        assert_eq!(row_major(&[2, 3, 4]), Some(vec![12, 4, 1]));
        assert_eq!(row_major(&[]), Some(vec![]));
        assert_eq!(row_major(&[2, usize::MAX, 2]), None);
        assert_eq!(row_major(&[2, 1 << 40, 1 << 40]), None);
    }
}
