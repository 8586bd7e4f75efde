//! What the accesses of a warp cost: bank conflicts in shared memory, sectors of global memory.

mod checks;

use crate::partition::AccessWidth;
use crate::{Layout, StaticLayout, StaticSwizzle, Swizzle, ThreadValue, compose_coordinates};

/// Threads of a warp.
const LANES: usize = 32;
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
/// can assert its costs. [`assert_conflict_free`](Self::assert_conflict_free) says which threads meet in which bank.
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
    /// What each thread adds to an element's index. A layout's value is the sum over its modes, so threads and values
    /// are looked at apart.
    threads: Layout,
    /// What each value of a thread adds.
    values: Layout,
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
        let values = offsets.mode(1);
        assert!(
            values.size() % width == 0,
            "WarpAccess: the width does not divide a thread's number of values: choose one that does"
        );
        WarpAccess {
            threads: offsets.mode(0),
            values,
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
        let first_thread = warp * LANES as i64;
        assert!(
            warp >= 0 && first_thread < self.threads.size(),
            "of_warp: the partition has no warp of this number: warps of 32 threads are counted from 0"
        );
        WarpAccess {
            first_thread,
            ..self
        }
    }

    /// The number of accesses that each thread makes.
    pub const fn accesses(&self) -> i64 {
        self.values.size() / self.width
    }

    /// Whether every access is one instruction: its values are consecutive in memory and begin at a
    /// multiple of its width.
    pub const fn is_vectorised(&self) -> bool {
        if self.width == 1 || self.has_aligned_runs() {
            return true;
        }
        let (lanes, count) = (self.lane_offsets(), self.lanes());
        let (mut access, accesses) = (0, self.accesses());
        while access < accesses {
            let mut n = 0;
            while n < self.width {
                let value = self.value_offset(access * self.width + n);
                let first = self.value_offset(access * self.width);
                let mut lane = 0;
                while lane < count {
                    let start = self.swizzle.apply(lanes[lane] + first);
                    if start % self.width != 0
                        || self.swizzle.apply(lanes[lane] + value) != start + n
                    {
                        return false;
                    }
                    lane += 1;
                }
                n += 1;
            }
            access += 1;
        }
        true
    }

    /// Whether threads and accesses begin at multiples of the width, and the values of an access are consecutive,
    /// wherever the swizzle moves them. It is a reason for [`is_vectorised`](Self::is_vectorised) of all warps, and takes
    /// the compiler less long than a comparison for every lane.
    const fn has_aligned_runs(&self) -> bool {
        let within = self.width - 1;
        (self.swizzle.source_mask() | self.swizzle.target_mask()) & within == 0
            && steps_by(&self.threads, self.width)
            && begins_with_run(&self.values, self.width)
    }

    /// The worst bank conflict of any access to shared memory, in ways: 1 without a conflict, 2 if
    /// a bank serves two different words, and so on.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn bank_conflicts(&self) -> u32 {
        self.served().worst
    }

    /// The wavefronts of shared memory that the warp's accesses take, summed over the accesses.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn wavefronts(&self) -> u32 {
        self.served().wavefronts
    }

    /// The 32-byte sectors of global memory that the accesses touch, summed over the accesses.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn sectors(&self) -> u32 {
        self.touched().sectors
    }

    /// The fewest sectors that can hold the accessed bytes, summed over the accesses. Accesses are
    /// coalesced if [`sectors`](Self::sectors) is not more.
    ///
    /// # Panics
    /// If accesses are not [vectorised](Self::is_vectorised).
    pub const fn least_sectors(&self) -> u32 {
        self.touched().least_sectors
    }

    const fn lanes(&self) -> usize {
        let left = self.threads.size() - self.first_thread;
        if left < LANES as i64 {
            left as usize
        } else {
            LANES
        }
    }

    /// What each lane adds to an element's index.
    const fn lane_offsets(&self) -> [i64; LANES] {
        let (mut lane, count) = (0, self.lanes());
        let mut offsets = [0; LANES];
        if divides_at(&self.threads, LANES as i64) {
            // All warps are alike but for where they begin. The compiler makes a table in less time than each entry.
            offsets = self.threads.first_indices(count, 0);
            let first = self.threads.at(self.first_thread);
            while lane < count {
                offsets[lane] += first;
                lane += 1;
            }
        }
        while lane < count {
            offsets[lane] = self.threads.at(self.first_thread + lane as i64);
            lane += 1;
        }
        offsets
    }

    /// What value `value` of a thread adds to an element's index.
    const fn value_offset(&self, value: i64) -> i64 {
        self.values.at(value)
    }

    /// The bytes of an access by one thread.
    const fn bytes(&self) -> i64 {
        self.element_bytes * self.width
    }

    /// The byte addresses of access `access` by the lanes that add `lanes`.
    const fn addresses(&self, access: i64, lanes: &[i64]) -> [i64; LANES] {
        let first = self.value_offset(access * self.width);
        let mut addresses = [0; LANES];
        let mut lane = 0;
        while lane < lanes.len() {
            addresses[lane] = self.swizzle.apply(lanes[lane] + first) * self.element_bytes;
            lane += 1;
        }
        addresses
    }

    /// How many lanes shared memory serves at once.
    const fn lanes_at_once(&self) -> usize {
        if self.bytes() <= BANK_BYTES {
            LANES
        } else {
            LANES * BANK_BYTES as usize / self.bytes() as usize
        }
    }

    /// What the accesses cost in shared memory.
    const fn served(&self) -> Served {
        self.assert_warp_vectorised();
        let lanes_at_once = self.lanes_at_once();
        let (lanes, count) = (self.lane_offsets(), self.lanes());
        let (mut worst, mut wavefronts) = (0, 0);
        let (mut access, accesses) = (0, self.accesses());
        while access < accesses {
            let addresses = self.addresses(access, lanes.split_at(count).0);
            let mut first = 0;
            while first < count {
                let end = if count - first < lanes_at_once {
                    count
                } else {
                    first + lanes_at_once
                };
                let ways = ways(addresses.split_at(end).0.split_at(first).1, self.bytes());
                worst = if ways > worst { ways } else { worst };
                wavefronts += ways;
                first = end;
            }
            access += 1;
        }
        Served { worst, wavefronts }
    }

    /// What the accesses cost in global memory.
    const fn touched(&self) -> Touched {
        self.assert_warp_vectorised();
        let (lanes, count) = (self.lane_offsets(), self.lanes());
        let (mut sectors, mut least_sectors) = (0, 0);
        let (mut access, accesses) = (0, self.accesses());
        while access < accesses {
            let addresses = self.addresses(access, lanes.split_at(count).0);
            let (addresses, _) = addresses.split_at(count);
            sectors += distinct(addresses, SECTOR_BYTES);
            let different = distinct(addresses, self.bytes()) as i64 * self.bytes();
            least_sectors += ((different + SECTOR_BYTES - 1) / SECTOR_BYTES) as u32;
            access += 1;
        }
        Touched {
            sectors,
            least_sectors,
        }
    }
}

/// The costs of a warp's accesses to shared memory.
struct Served {
    worst: u32,
    wavefronts: u32,
}

/// The costs of a warp's accesses to global memory.
struct Touched {
    sectors: u32,
    least_sectors: u32,
}

/// Whether all indices of a layout are multiples of `step`.
const fn steps_by(layout: &Layout, step: i64) -> bool {
    let mut leaf = 0;
    while leaf < layout.num_leaves() {
        if layout.leaf_shape(leaf).value() > 1 && layout.leaf_stride(leaf).value() % step != 0 {
            return false;
        }
        leaf += 1;
    }
    true
}

/// Whether a layout maps each `run` coordinates, counted from the first one, to `run` consecutive indices of which the
/// least is a multiple of `run`.
const fn begins_with_run(layout: &Layout, run: i64) -> bool {
    let (mut leaf, mut before) = (0, 1);
    while leaf < layout.num_leaves() {
        let (extent, stride) = (
            layout.leaf_shape(leaf).value(),
            layout.leaf_stride(leaf).value(),
        );
        let end = before * extent;
        let continues = match before < run {
            true => stride == before && (end % run == 0 || run % end == 0),
            false => stride % run == 0,
        };
        if extent > 1 && !continues {
            return false;
        }
        before = end;
        leaf += 1;
    }
    before >= run
}

/// Whether the indices of the coordinates from any multiple of `count` on are those of the first `count` coordinates,
/// all moved by the same.
const fn divides_at(layout: &Layout, count: i64) -> bool {
    let (mut leaf, mut before) = (0, 1);
    while leaf < layout.num_leaves() && before < count {
        let end = before * layout.leaf_shape(leaf).value();
        if end % count != 0 && count % end != 0 {
            return false;
        }
        before = end;
        leaf += 1;
    }
    true
}

/// The number of different words that the busiest bank serves, for threads that are served at once.
const fn ways(addresses: &[i64], bytes: i64) -> u32 {
    if meets_no_other(addresses, bytes) {
        return 1;
    }
    let words_each = if bytes < BANK_BYTES {
        1
    } else {
        bytes / BANK_BYTES
    };
    let mut banks = [const { Numbers::new() }; BANKS];
    let mut worst = 0;
    let mut i = 0;
    while i < addresses.len() {
        let first = addresses[i].div_euclid(BANK_BYTES);
        let mut word = first;
        while word < first + words_each {
            let bank = &mut banks[word.rem_euclid(BANKS as i64) as usize];
            bank.insert(word);
            if bank.count > worst {
                worst = bank.count;
            }
            word += 1;
        }
        i += 1;
    }
    worst as u32
}

/// Whether no bank serves two different words, for threads that are served at once, of which there is at least one. An
/// access is at a multiple of its bytes, so two accesses share either all of their banks or none.
const fn meets_no_other(addresses: &[i64], bytes: i64) -> bool {
    let bytes = if bytes < BANK_BYTES {
        BANK_BYTES
    } else {
        bytes
    };
    let (shift, places) = (bytes.trailing_zeros(), BANKS as i64 * BANK_BYTES / bytes);
    let mut found = [i64::MIN; BANKS];
    let mut i = 0;
    while i < addresses.len() {
        let number = addresses[i] >> shift;
        let place = &mut found[(number & (places - 1)) as usize];
        if *place != i64::MIN && *place != number {
            return false;
        }
        *place = number;
        i += 1;
    }
    true
}

/// The number of different aligned blocks of `bytes` bytes that the addresses lie in.
const fn distinct(addresses: &[i64], bytes: i64) -> u32 {
    let mut blocks = Numbers::new();
    let mut i = 0;
    while i < addresses.len() {
        blocks.insert(addresses[i].div_euclid(bytes));
        i += 1;
    }
    blocks.count as u32
}

/// A set of up to 32 numbers. Lanes mostly come in order, so a number beyond all others is inserted
/// without a search: the compiler's interpreter takes long for a loop.
struct Numbers {
    numbers: [i64; LANES],
    count: usize,
    least: i64,
    greatest: i64,
}

impl Numbers {
    const fn new() -> Self {
        Numbers {
            numbers: [0; LANES],
            count: 0,
            least: i64::MAX,
            greatest: i64::MIN,
        }
    }

    const fn insert(&mut self, number: i64) {
        if number >= self.least && number <= self.greatest {
            let mut i = self.count;
            while i > 0 {
                i -= 1;
                if self.numbers[i] == number {
                    return;
                }
            }
        }
        self.numbers[self.count] = number;
        self.count += 1;
        if number < self.least {
            self.least = number;
        }
        if number > self.greatest {
            self.greatest = number;
        }
    }
}
