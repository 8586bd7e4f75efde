//! Tiled operations as values: matrix and copy instructions, repeated over threads and over a tile.

use std::collections::HashMap;
use std::fmt;

use cutlet_layout_core::{
    CopyAtom, CopyTiling, IntTuple, Layout, MmaAtom, MmaTiling, try_coalesce_by_mode,
};

use crate::refusal::Refusal;

/// A tiled operation. An instruction alone is one with a single atom.
///
/// ```
/// use cutlet_calculator::evaluate;
///
/// let mma = evaluate("make_tiled_mma(Mma16816<bf16>, (2,2))").unwrap();
/// let mma = mma.tiled().unwrap();
/// assert_eq!((mma.threads(), mma.tile().to_string()), (128, "(_32,_16,_16)".into()));
///
/// // Threads 6 and 70, in warps side by side, hold the same elements of A.
/// let operands = mma.operands(None).unwrap();
/// assert_eq!((operands[0].name, operands[0].first_holders()[70]), ("A", 6));
/// ```
#[derive(Clone, Debug)]
pub enum Tiled {
    /// A matrix instruction, repeated over warps.
    Mma(Box<MmaTiling>),
    /// A copy instruction, repeated over threads and their values.
    Copy(Box<CopyTiling>),
}

/// What the threads of a tiled operation hold of one of its operands.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The operand: `A`, `B` or `C`, or a side of a copy.
    pub name: &'static str,
    /// (thread, value) → position in the tile, counted down its columns.
    pub layout: Layout,
    /// The extents of the operand's tile: (rows, columns).
    pub tile: IntTuple,
}

impl From<MmaTiling> for Tiled {
    fn from(mma: MmaTiling) -> Tiled {
        Tiled::Mma(Box::new(mma))
    }
}

impl From<CopyTiling> for Tiled {
    fn from(copy: CopyTiling) -> Tiled {
        Tiled::Copy(Box::new(copy))
    }
}

impl Tiled {
    pub(crate) fn of_mma_atom(atom: MmaAtom) -> Tiled {
        MmaTiling::new(atom, &Layout::col_major(&IntTuple::fixed(&[1, 1, 1]))).into()
    }

    pub(crate) fn of_copy_atom(atom: CopyAtom) -> Tiled {
        let values = atom.reference().size();
        // A row of a matrix that `ldmatrix` copies is a column of this tile.
        let rows = if atom.threads() > 1 {
            (128 / atom.element_bits()).min(values)
        } else {
            1
        };
        let tile = IntTuple::fixed(&[rows, values / rows]);
        CopyTiling::of_layout(atom, atom.reference(), &tile).into()
    }

    /// The number of threads.
    pub fn threads(&self) -> i64 {
        match self {
            Tiled::Mma(mma) => mma.threads(),
            Tiled::Copy(copy) => copy.threads(),
        }
    }

    /// The extents of the tile on which all threads work at once: (M, N, K), or (rows, columns).
    pub fn tile(&self) -> IntTuple {
        match self {
            Tiled::Mma(mma) => IntTuple::fixed(&mma.tile()),
            Tiled::Copy(copy) => *copy.tile(),
        }
    }

    /// What each thread has of each operand of a tile. Without a tile, it is that of [`tile`](Self::tile).
    ///
    /// # Errors
    /// If the extents of the tile are no multiples of those of [`tile`](Self::tile).
    pub fn operands(&self, tile: Option<&IntTuple>) -> Result<Vec<Operand>, Refusal> {
        let tile = tile.copied().unwrap_or_else(|| self.tile()).to_static();
        self.check_tile(&tile)?;
        let extent = |i: usize| tile.mode(i).size();
        match self {
            Tiled::Mma(mma) => {
                let (m, n, k) = (extent(0), extent(1), extent(2));
                let operand = |name, rows, columns, layout: fn(&MmaTiling, &Layout) -> Layout| {
                    let tile = IntTuple::fixed(&[rows, columns]);
                    Operand {
                        name,
                        layout: layout(mma, &Layout::col_major(&tile)),
                        tile,
                    }
                };
                Ok(vec![
                    operand("A", m, k, MmaTiling::layout_a_tv),
                    operand("B", n, k, MmaTiling::layout_b_tv),
                    operand("C", m, n, MmaTiling::layout_c_tv),
                ])
            }
            Tiled::Copy(copy) => {
                let positions = Layout::col_major(&tile);
                let source = of_threads(&copy.try_tidfrg_s(&positions)?)?;
                let destination = of_threads(&copy.try_tidfrg_d(&positions)?)?;
                let operand = |name, layout| Operand { name, layout, tile };
                Ok(if source == destination {
                    vec![operand("source and destination", source)]
                } else {
                    vec![
                        operand("source", source),
                        operand("destination", destination),
                    ]
                })
            }
        }
    }

    /// Refuses a tile that the threads cannot cover by whole repetitions.
    fn check_tile(&self, tile: &IntTuple) -> Result<(), Refusal> {
        let own = self.tile();
        let fits = tile.is_tuple()
            && tile.rank() == own.rank()
            && (0..own.rank()).all(|i| tile.mode(i).is_int() && tile.mode(i).size() > 0)
            && (0..own.rank()).all(|i| tile.mode(i).size() % own.mode(i).size() == 0);
        if fits {
            return Ok(());
        }
        Err(Refusal::new(format!(
            "the threads cover {} at once, so they do not divide a tile {}: give multiples",
            own.to_dynamic(),
            tile.to_dynamic()
        )))
    }
}

/// (thread, value, RestM, …) as (thread, (value, RestM, …)).
fn of_threads(divided: &Layout) -> Result<Layout, Refusal> {
    let values = divided.try_take(1, divided.rank())?;
    let both = Layout::try_concat(&[divided.mode(0), values])?;
    Ok(try_coalesce_by_mode(&both, &IntTuple::fixed(&[1, 1]))?)
}

impl Operand {
    /// For each thread, the first thread that has the same elements.
    pub fn first_holders(&self) -> Vec<i64> {
        let mut first_at = HashMap::new();
        let threads = 0..self.layout.mode(0).size();
        threads
            .map(|thread| *first_at.entry(self.layout.at(thread)).or_insert(thread))
            .collect()
    }

    /// Whether all threads have all elements, as those of a warpgroup do of operands in shared memory.
    pub fn is_shared_by_all(&self) -> bool {
        let threads = self.layout.mode(0);
        threads.size() > 1 && threads.cosize() == 1
    }
}

impl fmt::Display for Tiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiled::Mma(mma) => write!(
                f,
                "TiledMMA({}, ThrLayoutVMNK {}, tile {})",
                mma.atom().name(),
                mma.thr_layout_vmnk(),
                self.tile()
            ),
            Tiled::Copy(copy) => write!(
                f,
                "TiledCopy({} of {} values, LayoutCopy_TV {}, tile {})",
                copy.atom().name(),
                copy.atom().reference().mode(1).size(),
                copy.get_layout_tv(),
                self.tile()
            ),
        }
    }
}
