//! Grids: the number of blocks of a launch.

use std::fmt;

/// The number of blocks along x, y and z. Made from `n`, `(x, y)`, `(x, y, z)` or `[x, y, z]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks along x.
    pub x: u32,
    /// Blocks along y.
    pub y: u32,
    /// Blocks along z.
    pub z: u32,
}

impl Grid {
    /// How many blocks there are in all.
    pub(crate) fn blocks(self) -> u64 {
        let of_plane = u64::from(self.x) * u64::from(self.y);
        of_plane.saturating_mul(u64::from(self.z))
    }
}

impl From<u32> for Grid {
    fn from(x: u32) -> Grid {
        Grid { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Grid {
    fn from((x, y): (u32, u32)) -> Grid {
        Grid { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Grid {
    fn from((x, y, z): (u32, u32, u32)) -> Grid {
        Grid { x, y, z }
    }
}

impl From<[u32; 3]> for Grid {
    fn from([x, y, z]: [u32; 3]) -> Grid {
        Grid { x, y, z }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} x {} blocks", self.x, self.y, self.z)
    }
}
