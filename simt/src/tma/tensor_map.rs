//! Tensor maps as the model of TMA reads them: 128 bytes, as on the hardware, in a format of the model's own.

/// Marks a map of the model, so that a map made by the driver is told apart.
const MARK: u64 = u64::from_le_bytes(*b"simt-map");

/// A tensor in memory, innermost dimension first, and the boxes by which TMA moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapModel {
    /// Host address of the first element.
    pub address: u64,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Number of dimensions: 2 or 3.
    pub rank: u32,
    /// Elements along each dimension; 1 beyond the rank.
    pub extent: [u64; 3],
    /// Bytes from one element to the next along dimensions 1 and 2.
    pub stride: [u64; 2],
    /// Elements of a box along each dimension; 1 beyond the rank.
    pub box_extent: [u32; 3],
    /// Span of the swizzle in bytes; 16 for no swizzle.
    pub span: u32,
}

impl TensorMapModel {
    /// The map's 128 bytes.
    pub fn encode(&self) -> [u64; 16] {
        let mut words = [0; 16];
        words[0] = self.address;
        words[1] = MARK;
        words[2] = u64::from(self.element_bytes);
        words[3] = u64::from(self.rank);
        words[4..7].copy_from_slice(&self.extent);
        words[7..9].copy_from_slice(&self.stride);
        for (word, extent) in words[9..12].iter_mut().zip(self.box_extent) {
            *word = u64::from(extent);
        }
        words[12] = u64::from(self.span);
        words
    }

    /// The map in these 128 bytes; `None` if the model did not make them.
    pub fn decode(words: &[u64; 16]) -> Option<Self> {
        // `encode` widened these from 32 bits.
        let narrow = |word: u64| word as u32;
        (words[1] == MARK).then(|| Self {
            address: words[0],
            element_bytes: narrow(words[2]),
            rank: narrow(words[3]),
            extent: [words[4], words[5], words[6]],
            stride: [words[7], words[8]],
            box_extent: [narrow(words[9]), narrow(words[10]), narrow(words[11])],
            span: narrow(words[12]),
        })
    }

    /// Size of a box in bytes.
    pub(super) fn box_bytes(&self) -> u32 {
        self.box_extent.iter().product::<u32>() * self.element_bytes
    }
}
