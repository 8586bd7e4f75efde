//! What the threads of one launch did to global memory, and what they told each other by atomic operations.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::known::{Known, Told};
use crate::relaxed::{has_elements, store_elements};
use crate::shadow::{Accessor, MemoryAccess, Race, WORD, Word, words};

/// Bytes of global memory that a chunk covers.
const CHUNK: usize = 1024;
/// The most chunks of a launch. Accesses to memory beyond them are not followed.
const MOST_CHUNKS: usize = 1 << 16;
/// Parts of the tables, each with a lock of its own.
const SHARDS: usize = 64;

type Chunk = [Word; CHUNK / WORD];

/// Hashes an address. The standard hash takes longer than the look-up.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        // Only addresses are hashed.
    }
    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

type Table<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

/// What was told at one address, and how often that changed.
#[derive(Default)]
struct Flag {
    told: Told,
    changes: u64,
}

/// The accesses of one launch to global memory.
pub(crate) struct LaunchShadow {
    chunks: [Mutex<Table<Box<Chunk>>>; SHARDS],
    flags: [Mutex<Table<Flag>>; SHARDS],
    /// How many chunks there are.
    count: AtomicUsize,
}

impl LaunchShadow {
    pub(crate) fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| Mutex::default()),
            flags: std::array::from_fn(|_| Mutex::default()),
            count: AtomicUsize::new(0),
        }
    }

    /// Notes an access to global memory. Returns the race if there is one, with the address of its word.
    #[inline]
    pub(crate) fn access(
        &self,
        by: &Accessor<'_>,
        address: usize,
        bytes: usize,
        kind: MemoryAccess,
    ) -> Result<(), (Race, usize)> {
        let end = address + bytes;
        let mut start = address;
        while start < end {
            let number = start / CHUNK;
            let part = start..end.min((number + 1) * CHUNK);
            start = part.end;
            let mut table = lock(&self.chunks[number % SHARDS]);
            if let Some(chunk) = self.chunk(&mut table, number) {
                chunk_access(chunk, by, part, kind, false)?;
            }
        }
        Ok(())
    }

    /// Stores values in global memory, and notes that. Returns the race if there is one, with the address of its word:
    /// then nothing is stored. A store that repeats what is there does not race with other stores.
    ///
    /// # Safety
    /// The memory has room for the values, which are elements of `element_bytes` bytes, and they are within one chunk.
    #[inline]
    pub(crate) unsafe fn store(
        &self,
        by: &Accessor<'_>,
        memory: *mut u8,
        values: &[u8],
        element_bytes: usize,
    ) -> Result<(), (Race, usize)> {
        let number = memory.addr() / CHUNK;
        // While the table is locked, no other thread stores here, except by a copy or an atomic operation.
        let mut table = lock(&self.chunks[number % SHARDS]);
        // SAFETY: as promised by the caller.
        let repeats = unsafe { has_elements(memory, values, element_bytes) };
        if let Some(chunk) = self.chunk(&mut table, number) {
            let bytes = memory.addr()..memory.addr() + values.len();
            chunk_access(chunk, by, bytes, MemoryAccess::Store, repeats)?;
        }
        // SAFETY: as promised by the caller. The values are the thread's own.
        unsafe { store_elements(values.as_ptr(), memory, values.len(), element_bytes) };
        Ok(())
    }

    /// The chunk with a number, made now if there is room for it.
    #[inline]
    fn chunk<'t>(&self, table: &'t mut Table<Box<Chunk>>, number: usize) -> Option<&'t mut Chunk> {
        match table.entry(number) {
            Entry::Occupied(chunk) => Some(chunk.into_mut()),
            Entry::Vacant(place) => {
                if self.count.fetch_add(1, Ordering::Relaxed) >= MOST_CHUNKS {
                    return None;
                }
                let words = vec![Word::default(); CHUNK / WORD].into_boxed_slice();
                Some(place.insert(words.try_into().ok()?))
            }
        }
    }

    /// Adds what a thread of a cluster knows to what is told at an address.
    pub(crate) fn tell(&self, address: usize, cluster: u64, known: &Known) {
        let mut flags = lock(&self.flags[address / 8 % SHARDS]);
        let flag = flags.entry(address).or_default();
        flag.told.join(cluster, known);
        flag.changes += 1;
    }

    /// What was told at an address, as a thread of a cluster knows it, with the number of changes. `None` if nothing
    /// has changed since the given number.
    pub(crate) fn ask(&self, address: usize, cluster: u64, changes: u64) -> Option<(Known, u64)> {
        let flags = lock(&self.flags[address / 8 % SHARDS]);
        let flag = flags.get(&address)?;
        (flag.changes != changes).then(|| (flag.told.to_known(cluster), flag.changes))
    }
}

/// Notes an access to bytes of a chunk.
#[inline]
fn chunk_access(
    chunk: &mut Chunk,
    by: &Accessor<'_>,
    bytes: Range<usize>,
    kind: MemoryAccess,
    repeats: bool,
) -> Result<(), (Race, usize)> {
    let first = bytes.start / CHUNK * CHUNK;
    for (word, mask) in words(bytes.start - first..bytes.end - first) {
        let raced = chunk[word].access(by, kind, mask, repeats);
        raced.map_err(|race| (race, first + word * WORD))?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
