//! Topology: which multiprocessors of a GPU are in one GPC, and how many clusters they have room for.
//!
//! The blocks of a cluster run in one GPC, and the multiprocessors of a GPC share a path to the L2
//! cache. The driver does not tell the GPCs, so launches with clusters of several sizes find them.

use std::cell::RefCell;

use cutlet_device::{GlobalMut, LaunchBounds, PtxFamily, PtxLibrary, PtxModule, PtxText};

use crate::args::LaunchArgs;
use crate::device::Place;
use crate::gpu::Gpu;
use crate::launch::{launch_gpu, max_active_clusters};
use crate::module::{Entry, Request};
use crate::{Device, LaunchConfig, Limits, Result, Stream};

const NAME: &str = "multiprocessors";
static PTX: PtxLibrary = PtxLibrary {
    families: &[PtxFamily {
        name: NAME,
        modules: &[PtxModule {
            target: "sm_90",
            ptx: PtxText::Plain(include_str!("topology.ptx")),
        }],
    }],
};

/// Cluster sizes of the launches, in blocks, largest first.
const CLUSTERS: [u32; 5] = [16, 12, 8, 6, 4];
/// Launches for each cluster size: clusters need not run in the same places each time.
const TIMES: usize = 4;
/// Shared memory of a block, capped at the device's limit: a multiprocessor has room for only one block.
const SHARED: u32 = 128 * 1024;
/// A group of fewer multiprocessors holds none of the clusters, and is merged into another.
const FEW: usize = 4;

impl Device {
    /// For each multiprocessor, the number of its group, from 0. A group is a GPC: its multiprocessors
    /// share a path to the L2 cache, and the blocks of a cluster are always in one group. GPUs without
    /// clusters, and the CPU, have one group.
    ///
    /// The first call on a GPU launches kernels that write where they run, and waits for them. It takes
    /// milliseconds.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let groups = device.multiprocessor_groups()?;
    /// assert_eq!(groups.len(), device.multiprocessors() as usize);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver), [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn multiprocessor_groups(&self) -> Result<&[u32]> {
        let count = self.multiprocessors() as usize;
        let known = self.known_groups();
        if let Some(groups) = known.get() {
            return Ok(groups);
        }
        let found = match self.place() {
            Place::Gpu(gpu) if gpu.capability >= (9, 0) => {
                let (stream, entry) = (self.stream()?, self.entry(gpu)?);
                let mut groups = Groups::new(count);
                for cluster in CLUSTERS {
                    for _ in 0..TIMES {
                        let places = self.clusters(&stream, entry, cluster)?;
                        places
                            .chunks(cluster as usize)
                            .for_each(|blocks| groups.join(blocks));
                    }
                }
                groups.numbers()
            }
            _ => vec![0; count],
        };
        Ok(known.get_or_init(|| found))
    }

    /// How many clusters of so many blocks run at the same time, if a multiprocessor has room for one block. A cluster
    /// runs within one GPC, and GPUs of the same name differ in how many multiprocessors their GPCs have. On GPUs
    /// without clusters, and on the CPU, as many as there are multiprocessors for.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// assert_eq!(device.clusters_at_a_time(1)?, device.multiprocessors());
    /// assert!(device.clusters_at_a_time(8)? <= device.multiprocessors() / 8);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the GPU has no clusters of this size.
    ///
    /// # Panics
    /// If `blocks` is not 1, 2, 4, 8 or 16.
    pub fn clusters_at_a_time(&self, blocks: u32) -> Result<u32> {
        let known = match blocks {
            1 | 2 | 4 | 8 | 16 => &self.known_clusters()[blocks.ilog2() as usize],
            _ => panic!("a cluster has 1, 2, 4, 8 or 16 blocks, not {blocks}"),
        };
        if let Some(&clusters) = known.get() {
            return Ok(clusters);
        }
        let found = match self.place() {
            Place::Gpu(gpu) if blocks > 1 && gpu.capability >= (9, 0) => {
                let entry = self.entry(gpu)?;
                gpu.make_current()?;
                max_active_clusters(entry, bounds(blocks, self.limits()))?
            }
            _ => self.multiprocessors() / blocks,
        };
        Ok(*known.get_or_init(|| found))
    }

    /// The kernel, allowed clusters of all sizes in [`CLUSTERS`].
    fn entry(&self, gpu: &Gpu) -> Result<Entry> {
        self.modules().get(&Request {
            gpu,
            device: self.name(),
            limits: self.limits(),
            library: &PTX,
            kernel: NAME,
            family: NAME,
            bounds: bounds(CLUSTERS[0], self.limits()),
        })
    }

    /// Launches as many clusters of this size as may fit on the GPU. Returns the multiprocessor of each
    /// block, cluster by cluster; empty if the GPU has no clusters of this size.
    fn clusters(&self, stream: &Stream, entry: Entry, cluster: u32) -> Result<Vec<u32>> {
        let Some((gpu, handle)) = stream.gpu() else {
            return Ok(Vec::new());
        };
        let blocks = self.multiprocessors() / cluster * cluster;
        let mut places = stream.zeroed::<u32>(blocks as usize)?;
        let args: (GlobalMut<u32>,) =
            (&mut places,).into_args(NAME, stream, &RefCell::default())?;
        let (config, bounds) = (LaunchConfig::from(blocks), bounds(cluster, self.limits()));
        gpu.make_current()?;
        // SAFETY: the kernel takes one pointer, to an element for each block.
        match unsafe { launch_gpu(entry, NAME, bounds, config, handle, &args) } {
            Ok(()) => stream.download(&places),
            // The GPU has no clusters of this size.
            Err(_) => Ok(Vec::new()),
        }
    }
}

/// Launch bounds with clusters of this size.
fn bounds(cluster: u32, limits: Limits) -> LaunchBounds {
    LaunchBounds::new(32, 0, cluster, SHARED.min(limits.shared_bytes))
}

/// Groups of multiprocessors, found by joining. Element i is the group of multiprocessor i.
struct Groups(Vec<usize>);

impl Groups {
    /// Each multiprocessor in a group of its own.
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    /// Joins the groups of these multiprocessors.
    fn join(&mut self, multiprocessors: &[u32]) {
        let Self(of) = self;
        let groups: Vec<usize> = multiprocessors
            .iter()
            .filter_map(|&multiprocessor| of.get(multiprocessor as usize).copied())
            .collect();
        if let Some(&first) = groups.iter().min() {
            for group in of.iter_mut().filter(|group| groups.contains(group)) {
                *group = first;
            }
        }
    }

    /// The number of each multiprocessor's group. Groups are numbered by size, largest first. Groups of
    /// fewer than [`FEW`] are merged into the smallest other group: a GPC has parts that hold no cluster.
    fn numbers(self) -> Vec<u32> {
        let Self(mut of) = self;
        let members = |of: &[usize]| {
            let mut members = vec![0; of.len()];
            of.iter().for_each(|&group| members[group] += 1);
            members
        };
        let count = members(&of);
        let smallest = (0..of.len())
            .filter(|&group| count[group] >= FEW)
            .min_by_key(|&group| count[group]);
        if let Some(smallest) = smallest {
            for group in of.iter_mut().filter(|group| count[**group] < FEW) {
                *group = smallest;
            }
        }
        let count = members(&of);
        let mut groups: Vec<usize> = (0..of.len()).filter(|&group| count[group] > 0).collect();
        groups.sort_by_key(|&group| std::cmp::Reverse(count[group]));
        let number = |group: &usize| groups.iter().position(|it| it == group).unwrap_or(0) as u32;
        of.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, SHARED, bounds};
    use crate::{Device, Limits};

    #[test]
    fn no_more_shared_memory_is_taken_than_there_is() {
        let limits = Device::cpu().limits();
        assert_eq!(bounds(4, limits).shared_bytes(), SHARED);
        let few = Limits {
            shared_bytes: 99 * 1024,
            ..limits
        };
        assert_eq!(bounds(4, few).shared_bytes(), few.shared_bytes);
    }

    #[test]
    fn clusters_join_groups() {
        let mut groups = Groups::new(12);
        groups.join(&[0, 1, 2, 3]);
        groups.join(&[6, 7, 8, 9]);
        groups.join(&[5, 4, 9, 6]);
        // 10 and 11 are in no cluster, and are merged into the smaller group.
        assert_eq!(
            groups.numbers(),
            [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0],
            "two groups of six, the first with the lower multiprocessors"
        );
    }

    #[test]
    fn without_clusters_there_are_groups_of_one() {
        assert_eq!(Groups::new(3).numbers(), [0, 1, 2]);
    }

    #[test]
    fn what_the_gpu_does_not_have_is_ignored() {
        let mut groups = Groups::new(2);
        groups.join(&[1, 200]);
        groups.join(&[]);
        assert_eq!(groups.numbers(), [0, 1]);
    }
}
