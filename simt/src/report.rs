//! What a launch's accesses would cost on a GPU, line by line.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::ops::Range;
use std::panic::Location;

use crate::shadow::MemoryAccess;
use crate::warp::WARP_SIZE;

/// The memory of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Global memory, which is moved in sectors of 32 bytes.
    Global,
    /// Shared memory, which has 32 banks of 4 bytes.
    Shared,
}

/// The accesses on one line of a kernel.
///
/// A request is what the lanes of a warp access together. On the CPU the lanes run one after the other: the n-th access
/// on a line by each lane belongs to the warp's n-th request.
#[derive(Clone, Debug)]
pub struct SiteReport {
    /// The line; `None` if it is unknown.
    pub line: Option<&'static Location<'static>>,
    /// The memory.
    pub memory: Memory,
    /// How it is accessed.
    pub access: MemoryAccess,
    /// Requests of all warps.
    pub requests: u64,
    /// Accesses of all lanes.
    pub accesses: u64,
    /// Bytes that all lanes asked for.
    pub bytes: u64,
    /// Sectors of global memory that the requests touch; 0 for shared memory.
    pub sectors: u64,
    /// Passes that shared memory takes for the requests: one for each way of a bank conflict; 0 for global memory.
    pub passes: u64,
    /// Passes without bank conflicts.
    pub least_passes: u64,
    /// The most ways of a bank conflict in a request; 1 is no conflict, and 0 is global memory.
    pub worst_conflict: u32,
}

impl SiteReport {
    /// Sectors of a request of global memory, on average. A warp that reads 4 neighbouring bytes per lane takes 4.
    pub fn sectors_per_request(&self) -> f64 {
        self.sectors as f64 / self.requests.max(1) as f64
    }

    /// The share of the sectors' bytes that the lanes asked for; more than 1 if lanes ask for the same bytes.
    pub fn sector_use(&self) -> f64 {
        self.bytes as f64 / (self.sectors * 32).max(1) as f64
    }

    /// Ways of bank conflict, on average: 1 is no conflict.
    pub fn bank_conflict(&self) -> f64 {
        self.passes as f64 / self.least_passes.max(1) as f64
    }

    /// Lanes of a warp that take part in a request, on average. Fewer than 32 is divergence, or a warp with fewer
    /// threads.
    pub fn active_lanes(&self) -> f64 {
        self.accesses as f64 / self.requests.max(1) as f64
    }
}

impl Display for SiteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{}", line.file(), line.line())?,
            None => f.write_str("an unknown line")?,
        }
        let memory = match self.memory {
            Memory::Global => "global",
            Memory::Shared => "shared",
        };
        let (access, requests) = (self.access.name(), self.requests);
        write!(
            f,
            ": {access} of {memory} memory, {requests} requests of {:.1} lanes",
            self.active_lanes()
        )?;
        match self.memory {
            Memory::Global => write!(
                f,
                ", {:.1} sectors each, {:.0} % of their bytes used",
                self.sectors_per_request(),
                100.0 * self.sector_use()
            ),
            Memory::Shared => write!(
                f,
                ", {:.1}-way bank conflicts, at worst {}-way",
                self.bank_conflict(),
                self.worst_conflict
            ),
        }
    }
}

/// What a launch did.
#[derive(Clone, Debug)]
pub struct LaunchReport {
    /// Name of the kernel.
    pub kernel: String,
    /// Blocks of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// How often a barrier of a block was passed, over all blocks.
    pub barriers: u64,
    /// Bytes that bulk copies (TMA) moved between global and shared memory.
    pub bulk_bytes: u64,
    /// The accesses by line, those with the most sectors and passes first.
    pub sites: Vec<SiteReport>,
    /// The memory that the launch has not written completely: arguments that it was given to write, and other memory
    /// of which it has written some.
    pub unwritten: Vec<UnwrittenReport>,
}

/// Elements that a launch was given to write, and has not written.
///
/// That need not be a mistake: a scatter writes some elements, and a workspace may be larger than needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenReport {
    /// The memory: `argument 4 (`y`)`.
    pub memory: String,
    /// How many elements it has; bytes, if it is no argument.
    pub elements: usize,
    /// How many of them the launch has not written.
    pub unwritten: usize,
    /// The first of them, up to the next element that it has written.
    pub first: Range<usize>,
}

impl Display for UnwrittenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            memory,
            elements,
            unwritten,
            first,
        } = self;
        write!(
            f,
            "{memory}: the launch wrote nothing to {unwritten} of {elements} elements, first to {} .. {}",
            first.start, first.end
        )
    }
}

impl LaunchReport {
    /// Bytes of a memory that all threads accessed.
    pub fn bytes(&self, memory: Memory) -> u64 {
        let sites = self.sites.iter().filter(|site| site.memory == memory);
        sites.map(|site| site.bytes).sum()
    }

    /// Warps of the grid.
    pub fn warps(&self) -> u64 {
        self.blocks * u64::from(self.threads.div_ceil(WARP_SIZE as u32))
    }
}

impl Display for LaunchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "kernel `{}`: {} blocks of {} threads, {} barriers, {} bytes of global and {} of shared memory accessed",
            self.kernel,
            self.blocks,
            self.threads,
            self.barriers,
            self.bytes(Memory::Global),
            self.bytes(Memory::Shared),
        )?;
        if self.bulk_bytes > 0 {
            write!(f, ", {} bytes by bulk copies", self.bulk_bytes)?;
        }
        self.sites
            .iter()
            .try_for_each(|site| write!(f, "\n  {site}"))?;
        self.unwritten
            .iter()
            .try_for_each(|unwritten| write!(f, "\n  {unwritten}"))
    }
}

thread_local! {
    /// The reports that the calling OS thread collects; `None` if it collects none.
    static REPORTS: RefCell<Option<Vec<LaunchReport>>> = const { RefCell::new(None) };
}

/// Calls `f`. Returns its result, and a report of each launch that `f` made on the calling OS thread.
pub fn collect_reports<R>(f: impl FnOnce() -> R) -> (R, Vec<LaunchReport>) {
    /// Restores what an outer call collects, also after a panic.
    struct Outer(Option<Vec<LaunchReport>>);
    impl Drop for Outer {
        fn drop(&mut self) {
            REPORTS.set(self.0.take());
        }
    }
    let _outer = Outer(REPORTS.replace(Some(Vec::new())));
    let result = f();
    let reports = REPORTS.take().unwrap_or_default();
    (result, reports)
}

/// Whether the calling OS thread collects reports.
pub(crate) fn is_wanted() -> bool {
    REPORTS.with_borrow(Option::is_some)
}

/// Hands over the report of a launch of the calling OS thread.
pub(crate) fn hand_over(report: LaunchReport) {
    REPORTS.with_borrow_mut(|reports| {
        if let Some(reports) = reports {
            reports.push(report);
        }
    });
}
