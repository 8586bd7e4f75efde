//! The meaning of layouts, written a second time and as plainly as possible, to test against.

use cutlet_layout_core::{Int, Layout};

/// A layout as a list of `(extent, stride)` from the left.
pub type Modes = Vec<(i64, i64)>;

pub fn modes(layout: &Layout) -> Modes {
    (0..layout.num_leaves())
        .map(|i| (layout.leaf_shape(i).value(), layout.leaf_stride(i).value()))
        .collect()
}

/// The static layout of a list of modes: `8:1` for one, a tuple for more.
pub fn layout(modes: &[(i64, i64)]) -> Layout {
    let leaf = |&(s, d): &(i64, i64)| Layout::leaf(Int::fixed(s), Int::fixed(d));
    match modes {
        [mode] => leaf(mode),
        modes => Layout::concat(&modes.iter().map(leaf).collect::<Vec<_>>()),
    }
}

pub fn size(modes: &[(i64, i64)]) -> i64 {
    modes.iter().map(|m| m.0).product()
}

/// All values, in the order of 1-D coordinates: the outer loop is the last mode.
pub fn image(modes: &[(i64, i64)]) -> Vec<i64> {
    let mut values = vec![0];
    for &(extent, stride) in modes {
        values = (0..extent)
            .flat_map(|i| values.iter().map(move |v| v + i * stride))
            .collect();
    }
    values
}

/// The coalesced modes: none of extent 1, and none that continues the one before it.
pub fn coalesced(modes: &[(i64, i64)]) -> Modes {
    let mut result: Modes = Vec::new();
    for &(extent, stride) in modes.iter().filter(|m| m.0 != 1) {
        match result.last_mut() {
            Some(last) if last.0 * last.1 == stride => last.0 *= extent,
            _ => result.push((extent, stride)),
        }
    }
    result
}

/// The value at any coordinate. The last mode continues beyond the size, also if its extent is 1.
pub fn beyond(modes: &[(i64, i64)], coordinate: i64) -> i64 {
    let mut rest = coordinate;
    let mut value = 0;
    for (i, &(extent, stride)) in modes.iter().enumerate() {
        let digit = if i + 1 == modes.len() {
            rest
        } else {
            rest % extent
        };
        value += digit * stride;
        rest /= extent;
    }
    value
}

/// Whether some list of modes has exactly these values. Tries every first extent.
pub fn is_a_layout(values: &[i64]) -> bool {
    let n = values.len();
    if n == 1 {
        return values[0] == 0;
    }
    (2..=n)
        .filter(|first| n.is_multiple_of(*first))
        .any(|first| {
            let linear = (0..first).all(|i| values[i] == i as i64 * values[1]);
            let starts: Vec<i64> = values.iter().copied().step_by(first).collect();
            let additive = (0..n).all(|i| values[i] == values[i % first] + starts[i / first]);
            linear && additive && is_a_layout(&starts)
        })
}

/// Whether a layout compatible with the modes of `b` has exactly these values. The values must be a
/// sum over the modes of `b`, and a layout along each mode.
pub fn is_compatible_layout(values: &[i64], b: &[(i64, i64)]) -> bool {
    if values[0] != 0 {
        return false;
    }
    let mut step = 1;
    let mut along = Vec::new();
    for &(extent, _) in b {
        along.push(
            (0..extent)
                .map(|i| values[(i * step) as usize])
                .collect::<Vec<_>>(),
        );
        step *= extent;
    }
    let adds_up = values.iter().enumerate().all(|(c, &value)| {
        let mut rest = c;
        let mut sum = 0;
        for part in &along {
            sum += part[rest % part.len()];
            rest /= part.len();
        }
        sum == value
    });
    adds_up && along.iter().all(|part| is_a_layout(part))
}

/// All shapes of up to `rank` extents of at least 2 with a size of at most `size`.
pub fn shapes(size: i64, rank: usize) -> Vec<Vec<i64>> {
    let mut all = vec![vec![]];
    let mut begin = 0;
    for _ in 0..rank {
        let end = all.len();
        for i in begin..end {
            let so_far: i64 = all[i].iter().product();
            for extent in 2..=size / so_far {
                all.push([all[i].as_slice(), &[extent]].concat());
            }
        }
        begin = end;
    }
    all.remove(0);
    all
}

/// All layouts of these shapes with strides from the list. `None` stands for the stride that
/// continues the mode before.
pub fn layouts(size: i64, rank: usize, strides: &[Option<i64>]) -> Vec<Modes> {
    let mut all = Vec::new();
    for shape in shapes(size, rank) {
        let mut partial: Vec<Modes> = vec![vec![]];
        for extent in shape {
            partial = partial
                .iter()
                .flat_map(|modes| {
                    strides.iter().map(move |stride| {
                        let compact = modes.last().map_or(1, |m: &(i64, i64)| m.0 * m.1);
                        [modes.as_slice(), &[(extent, stride.unwrap_or(compact))]].concat()
                    })
                })
                .collect();
        }
        all.append(&mut partial);
    }
    all
}

/// A small random number generator (SplitMix64), so that a seed repeats a case exactly.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
