//! The shape of a launch: what it asks for, and whether a GPU could run it.

use crate::context::in_kernel;
use crate::shared_memory::MAX_SHARED_BYTES;

/// Most threads of a block.
const MAX_BLOCK_THREADS: u64 = 1024;
/// Largest extents of a block.
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Largest extents of a grid.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Most blocks of a cluster.
const MAX_CLUSTER: u32 = 16;

/// The shape of a launch, and the kernel's name for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSpec<'a> {
    /// Name of the kernel, for error messages.
    pub kernel: &'a str,
    /// Extents of the grid in blocks, `[x, y, z]`.
    pub grid: [u32; 3],
    /// Extents of a block in threads, `[x, y, z]`; at most 1024 threads in all.
    pub block: [u32; 3],
    /// Blocks of a cluster, neighbours along x. 0 and 1 both mean no clusters.
    pub cluster: u32,
    /// Bytes of shared memory of each block.
    pub shared_bytes: u32,
    /// Whether the kernel may begin before the previous one ends. Its threads must then call
    /// [`grid_dependency_wait`](crate::grid_dependency_wait) before they use global memory.
    pub overlap_previous: bool,
}

impl LaunchSpec<'_> {
    /// Checks that a GPU could run the launch. The error says what is asked for and what is allowed.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self {
            grid,
            block,
            cluster,
            shared_bytes,
            ..
        } = *self;
        let within = |extents: [u32; 3], limits: [u32; 3]| {
            extents
                .iter()
                .zip(limits)
                .all(|(&extent, limit)| (1..=limit).contains(&extent))
        };
        if in_kernel() {
            return Err("a kernel cannot launch another one: launch it from the host".to_owned());
        }
        if !within(block, MAX_BLOCK)
            || block.iter().map(|&n| u64::from(n)).product::<u64>() > MAX_BLOCK_THREADS
        {
            return Err(format!(
                "it asks for a block of {block:?} threads: extents must be at least 1 and at most {MAX_BLOCK:?}, and \
                 their product at most {MAX_BLOCK_THREADS}"
            ));
        }
        if !within(grid, MAX_GRID) {
            return Err(format!(
                "it asks for a grid of {grid:?} blocks: extents must be at least 1 and at most {MAX_GRID:?}"
            ));
        }
        if cluster > MAX_CLUSTER {
            return Err(format!(
                "it asks for a cluster of {cluster} blocks: a cluster has at most {MAX_CLUSTER}"
            ));
        }
        if cluster > 1 && grid[0] % cluster != 0 {
            return Err(format!(
                "its {} blocks along x do not divide into clusters of {cluster}: round the grid up",
                grid[0]
            ));
        }
        if shared_bytes > MAX_SHARED_BYTES {
            return Err(format!(
                "it asks for {shared_bytes} bytes of shared memory: a block has at most {MAX_SHARED_BYTES}"
            ));
        }
        Ok(())
    }
}
