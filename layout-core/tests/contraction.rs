//! Contractions as layouts: every sum of products has the same elements as the named modes say, for random notations
//! and layouts; and what is no contraction.

use crate::model::Random;
use cutlet_layout_core::contraction::{Layouts, Mode, Modes, Names, Notation, Role};
use cutlet_layout_core::*;

/// A mode of a random contraction: its name, its extents from the innermost, and the tensors that have it.
struct Named {
    name: char,
    extents: Vec<i64>,
    tensors: &'static [usize],
}

/// A contraction of random modes, as notation and layouts.
struct Contraction {
    named: Vec<Named>,
    notation: String,
    layouts: [Layout; 3],
}

impl Random {
    fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    fn named(&mut self) -> Vec<Named> {
        let tensors: [&[usize]; 7] = [
            &[0, 2],
            &[1, 2],
            &[0, 1],
            &[0, 1, 2],
            &[0],
            &[1],
            &[0, 0, 2],
        ];
        let count = 1 + self.below(5) as usize;
        let names = "bshdtXyZ".chars().take(count);
        let mut size = 1;
        let named = names.map(|name| {
            let mut extents: Vec<i64> = (0..=self.below(2))
                .map(|_| self.pick(&[1, 2, 2, 3, 4, 6]))
                .collect();
            extents.retain(|extent| {
                size *= extent;
                size <= 4000
            });
            if extents.is_empty() {
                extents.push(1);
            }
            Named {
                name,
                extents,
                tensors: self.pick(&tensors),
            }
        });
        named.collect()
    }

    /// A mode of these extents, some of which are one leaf: extents and places for strides.
    fn leaves(&mut self, extents: &[i64]) -> Vec<i64> {
        let mut leaves = vec![extents[0]];
        for &extent in &extents[1..] {
            match self.below(2) {
                0 => leaves.push(extent),
                _ => *leaves.last_mut().unwrap() *= extent,
            }
        }
        leaves
    }

    /// Strides of leaves that lie behind one another in a random order, perhaps with gaps, repetitions and steps back.
    fn strides(&mut self, leaves: &[i64]) -> Vec<i64> {
        let mut order: Vec<usize> = (0..leaves.len()).collect();
        if self.below(2) == 0 {
            self.shuffle(&mut order);
        }
        let mut strides = vec![0; leaves.len()];
        let mut next = 1;
        for leaf in order {
            if self.below(10) == 0 {
                continue;
            }
            strides[leaf] = if self.below(12) == 0 { -next } else { next };
            next *= leaves[leaf];
            next += if self.below(6) == 0 {
                1 + self.below(5) as i64
            } else {
                0
            };
        }
        strides
    }

    fn contraction(&mut self) -> Contraction {
        let named = self.named();
        let mut texts = Vec::new();
        let layouts = [0, 1, 2].map(|tensor| {
            let mut modes: Vec<&Named> = named
                .iter()
                .flat_map(|it| {
                    it.tensors
                        .iter()
                        .filter(|own| **own == tensor)
                        .map(move |_| it)
                })
                .collect();
            self.shuffle(&mut modes);
            texts.push(modes.iter().map(|it| it.name).collect::<String>());
            let shapes: Vec<Vec<i64>> = modes.iter().map(|it| self.leaves(&it.extents)).collect();
            let strides = self.strides(&shapes.concat());
            let mut strides = strides.into_iter();
            let mut leaf = |extent: &i64| {
                let stride = strides.next().unwrap();
                Layout::leaf(self.any_int(*extent), self.any_int(stride))
            };
            let modes: Vec<Layout> = shapes
                .iter()
                .map(|leaves| Layout::concat(&leaves.iter().map(&mut leaf).collect::<Vec<_>>()))
                .collect();
            match modes[..] {
                [] => Layout::UNIT,
                _ => Layout::concat(&modes),
            }
        });
        Contraction {
            named,
            notation: format!("{},{}->{}", texts[0], texts[1], texts[2]),
            layouts,
        }
    }

    fn any_int(&mut self, value: i64) -> Int {
        match self.below(2) {
            0 => Int::fixed(value),
            _ => Int::dynamic(value),
        }
    }
}

impl Contraction {
    /// The indices in A, B and C of each product, by the named modes.
    fn products(&self) -> Vec<[i64; 3]> {
        let notation = Notation::parse(&self.notation).unwrap();
        let sizes: Vec<i64> = self
            .named
            .iter()
            .map(|it| it.extents.iter().product())
            .collect();
        let products = (0..sizes.iter().product()).map(|nth| {
            let mut rest = nth;
            let at: Vec<i64> = sizes
                .iter()
                .map(|size| {
                    let at = rest % size;
                    rest /= size;
                    at
                })
                .collect();
            [0, 1, 2].map(|tensor| {
                let names = notation.names(tensor).as_str().chars().enumerate();
                let terms = names.map(|(mode, name)| {
                    let named = self.named.iter().position(|it| it.name == name).unwrap();
                    self.layouts[tensor].mode(mode).at(at[named])
                });
                terms.sum()
            })
        });
        sorted(products.collect())
    }
}

fn sorted(mut list: Vec<[i64; 3]>) -> Vec<[i64; 3]> {
    list.sort_unstable();
    list
}

/// The indices in A, B and C of each product of matrices: (M, K, L), (N, K, L) and (M, N, L).
fn products(layouts: &Layouts) -> Vec<[i64; 3]> {
    let (a, b, c) = (layouts.a(), layouts.b(), layouts.c());
    let extents = [
        a.mode(0).size(),
        b.mode(0).size(),
        a.mode(1).size(),
        a.mode(2).size(),
    ];
    let at = |layout: &Layout, coord: [i64; 3]| {
        (0..3)
            .map(|mode| layout.mode(mode).at(coord[mode]))
            .sum::<i64>()
    };
    let products = (0..extents.iter().product()).map(|nth: i64| {
        let mut rest = nth;
        let [m, n, k, l] = extents.map(|extent| {
            let at = rest % extent;
            rest /= extent;
            at
        });
        [at(a, [m, k, l]), at(b, [n, k, l]), at(c, [m, n, l])]
    });
    sorted(products.collect())
}

#[test]
fn products_of_matrices_are_those_of_the_named_modes() {
    let (mut compared, mut merged, mut repeated) = (0, 0, 0);
    for seed in 0..4000 {
        let case = Random(seed).contraction();
        let Contraction {
            notation,
            layouts: [a, b, c],
            ..
        } = &case;
        let text = format!("{notation} of {a}, {b} and {c}, by seed {seed}");
        let layouts = match Layouts::try_new(notation, a, b, c) {
            Ok(layouts) => layouts,
            // Shapes such as (2,3) and (3,2).
            Err(error) => {
                assert!(
                    error.message().contains("do not divide each other"),
                    "{text}: {error}"
                );
                continue;
            }
        };
        let (a, b, c) = (layouts.a(), layouts.b(), layouts.c());
        assert_eq!([a, b, c].map(Layout::rank), [3; 3], "{text}");
        assert_eq!(a.mode(0).shape(), c.mode(0).shape(), "{text}");
        assert_eq!(b.mode(0).shape(), c.mode(1).shape(), "{text}");
        assert_eq!(a.mode(1).shape(), b.mode(1).shape(), "{text}");
        assert_eq!(a.mode(2).shape(), b.mode(2).shape(), "{text}");
        assert_eq!(a.mode(2).shape(), c.mode(2).shape(), "{text}");
        assert_eq!(products(&layouts), case.products(), "{text}");
        // Nothing is left to merge, and merging again changes nothing.
        let modes = layouts.modes().as_slice();
        for (i, inner) in modes.iter().enumerate() {
            assert!(inner.extent.value() > 1, "{text}");
            let others = modes.iter().enumerate().filter(|(other, _)| *other != i);
            assert!(
                others.clone().all(|(_, outer)| !outer.continues(inner)),
                "{text}"
            );
        }
        assert_eq!(
            layouts.modes().merged().by_role(),
            *layouts.modes(),
            "{text}"
        );
        compared += 1;
        merged += usize::from(modes.iter().any(|mode| mode.names.len() > 1));
        repeated += usize::from(modes.iter().any(|mode| {
            (0..3).any(|tensor| mode.role.is_of(tensor) && mode.strides[tensor].value() == 0)
        }));
    }
    assert!(
        compared > 3000 && merged > 300 && repeated > 300,
        "{compared}, {merged}, {repeated}"
    );
}

fn layouts(notation: &str, [a, b, c]: [&str; 3]) -> Result<Layouts, LayoutError> {
    let [a, b, c] = [a, b, c].map(|text| text.parse().unwrap());
    Layouts::try_new(notation, &a, &b, &c)
}

/// The text of the layouts, on one line.
fn printed(notation: &str, of: [&str; 3]) -> String {
    let layouts = layouts(notation, of).unwrap().to_string();
    layouts.replace('\n', "; ")
}

#[test]
fn roles_are_those_of_the_tensors() {
    for (notation, of, expected) in [
        (
            "ij,jk->ik",
            ["(4,8):(8,1)", "(8,6):(6,1)", "(4,6):(6,1)"],
            "M = i 4, N = k 6, K = j 8, L = 1; A (M,K,L) = (4,8,_1):(8,1,_0); \
             B (N,K,L) = (6,8,_1):(1,6,_0); C (M,N,L) = (4,6,_1):(6,1,_0)",
        ),
        // Modes that a model's layout keeps apart, innermost first.
        (
            "bshd,bthd->bhst",
            [
                "(_2,_3,_4,_5):(_180,_60,_5,_1)",
                "(_2,6,_4,_5):(_360,_60,_5,_1)",
                "(_2,_4,_3,6):(_72,_18,6,_1)",
            ],
            "M = s 3, N = t 6, K = d 5, L = (h 4, b 2); A (M,K,L) = (_3,_5,(_4,_2)):(_60,_1,(_5,_180)); \
             B (N,K,L) = (6,_5,(_4,_2)):(_60,_1,(_5,_360)); C (M,N,L) = (_3,6,(_4,_2)):(6,_1,(_18,_72))",
        ),
        // b continues j in A and in B, so that they are one sum.
        (
            "bij,bkj->ik",
            ["(3,4,5):(5,15,1)", "(3,6,5):(5,15,1)", "(4,6):(6,1)"],
            "M = i 4, N = k 6, K = jb 15, L = 1; A (M,K,L) = (4,15,_1):(15,1,_0); \
             B (N,K,L) = (6,15,_1):(15,1,_0); C (M,N,L) = (4,6,_1):(6,1,_0)",
        ),
        // A mode that is split in one tensor, and in none of the others.
        (
            "mk,nk->mn",
            ["((2,3),4):((12,4),1)", "(8,4):(4,1)", "(6,8):(8,1)"],
            "M = (m 3, m 2), N = n 8, K = k 4, L = 1; A (M,K,L) = ((3,2),4,_1):((4,12),1,_0); \
             B (N,K,L) = (8,4,_1):(4,1,_0); C (M,N,L) = ((3,2),8,_1):((16,8),1,_0)",
        ),
        (
            "mk,nk->mn",
            ["((2,3),4):((1,2),6)", "(8,4):(4,1)", "(6,8):(8,1)"],
            "M = m 6, N = n 8, K = k 4, L = 1; A (M,K,L) = (6,4,_1):(1,6,_0); \
             B (N,K,L) = (8,4,_1):(4,1,_0); C (M,N,L) = (6,8,_1):(8,1,_0)",
        ),
        // A repeats its elements along l: columns have l too.
        (
            "mkl,nkl->mnl",
            ["(4,5,3):(5,1,0)", "(6,5,3):(5,1,30)", "(4,6,3):(18,1,6)"],
            "M = m 4, N = nl 18, K = k 5, L = 1; A (M,K,L) = (4,5,_1):(5,1,_0); \
             B (N,K,L) = (18,5,_1):(5,1,_0); C (M,N,L) = (4,18,_1):(18,1,_0)",
        ),
        // A diagonal, and sums of one operand.
        (
            "iij,k->i",
            ["(2,2,3):(6,3,1)", "4:1", "2:1"],
            "M = i 2, N = 1, K = (k 4, j 3), L = 1; A (M,K,L) = (2,(4,3),_1):(9,(_0,1),_0); \
             B (N,K,L) = (_1,(4,3),_1):(_0,(1,_0),_0); C (M,N,L) = (2,_1,_1):(1,_0,_0)",
        ),
        (
            "ij,ij->",
            ["(2,3):(3,1)", "(2,3):(3,1)", "1:0"],
            "M = 1, N = 1, K = ji 6, L = 1; A (M,K,L) = (_1,6,_1):(_0,1,_0); \
             B (N,K,L) = (_1,6,_1):(_0,1,_0); C (M,N,L) = (_1,_1,_1):(_0,_0,_0)",
        ),
        // Strides in directions, as symbols are.
        (
            "mk,nk->mn",
            ["(4,8):(1@7,1)", "(6,8):(1,1@8)", "(4,6):(1,1@9)"],
            "M = m 4, N = n 6, K = k 8, L = 1; A (M,K,L) = (4,8,_1):(1@7,1,_0); \
             B (N,K,L) = (6,8,_1):(1,1@8,_0); C (M,N,L) = (4,6,_1):(1,1@9,_0)",
        ),
    ] {
        assert_eq!(printed(notation, of), expected, "{notation}");
    }
}

#[test]
fn a_notation_is_read_with_any_spaces() {
    let notation: Notation = " i j,\tjk -> i k ".parse().unwrap();
    assert_eq!(notation.to_string(), "ij,jk->ik");
    assert_eq!(notation.names(1), &Names::new("jk"));
    assert!(Notation::parse(",->").unwrap().names(0).is_empty());
}

#[test]
fn what_is_no_contraction_is_refused() {
    let long = "abcdefghijklmnopqrstuvwxyzABCDEFG,a->a";
    let square = "(4,4):(4,1)";
    let asks = "write `ab,bc->ac`: a letter for each mode of A, B and C";
    for (notation, of, expected) in [
        ("ij,jk", [square; 3], format!("`ij,jk` has no `->` and no output; {asks}")),
        ("", [square; 3], format!("`` has no `->` and no output; {asks}")),
        (
            "ij->ij",
            [square; 3],
            "`ij->ij` has 1 operands, and a contraction has two; contract them one after the other".into(),
        ),
        (
            "ij,jk,kl->il",
            [square; 3],
            "`ij,jk,kl->il` has 3 operands, and a contraction has two; contract them one after the other".into(),
        ),
        ("i1,jk->ik", [square; 3], format!("`i1,jk->ik` has `1`, which is no letter; {asks}")),
        ("iµ,µk->ik", [square; 3], format!("`iµ,µk->ik` has `µ`, which is no letter; {asks}")),
        ("ij,jk->i,k", [square; 3], format!("`ij,jk->i,k` has `,`, which is no letter; {asks}")),
        (
            "ij,jk->il",
            [square; 3],
            "the output of `ij,jk->il` has the mode l, and no operand has; give an operand a mode of stride 0".into(),
        ),
        (
            "ij,jk->ii",
            [square; 3],
            "the output of `ij,jk->ii` has the mode i twice; write a diagonal by a tensor that has it alone".into(),
        ),
        (long, [square; 3], format!("a tensor of `{long}` has more than 32 modes; merge some of them first")),
        ("ijk,kl->il", [square; 3], "A has 2 modes, (4,4):(4,1), and 3 names; name each mode".into()),
        ("ij,ij->", [square; 3], "C has 2 modes, (4,4):(4,1), and 0 names; name each mode".into()),
        (
            "ij,jk->ik",
            ["(4,6):(6,1)", square, square],
            "the mode j has 6 elements in A and 4 in B; make them agree, or repeat one by a stride of 0".into(),
        ),
        (
            "ij,ik->kj",
            ["((2,3),4):((12,4),1)", "((3,2),4):((8,4),1)", square],
            "the mode i has the shapes (2,3) and (3,2), which do not divide each other; give it the same shape".into(),
        ),
        (
            "ii,ij->ij",
            ["(4,4):(1@7,1@8)", square, square],
            "the mode i has the strides 1@7 and 1@8, which have no sum; name them differently".into(),
        ),
    ] {
        let refused = layouts(notation, of).unwrap_err();
        assert_eq!(refused.message(), expected, "{notation}");
    }
}

/// Each tensor has room for its modes, and their parts together do not.
#[test]
fn parts_without_room_are_refused() {
    let of = |names: &[char]| Layout::concat(&vec![Layout::static_mode(2, 1); names.len()]);
    let names: Vec<char> = ('a'..='z').chain('A'..='Z').take(40).collect();
    let (a, b) = names.split_at(20);
    let text = |names: &[char]| names.iter().collect::<String>();
    let notation = format!("{},{}->", text(a), text(b));
    let refused = Layouts::try_new(&notation, &of(a), &of(b), &Layout::UNIT).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Capacity);
    assert!(
        refused.message().contains("more than 32 parts"),
        "{refused}"
    );
}

#[test]
fn modes_say_which_tensors_have_them() {
    let notation = Notation::parse("mkl,nkl->mnl").unwrap();
    let cube = layout!((2, 3, 4):(12, 4, 1));
    let modes = notation.modes([
        &cube,
        &layout!((5, 3, 4):(12, 4, 1)),
        &layout!((2, 5, 4):(20, 4, 1)),
    ]);
    let modes = modes.unwrap();
    let k = modes.as_slice()[1];
    assert_eq!(
        k,
        Mode {
            names: Names::new("k"),
            role: Role::K,
            extent: Int::fixed(3),
            strides: [4, 4, 0].map(Int::fixed)
        }
    );
    for mode in modes.as_slice() {
        let has = [0, 1, 2].map(|tensor| mode.strides[tensor].value() != 0);
        assert_eq!(
            [0, 1, 2].map(|tensor| mode.role.is_of(tensor)),
            has,
            "{mode}"
        );
    }
}

/// A list of modes has any, and merging leaves out those of one element.
#[test]
fn modes_of_one_element_are_left_out() {
    let mut modes = Modes::EMPTY;
    for (names, extent) in [("a", 1), ("b", 3), ("c", 1)] {
        let (extent, strides) = (Int::fixed(extent), [Int::fixed(7); 3]);
        let mode = Mode {
            names: Names::new(names),
            role: Role::L,
            extent,
            strides,
        };
        modes.try_push(mode).unwrap();
    }
    assert_eq!(modes.merged().to_string(), "M = 1, N = 1, K = 1, L = b 3");
    assert_eq!(
        modes.layouts().unwrap().a().to_string(),
        "(_1,_1,_3):(_0,_0,_7)"
    );
}

/// The compiler computes the layouts of a contraction, too.
#[test]
fn contractions_are_computed_at_compile_time() {
    const A: Layout = layout!((2, 3, 4):(12, 4, 1));
    const LAYOUTS: Layouts = Layouts::new(
        "ijk,jl->ilk",
        &A,
        &layout!((3, 5):(5, 1)),
        &layout!((2, 5, 4):(20, 4, 1)),
    );
    const ROWS: i64 = LAYOUTS.a().mode(0).size();
    assert_eq!(ROWS, 8);
    assert_eq!(LAYOUTS.c().to_string(), "((_4,_2),_5,_1):((_1,_20),_4,_0)");
}
