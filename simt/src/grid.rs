//! The grid of one launch: which clusters are still to be run, and how the cores that run them keep
//! in step.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::cluster::{Resources, Run, Standing};
use crate::context::Dims;
use crate::error::SimtError;
use crate::launch::LaunchSpec;
use crate::stack::MAX_STACKS;

/// One launch, shared by the cores that run it.
pub(crate) struct Grid<'l> {
    pub(crate) kernel: &'l str,
    pub(crate) dims: Dims,
    pub(crate) shared_bytes: u32,
    pub(crate) body: &'l (dyn Fn() + Sync),
    clusters: u64,
    next: AtomicU64,
    /// Clusters under way.
    resident: AtomicUsize,
    cancelled: AtomicBool,
    error: Mutex<Option<SimtError>>,
    /// Counts steps of any thread of the grid; see [`Standstill`].
    progress: AtomicU64,
    /// Cores at work on this grid.
    cores: AtomicUsize,
    standstill: Mutex<Standstill>,
}

/// How many cores have found nothing to do since the last step of any thread. When all have,
/// nothing will move any more: clusters that wait for other blocks wait for ever.
struct Standstill {
    progress: u64,
    cores: usize,
}

impl<'l> Grid<'l> {
    /// The grid of a launch that has been checked.
    pub(crate) fn new(spec: &LaunchSpec<'l>, body: &'l (dyn Fn() + Sync)) -> Self {
        let cluster = spec.cluster.max(1);
        let blocks: u64 = spec.grid.iter().map(|&extent| u64::from(extent)).product();
        Self {
            kernel: spec.kernel,
            dims: Dims {
                grid: spec.grid,
                block: spec.block,
                cluster,
                overlaps_previous: spec.overlap_previous,
            },
            shared_bytes: spec.shared_bytes,
            body,
            clusters: blocks / u64::from(cluster),
            next: AtomicU64::new(0),
            resident: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
            error: Mutex::new(None),
            progress: AtomicU64::new(0),
            cores: AtomicUsize::new(0),
            standstill: Mutex::new(Standstill {
                progress: 0,
                cores: 0,
            }),
        }
    }

    /// How many clusters may be under way at the same time.
    fn max_resident(&self) -> usize {
        let threads = self.dims.block.iter().product::<u32>() * self.dims.cluster;
        (MAX_STACKS / threads as usize).max(1)
    }

    /// How many cores can work on this grid at the same time.
    pub(crate) fn max_cores(&self) -> usize {
        usize::try_from(self.clusters)
            .unwrap_or(usize::MAX)
            .min(self.max_resident())
    }

    /// Index of the block of the given rank in the `cluster`-th cluster; clusters lie along x.
    pub(crate) fn block_idx(&self, cluster: u64, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.dims.grid.map(u64::from);
        let across = x / u64::from(self.dims.cluster);
        let [plane, in_plane] = [cluster / (across * y), cluster % (across * y)];
        // Each is below the grid's extent in its direction, which is u32.
        let [x, y, z] = [in_plane % across, in_plane / across, plane].map(|index| index as u32);
        [x * self.dims.cluster + rank, y, z]
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn note_progress(&self) {
        self.progress.fetch_add(1, Ordering::Release);
    }

    fn fail(&self, error: SimtError) {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The first error of the launch.
    pub(crate) fn into_result(self) -> Result<(), SimtError> {
        match self
            .error
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn take_cluster(&self) -> Option<u64> {
        // The load keeps the counter from running away when many cores ask after the end. Who finds
        // the last cluster taken must also see the core that took it, in `cores`.
        if self.next.load(Ordering::Acquire) >= self.clusters {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::AcqRel);
        (index < self.clusters).then_some(index)
    }

    /// One core's share of the work: runs clusters until none is left.
    pub(crate) fn work(&self) {
        self.cores.fetch_add(1, Ordering::AcqRel);
        let mut resources = Resources::new();
        let mut runs: Vec<Run<'_>> = Vec::new();
        let mut counted = None;
        'clusters: while !self.is_cancelled() {
            let before = self.progress.load(Ordering::Acquire);
            let mut index = 0;
            while index < runs.len() {
                match runs[index].advance(&mut resources.stacks) {
                    Ok(Standing::WaitsForGrid) => index += 1,
                    Ok(Standing::Finished) => {
                        self.note_progress();
                        self.resident.fetch_sub(1, Ordering::Relaxed);
                        runs.remove(index).dismiss(&mut resources);
                    }
                    Ok(Standing::Cancelled) => break 'clusters,
                    Err(error) => {
                        self.fail(error);
                        break 'clusters;
                    }
                }
            }
            let room =
                runs.is_empty() || self.resident.load(Ordering::Relaxed) < self.max_resident();
            if room && let Some(cluster) = self.take_cluster() {
                self.resident.fetch_add(1, Ordering::Relaxed);
                runs.push(Run::new(self, cluster, &mut resources));
                self.note_progress();
            } else if runs.is_empty() {
                break;
            } else if self.progress.load(Ordering::Acquire) == before {
                let first_time = counted.replace(before) != Some(before);
                if self.all_stand_still(before, first_time) {
                    self.fail(runs[0].who_waits());
                    break;
                }
                std::thread::yield_now();
            }
        }
        for run in runs {
            run.dismiss(&mut resources);
        }
        // In this order: who sees that there is one core less must see that something has moved, too.
        self.note_progress();
        self.cores.fetch_sub(1, Ordering::AcqRel);
    }

    /// Called by a core that found nothing to do since `progress`, and says whether it finds so for
    /// the first time; true if all cores at work have found so, and nothing has moved since.
    fn all_stand_still(&self, progress: u64, first_time: bool) -> bool {
        let mut standstill = self
            .standstill
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Asked under the lock: whoever was held up on the way here comes with a count that is long past.
        let cores = self.cores.load(Ordering::Acquire);
        if self.progress.load(Ordering::Acquire) != progress {
            return false;
        }
        if standstill.progress != progress {
            *standstill = Standstill { progress, cores: 0 };
        }
        standstill.cores += usize::from(first_time);
        standstill.cores >= cores
    }
}
