//! What is known of a candidate, as numbers that the correction of the model reads.

use super::{Candidate, CostInput, Launch, MULTIPLY, OutputPath, Tiled, Way, real};

/// How many features a candidate has.
pub const FEATURES: usize = OF_PROBLEM + OF_KERNEL + OF_LAUNCH + OF_ESTIMATE;
const OF_PROBLEM: usize = 12;
const OF_KERNEL: usize = 10;
const OF_LAUNCH: usize = 8;
const OF_ESTIMATE: usize = 5;
/// The features of a candidate, in a fixed order. Fitted trees know a feature by its place, so that a change here needs a
/// new fit.
pub type Features = [f32; FEATURES];

/// The most tiles of clusters along an edge of C that are told apart.
const MOST_ALONG_AN_EDGE: f64 = 30.0;
/// The greatest power of two that rows are looked at to be multiples of, in bytes.
const ROW_UNIT: usize = 256;

impl Candidate {
    /// What is known of the candidate at a problem.
    pub fn features(&self, input: &CostInput) -> Features {
        let tiled = Tiled::new(self.instance, input.oriented(self.instance));
        let way = Way {
            decomposition: self.decomposition,
            splits: self.splits as usize,
            path: self.path,
            streamed: self.streamed.count as usize,
        };
        let launch = Launch::new(&tiled, way);
        let mut features = [0.0; FEATURES];
        let all = problem(&tiled, input)
            .into_iter()
            .chain(kernel(&tiled))
            .chain(launched(&launch))
            .chain(estimated(&launch, self.clocks));
        for (feature, value) in features.iter_mut().zip(all) {
            *feature = value as f32;
        }
        features
    }
}

/// The problem as the instance solves it, and how its tiles cover C.
fn problem(tiled: &Tiled, input: &CostInput) -> [f64; OF_PROBLEM] {
    let Tiled {
        instance,
        input: oriented,
        ..
    } = tiled;
    let [m, n, k] = [oriented.m, oriented.n, oriented.k];
    let [rows, columns] = instance.cluster_tile().map(real);
    let [down, across] = oriented.clusters(instance).map(real);
    let unit = |bytes: usize| f64::from((bytes | ROW_UNIT).trailing_zeros());
    [
        real(m).ln(),
        real(n).ln(),
        real(k).ln(),
        real((m + n) * k).ln(),
        real(m * n).ln(),
        unit(input.bytes_ab * input.k),
        unit(input.bytes_c * input.n),
        real(m) / (down * rows),
        real(n) / (across * columns),
        down.min(MOST_ALONG_AN_EDGE),
        across.min(MOST_ALONG_AN_EDGE),
        oriented.device.memory_rate,
    ]
}

/// The kernel.
fn kernel(tiled: &Tiled) -> [f64; OF_KERNEL] {
    let instance = tiled.instance;
    let [m, n] = tiled.tile();
    let [cluster_rows, cluster_columns] = instance.cluster.map(f64::from);
    let flag = |is_so: bool| f64::from(u8::from(is_so));
    // Products for each element that a block loads.
    let intensity = m * n / (n / cluster_rows + m / cluster_columns);
    [
        m,
        n,
        f64::from(instance.tile[1] % 16),
        cluster_rows,
        cluster_columns,
        f64::from(instance.consumers_at_a_tile()),
        flag(instance.is_pingpong),
        flag(instance.transposed),
        real(instance.staged_subtiles),
        intensity.ln(),
    ]
}

/// How the work is dealt out.
fn launched(launch: &Launch<'_>) -> [f64; OF_LAUNCH] {
    let waves = launch.rounds.ceil();
    let multiprocessors = f64::from(launch.tiled.input.device.multiprocessors);
    let path = match launch.path {
        OutputPath::Direct => 0.0,
        OutputPath::Fixup if launch.streamed > 0 => 1.0,
        OutputPath::Fixup => 2.0,
        OutputPath::SecondKernel => 3.0,
    };
    [
        launch.rounds,
        waves,
        real(launch.shares) / (real(launch.clusters) * waves),
        real(launch.blocks()) / multiprocessors,
        (real(launch.blocks()) * launch.rounds).ln(),
        real(launch.splits).ln(),
        launch.k_tiles.ln(),
        path,
    ]
}

/// What the model's estimate is made of.
fn estimated(launch: &Launch<'_>, clocks: f64) -> [f64; OF_ESTIMATE] {
    let [m, n] = launch.tiled.tile();
    let products = m * n / 32.0 * MULTIPLY;
    [
        clocks.ln(),
        launch.computing() / clocks,
        launch.memory() / clocks,
        launch.overhead() / clocks,
        launch.tiled.work / products,
    ]
}
