//! [`TensorMapShape`]: a tensor and the boxes by which TMA moves it, and [what TMA cannot move](TensorMapFault).

use core::fmt;

/// A tensor in global memory and the boxes by which TMA moves it: a tensor map without its address.
///
/// ```
/// use cutlet_layout_core::{TensorMapFault, TensorMapShape};
///
/// // 100 rows of 60 bf16, 63 elements apart, in boxes of 8 rows by 32.
/// let shape = TensorMapShape {
///     rank: 2,
///     extent: [60, 100, 1, 1, 1],
///     stride: [63, 0, 0, 0],
///     element_bytes: 2,
///     box_rank: 2,
///     box_extent: [32, 8, 1, 1, 1],
///     element_stride: [1; 5],
///     swizzle_bytes: 64,
/// };
/// assert_eq!(shape.to_string(), "a tensor map of 100 × 60 elements of 2 bytes in boxes of 8 × 32");
/// let faults: Vec<TensorMapFault> = shape.faults(0, 100 * 63).collect();
/// assert_eq!(faults, [TensorMapFault::Stride { dimension: 1, bytes: 126 }]);
/// assert_eq!(faults[0].to_string(), "its rows are 126 bytes apart");
/// assert!(faults[0].fix().starts_with("TMA needs multiples of 16 bytes"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapShape {
    /// The number of the tensor's dimensions. More than [`MAX_RANK`](Self::MAX_RANK) is a fault.
    pub rank: usize,
    /// Elements along each dimension, innermost first; 1 beyond the rank.
    pub extent: [u64; Self::MAX_RANK],
    /// Elements from one index to the next along dimensions 1 to 4. Along dimension 0, elements are consecutive.
    pub stride: [u64; Self::MAX_RANK - 1],
    /// Bytes of an element.
    pub element_bytes: u64,
    /// The number of the box's dimensions.
    pub box_rank: usize,
    /// Elements of a box along each dimension, innermost first; 1 beyond its rank.
    pub box_extent: [u32; Self::MAX_RANK],
    /// From one element of a box to the next, in elements of the tensor: 1 to take all of them. The box's lines are of
    /// consecutive elements, so along dimension 0 it is 1.
    pub element_stride: [u32; Self::MAX_RANK],
    /// The swizzle span in bytes; 16 is no swizzle.
    pub swizzle_bytes: u32,
}

/// The most elements of a tensor between two of a box, and one of them.
const MAX_ELEMENT_STRIDE: u32 = 8;

/// The shared memory that a block of a GPU with TMA can have, in bytes.
const SHARED_BYTES: u64 = 227 * 1024;

impl TensorMapShape {
    /// The highest rank of a tensor that TMA moves.
    pub const MAX_RANK: usize = 5;

    /// Why TMA cannot move these boxes of a tensor at `address`, in a buffer with `elements` elements from there on.
    pub fn faults(&self, address: u64, elements: u64) -> impl Iterator<Item = TensorMapFault> + '_ {
        let of_memory = (self.end(elements).into_iter()).chain(misaligned(address));
        (self.ranks())
            .chain(self.extents())
            .chain(of_memory)
            .chain(self.strides())
            .chain(self.box_extents())
            .chain(self.element_strides())
            .chain(self.line())
            .chain(self.box_bytes())
    }

    fn ranks(&self) -> impl Iterator<Item = TensorMapFault> + use<> {
        let &Self { rank, box_rank, .. } = self;
        let of_tensor = (rank > Self::MAX_RANK).then_some(TensorMapFault::Rank { rank });
        let of_box = !(1..=rank).contains(&box_rank);
        (of_tensor.into_iter()).chain(of_box.then_some(TensorMapFault::BoxRank { box_rank, rank }))
    }

    fn extents(&self) -> impl Iterator<Item = TensorMapFault> + '_ {
        let extents = self.extent.iter().enumerate();
        extents
            .filter(|(_, extent)| !(1..=1 << 32).contains(*extent))
            .map(|(dimension, &extent)| TensorMapFault::Extent { dimension, extent })
    }

    fn end(&self, elements: u64) -> Option<TensorMapFault> {
        let mut dimensions = self.extent[1..].iter().zip(self.stride);
        let last = dimensions.try_fold(
            self.extent[0].saturating_sub(1),
            |last, (extent, stride)| {
                last.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
            },
        );
        let is_inside = last.is_some_and(|last| last < elements);
        (!is_inside).then_some(TensorMapFault::End { elements })
    }

    fn strides(&self) -> impl Iterator<Item = TensorMapFault> + '_ {
        let strides = self.stride.iter().take(self.rank.saturating_sub(1));
        let bytes = strides.map(|stride| stride.saturating_mul(self.element_bytes));
        (1..)
            .zip(bytes)
            .filter(|&(_, bytes)| !bytes.is_multiple_of(16) || bytes >= 1 << 40)
            .map(|(dimension, bytes)| TensorMapFault::Stride { dimension, bytes })
    }

    fn box_extents(&self) -> impl Iterator<Item = TensorMapFault> + '_ {
        let dimensions = self.box_extent.iter().zip(self.element_stride);
        let extents = dimensions.map(|(extent, stride)| extent.saturating_mul(stride.max(1)));
        (extents.enumerate())
            .filter(|(_, extent)| !(1..=256).contains(extent))
            .map(|(dimension, extent)| TensorMapFault::BoxExtent { dimension, extent })
    }

    fn element_strides(&self) -> impl Iterator<Item = TensorMapFault> + '_ {
        let most = |dimension| match dimension {
            0 => 1,
            _ => MAX_ELEMENT_STRIDE,
        };
        let strides = self.element_stride.iter().enumerate();
        strides
            .filter(move |&(dimension, stride)| !(1..=most(dimension)).contains(stride))
            .map(|(dimension, &stride)| TensorMapFault::ElementStride { dimension, stride })
    }

    fn line(&self) -> Option<TensorMapFault> {
        let bytes = u64::from(self.box_extent[0]).saturating_mul(self.element_bytes);
        let span = self.swizzle_bytes;
        let is_bad = !matches!(span, 16 | 32 | 64 | 128)
            || !bytes.is_multiple_of(16)
            || (span > 16 && bytes != u64::from(span));
        is_bad.then_some(TensorMapFault::Line { bytes, span })
    }

    fn box_bytes(&self) -> Option<TensorMapFault> {
        let extents = self.box_extent.iter();
        let bytes = extents.fold(self.element_bytes, |bytes, &extent| {
            bytes.saturating_mul(u64::from(extent))
        });
        (bytes > SHARED_BYTES).then_some(TensorMapFault::BoxBytes { bytes })
    }
}

fn misaligned(address: u64) -> Option<TensorMapFault> {
    (!address.is_multiple_of(16)).then_some(TensorMapFault::Address { address })
}

impl fmt::Display for TensorMapShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor map of ")?;
        outermost_first(f, &self.extent, self.rank)?;
        write!(f, " elements of {} bytes in boxes of ", self.element_bytes)?;
        outermost_first(f, &self.box_extent, self.box_rank)?;
        if self.element_stride != [1; Self::MAX_RANK] {
            f.write_str(" with element strides of ")?;
            outermost_first(f, &self.element_stride, self.box_rank)?;
        }
        Ok(())
    }
}

/// Extents as `outermost × … × innermost`.
fn outermost_first(
    f: &mut fmt::Formatter<'_>,
    extents: &[impl fmt::Display],
    rank: usize,
) -> fmt::Result {
    let shown = rank.min(extents.len());
    for (i, extent) in extents[..shown].iter().rev().enumerate() {
        write!(f, "{}{extent}", if i > 0 { " × " } else { "" })?;
    }
    Ok(())
}

/// Why TMA cannot move boxes of a tensor. Its text says what was found, and [`fix`](Self::fix) what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMapFault {
    /// The tensor has too many dimensions.
    Rank {
        /// How many.
        rank: usize,
    },
    /// The box has more dimensions than the tensor, or none.
    BoxRank {
        /// The box's dimensions.
        box_rank: usize,
        /// The tensor's dimensions.
        rank: usize,
    },
    /// A dimension of the tensor is empty or too long.
    Extent {
        /// The dimension, from the innermost.
        dimension: usize,
        /// Its elements.
        extent: u64,
    },
    /// The tensor ends behind its buffer.
    End {
        /// Elements of the buffer.
        elements: u64,
    },
    /// The tensor begins at an address that is not aligned.
    Address {
        /// The address.
        address: u64,
    },
    /// The stride along a dimension is not aligned, or too large.
    Stride {
        /// The dimension, from the innermost.
        dimension: usize,
        /// The stride in bytes.
        bytes: u64,
    },
    /// The box is empty or too long along a dimension.
    BoxExtent {
        /// The dimension, from the innermost.
        dimension: usize,
        /// Elements of the box, and those between them.
        extent: u32,
    },
    /// A box does not take every 1st to 8th element along a dimension, or not every element of its lines.
    ElementStride {
        /// The dimension, from the innermost.
        dimension: usize,
        /// From one element of the box to the next.
        stride: u32,
    },
    /// A line of the box does not fit the swizzle span.
    Line {
        /// Bytes of a line.
        bytes: u64,
        /// The swizzle span in bytes.
        span: u32,
    },
    /// The box does not fit into shared memory.
    BoxBytes {
        /// Bytes of a box.
        bytes: u64,
    },
}

/// What to do about an address or a stride that is no multiple of 16 bytes.
const ALIGN: &str = "TMA needs multiples of 16 bytes: use a kernel that loads without TMA, \
    or copy the tensor to aligned rows";

impl TensorMapFault {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::Rank { .. } => {
                "TMA moves tensors of up to 5: merge dimensions, or make a map of each part"
            }
            Self::BoxRank { .. } => {
                "give the box no more dimensions than the tensor has, and at least one"
            }
            Self::Extent { .. } => {
                "use extents from 1 to 2^32, and skip the launch for an empty tensor"
            }
            Self::End { .. } => "use smaller extents or strides, or a larger buffer",
            Self::Stride { bytes, .. } if bytes.is_multiple_of(16) => {
                "TMA needs less than 2^40 bytes: use a kernel that loads without TMA"
            }
            Self::Address { .. } | Self::Stride { .. } => ALIGN,
            Self::BoxExtent { .. } => {
                "use boxes of 1 to 256 elements in each direction, several for a larger tile"
            }
            Self::ElementStride { .. } => {
                "use element strides of 1 to 8, and of 1 along dimension 0, or a tensor with larger strides"
            }
            Self::Line { .. } => {
                "use lines of a multiple of 16 bytes, or of 32, 64 or 128 with a swizzle of that span"
            }
            Self::BoxBytes { .. } => {
                "use boxes that fit into the 227 KiB of shared memory of a block"
            }
        }
    }
}

impl fmt::Display for TensorMapFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank { rank } => write!(f, "the tensor has {rank} dimensions"),
            Self::BoxRank { box_rank, rank } => {
                write!(
                    f,
                    "the box has {box_rank} dimensions, and the tensor {rank}"
                )
            }
            Self::Extent { dimension, extent } => {
                write!(f, "dimension {dimension} has {extent} elements")
            }
            Self::End { elements } => {
                write!(f, "it reaches beyond the {elements} elements of the buffer")
            }
            Self::Address { address } => write!(f, "its address is {address:#x}"),
            Self::Stride { dimension, bytes } => {
                let what = match dimension {
                    1 => "rows",
                    2 => "matrices",
                    3 => "stacks of matrices",
                    _ => "stacks of stacks",
                };
                write!(f, "its {what} are {bytes} bytes apart")
            }
            Self::BoxExtent { dimension, extent } => {
                write!(
                    f,
                    "the box has {extent} elements along dimension {dimension}"
                )
            }
            Self::ElementStride { dimension, stride } => write!(
                f,
                "the box has an element stride of {stride} along dimension {dimension}"
            ),
            Self::Line { bytes, span: 16 } => write!(f, "a line of the box has {bytes} bytes"),
            Self::Line { bytes, span } => {
                write!(
                    f,
                    "a line of the box has {bytes} bytes, and the swizzle spans {span}"
                )
            }
            Self::BoxBytes { bytes } => write!(f, "a box has {bytes} bytes"),
        }
    }
}
