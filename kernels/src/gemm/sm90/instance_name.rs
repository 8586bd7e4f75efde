//! The name of an instance: its kernel's, with the cluster in it if launches choose the cluster.

use core::fmt;

/// The most bytes of a name.
const MOST: usize = 56;

/// A name that is made at compile time.
#[derive(Clone, Copy)]
pub(super) struct InstanceName {
    bytes: [u8; MOST],
    len: usize,
}

impl InstanceName {
    /// The kernel's name.
    pub(super) const fn of_kernel(kernel: &str) -> Self {
        let empty = Self {
            bytes: [0; MOST],
            len: 0,
        };
        empty.then(kernel.as_bytes())
    }

    /// The kernel's name, with `2x1_` behind the type and the tile, which are its first two words.
    pub(super) const fn in_cluster(kernel: &str, [rows, columns]: [u32; 2]) -> Self {
        let (mut behind, mut words) = (0, 0);
        while words < 2 {
            words += (kernel.as_bytes()[behind] == b'_') as usize;
            behind += 1;
        }
        let (tile, rest) = kernel.split_at(behind);
        assert!(
            rows < 10 && columns < 10,
            "the cluster has a digit for its rows, and one for its columns"
        );
        let cluster = [b'0' + rows as u8, b'x', b'0' + columns as u8, b'_'];
        let name = Self::of_kernel(tile).then(&cluster);
        name.then(rest.as_bytes())
    }

    /// The name, and these bytes behind it.
    const fn then(mut self, bytes: &[u8]) -> Self {
        let mut nth = 0;
        while nth < bytes.len() {
            self.bytes[self.len] = bytes[nth];
            (self.len, nth) = (self.len + 1, nth + 1);
        }
        self
    }

    pub(super) const fn as_str(&self) -> &str {
        let (name, _) = self.bytes.split_at(self.len);
        match str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => unreachable!(),
        }
    }
}

impl fmt::Debug for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_stands_behind_the_tile() {
        let name = InstanceName::in_cluster("bf16_128x160x64_coop_kkm", [2, 4]);
        assert_eq!(name.as_str(), "bf16_128x160x64_2x4_coop_kkm");
        let name = InstanceName::of_kernel("bf16_64x32x64_1x1_ws");
        assert_eq!(name.as_str(), "bf16_64x32x64_1x1_ws");
    }
}
