//! One core's share of a launch: starts clusters, and runs them in turn.

use crate::cluster::{Resources, RunningCluster, Status};
use crate::grid::Grid;

/// Runs clusters of a grid until there are none left.
pub(crate) fn work(grid: &Grid<'_>) {
    let core = grid.core_begins();
    let mut resources = Resources::new();
    let mut clusters: Vec<RunningCluster<'_>> = Vec::new();
    // The progress at which this core last found nothing to do.
    let mut idle_at = None;
    'work: while !grid.is_cancelled() {
        let before = grid.progress();
        let mut index = 0;
        while index < clusters.len() {
            match clusters[index].advance(&mut resources.stacks) {
                Ok(Status::WaitsForGrid) => index += 1,
                Ok(Status::Finished) => {
                    grid.cluster_ends();
                    clusters.remove(index).tear_down(&mut resources);
                }
                Ok(Status::Cancelled) => break 'work,
                Err(error) => {
                    grid.fail(error);
                    break 'work;
                }
            }
        }
        if let Some(index) = grid.start_cluster(!clusters.is_empty()) {
            clusters.push(RunningCluster::new(grid, index, core, &mut resources));
            grid.note_progress();
        } else if clusters.is_empty() {
            break;
        } else if grid.progress() == before {
            let first_time = idle_at.replace(before) != Some(before);
            if grid.is_deadlocked(before, first_time) {
                grid.fail(clusters[0].deadlock_error());
                break;
            }
            std::thread::yield_now();
        }
    }
    for cluster in clusters {
        cluster.tear_down(&mut resources);
    }
    grid.core_ends();
}
