//! Modes of a product besides the rows, the columns and the k of its matrices: those of a batch, and an outer one of k.

/// A mode of A, B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OuterMode {
    /// Its coordinates.
    pub count: usize,
    /// Elements from one coordinate to the next in A, B and C.
    pub strides: [usize; 3],
}

impl OuterMode {
    /// A mode of one coordinate.
    pub const ONE: Self = OuterMode {
        count: 1,
        strides: [0; 3],
    };

    /// The mode of the transposed product.
    pub fn transposed(self) -> Self {
        let [a, b, c] = self.strides;
        OuterMode {
            strides: [b, a, c],
            ..self
        }
    }
}
