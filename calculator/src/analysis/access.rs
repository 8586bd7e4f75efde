//! What the accesses of a warp cost: conflicts of banks in shared memory, sectors of global memory.
//!
//! The first mode of a layout is the thread, and all others are the thread's values. A vector has one value a thread.
//! The first 32 threads are looked at: they are the first warp.

use std::collections::BTreeSet;
use std::fmt;

use cutlet_layout_core::Swizzle;

use crate::refusal::Refusal;
use crate::value::Value;

/// The threads of a warp.
const LANES: i64 = 32;
/// The banks of shared memory.
const BANKS: i64 = 32;
/// The width of a bank, in bits.
const BANK_BITS: i64 = 32;
/// The size of a sector of global memory, in bits.
const SECTOR_BITS: i64 = 256;
/// The most bits that a thread accesses at once.
const WIDEST: i64 = 128;
/// The most accesses of a thread that are looked at.
const MOST_VALUES: i64 = 1 << 12;

/// The accesses of a warp to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    /// For each access, the largest number of words that a bank serves one after the other.
    pub ways: Vec<u32>,
    /// The wavefronts that all accesses take together.
    pub wavefronts: u32,
    /// How many values of a thread are one access.
    pub width: i64,
    /// The bank of each thread's first word of the first access, by lane.
    pub banks: Vec<i64>,
    /// The warps of the layout, of which the first one is counted.
    pub warps: i64,
}

impl Banks {
    /// The worst conflict: 1 without any.
    pub fn worst(&self) -> u32 {
        self.ways.iter().copied().max().unwrap_or(1)
    }
}

impl fmt::Display for Banks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worst() {
            1 => f.write_str("no bank conflicts")?,
            worst => write!(f, "{worst}-way bank conflicts")?,
        }
        write!(
            f,
            ": {} of {} a thread, {} wavefront{}",
            counted(self.ways.len(), "access", "accesses"),
            counted(self.width as usize, "value", "values"),
            self.wavefronts,
            if self.wavefronts == 1 { "" } else { "s" }
        )?;
        of_warps(f, self.warps)
    }
}

/// The accesses of a warp to global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sectors {
    /// For each access, the sectors of 32 bytes that it touches.
    pub sectors: Vec<u32>,
    /// For each access, the fewest sectors that hold its bytes.
    pub fewest: Vec<u32>,
    /// How many values of a thread are one access.
    pub width: i64,
    /// The warps of the layout, of which the first one is counted.
    pub warps: i64,
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sectors, fewest): (u32, u32) = (self.sectors.iter().sum(), self.fewest.iter().sum());
        let word = if sectors <= fewest {
            "coalesced"
        } else {
            "not coalesced"
        };
        write!(
            f,
            "{word}: {sectors} sectors in {} of {} a thread, where {fewest} hold the bytes",
            counted(self.sectors.len(), "request", "requests"),
            counted(self.width as usize, "value", "values"),
        )?;
        of_warps(f, self.warps)
    }
}

/// Says that only the first of several warps was counted.
fn of_warps(f: &mut fmt::Formatter<'_>, warps: i64) -> fmt::Result {
    match warps {
        1 => Ok(()),
        warps => write!(f, ", of the first of {warps} warps"),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The conflicts of banks of the first warp's accesses to elements of `bits` bits.
///
/// # Errors
/// If the value is no layout of indices, or the width is none that a thread accesses.
pub fn banks(value: &Value, bits: i64) -> Result<Banks, Refusal> {
    let warp = Warp::of(value, bits)?;
    let by_request: Vec<Vec<u32>> = warp.conflicts(|index| index).collect();
    let first = warp.requests.first().map_or(&[][..], Vec::as_slice);
    Ok(Banks {
        ways: by_request
            .iter()
            .map(|groups| groups.iter().copied().max().unwrap_or(1))
            .collect(),
        wavefronts: by_request.iter().flatten().sum(),
        width: warp.width,
        banks: first
            .iter()
            .map(|index| index * bits / BANK_BITS % BANKS)
            .collect(),
        warps: warp.warps,
    })
}

/// The largest number of different words that one bank serves, for threads that begin at these bits.
fn conflict(begins: impl Iterator<Item = i64>, bits: i64) -> u32 {
    let words = begins.flat_map(|begin| begin / BANK_BITS..=(begin + bits - 1) / BANK_BITS);
    let mut words: Vec<i64> = words.collect();
    words.sort_unstable();
    words.dedup();
    let mut served = [0; BANKS as usize];
    for word in words {
        served[(word % BANKS) as usize] += 1;
    }
    served.into_iter().max().unwrap_or(0).max(1)
}

/// The sectors of global memory that the first warp's accesses touch.
///
/// # Errors
/// As [`banks`].
pub fn sectors(value: &Value, bits: i64) -> Result<Sectors, Refusal> {
    let warp = Warp::of(value, bits)?;
    let access = warp.width * bits;
    let touched = |request: &Vec<i64>| {
        let begins = request.iter().map(|index| index * bits);
        let sectors =
            begins.flat_map(|begin| begin / SECTOR_BITS..=(begin + access - 1) / SECTOR_BITS);
        sectors.collect::<BTreeSet<i64>>().len() as u32
    };
    let fewest = |request: &Vec<i64>| {
        let different: BTreeSet<&i64> = request.iter().collect();
        (different.len() * access as usize).div_ceil(SECTOR_BITS as usize) as u32
    };
    Ok(Sectors {
        sectors: warp.requests.iter().map(touched).collect(),
        fewest: warp.requests.iter().map(fewest).collect(),
        width: warp.width,
        warps: warp.warps,
    })
}

/// The accesses of a warp: for each request, the index at which each thread's access begins.
pub(super) struct Warp {
    requests: Vec<Vec<i64>>,
    width: i64,
    /// The bits of an element.
    bits: i64,
    /// The number of warps that the layout's threads are.
    warps: i64,
}

impl Warp {
    pub(super) fn of(value: &Value, bits: i64) -> Result<Warp, Refusal> {
        if !matches!(bits, 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128) {
            return Err(Refusal::new(format!(
                "an element has 1, 2, 4, 8, 16, 32, 64 or 128 bits, not {bits}: give one of these"
            )));
        }
        let shape = value.shape()?;
        let threads = if shape.rank() == 1 {
            shape.size()
        } else {
            shape.mode(0).size()
        };
        let (lanes, values) = (threads.min(LANES), shape.size() / threads);
        if values > MOST_VALUES {
            return Err(Refusal::new(format!(
                "a thread has {values} values; the most that are looked at are {MOST_VALUES}"
            )));
        }
        let mut indices = Vec::new();
        for v in 0..values {
            let at = |lane| index(value, lane + v * threads);
            indices.push((0..lanes).map(at).collect::<Result<Vec<i64>, _>>()?);
        }
        let width = width(&indices, bits);
        Ok(Warp {
            requests: indices.into_iter().step_by(width as usize).collect(),
            width,
            bits,
            warps: (threads - 1) / LANES + 1,
        })
    }

    /// How many values of a thread are one access.
    pub(super) fn width(&self) -> i64 {
        self.width
    }

    /// For each request, and each group of threads that are served at once, the words that the busiest bank serves if
    /// accesses begin where `place` moves them.
    fn conflicts(&self, place: impl Fn(i64) -> i64 + Copy) -> impl Iterator<Item = Vec<u32>> {
        let access = self.width * self.bits;
        let lanes_at_once = (LANES * BANK_BITS / access.max(BANK_BITS)) as usize;
        self.requests.iter().map(move |request| {
            let begins = |group: &[i64]| {
                let begins = group.iter().map(|&index| place(index) * self.bits);
                conflict(begins, access)
            };
            request.chunks(lanes_at_once).map(begins).collect()
        })
    }

    /// The wavefronts of all accesses to swizzled indices.
    pub(super) fn wavefronts(&self, swizzle: Swizzle) -> u32 {
        self.conflicts(|index| swizzle.apply(index)).flatten().sum()
    }

    /// The last index at which an access begins.
    pub(super) fn last_index(&self) -> i64 {
        let all = self.requests.iter().flatten();
        all.copied().max().unwrap_or_default() + self.width - 1
    }
}

fn index(value: &Value, c: i64) -> Result<i64, Refusal> {
    let index = value.at(c)?;
    match index.as_int().filter(|index| index.basis().is_none()) {
        Some(index) if (0..1 << 50).contains(&index.value()) => Ok(index.value()),
        _ => Err(Refusal::new(format!(
            "{index} at {c} is not an index in memory: give a layout (thread, value) with plain strides"
        ))),
    }
}

/// The most values that every thread can access at once: consecutive, aligned, and up to 16 bytes.
fn width(indices: &[Vec<i64>], bits: i64) -> i64 {
    let mut width = WIDEST / bits;
    while width > 1 {
        let fits = indices.len().is_multiple_of(width as usize)
            && indices.chunks(width as usize).all(|group| {
                (0..group[0].len()).all(|lane| {
                    let first = group[0][lane];
                    let mut places = group.iter().zip(first..);
                    first % width == 0 && places.all(|(value, place)| value[lane] == place)
                })
            });
        if fits {
            return width;
        }
        width /= 2;
    }
    1
}
