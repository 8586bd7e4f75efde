//! Accesses of a launch, gathered into requests of warps.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use crate::context::{Block, Thread};
use crate::report::{Memory, SiteReport};
use crate::shadow::MemoryAccess;
use crate::site::Site;
use crate::warp::WARP_SIZE;

/// Bytes of a sector.
const SECTOR: usize = 32;
/// Banks of shared memory, and the bytes of each.
const BANKS: usize = 32;
const BANK_BYTES: usize = 4;
/// Bytes that shared memory serves in a pass.
const PASS_BYTES: usize = BANKS * BANK_BYTES;

/// A line with the kind of its accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    memory: Memory,
    /// The access as a number, so that keys have an order.
    access: u8,
    site: i32,
}

/// The addresses that the lanes of a warp access together; `None` for a lane that does not take part.
#[derive(Clone, Copy, Default)]
struct Request {
    addresses: [Option<usize>; WARP_SIZE],
    bytes: usize,
}

/// The requests of a warp on a line that are not complete.
#[derive(Default)]
struct Open {
    /// Number of the first one.
    first: usize,
    requests: VecDeque<Request>,
    /// How many accesses each lane has made.
    made: [usize; WARP_SIZE],
}

/// The open requests of a block's warps, and the sums of those that are complete.
#[derive(Default)]
struct OfBlock(RefCell<Requests>);

#[derive(Default)]
struct Requests {
    open: HashMap<(u32, Key), Open>,
    sums: BTreeMap<Key, Sums>,
    bulk_bytes: u64,
}

/// Sums over the requests on a line.
#[derive(Clone, Copy, Default)]
struct Sums {
    requests: u64,
    accesses: u64,
    bytes: u64,
    sectors: u64,
    passes: u64,
    least_passes: u64,
    worst_conflict: u32,
}

/// The sums of a launch.
#[derive(Default)]
pub(crate) struct Traffic(Mutex<Total>);

#[derive(Default)]
struct Total {
    sums: BTreeMap<Key, Sums>,
    barriers: u64,
    bulk_bytes: u64,
}

/// Notes an access of the running thread, if its launch is reported.
#[inline]
pub(crate) fn note(
    thread: &Thread,
    memory: Memory,
    address: usize,
    bytes: usize,
    access: MemoryAccess,
    site: Site,
) {
    if thread.block().launch().traffic.is_none() {
        return;
    }
    let key = Key {
        memory,
        access: access as u8,
        site: site.number(),
    };
    let OfBlock(requests) = thread.block().models.get_or_default();
    requests.borrow_mut().add(thread, key, address, bytes);
}

/// Notes bytes that a bulk copy of the running thread moves, if its launch is reported.
pub(crate) fn note_bulk(thread: &Thread, bytes: usize) {
    if thread.block().launch().traffic.is_some() {
        let OfBlock(requests) = thread.block().models.get_or_default();
        requests.borrow_mut().bulk_bytes += bytes as u64;
    }
}

impl Requests {
    fn add(&mut self, thread: &Thread, key: Key, address: usize, bytes: usize) {
        let warp = thread.linear / WARP_SIZE as u32;
        let open = self.open.entry((warp, key)).or_default();
        let lane = thread.lane();
        let number = open.made[lane];
        open.made[lane] += 1;
        // A request that lanes have left behind was closed without this lane: the lane's access is one of its own.
        let Some(at) = number.checked_sub(open.first) else {
            let mut request = Request {
                bytes,
                ..Request::default()
            };
            request.addresses[lane] = Some(address);
            self.sums.entry(key).or_default().add(&request, key.memory);
            return;
        };
        while open.requests.len() <= at {
            open.requests.push_back(Request::default());
        }
        let request = &mut open.requests[at];
        request.bytes = bytes;
        request.addresses[lane] = Some(address);
        let members = thread.warp().members().count_ones() as usize;
        let sums = self.sums.entry(key).or_default();
        while let Some(first) = open.requests.front()
            && first.addresses.iter().flatten().count() == members
        {
            sums.add(first, key.memory);
            open.requests.pop_front();
            open.first += 1;
        }
        // Lanes that never come must not keep a loop's requests.
        if open.requests.len() > MOST_OPEN
            && let Some(first) = open.requests.pop_front()
        {
            sums.add(&first, key.memory);
            open.first += 1;
        }
    }
}

/// The most open requests of a warp on a line.
const MOST_OPEN: usize = 1 << 16;

impl Sums {
    fn add(&mut self, request: &Request, memory: Memory) {
        let accesses = request.addresses.iter().flatten().count() as u64;
        if accesses == 0 {
            return;
        }
        self.requests += 1;
        self.accesses += accesses;
        self.bytes += accesses * request.bytes as u64;
        match memory {
            Memory::Global => self.sectors += sectors(request),
            Memory::Shared => {
                // Lanes that are served together.
                let together = (PASS_BYTES / request.bytes.max(BANK_BYTES)).max(1);
                for lanes in request.addresses.chunks(together) {
                    let ways = conflict(lanes, request.bytes);
                    self.passes += u64::from(ways);
                    self.least_passes += u64::from(ways.min(1));
                    self.worst_conflict = self.worst_conflict.max(ways);
                }
            }
        }
    }

    fn join(&mut self, other: &Self) {
        self.requests += other.requests;
        self.accesses += other.accesses;
        self.bytes += other.bytes;
        self.sectors += other.sectors;
        self.passes += other.passes;
        self.least_passes += other.least_passes;
        self.worst_conflict = self.worst_conflict.max(other.worst_conflict);
    }
}

/// Different sectors that a request touches.
fn sectors(request: &Request) -> u64 {
    let of = |&address: &usize| address / SECTOR..(address + request.bytes).div_ceil(SECTOR);
    let mut all: Vec<usize> = request.addresses.iter().flatten().flat_map(of).collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

/// The most different words that lanes need of one bank; 0 if no lane takes part.
fn conflict(lanes: &[Option<usize>], bytes: usize) -> u32 {
    let of = |&address: &usize| address / BANK_BYTES..(address + bytes).div_ceil(BANK_BYTES);
    let mut words: Vec<usize> = lanes.iter().flatten().flat_map(of).collect();
    words.sort_unstable();
    words.dedup();
    let mut ways = [0; BANKS];
    words.iter().for_each(|word| ways[word % BANKS] += 1);
    ways.into_iter().max().unwrap_or(0)
}

impl Traffic {
    /// Adds a block that has ended.
    pub(crate) fn add(&self, block: &Block) {
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        total.barriers += block
            .barriers
            .iter()
            .map(|it| u64::from(it.passed()))
            .sum::<u64>();
        let Some(OfBlock(requests)) = block.models.get() else {
            return;
        };
        let Requests {
            open,
            mut sums,
            bulk_bytes,
        } = requests.take();
        for ((_, key), open) in open {
            let sums = sums.entry(key).or_default();
            open.requests
                .iter()
                .for_each(|request| sums.add(request, key.memory));
        }
        for (key, sums) in &sums {
            total.sums.entry(*key).or_default().join(sums);
        }
        total.bulk_bytes += bulk_bytes;
    }

    /// Barriers passed, bytes of bulk copies, and the accesses by line.
    pub(crate) fn into_parts(self) -> (u64, u64, Vec<SiteReport>) {
        let total = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut sites: Vec<SiteReport> = total
            .sums
            .iter()
            .map(|(key, sums)| key.report(sums))
            .collect();
        sites.sort_by_key(|site| std::cmp::Reverse(site.sectors + site.passes));
        (total.barriers, total.bulk_bytes, sites)
    }
}

impl Key {
    fn report(&self, sums: &Sums) -> SiteReport {
        use MemoryAccess::{Atomic, AtomicLoad, AtomicStore, Load, Store, Unordered};
        let all = [Load, Store, AtomicLoad, Atomic, AtomicStore, Unordered];
        let access = all.into_iter().find(|&access| access as u8 == self.access);
        SiteReport {
            line: Site::numbered(self.site).location(),
            memory: self.memory,
            access: access.unwrap_or(Load),
            requests: sums.requests,
            accesses: sums.accesses,
            bytes: sums.bytes,
            sectors: sums.sectors,
            passes: sums.passes,
            least_passes: sums.least_passes,
            worst_conflict: sums.worst_conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize, address: impl Fn(usize) -> Option<usize>) -> Request {
        Request {
            addresses: std::array::from_fn(address),
            bytes,
        }
    }

    fn shared(request: &Request) -> (u64, u64, u32) {
        let mut sums = Sums::default();
        sums.add(request, Memory::Shared);
        (sums.passes, sums.least_passes, sums.worst_conflict)
    }

    #[test]
    fn neighbouring_words_have_no_conflict_and_few_sectors() {
        let along = request(4, |lane| Some(4 * lane));
        assert_eq!((sectors(&along), shared(&along)), (4, (1, 1, 1)));
        let vectors = request(16, |lane| Some(16 * lane));
        assert_eq!((sectors(&vectors), shared(&vectors)), (16, (4, 4, 1)));
        let same = request(4, |_| Some(64));
        assert_eq!((sectors(&same), shared(&same)), (1, (1, 1, 1)));
        let half = request(2, |lane| Some(2 * lane));
        assert_eq!((sectors(&half), shared(&half)), (2, (1, 1, 1)));
    }

    #[test]
    fn a_column_conflicts_in_all_lanes() {
        let column = request(4, |lane| Some(128 * lane));
        assert_eq!((sectors(&column), shared(&column)), (32, (32, 1, 32)));
        let padded = request(4, |lane| Some(132 * lane));
        assert_eq!(shared(&padded), (1, 1, 1));
        let some = request(4, |lane| (lane % 2 == 0).then_some(128 * lane));
        assert_eq!((sectors(&some), shared(&some)), (16, (16, 1, 16)));
    }
}
