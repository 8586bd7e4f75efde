//! How a contraction becomes products of matrices: which modes are rows, columns, k and the batch, and which operands
//! are copied first, because theirs do not lie like a matrix.

use std::fmt;

use super::modes::{Mode, Role, merged};
use crate::Order;
use crate::matrix::Extents;

/// The matrix of (extent, stride) of its rows and columns, if one of them is contiguous.
fn matrix((rows, down): (usize, usize), (columns, right): (usize, usize)) -> Option<Extents> {
    let (order, ld) = match (rows, columns) {
        (1, 1) => (Order::RowMajor, 1),
        // A line that is contiguous, or of single elements.
        (_, 1) if down == 1 => (Order::ColMajor, rows),
        (_, 1) if down > 1 => (Order::RowMajor, down),
        (1, _) if right == 1 => (Order::RowMajor, columns),
        (1, _) if right > 1 => (Order::ColMajor, right),
        _ if right == 1 && down >= columns => (Order::RowMajor, down),
        _ if down == 1 && right >= rows => (Order::ColMajor, right),
        _ => return None,
    };
    Some(Extents {
        rows,
        columns,
        ld,
        order,
    })
}

/// Modes that are copied: from the tensor, to memory in which they lie like a matrix.
#[derive(Clone, Debug)]
pub struct Copied {
    /// Extent, stride in the tensor and stride in the copy.
    pub modes: Vec<(usize, usize, usize)>,
    /// Elements that the copy takes.
    pub elements: usize,
    /// Elements that are copied.
    size: usize,
}

/// How a contraction is computed.
#[derive(Clone, Debug)]
pub struct Lowering {
    /// A, B and C, if they are copied: C, if it is not 0 times itself, first to the copy, and the product back.
    pub copies: [Option<Copied>; 3],
    /// A of m×k, B of k×n and C.
    pub matrices: [Extents; 3],
    /// The products of a launch: the inner and the outer mode of a batch. Extents are 1 or more.
    pub batch: [Mode; 2],
    /// An outer mode of k, of an extent of 1 or more.
    pub outer_k: Mode,
    /// What other launches have.
    pub loops: Vec<Mode>,
    /// Rows, columns and k.
    of_product: [Mode; 3],
    /// An estimate of seconds.
    seconds: f64,
}

/// What is known of a device and of the element types: enough to tell a copy from a launch too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rates {
    /// Bytes of an element of A, B and C.
    pub bytes: [usize; 3],
    /// Products that are added in a nanosecond.
    pub products: usize,
    /// Whether kernels sum over two modes of k, of operands that TMA can read.
    pub sums_outer_k: bool,
}

/// Bytes that a GPU reads or writes in a second, about.
const MEMORY: f64 = 2.5e12;
/// Bytes of operands that an L2 cache keeps, about.
const L2: f64 = 2.5e7;
/// Seconds of a launch.
const LAUNCH: f64 = 3e-6;
/// Multiprocessors that have a tile at the same time, about.
const PROCESSORS: f64 = 132.0;
/// Bytes at whose multiples the lines of a matrix begin for the fastest kernels.
const ALIGNED: usize = 16;

/// The fastest way, by a rough estimate. There is always one: with copies of all operands, all modes of a role lie
/// behind one another.
pub fn lower(modes: &[Mode], rates: Rates) -> Lowering {
    let ways = (0..8u8).flat_map(|set| {
        let copied = [0, 1, 2].map(|operand| set & (1 << operand) != 0);
        of_copies(modes, copied, rates)
    });
    let fastest = ways.min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    fastest.expect("copies of all operands lie like matrices")
}

/// The ways in which these operands are copied.
fn of_copies(modes: &[Mode], copied: [bool; 3], rates: Rates) -> Vec<Lowering> {
    let mut packed = modes.to_vec();
    let copies = [0, 1, 2]
        .map(|operand| copied[operand].then(|| pack(&mut packed, modes, operand, copied, rates)));
    let packed = merged(packed);
    let of_role = |role| packed.iter().filter(move |it| it.role == role);
    // Rows may be none, as of the product of a vector.
    let candidates = |role| of_role(role).cloned().chain([unit(role)]);
    let mut ways = Vec::new();
    for (k, outer_k) in modes_of_k(of_role(Role::K).collect(), rates) {
        for m in candidates(Role::M) {
            for n in candidates(Role::N) {
                let of_product = [m.clone(), n, k.clone()];
                ways.extend(way(&packed, of_product, &outer_k, &copies, rates));
            }
        }
    }
    ways
}

/// The way of these rows, columns and k, if all operands lie like matrices and kernels take k's outer mode.
fn way(
    packed: &[Mode],
    of_product: [Mode; 3],
    outer_k: &Mode,
    copies: &[Option<Copied>; 3],
    rates: Rates,
) -> Option<Lowering> {
    let [m, n, k] = &of_product;
    let along = |mode: &Mode, operand: usize| (mode.extent, mode.strides[operand]);
    let matrices = [
        matrix(along(m, 0), along(k, 0))?,
        matrix(along(k, 1), along(n, 1))?,
        matrix(along(m, 2), along(n, 2))?,
    ];
    let others = (packed.iter()).filter(|it| it.role != Role::K && *it != m && *it != n);
    let bytes = [
        m.extent * k.extent * rates.bytes[0],
        k.extent * n.extent * rates.bytes[1],
    ];
    let (batch, loops) = batch_and_loops(others.cloned().collect(), bytes);
    let mut way = Lowering {
        copies: copies.clone(),
        matrices,
        batch,
        outer_k: outer_k.clone(),
        loops,
        of_product,
        seconds: 0.0,
    };
    if outer_k.extent > 1 && !way.is_aligned(rates) {
        return None;
    }
    way.seconds = way.estimate(rates);
    Some(way)
}

/// A mode of one coordinate.
fn unit(role: Role) -> Mode {
    Mode {
        names: String::new(),
        role,
        extent: 1,
        strides: [0; 3],
    }
}

/// Which of the modes of k is that of the matrices, and which one is k's outer mode.
fn modes_of_k(ks: Vec<&Mode>, rates: Rates) -> Vec<(Mode, Mode)> {
    match ks[..] {
        [] => vec![(unit(Role::K), unit(Role::K))],
        [k] => vec![(k.clone(), unit(Role::K))],
        [one, other] if rates.sums_outer_k => {
            let is_of_both =
                |mode: &Mode| mode.extent > 0 && mode.strides[0] > 0 && mode.strides[1] > 0;
            let ways = [(one, other), (other, one)];
            let ways = ways.into_iter().filter(|(_, outer)| is_of_both(outer));
            ways.map(|(k, outer)| (k.clone(), outer.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// The two largest of the modes that are neither rows, columns nor k, and the others. Products along the inner one of
/// the two are computed next to each other, so it is the one along which more bytes of A and B are the same: the L2
/// cache has them then.
fn batch_and_loops(others: Vec<Mode>, bytes: [usize; 2]) -> ([Mode; 2], Vec<Mode>) {
    let of_l = others.into_iter().map(|it| Mode {
        role: Role::L,
        ..it
    });
    let mut others = merged(of_l.collect());
    others.sort_by_key(|it| it.extent);
    let mut next = || others.pop().unwrap_or(unit(Role::L));
    let mut batch = [next(), next()];
    let shared = |mode: &Mode| {
        let shared = (0..2).filter(|&operand| mode.extent > 1 && mode.strides[operand] == 0);
        shared.map(|operand| bytes[operand]).sum::<usize>()
    };
    if shared(&batch[1]) > shared(&batch[0]) {
        batch.swap(0, 1);
    }
    (batch, others)
}

/// Gives an operand's modes the strides of a copy: k innermost, or columns of C, then the others.
fn pack(
    packed: &mut [Mode],
    modes: &[Mode],
    operand: usize,
    copied: [bool; 3],
    rates: Rates,
) -> Copied {
    let roles = match operand {
        0 => [Role::K, Role::M, Role::L],
        1 => [Role::K, Role::N, Role::L],
        _ => [Role::N, Role::M, Role::L],
    };
    let mut elements = 1;
    let mut copy = Vec::new();
    for (nth, role) in roles.into_iter().enumerate() {
        let mut order: Vec<usize> = (0..modes.len())
            .filter(|i| modes[*i].role == role)
            .collect();
        // As they lie in an operand that stays, so that they are behind one another in both.
        let stays = [2, 0, 1]
            .into_iter()
            .find(|it| !copied[*it] && role.is_of(*it));
        let by = stays.unwrap_or_else(|| if role.is_of(2) { 2 } else { 0 });
        order.sort_by_key(|i| (modes[*i].strides[by], *i));
        for i in order {
            copy.push((modes[i].extent, modes[i].strides[operand], elements));
            packed[i].strides[operand] = elements;
            elements *= modes[i].extent;
        }
        if nth == 0 && elements > 1 {
            // Lines begin at multiples of 16 bytes.
            elements = elements.next_multiple_of(ALIGNED / rates.bytes[operand].min(ALIGNED));
        }
    }
    let size = copy.iter().map(|(extent, ..)| extent).product();
    Copied {
        modes: copy,
        elements,
        size,
    }
}

impl Lowering {
    /// Launches of products.
    pub fn launches(&self) -> usize {
        self.loops.iter().map(|it| it.extent).product()
    }

    /// About how long it takes.
    fn estimate(&self, rates: Rates) -> f64 {
        let [m, n, k] = self.of_product.each_ref().map(|it| it.extent);
        let batch = self.batch.iter().map(|it| it.extent).product::<usize>();
        let outer_k = self.outer_k.extent;
        let padded = |extent: usize| extent.next_multiple_of(64) as f64;
        let tiles = (m.div_ceil(128) * n.div_ceil(128) * batch) as f64;
        // Only the k of one product, in one mode, is split among multiprocessors.
        let least = match outer_k * batch {
            1 => 0.1,
            _ => 0.0,
        };
        let busy = (tiles / PROCESSORS).clamp(least, 1.0);
        let aligned = match self.is_aligned(rates) {
            true => 1.0,
            false if rates.bytes[0] < 4 => 6.0,
            false => 1.3,
        };
        // The smallest tiles leave half of the tensor cores' speed.
        let narrow = match rates.bytes[0] < 4 && m.min(n) <= 64 {
            true => 2.0,
            false => 1.0,
        };
        let products = padded(m) * padded(n) * padded(k) * (outer_k * batch) as f64;
        let multiply = products * 1e-9 / rates.products as f64 / busy * aligned * narrow;
        let [a, b, c] = rates.bytes;
        let matrices = [m * k * outer_k * a, n * k * outer_k * b, m * n * c];
        let bytes: f64 = (0..3).map(|it| self.bytes_of_batch(it, matrices[it])).sum();
        let launches = self.launches() as f64 * (LAUNCH + multiply.max(bytes / MEMORY));
        let copies = (0..3)
            .filter_map(|operand| Some((self.copies[operand].as_ref()?, rates.bytes[operand])));
        // Elements that are copied one by one take longer than vectors.
        let copies = copies.map(|(copy, bytes)| LAUNCH + 3.0 * (copy.size * bytes) as f64 / MEMORY);
        launches + copies.sum::<f64>()
    }

    /// Bytes that a launch reads or writes of A (0), B (1) or C (2), whose matrix has so many bytes.
    fn bytes_of_batch(&self, operand: usize, of_matrix: usize) -> f64 {
        let [inner, outer] = &self.batch;
        let of_mode = |mode: &Mode| {
            if mode.strides[operand] == 0 {
                1
            } else {
                mode.extent
            }
        };
        let of_inner = (of_matrix * of_mode(inner)) as f64;
        // What the L2 cache does not keep is read again for each coordinate of the outer mode.
        match of_inner < L2 {
            true => of_inner * of_mode(outer) as f64,
            false => of_inner * outer.extent as f64,
        }
    }

    /// Whether all lines and matrices begin at multiples of 16 bytes, if the tensors do.
    fn is_aligned(&self, rates: Rates) -> bool {
        (0..3).all(|operand| {
            let matrix = &self.matrices[operand];
            let outer = self.batch.iter().chain(&self.loops).chain([&self.outer_k]);
            let strides = outer.map(|it| it.strides[operand]).chain([matrix.ld]);
            let mut strides = strides.map(|stride| stride * rates.bytes[operand]);
            strides.all(|stride| stride.is_multiple_of(ALIGNED))
        })
    }
}

/// What becomes of the modes, a line each.
impl fmt::Display for Lowering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = &self.of_product;
        let named = |mode: &Mode| match mode.names.as_str() {
            "" => "1".to_string(),
            _ => mode.to_string(),
        };
        write!(f, "M = {}, N = {}, K = {}", named(m), named(n), named(k))?;
        if self.outer_k.extent > 1 {
            write!(f, " × {}", self.outer_k)?;
        }
        let batch: Vec<&Mode> = self.batch.iter().filter(|it| it.extent > 1).collect();
        let loops: Vec<&Mode> = self.loops.iter().collect();
        for (what, modes) in [("batch", batch), ("launches", loops)] {
            for (nth, mode) in modes.into_iter().enumerate() {
                match nth {
                    0 => write!(f, ", {what} = {mode}")?,
                    _ => write!(f, " × {mode}")?,
                }
            }
        }
        Ok(())
    }
}

impl Copied {
    /// Bytes of the elements, of so many bytes each.
    pub fn bytes(&self, of_element: usize) -> usize {
        self.size * of_element
    }
}
