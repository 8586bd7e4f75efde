//! Fuzzing: random and mutated texts for the parsers, and random layouts up to the edges of 64 bits
//! for every operation. Nothing may panic, and every result must be right.
//!
//! Runs for a second; `CUTLET_FUZZ_SECONDS=600 cargo test --release --test layout fuzz::` runs longer. A
//! finding prints its seed; `CUTLET_FUZZ_SEED` repeats it.

use crate::model::Random;
use core::time::Duration;
use cutlet_layout_core::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

impl Random {
    /// Mostly small, sometimes at the edge of what fits.
    fn extent(&mut self) -> i64 {
        match self.below(20) {
            0 => self.pick(&[1 << 31, i64::MAX, 1 << 62, 3_037_000_500, 1]),
            1..4 => 1 + self.below(5000) as i64,
            _ => 1 + self.below(12) as i64,
        }
    }

    fn stride(&mut self) -> i64 {
        match self.below(20) {
            0 => self.pick(&[1 << 31, i64::MAX, i64::MIN, 1 << 62, -1]),
            1..4 => self.below(100_000) as i64,
            _ => self.below(40) as i64,
        }
    }

    fn int(&mut self, value: i64) -> Int {
        if self.below(3) == 0 {
            Int::dynamic(value)
        } else {
            Int::fixed(value)
        }
    }

    fn layout(&mut self, depth: u64) -> Option<Layout> {
        if depth == 0 || self.below(3) == 0 {
            let (shape, stride) = (self.extent(), self.stride());
            let mut stride = self.int(stride);
            if self.below(12) == 0 {
                stride = stride.along(Basis::new(self.below(3) as usize));
            }
            let shape = IntTuple::from(self.int(shape));
            return Layout::try_from_shape_stride(&shape, &stride.into()).ok();
        }
        let modes: Option<Vec<Layout>> = (0..1 + self.below(4))
            .map(|_| self.layout(depth - 1))
            .collect();
        Layout::try_concat(&modes?).ok()
    }

    fn text(&mut self) -> String {
        let mut text = match self.below(5) {
            0 => self.layout(3).map_or(String::new(), |l| l.to_string()),
            1 => "<_3:_4,(_2,_4):(_1,_8),_>".to_string(),
            2 => "Sw<3,4,3> o _0 o (_8,_8):(_8,_1)".to_string(),
            3 => "(_8,_8):(_8,_1) o (0,_1) o (_4,4):(_1@0,_1@1)".to_string(),
            _ => String::new(),
        };
        for _ in 0..self.below(6) {
            let at = self.below(text.len() as u64 + 1) as usize;
            if !text.is_char_boundary(at) {
                continue;
            }
            if self.below(3) == 0 && at < text.len() && text.is_char_boundary(at + 1) {
                text.remove(at);
            } else {
                text.insert(
                    at,
                    self.pick(&[
                        '(', ')', ',', ':', '_', '<', '>', '@', '-', '0', '9', ' ', 'S', 'é',
                    ]),
                );
            }
        }
        text
    }
}

fn composed_parsers(text: &str) {
    if let Ok(layout) = text.parse::<ComposedLayout<Swizzle>>() {
        let read: ComposedLayout<Swizzle> = layout.to_string().parse().unwrap();
        assert_eq!(read.to_string(), layout.to_string());
        let _ = (
            layout.try_right_inverse(),
            layout.try_upcast(2),
            layout.try_downcast(3),
        );
    }
    if let Ok(layout) = text.parse::<ComposedLayout<Layout>>() {
        let read: ComposedLayout<Layout> = layout.to_string().parse().unwrap();
        assert_eq!(read.to_string(), layout.to_string());
        let _ = layout.try_right_inverse();
    }
    let _ = text.parse::<ComposedLayout<ComposedLayout<Layout>>>();
}

fn swizzles(random: &mut Random) {
    let mut swizzle = || {
        let (bits, base) = (random.below(7) as i64, random.below(60) as i64);
        let shift = random.below(40) as i64 - 20;
        Swizzle::try_new(bits, base, shift)
    };
    let (Ok(a), Ok(b)) = (swizzle(), swizzle()) else {
        return;
    };
    if let Ok(both) = a.try_compose(b) {
        let index = random.next() as i64 & i64::MAX;
        assert_eq!(both.apply(index), a.apply(b.apply(index)), "{a} o {b}");
    }
    let Some(outer) = random.layout(2) else {
        return;
    };
    if outer.size() > 1 << 16 || outer.has_basis() {
        return;
    }
    let layout = a.composition(&outer);
    if let Ok(inverse) = layout.try_right_inverse() {
        for i in 0..inverse.size().min(200) {
            assert_eq!(layout.at(inverse.at(i)), i, "{inverse} of {layout}");
        }
    }
}

fn parsers(random: &mut Random) {
    let text = random.text();
    let _ = text.parse::<Swizzle>();
    composed_parsers(&text);
    if let Ok(tuple) = text.parse::<IntTuple>() {
        assert_eq!(
            tuple.to_string().parse::<IntTuple>().unwrap().to_string(),
            tuple.to_string()
        );
    }
    if let Ok(tiler) = text.parse::<Tiler>() {
        assert_eq!(
            tiler.to_string().parse::<Tiler>().unwrap().to_string(),
            tiler.to_string()
        );
    }
    match text.parse::<Layout>() {
        Ok(layout) => {
            assert_eq!(
                layout.to_string().parse::<Layout>().unwrap().to_string(),
                layout.to_string()
            );
        }
        Err(error) => assert!(!error.message().is_empty()),
    }
}

fn compositions(random: &mut Random) {
    let (Some(a), Some(b)) = (random.layout(2), random.layout(2)) else {
        return;
    };
    let Ok(r) = try_composition(&a, &b) else {
        return;
    };
    assert!(b.is_compatible_with(&r), "{a} o {b} gives {r}");
    if a.has_basis() || b.has_basis() {
        return;
    }
    for i in 0..200 {
        let c = if i < 100 {
            i % b.size()
        } else {
            random.below(b.size() as u64) as i64
        };
        let (Some(inner), Some(found)) = (b.try_at(c), r.try_at(c)) else {
            continue;
        };
        if let Some(expected) = a.try_at(inner) {
            assert_eq!(found, expected, "{a} o {b} gives {r} at {c}");
        }
    }
}

fn complements(random: &mut Random) {
    let Some(a) = random.layout(2) else { return };
    let target = random.extent();
    let Ok(r) = try_complement(&a, &IntTuple::from(target)) else {
        return;
    };
    let distinct = filter(&a);
    if distinct.has_basis() {
        return;
    }
    for i in 1..r.size().min(50) {
        assert!(r.at(i - 1) < r.at(i), "{r} of {a}");
        for j in 0..distinct.size().min(50) {
            assert_ne!(r.at(i), distinct.at(j), "{r} of {a}");
        }
    }
}

fn everything_else(random: &mut Random) {
    let (Some(a), Some(b)) = (random.layout(2), random.layout(1)) else {
        return;
    };
    let tiler = Tiler::layout(&b);
    assert_eq!(coalesce(&a).size(), a.size());
    let count = a.size().min(50);
    let table: [i64; 64] = a.first_indices(count as usize, 0);
    for i in 0..64 {
        let index = if i < count { a.at_basis(i, 0) } else { 0 };
        assert_eq!(table[i as usize], index, "entry {i} of {a}");
    }
    let _ = try_logical_divide(&a, &tiler);
    let _ = try_zipped_product(&a, &tiler);
    let _ = try_blocked_product(&a, &b);
    let _ = (try_flat_divide(&a, &tiler), try_tiled_product(&a, &tiler));
    if let Ok(r) = try_right_inverse(&a) {
        for i in 0..r.size().min(50) {
            assert_eq!(a.at(r.at(i)), i, "{r} of {a}");
        }
    }
    if let Ok(l) = try_left_inverse(&a) {
        for i in 0..a.size().min(50) {
            assert_eq!(l.at(a.at(i)), i, "{l} of {a}");
        }
    }
    let _ = (
        try_max_common_vector(&a, &b),
        try_layout_like(&a),
        try_fragment_like(&a),
    );
    let n = random.extent();
    let _ = (
        try_upcast(&a, n),
        try_downcast(&a, n),
        try_layout_div(&a, Int::fixed(n)),
    );
    let _ = try_domain_distribute(&a.shape(), Int::fixed(n));
    let coord = a.shape();
    let _ = (
        a.try_call(&coord),
        try_idx2crd(&IntTuple::from(n), &coord),
        try_linear_coordinate(&coord, &coord),
    );
    let _ = (
        try_ceil_div(&coord, &b.shape()),
        try_shape_div(&coord, &b.shape()),
        try_shape_mod(&coord, &b.shape()),
    );
    let _ = (
        nullspace(&a),
        filter(&a),
        try_compact_order(&coord, &a.stride()),
        evenly_divides(&coord, &tiler),
    );
}

#[test]
fn nothing_panics_and_what_is_found_is_right() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let one_case = number("CUTLET_FUZZ_SEED");
    let until = Instant::now() + Duration::from_secs(number("CUTLET_FUZZ_SECONDS").unwrap_or(1));
    let start = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    let mut cases = 0u64;
    loop {
        let seed =
            one_case.unwrap_or(start.wrapping_add(cases.wrapping_mul(0x5851_f42d_4c95_7f2d)));
        let case = || {
            let mut random = Random(seed);
            match random.below(5) {
                0 => parsers(&mut random),
                4 => swizzles(&mut random),
                1 => compositions(&mut random),
                2 => complements(&mut random),
                _ => everything_else(&mut random),
            }
        };
        if catch_unwind(AssertUnwindSafe(case)).is_err() {
            panic!("a finding: repeat it with CUTLET_FUZZ_SEED={seed}");
        }
        cases += 1;
        if one_case.is_some() || Instant::now() > until {
            break;
        }
    }
    println!("{cases} cases");
}
