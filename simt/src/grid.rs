//! The grid of one launch: which clusters have not been started, and whether the launch has failed or is deadlocked.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::buffers::Buffers;
use crate::context::{Dims, Launch};
use crate::error::{Running, SimtError, Stopped};
use crate::interrupt::{this_os_thread, where_is};
use crate::launch_shadow::LaunchShadow;
use crate::launch_spec::LaunchSpec;
use crate::outputs::Outputs;
use crate::races::checks_races;
use crate::report::{self, LaunchReport};
use crate::shown_wait::ShownWait;
use crate::stack::MAX_STACKS;
use crate::traffic::Traffic;

/// How many cores show the thread that they run. Others share a place.
const MOST_SHOWN: usize = 64;
/// What a core shows that runs no thread.
const NO_THREAD: u64 = u64::MAX;
/// Bits for the number of a thread in its cluster.
const THREAD_BITS: u32 = 14;

/// What a core does, for the watchdog.
pub(crate) struct Core {
    /// The thread that it runs: its cluster and its number there.
    thread: AtomicU64,
    /// The OS thread.
    os_thread: AtomicU64,
    /// How many times a thread has begun or ended to run.
    steps: AtomicU64,
}

impl Core {
    fn new() -> Self {
        Self {
            thread: AtomicU64::new(NO_THREAD),
            os_thread: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        }
    }

    /// To be called when a thread of a cluster begins to run.
    #[inline]
    pub(crate) fn runs(&self, cluster: u64, thread_in_cluster: usize) {
        self.show(cluster << THREAD_BITS | thread_in_cluster as u64);
    }

    /// To be called when no thread runs any more.
    #[inline]
    pub(crate) fn rests(&self) {
        self.show(NO_THREAD);
    }

    #[inline]
    fn show(&self, thread: u64) {
        self.thread.store(thread, Ordering::Relaxed);
        // Cores that share the place may lose a step, but not all of them.
        let steps = self.steps.load(Ordering::Relaxed) + 1;
        self.steps.store(steps, Ordering::Relaxed);
    }
}

/// One launch, shared by the cores that run it.
pub(crate) struct Grid<'l> {
    pub(crate) launch: Launch<'l>,
    pub(crate) shared_bytes: u32,
    pub(crate) body: &'l (dyn Fn() + Sync),
    clusters: u64,
    /// The cluster to start next.
    next: AtomicU64,
    /// How many clusters run.
    resident: AtomicUsize,
    error: Mutex<Option<SimtError>>,
    /// Counts the steps of all threads of the grid; see [`IdleCores`].
    progress: AtomicU64,
    /// How many cores work on the grid.
    cores: AtomicUsize,
    /// How many cores have begun to work on the grid.
    begun: AtomicUsize,
    /// What each core does.
    running: Box<[Core]>,
    /// What the threads of each cluster that runs wait for, with the cluster's number.
    shown: Mutex<Vec<(u64, Arc<[ShownWait]>)>>,
    idle: Mutex<IdleCores>,
}

/// How many cores have found nothing to do since the count of steps was `progress`. If all have, clusters that wait for
/// other blocks wait for ever.
struct IdleCores {
    progress: u64,
    count: usize,
}

impl<'l> Grid<'l> {
    /// The grid of a launch that has been checked.
    pub(crate) fn new(
        spec: &LaunchSpec<'l>,
        buffers: Option<&'l Buffers>,
        body: &'l (dyn Fn() + Sync),
    ) -> Self {
        let cluster = spec.cluster.max(1);
        let blocks: u64 = spec.grid.iter().map(|&extent| u64::from(extent)).product();
        Self {
            launch: Launch {
                kernel: spec.kernel,
                dims: Dims {
                    grid: spec.grid,
                    block: spec.block,
                    cluster,
                    overlaps_previous: spec.overlap_previous,
                },
                buffers,
                traffic: report::is_wanted().then(Traffic::default),
                outputs: report::is_wanted().then(Outputs::default),
                cancelled: AtomicBool::new(false),
                ended: Mutex::default(),
                shadow: checks_races().then(LaunchShadow::new),
            },
            shared_bytes: spec.shared_bytes,
            body,
            clusters: blocks / u64::from(cluster),
            next: AtomicU64::new(0),
            resident: AtomicUsize::new(0),
            error: Mutex::new(None),
            progress: AtomicU64::new(0),
            cores: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            running: (0..MOST_SHOWN).map(|_| Core::new()).collect(),
            shown: Mutex::new(Vec::new()),
            idle: Mutex::new(IdleCores {
                progress: 0,
                count: 0,
            }),
        }
    }

    /// How many clusters may run at the same time.
    fn max_resident(&self) -> usize {
        let threads = self.launch.dims.threads() * self.launch.dims.cluster;
        (MAX_STACKS / threads as usize).max(1)
    }

    /// How many cores can work on the grid at the same time.
    pub(crate) fn max_cores(&self) -> usize {
        usize::try_from(self.clusters)
            .unwrap_or(usize::MAX)
            .min(self.max_resident())
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.launch.cancelled.load(Ordering::Relaxed)
    }

    /// How many steps have been noted.
    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// Notes a step of some thread.
    #[inline]
    pub(crate) fn note_progress(&self) {
        self.progress.fetch_add(1, Ordering::Release);
    }

    /// Ends the launch with an error, unless there is one already.
    pub(crate) fn fail(&self, error: SimtError) {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(error);
        self.launch.cancelled.store(true, Ordering::Relaxed);
    }

    /// The first error of the launch. Hands its report over, if one is wanted.
    pub(crate) fn into_result(self) -> Result<(), SimtError> {
        if let (Some(traffic), Some(outputs)) = (self.launch.traffic, self.launch.outputs) {
            let (barriers, bulk_bytes, sites) = traffic.into_parts();
            report::hand_over(LaunchReport {
                kernel: self.launch.kernel.to_owned(),
                blocks: self.clusters * u64::from(self.launch.dims.cluster),
                threads: self.launch.dims.threads(),
                barriers,
                bulk_bytes,
                sites,
                unwritten: outputs.into_reports(self.launch.buffers),
            });
        }
        let error = self.error.into_inner();
        let ended = self.launch.ended.into_inner();
        match error.unwrap_or_else(PoisonError::into_inner) {
            Some(error) => {
                let ended = ended.unwrap_or_else(PoisonError::into_inner);
                Err(error.with_lines(&ended))
            }
            None => Ok(()),
        }
    }

    /// To be called by a core that begins to work on the grid. Returns the place where it shows what it does.
    pub(crate) fn core_begins(&self) -> &Core {
        self.cores.fetch_add(1, Ordering::AcqRel);
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let core = &self.running[number % self.running.len()];
        core.os_thread.store(this_os_thread(), Ordering::Relaxed);
        core
    }

    /// A number that changes whenever a thread begins to run, waits or ends.
    pub(crate) fn steps(&self) -> u64 {
        let steps = self
            .running
            .iter()
            .map(|core| core.steps.load(Ordering::Relaxed));
        steps.fold(self.progress(), u64::wrapping_add)
    }

    fn shown(&self) -> MutexGuard<'_, Vec<(u64, Arc<[ShownWait]>)>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called when a cluster starts, with the places where its threads show what they wait for.
    pub(crate) fn shows(&self, cluster: u64, shown: &Arc<[ShownWait]>) {
        self.shown().push((cluster, shown.clone()));
    }

    /// To be called before the threads of a cluster go.
    pub(crate) fn shows_no_more(&self, shown: &Arc<[ShownWait]>) {
        self.shown().retain(|(_, other)| !Arc::ptr_eq(other, shown));
    }

    /// The error if the grid has made no progress for some time: the threads that run, and those that wait.
    pub(crate) fn no_progress(&self, time: Duration) -> SimtError {
        let shown = self
            .running
            .iter()
            .map(|core| core.thread.load(Ordering::Relaxed));
        let running: Vec<u64> = shown.filter(|&thread| thread != NO_THREAD).collect();
        SimtError::NoProgress {
            kernel: self.launch.kernel.to_owned(),
            seconds: time.as_secs_f64().ceil() as u64,
            waiting: self.waiting(&running),
            running: running.iter().map(|&thread| self.named(thread)).collect(),
        }
    }

    /// The lines of the threads that run, one for each that is found, with the thread. Their OS threads must be stuck.
    pub(crate) fn lines_of_running(&self) -> Vec<(Running, String)> {
        let line_of = |core: &Core| {
            let thread = core.thread.load(Ordering::Relaxed);
            let line = (thread != NO_THREAD)
                .then(|| where_is(core.os_thread.load(Ordering::Relaxed)))??;
            Some((self.named(thread), line))
        };
        self.running.iter().filter_map(line_of).collect()
    }

    /// The index of a thread that a core shows.
    fn named(&self, thread: u64) -> Running {
        let dims = self.launch.dims;
        let [cluster, in_cluster] = [thread >> THREAD_BITS, thread & ((1 << THREAD_BITS) - 1)];
        // A thread's number in its cluster is below 2¹⁴.
        let in_cluster = in_cluster as u32;
        let [rank, linear] = [in_cluster / dims.threads(), in_cluster % dims.threads()];
        Running {
            block: dims.block_idx(cluster, rank),
            thread: dims.thread_idx(linear),
            line: None,
        }
    }

    /// The threads that wait, without those that run: grouped by what they wait for and where, the largest group first.
    fn waiting(&self, running: &[u64]) -> Vec<Stopped> {
        let mut groups: Vec<Stopped> = Vec::new();
        for (cluster, shown) in self.shown().iter() {
            for (number, shown) in (cluster << THREAD_BITS..).zip(shown.iter()) {
                let Some((awaited, line)) = shown.get() else {
                    continue;
                };
                if running.contains(&number) {
                    continue;
                }
                let (what, line) = (awaited.to_string(), line.to_string());
                let same = |group: &&mut Stopped| group.what == what && group.line == line;
                match groups.iter_mut().find(same) {
                    Some(group) => group.threads += 1,
                    None => groups.push(Stopped {
                        threads: 1,
                        example: self.named(number),
                        what,
                        line,
                    }),
                }
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.threads));
        groups
    }

    /// To be called by a core that has finished its work on the grid.
    pub(crate) fn core_ends(&self) {
        // In this order: a core that sees the lower count must also see progress.
        self.note_progress();
        self.cores.fetch_sub(1, Ordering::AcqRel);
    }

    /// Index of a cluster for a core to start, if there is one left. A core that runs other clusters gets one only
    /// while fewer than `max_resident` run.
    pub(crate) fn start_cluster(&self, runs_others: bool) -> Option<u64> {
        if runs_others && self.resident.load(Ordering::Relaxed) >= self.max_resident() {
            return None;
        }
        // The load keeps the counter from running away when many cores ask after the last cluster. A core that finds
        // the last cluster taken must also see the core that took it in `cores`.
        if self.next.load(Ordering::Acquire) >= self.clusters {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::AcqRel);
        if index >= self.clusters {
            return None;
        }
        self.resident.fetch_add(1, Ordering::Relaxed);
        Some(index)
    }

    /// To be called when a cluster has ended.
    pub(crate) fn cluster_ends(&self) {
        self.note_progress();
        self.resident.fetch_sub(1, Ordering::Relaxed);
    }

    /// To be called by a core that has found nothing to do since `progress`, with whether it finds so for the first
    /// time. Returns whether all cores at work have found so, and nothing has moved since.
    pub(crate) fn is_deadlocked(&self, progress: u64, first_time: bool) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: a core that was held up on the way here comes with an old count.
        let cores = self.cores.load(Ordering::Acquire);
        if self.progress() != progress {
            return false;
        }
        if idle.progress != progress {
            *idle = IdleCores { progress, count: 0 };
        }
        idle.count += usize::from(first_time);
        idle.count >= cores
    }
}
