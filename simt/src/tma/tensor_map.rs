//! Tensor maps as the model of TMA reads them: 128 bytes, as on the hardware, in a format of the model's own.

/// Marks a map of the model, so that a map made by the driver is told apart.
const MARK: u64 = u64::from_le_bytes(*b"simt-map");

/// The highest rank of a tensor that TMA moves.
pub(super) const MAX_RANK: usize = 5;

/// A tensor in memory, innermost dimension first, and the boxes by which TMA moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapModel {
    /// Host address of the first element.
    pub address: u64,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Number of dimensions: 2 to 5.
    pub rank: u32,
    /// Elements along each dimension; 1 beyond the rank.
    pub extent: [u64; MAX_RANK],
    /// Bytes from one element to the next along dimensions 1 to 4.
    pub stride: [u64; MAX_RANK - 1],
    /// Elements of a box along each dimension; 1 beyond the rank.
    pub box_extent: [u32; MAX_RANK],
    /// From one element of a box to the next, in elements of the tensor: 1 to 8, and 1 along the innermost dimension.
    pub element_stride: [u8; MAX_RANK],
    /// Span of the swizzle in bytes; 16 for no swizzle.
    pub span: u32,
    /// Whether loads round elements, which are of `f32`, to tf32.
    pub rounds_to_tf32: bool,
}

impl TensorMapModel {
    /// The map's 128 bytes.
    pub fn encode(&self) -> [u64; 16] {
        let mut words = [0; 16];
        words[0] = self.address;
        words[1] = MARK;
        words[2] = u64::from(self.element_bytes) << 32 | u64::from(self.rank);
        words[3..8].copy_from_slice(&self.extent);
        words[8..12].copy_from_slice(&self.stride);
        let [x, y, z, u, v] = self.box_extent.map(u64::from);
        words[12..15].copy_from_slice(&[x << 32 | y, z << 32 | u, v << 32 | u64::from(self.span)]);
        let [a, b, c, d, e] = self.element_stride;
        words[15] = u64::from_le_bytes([a, b, c, d, e, self.rounds_to_tf32.into(), 0, 0]);
        words
    }

    /// The map in these 128 bytes; `None` if the model did not make them.
    pub fn decode(words: &[u64; 16]) -> Option<Self> {
        let [
            address,
            MARK,
            kind,
            e0,
            e1,
            e2,
            e3,
            e4,
            s1,
            s2,
            s3,
            s4,
            xy,
            zu,
            v_span,
            element_strides,
        ] = *words
        else {
            return None;
        };
        // `encode` put two numbers of 32 bits into each of these words.
        let halves = |word: u64| [(word >> 32) as u32, word as u32];
        let ([element_bytes, rank], [v, span]) = (halves(kind), halves(v_span));
        let ([x, y], [z, u]) = (halves(xy), halves(zu));
        let [a, b, c, d, e, rounds_to_tf32, ..] = element_strides.to_le_bytes();
        Some(Self {
            address,
            element_bytes,
            rank,
            extent: [e0, e1, e2, e3, e4],
            stride: [s1, s2, s3, s4],
            box_extent: [x, y, z, u, v],
            element_stride: [a, b, c, d, e],
            span,
            rounds_to_tf32: rounds_to_tf32 != 0,
        })
    }

    /// Size of a box in bytes.
    pub(super) fn box_bytes(&self) -> u32 {
        self.box_extent.iter().product::<u32>() * self.element_bytes
    }
}
