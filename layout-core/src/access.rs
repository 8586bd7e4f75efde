//! What the accesses of a warp cost: bank conflicts in shared memory, sectors of global memory.

use crate::partition::AccessWidth;
use crate::{Layout, StaticLayout, StaticSwizzle, Swizzle, ThreadValue, compose_coordinates};

/// Threads of a warp.
const LANES: i64 = 32;
/// Banks of shared memory.
const BANKS: usize = 32;
/// Width of a bank, in bytes.
const BANK_BYTES: i64 = 4;
/// Size of a sector, the unit of global memory accesses, in bytes.
const SECTOR_BYTES: i64 = 32;

/// A warp's loads or stores of the values of a thread-value partition.
///
/// Each access moves `width` consecutive values per thread. Shared memory serves up to 128 bytes at
/// once: 32 threads that move at most 4 bytes each, 16 threads that move 8, or 8 threads that move
/// 16. Threads served at once conflict if they need different words of one bank; the bank serves
/// these one after the other. Global memory is accessed in sectors of 32 bytes.
///
/// Tiles are assumed to begin at a multiple of 128 bytes. Every function is `const`, so a kernel
/// can assert its costs:
///
/// ```
/// use cutlet_layout_core::{L, NoSwizzle, Sw, Tv, WarpAccess};
///
/// type Tile = L!((32, 32):(32, 1)); // f32
/// type Columns = Tv<L!(32:1@0), L!(32:1@1)>; // a thread reads along a row, a warp down a column
/// const PLAIN: WarpAccess = WarpAccess::of::<Columns, Tile, NoSwizzle>(4);
/// const _: () = assert!(PLAIN.bank_conflicts() == 32);
///
/// const SWIZZLED: WarpAccess = WarpAccess::of::<Columns, Tile, Sw<5, 0, 5>>(4);
/// const _: () = assert!(SWIZZLED.bank_conflicts() == 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess {
    offsets: Layout,
    swizzle: Swizzle,
    element_bytes: i64,
    width: i64,
    first_thread: i64,
}

impl WarpAccess {
    /// The first warp's accesses of `width` values each to elements of `element_bytes` bytes.
    /// `offsets` maps (thread, value) to an element's index in memory.
    ///
    /// # Panics
    /// If the layout is not of rank 2 or has strides in basis directions, an access is not 1, 2, 4,
    /// 8 or 16 bytes, or `width` does not divide a thread's number of values.
    pub const fn new(offsets: &Layout, element_bytes: i64, width: i64) -> WarpAccess {
        assert!(
            offsets.rank() == 2 && !offsets.has_basis(),
            "WarpAccess: the layout does not map (thread, value) to an element's index: give one of \
             rank 2 with plain strides"
        );
        assert!(
            matches!(element_bytes * width, 1 | 2 | 4 | 8 | 16),
            "WarpAccess: element_bytes times width is not 1, 2, 4, 8 or 16 bytes: change the width"
        );
        assert!(
            offsets.mode(1).size() % width == 0,
            "WarpAccess: the width does not divide a thread's number of values: choose one that does"
        );
        WarpAccess {
            offsets: *offsets,
            swizzle: Swizzle::new(0, 0, 0),
            element_bytes,
            width,
            first_thread: 0,
        }
    }

    /// The first warp's accesses to a tile of elements of `element_bytes` bytes. `L` lays the tile
    /// out, `W` swizzles it, and `C` partitions it and gives the width of an access.
    ///
    /// # Panics
    /// As [`new`](Self::new), and if `C` does not fit `L`.
    pub const fn of<C: ThreadValue, L: StaticLayout, W: StaticSwizzle>(
        element_bytes: i64,
    ) -> WarpAccess {
        let offsets = Layout::concat2(
            &compose_coordinates(&L::LAYOUT, &C::Thr::LAYOUT),
            &compose_coordinates(&L::LAYOUT, &C::Val::LAYOUT),
        );
        WarpAccess::new(&offsets, element_bytes, C::Width::VALUES as i64).swizzled(W::VALUE)
    }

    /// The same accesses to memory whose element indices are swizzled.
    pub const fn swizzled(self, swizzle: Swizzle) -> WarpAccess {
        WarpAccess { swizzle, ..self }
    }

    /// The same accesses by warp `warp`, counted from 0.
    ///
    /// # Panics
    /// If the partition has no such warp.
    pub const fn of_warp(self, warp: i64) -> WarpAccess {
        let first_thread = warp * LANES;
        assert!(
            warp >= 0 && first_thread < self.offsets.mode(0).size(),
            "of_warp: the partition has no warp of this number: warps of 32 threads are counted from 0"
        );
        WarpAccess {
            first_thread,
            ..self
        }
    }

    /// The number of accesses that each thread makes.
    pub const fn accesses(&self) -> i64 {
        self.offsets.mode(1).size() / self.width
    }

    /// Whether every access is one instruction: its values are consecutive in memory and begin at a
    /// multiple of its width.
    pub const fn is_vectorised(&self) -> bool {
        let mut access = 0;
        while access < self.accesses() {
            let mut lane = 0;
            while lane < self.lanes() {
                let first = self.element(lane, access * self.width);
                let mut n = 0;
                while n < self.width {
                    if first % self.width != 0
                        || self.element(lane, access * self.width + n) != first + n
                    {
                        return false;
                    }
                    n += 1;
                }
                lane += 1;
            }
            access += 1;
        }
        true
    }

    /// The worst bank conflict of any access to shared memory, in ways: 1 without a conflict, 2 if
    /// a bank serves two different words, and so on.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn bank_conflicts(&self) -> u32 {
        self.walk().worst
    }

    /// The wavefronts of shared memory that the warp's accesses take, summed over the accesses.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn wavefronts(&self) -> u32 {
        self.walk().wavefronts
    }

    /// The 32-byte sectors of global memory that the accesses touch, summed over the accesses.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn sectors(&self) -> u32 {
        self.walk().sectors
    }

    /// The fewest sectors that can hold the accessed bytes, summed over the accesses. Accesses are
    /// coalesced if [`sectors`](Self::sectors) is not more.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn least_sectors(&self) -> u32 {
        self.walk().least_sectors
    }

    const fn lanes(&self) -> i64 {
        let left = self.offsets.mode(0).size() - self.first_thread;
        if left < LANES { left } else { LANES }
    }

    const fn element(&self, lane: i64, value: i64) -> i64 {
        let threads = self.offsets.mode(0).size();
        self.swizzle
            .apply(self.offsets.at(self.first_thread + lane + value * threads))
    }

    const fn walk(&self) -> Costs {
        assert!(
            self.is_vectorised(),
            "WarpAccess: the values of an access are not consecutive in memory, or not aligned: use a smaller width"
        );
        let bytes = self.element_bytes * self.width;
        let lanes_at_once = if bytes <= BANK_BYTES {
            LANES
        } else {
            LANES * BANK_BYTES / bytes
        };
        let mut costs = Costs {
            worst: 0,
            wavefronts: 0,
            sectors: 0,
            least_sectors: 0,
        };
        let mut access = 0;
        while access < self.accesses() {
            let mut addresses = [0i64; LANES as usize];
            let mut lane = 0;
            while lane < self.lanes() {
                addresses[lane as usize] =
                    self.element(lane, access * self.width) * self.element_bytes;
                lane += 1;
            }
            let (addresses, _) = addresses.split_at(lane as usize);
            let mut first = 0;
            while first < addresses.len() {
                let left = addresses.len() - first;
                let lanes = if left < lanes_at_once as usize {
                    left
                } else {
                    lanes_at_once as usize
                };
                let ways = ways(addresses.split_at(first).1.split_at(lanes).0, bytes);
                costs.worst = if ways > costs.worst {
                    ways
                } else {
                    costs.worst
                };
                costs.wavefronts += ways;
                first += lanes;
            }
            costs.sectors += distinct(addresses, SECTOR_BYTES);
            let different = distinct(addresses, bytes) as i64 * bytes;
            costs.least_sectors += ((different + SECTOR_BYTES - 1) / SECTOR_BYTES) as u32;
            access += 1;
        }
        costs
    }
}

/// The costs of a warp's accesses.
struct Costs {
    worst: u32,
    wavefronts: u32,
    sectors: u32,
    least_sectors: u32,
}

/// The number of different words that the busiest bank serves, for threads that are served at once.
const fn ways(addresses: &[i64], bytes: i64) -> u32 {
    let words_each = if bytes < BANK_BYTES {
        1
    } else {
        (bytes / BANK_BYTES) as usize
    };
    // At most 128 bytes are served at once.
    let mut words = [0i64; BANKS];
    let mut len = 0;
    let mut busy = [0u32; BANKS];
    let mut worst = 0;
    let mut i = 0;
    while i < addresses.len() * words_each {
        let word = addresses[i / words_each].div_euclid(BANK_BYTES) + (i % words_each) as i64;
        let mut seen = false;
        let mut j = 0;
        while j < len && !seen {
            seen = words[j] == word;
            j += 1;
        }
        if !seen {
            words[len] = word;
            len += 1;
            let bank = word.rem_euclid(BANKS as i64) as usize;
            busy[bank] += 1;
            if busy[bank] > worst {
                worst = busy[bank];
            }
        }
        i += 1;
    }
    worst
}

/// The number of different aligned blocks of `bytes` bytes that the addresses lie in.
const fn distinct(addresses: &[i64], bytes: i64) -> u32 {
    let mut count = 0;
    let mut i = 0;
    while i < addresses.len() {
        let mut seen = false;
        let mut j = 0;
        while j < i && !seen {
            seen = addresses[j].div_euclid(bytes) == addresses[i].div_euclid(bytes);
            j += 1;
        }
        if !seen {
            count += 1;
        }
        i += 1;
    }
    count
}
