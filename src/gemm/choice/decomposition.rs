//! Decompositions: the ways to deal out the k-tiles of C's tiles to clusters.

use std::fmt;

/// A way to deal out the k-tiles of C's tiles. The names are CUTLASS's, and those of the paper on stream-K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decomposition {
    /// Each cluster computes whole tiles.
    DataParallel,
    /// Each tile's k-tiles are split among clusters. The last cluster to arrive adds the partials.
    SplitKSerial,
    /// Each tile's k-tiles are split among clusters. A second kernel adds the partials.
    SplitKParallel,
    /// The tiles of the last, partial wave are dealt out by k-tiles.
    StreamKOneTile,
    /// The tiles of the last whole wave and of the partial one are dealt out by k-tiles.
    StreamKTwoTile,
}

impl Decomposition {
    /// All of them.
    pub const ALL: [Decomposition; 5] = [
        Decomposition::DataParallel,
        Decomposition::SplitKSerial,
        Decomposition::SplitKParallel,
        Decomposition::StreamKOneTile,
        Decomposition::StreamKTwoTile,
    ];

    /// The word that follows a kernel's name and a [`SEPARATOR`].
    pub fn name(self) -> &'static str {
        match self {
            Decomposition::DataParallel => "data_parallel",
            Decomposition::SplitKSerial => "split_k_serial",
            Decomposition::SplitKParallel => "split_k_parallel",
            Decomposition::StreamKOneTile => "stream_k_one_tile",
            Decomposition::StreamKTwoTile => "stream_k_two_tile",
        }
    }
}

impl fmt::Display for Decomposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Separates a kernel's name from its decomposition.
pub const SEPARATOR: char = '/';

/// The kernel that a caller or a tuning names, and the decomposition if the name has one. By default, none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named<'a> {
    /// The name of the kernel.
    pub kernel: Option<&'a str>,
    /// The decomposition.
    pub decomposition: Option<Decomposition>,
}

impl<'a> Named<'a> {
    /// The parts of a name. A name without a known decomposition stays whole.
    pub fn of(name: Option<&'a str>) -> Self {
        let parts = name.and_then(|name| name.split_once(SEPARATOR));
        let parsed = parts.and_then(|(kernel, word)| {
            let decomposition = Decomposition::ALL
                .into_iter()
                .find(|it| it.name() == word)?;
            Some((kernel, decomposition))
        });
        match parsed {
            Some((kernel, decomposition)) => Named {
                kernel: Some(kernel),
                decomposition: Some(decomposition),
            },
            None => Named {
                kernel: name,
                decomposition: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_end_with_a_decomposition() {
        for decomposition in Decomposition::ALL {
            let name = format!("kernel{SEPARATOR}{decomposition}");
            let parsed = Named {
                kernel: Some("kernel"),
                decomposition: Some(decomposition),
            };
            assert_eq!(Named::of(Some(&name)), parsed);
        }
        for name in [None, Some("kernel"), Some("kernel/split"), Some("/")] {
            let whole = Named {
                kernel: name,
                decomposition: None,
            };
            assert_eq!(Named::of(name), whole);
        }
    }
}
