//! `contract` against plain loops on the host, on a GPU if there is one: random modes, orders, padding, repeated elements
//! and diagonals, what is copied, and what is refused.

use cutlet::{
    Contraction, Device, DeviceTensor, Element, IntoTensor, Matrix, Operand, Precision, Tensor,
    TensorMut, bf16, contract, cpu, f16, layout, shape,
};
use cutlet_layout_core::{Int, Layout};

use crate::convert::Convert;
use crate::random::generator;
use crate::turns::has_turn;

/// Contractions whose modes are chosen at random.
const RANDOM: u64 = 100;

/// An operand: its names, and where its elements lie.
struct Modes {
    names: String,
    layout: Layout,
    /// Elements of memory before the tensor.
    offset: usize,
}

/// A layout of (extent, stride).
fn layout_of(modes: &[(usize, usize)]) -> Layout {
    let int = |value: usize| Int::dynamic(value as i64);
    let modes: Vec<Layout> = modes
        .iter()
        .map(|mode| Layout::leaf(int(mode.0), int(mode.1)))
        .collect();
    Layout::concat(&modes)
}

/// Of what random tensors are made.
struct Kind {
    /// Extents of modes.
    extents: &'static [usize],
    /// The most products of a contraction.
    products: usize,
    /// Elements whose multiples lines begin at.
    unit: usize,
}

/// Extents that suit no kernel in particular.
const ODD: Kind = Kind {
    extents: &[1, 2, 3, 4, 5, 7, 8, 13, 16, 31],
    products: 60_000,
    unit: 1,
};

/// Extents and strides that TMA can read, of 16-bit elements.
const ALIGNED: Kind = Kind {
    extents: &[8, 16, 24, 40, 72],
    products: 300_000,
    unit: 8,
};

impl Modes {
    /// The modes in a random order of names and of memory, with padding. Some of them may repeat their elements.
    fn random(
        random: &mut fastrand::Rng,
        names: &[(char, usize)],
        may_repeat: bool,
        unit: usize,
    ) -> Modes {
        let mut names = names.to_vec();
        random.shuffle(&mut names);
        let mut memory: Vec<usize> = (0..names.len()).collect();
        random.shuffle(&mut memory);
        let mut modes: Vec<(usize, usize)> = names.iter().map(|name| (name.1, 0)).collect();
        let mut next = if unit == 1 && random.u8(..4) == 0 {
            random.usize(1..4)
        } else {
            1
        };
        for nth in memory {
            if may_repeat && random.u8(..8) == 0 {
                continue;
            }
            modes[nth].1 = next;
            let padding = if random.u8(..4) == 0 {
                unit * random.usize(1..9)
            } else {
                0
            };
            next = next * modes[nth].0 + padding;
        }
        Modes {
            names: names.iter().map(|name| name.0).collect(),
            layout: layout_of(&modes),
            offset: if random.bool() {
                0
            } else {
                unit * random.usize(..9)
            },
        }
    }

    fn elements<T: Convert>(&self, random: &mut fastrand::Rng) -> Vec<T> {
        let len = self.offset + self.layout.cosize() as usize;
        (0..len).map(|_| T::of(random.i8(-2..=2).into())).collect()
    }

    /// The index in memory at coordinates of names.
    fn index(&self, at: impl Fn(char) -> usize) -> usize {
        let modes = self.names.chars().enumerate();
        self.offset
            + modes
                .map(|(i, name)| self.layout.mode(i).at(at(name) as i64) as usize)
                .sum::<usize>()
    }
}

/// The sums that a contraction has, by loops.
fn expected<T: Convert, D: Convert>(
    names: &[(char, usize)],
    [a, b, c]: [&Modes; 3],
    (in_a, in_b): (&[T], &[T]),
    (alpha, beta): (f64, f64),
    old: &[D],
) -> Vec<D> {
    let mut sums = vec![0.0; old.len()];
    let mut is_written = vec![false; old.len()];
    let total: usize = names.iter().map(|name| name.1).product();
    for nth in 0..total {
        let at = |wanted: char| {
            let mut rest = nth;
            for &(name, extent) in names {
                if name == wanted {
                    return rest % extent;
                }
                rest /= extent;
            }
            unreachable!("the mode {wanted} has a name")
        };
        let to = c.index(at);
        is_written[to] = true;
        sums[to] += in_a[a.index(at)].number() * in_b[b.index(at)].number();
    }
    let values = (0..old.len()).map(|i| match is_written[i] {
        true if beta == 0.0 => D::of(alpha * sums[i]),
        true => D::of(alpha * sums[i] + beta * old[i].number()),
        false => old[i],
    });
    values.collect()
}

/// Contracts modes that the seed chooses.
fn check_random<T, D>(seed: u64, kind: &Kind, to_factor: fn(f64) -> T::Factor)
where
    T: Element<D> + Convert + Operand,
    D: Convert + PartialEq + std::fmt::Debug + cutlet::DeviceData,
{
    if !has_turn(seed as usize, 2) {
        return;
    }
    let mut random = generator(seed);
    let mut names: Vec<(char, usize)> = Vec::new();
    let mut of = [const { Vec::new() }; 3];
    let mut size = 1;
    for name in 'a'..=char::from(b'a' + random.u8(1..7)) {
        let extent = kind.extents[random.usize(..kind.extents.len())];
        if size * extent > kind.products {
            break;
        }
        size *= extent;
        names.push((name, extent));
        let in_operands: &[usize] = [
            &[0, 2][..],
            &[1, 2],
            &[0, 1],
            &[0, 1, 2],
            &[0, 2],
            &[1, 2],
            &[0, 1],
            &[0],
        ][random.usize(..8)];
        in_operands
            .iter()
            .for_each(|&operand| of[operand].push((name, extent)));
    }
    for modes in &mut of {
        // An operand without modes has a name of its own.
        if modes.is_empty() {
            let name = char::from(b'p' + names.len() as u8);
            names.push((name, 1));
            modes.push((name, 1));
        }
    }
    // What the output alone has is no contraction.
    let unnamed: Vec<_> = of[2]
        .iter()
        .filter(|it| !of[0].contains(it) && !of[1].contains(it))
        .copied()
        .collect();
    of[0].extend(unnamed);
    let a = Modes::random(&mut random, &of[0], true, kind.unit);
    let b = Modes::random(&mut random, &of[1], true, kind.unit);
    let c = Modes::random(&mut random, &of[2], false, kind.unit);
    let (in_a, in_b) = (a.elements::<T>(&mut random), b.elements::<T>(&mut random));
    let old = c.elements::<D>(&mut random);
    let factors = [(1.0, 0.0), (1.0, 1.0), (2.0, -1.0)][random.usize(..3)];
    let expected = expected(&names, [&a, &b, &c], (&in_a, &in_b), factors, &old);

    let notation = format!("{},{}->{}", a.names, b.names, c.names);
    let stream = Device::auto().stream().unwrap();
    let (on_a, on_b) = (stream.upload(&in_a).unwrap(), stream.upload(&in_b).unwrap());
    let mut on_c = stream.upload(&old).unwrap();
    let mut contraction = Contraction::new(
        &notation,
        Tensor::new(on_a.slice(a.offset..).unwrap(), a.layout).unwrap(),
        Tensor::new(on_b.slice(b.offset..).unwrap(), b.layout).unwrap(),
        TensorMut::new(on_c.slice_mut(c.offset..).unwrap(), c.layout).unwrap(),
    )
    .unwrap()
    .alpha(to_factor(factors.0))
    .beta(to_factor(factors.1));
    let explained = contraction.explain(&stream).unwrap();
    contraction.run(&stream).unwrap();
    let found = stream.download(&on_c).unwrap();
    assert!(
        found == expected,
        "seed {seed}: {notation} of {}, {} and {}, {factors:?}:\n{explained}",
        a.layout,
        b.layout,
        c.layout
    );
}

#[test]
fn random_contractions_of_f32() {
    (0..RANDOM).for_each(|seed| check_random::<f32, f32>(seed, &ODD, |factor| factor as f32));
}

#[test]
fn random_contractions_of_bf16_and_f16() {
    (0..RANDOM / 4).for_each(|seed| {
        check_random::<bf16, bf16>(1000 + seed, &ODD, |factor| factor as f32);
        check_random::<bf16, f32>(2000 + seed, &ODD, |factor| factor as f32);
        check_random::<f16, f16>(3000 + seed, &ODD, |factor| factor as f32);
    });
}

/// Most of them have a batch or a k of two modes, which kernels by TMA take as they lie.
#[test]
fn random_contractions_that_tma_can_read() {
    (0..RANDOM / 4).for_each(|seed| {
        check_random::<bf16, bf16>(6000 + seed, &ALIGNED, |factor| factor as f32);
    });
}

#[test]
fn random_contractions_of_f64_and_i8() {
    (0..RANDOM / 4).for_each(|seed| {
        check_random::<f64, f64>(4000 + seed, &ODD, |factor| factor);
        check_random::<i8, i32>(5000 + seed, &ODD, |factor| factor as i32);
    });
}

/// What becomes of a contraction of packed tensors with these extents.
fn explained(notation: &str, extents: &[(char, usize)]) -> String {
    let stream = Device::auto().stream().unwrap();
    let (inputs, c) = notation.split_once("->").unwrap();
    let (a, b) = inputs.split_once(',').unwrap();
    let packed = |names: &str| {
        let mut stride = 1;
        let mut modes: Vec<(usize, usize)> = Vec::new();
        for name in names.chars().rev() {
            let extent = extents.iter().find(|it| it.0 == name).unwrap().1;
            modes.insert(0, (extent, stride));
            stride *= extent;
        }
        DeviceTensor::<bf16>::zeroed(&stream, layout_of(&modes)).unwrap()
    };
    let (a, b, mut c) = (packed(a), packed(b), packed(c));
    let mut contraction =
        Contraction::new(notation, a.tensor(), b.tensor(), c.tensor_mut()).unwrap();
    let text = contraction.explain(&stream).unwrap();
    // Which kernel is the fastest depends on the device.
    let (text, kernel) = text.rsplit_once("kernel: ").unwrap();
    assert!(!kernel.trim().is_empty());
    text.to_string()
}

#[test]
fn what_lies_like_matrices_is_not_copied() {
    let as_they_lie = "A: as it lies\nB: as it lies\nC: as it lies\n";
    for (notation, product) in [
        ("mk,kn->mn", "M = m 128, N = n 64, K = k 256\n"),
        ("km,nk->nm", "M = m 128, N = n 64, K = k 256\n"),
        (
            "bmk,bkn->bmn",
            "M = m 128, N = n 64, K = k 256, batch = b 6\n",
        ),
        // Rows of two modes that lie behind one another.
        ("bmk,kn->bmn", "M = mb 768, N = n 64, K = k 256\n"),
        // Those that do not are a batch.
        (
            "bkm,kn->bmn",
            "M = m 128, N = n 64, K = k 256, batch = b 6\n",
        ),
        // Heads of attention: a batch of heads and sequences.
        (
            "bshd,bthd->bhst",
            "M = s 2048, N = t 2048, K = d 64, batch = h 4 × b 4\n",
        ),
    ] {
        let extents = [
            ('m', 128),
            ('n', 64),
            ('k', 256),
            ('b', 6),
            ('s', 128),
            ('t', 128),
            ('h', 4),
            ('d', 64),
        ];
        let extents = match notation.contains('h') {
            true => [('s', 2048), ('t', 2048), ('h', 4), ('d', 64), ('b', 4)].to_vec(),
            false => extents.to_vec(),
        };
        assert_eq!(
            explained(notation, &extents),
            format!("{product}{as_they_lie}"),
            "{notation}"
        );
    }
}

#[test]
fn copies_are_announced_with_their_reasons() {
    // Lines of 60 elements do not begin at multiples of 16 bytes, as TMA needs it.
    let text = explained(
        "bij,bkj->ik",
        &[('b', 16), ('i', 256), ('j', 60), ('k', 256)],
    );
    assert_eq!(
        text,
        "M = i 256, N = k 256, K = jb 960\n\
         A: copied, 491.5 kB, because the modes that are summed, b and j, do not lie behind one another in A and in B\n\
         B: copied, 491.5 kB, because the modes that are summed, b and j, do not lie behind one another in A and in B\n\
         C: as it lies\n"
    );
}

/// Two modes of k that do not lie behind one another are the last dimensions of a tensor map.
#[test]
fn two_modes_of_k_are_summed_without_a_copy() {
    let text = explained(
        "bij,bkj->ik",
        &[('b', 16), ('i', 256), ('j', 64), ('k', 256)],
    );
    assert_eq!(
        text,
        "M = i 256, N = k 256, K = j 64 × b 16\nA: as it lies\nB: as it lies\nC: as it lies\n"
    );
}

/// Slices of one tensor are multiplied as they lie: nothing but operands is read.
#[test]
fn heads_of_attention_are_not_copied() {
    let stream = Device::cpu().stream().unwrap();
    let qkv = stream.upload(&vec![1.0f32; 2 * 32 * 3 * 4 * 16]).unwrap();
    let qkv = Tensor::new(&qkv, layout!((2, 32, 3, 4, 16):(6144, 192, 64, 16, 1))).unwrap();
    let mut scores =
        DeviceTensor::<f32>::zeroed(&stream, layout!((2, 4, 32, 32):(4096, 1024, 32, 1))).unwrap();
    let q = qkv.slice(&shape!((_, _, 0, _, _))).unwrap();
    let k = qkv.slice(&shape!((_, _, 1, _, _))).unwrap();
    let reports = cpu::report(|| {
        contract(&stream, "bshd,bthd->bhst", q, k, scores.tensor_mut()).unwrap();
        Ok(())
    })
    .unwrap();
    let sites = reports.iter().flat_map(|launch| &launch.sites);
    let bytes: u64 = sites.filter(|it| it.sectors > 0).map(|it| it.bytes).sum();
    let elements = q.size() + k.size() + scores.tensor().size();
    assert_eq!(bytes, (elements * size_of::<f32>()) as u64, "{reports:?}");
    assert_eq!(
        stream.download(scores.buffer()).unwrap(),
        vec![16.0; 2 * 4 * 32 * 32]
    );
}

/// A convolution without padding is the contraction of a layout that visits pixels in several windows: two images of
/// 9×10 pixels of 16 channels, and eight filters of 3×2 taps at every second pixel.
#[test]
fn a_convolution_is_a_contraction_of_its_windows() {
    let windows = layout!(((5, 4, 2), (16, 2, 3)):((32, 320, 1440), (1, 16, 160)));
    let taps = layout!((8, (16, 2, 3)):(96, (1, 16, 32)));
    let pixels = layout!(((5, 4, 2), 8):((8, 40, 160), 1));
    let number = |i: usize| (i * 7919 % 5) as f32 - 2.0;
    let input: Vec<f32> = (0..2 * 9 * 10 * 16).map(number).collect();
    let filters: Vec<f32> = (0..8 * 3 * 2 * 16).map(number).collect();
    let mut expected = vec![0.0; 2 * 4 * 5 * 8];
    for (at, sum) in expected.iter_mut().enumerate() {
        let (k, q, p, n) = (at % 8, at / 8 % 5, at / 40 % 4, at / 160);
        for tap in 0..96 {
            let (c, s, r) = (tap % 16, tap / 16 % 2, tap / 32);
            let pixel = (n * 9 + 2 * p + r) * 10 + 2 * q + s;
            *sum += input[pixel * 16 + c] * filters[k * 96 + tap];
        }
    }

    let stream = Device::auto().stream().unwrap();
    let (input, filters) = (stream.upload(&input), stream.upload(&filters));
    let (input, filters) = (input.unwrap(), filters.unwrap());
    let mut output = DeviceTensor::<f32>::zeroed(&stream, pixels).unwrap();
    let a = Tensor::new(&input, windows).unwrap();
    let b = Tensor::new(&filters, taps).unwrap();
    let mut product = Contraction::of_modes(a, b, &mut output).unwrap();
    product.run(&stream).unwrap();
    assert_eq!(output.download(&stream).unwrap(), expected);
}

/// No layout has an extent of 0, and no tensor.
#[test]
fn a_matrix_without_elements_is_no_tensor() {
    let stream = Device::auto().stream().unwrap();
    let memory = stream.zeroed::<f32>(6).unwrap();
    let tensor = Matrix::row_major(&memory, 2, 3)
        .unwrap()
        .into_tensor()
        .unwrap();
    assert_eq!(tensor.layout().to_string(), "(2,3):(3,1)");
    let none = Matrix::row_major(&memory, 0, 3).unwrap().into_tensor();
    let found = none.unwrap_err().to_string();
    assert!(found.contains("has no elements"), "{found}");
}

/// The output has one element, and no mode.
#[test]
fn a_sum_over_everything_is_a_number() {
    let stream = Device::auto().stream().unwrap();
    let a =
        DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], layout!((2, 2):(2, 1))).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!(1:0)).unwrap();
    contract(&stream, "ij,ij->", a.tensor(), a.tensor(), c.tensor_mut()).unwrap();
    assert_eq!(stream.download(c.buffer()).unwrap(), [30.0]);
}

#[test]
fn diagonals_are_read() {
    let stream = Device::auto().stream().unwrap();
    let a =
        DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], layout!((2, 2):(2, 1))).unwrap();
    let b = DeviceTensor::upload(&stream, &[10.0f32, 100.0], layout!(((2)):((1)))).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!((2):(1))).unwrap();
    contract(&stream, "ii,i->i", a.tensor(), b.tensor(), c.tensor_mut()).unwrap();
    assert_eq!(stream.download(c.buffer()).unwrap(), [10.0, 400.0]);
}

#[test]
fn what_is_no_contraction_is_refused() {
    let stream = Device::auto().stream().unwrap();
    let square = || DeviceTensor::<f32>::zeroed(&stream, layout!((4, 4):(4, 1))).unwrap();
    let wide = DeviceTensor::<f32>::zeroed(&stream, layout!((4, 6):(6, 1))).unwrap();
    let (a, mut c) = (square(), square());
    for (notation, words) in [
        ("ij,jk", "has no `->`"),
        ("ij->ij", "has 1 operands"),
        ("ij,jk,kl->il", "contract them one after the other"),
        ("i1,jk->ik", "`1`, which is no letter"),
        ("ij,jk->il", "the mode l, and no operand has"),
        ("ij,jk->ii", "the mode i twice"),
        ("ijk,kl->il", "A has 2 modes"),
    ] {
        let refused = contract(&stream, notation, a.tensor(), a.tensor(), c.tensor_mut());
        let found = refused.unwrap_err().to_string();
        assert!(found.contains(words), "{notation}: {found}");
    }
    let refused = contract(
        &stream,
        "ij,jk->ik",
        wide.tensor(),
        a.tensor(),
        c.tensor_mut(),
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "contract: the mode j has 6 elements in A and 4 in B; make them agree, or repeat one by a stride of 0"
    );
    // Shapes of modes that do not divide each other.
    let parts = DeviceTensor::<f32>::zeroed(&stream, layout!(((2, 3), 4):((12, 4), 1))).unwrap();
    let others = DeviceTensor::<f32>::zeroed(&stream, layout!(((3, 2), 4):((8, 4), 1))).unwrap();
    let refused = contract(
        &stream,
        "ij,ij->j",
        parts.tensor(),
        others.tensor(),
        c.tensor_mut(),
    );
    assert!(refused.unwrap_err().to_string().contains("C has 2 modes"));
    let refused = contract(
        &stream,
        "ij,ik->kj",
        parts.tensor(),
        others.tensor(),
        c.tensor_mut(),
    );
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("which do not divide each other")
    );
}

/// Memory is checked once, where a tensor is made.
#[test]
fn tensors_stay_within_their_memory() {
    let stream = Device::auto().stream().unwrap();
    let mut memory = stream.zeroed::<f32>(24).unwrap();
    let found = Tensor::new(&memory, layout!((5, 5):(5, 1)))
        .unwrap_err()
        .to_string();
    assert_eq!(
        found,
        "a tensor of layout (_5,_5):(_5,_1) was asked for, but it reaches 25 elements and the memory has 24; give more \
         memory or smaller extents"
    );
    let found = TensorMut::new(&mut memory, layout!((4, 6):(3, 1)))
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("its stride 3 leads to elements that it has already"),
        "{found}"
    );
    let found = Tensor::new(&memory, layout!((4, 6):(1@0, 1@1)))
        .unwrap_err()
        .to_string();
    assert!(
        found.contains("is negative or in a basis direction"),
        "{found}"
    );
    let tensor = Tensor::new(&memory, layout!((4, 6):(6, 1))).unwrap();
    assert!(tensor.slice(&shape!((4, _))).is_err());
    assert!(tensor.composition(&layout!(25:1)).is_err());
    assert_eq!(
        tensor.recast::<u16>().unwrap().layout().to_string(),
        "(_4,_12):(_12,_1)"
    );
    assert_eq!(tensor.group(0, 2).unwrap().rank(), 1);
    assert_eq!(
        tensor.transpose().unwrap().layout().to_string(),
        "(_6,_4):(_1,_6)"
    );
    assert!(
        tensor.to_string().ends_with(" o (_4,_6):(_6,_1)"),
        "{tensor}"
    );
}

#[test]
fn an_output_that_overlaps_an_operand_is_refused() {
    let stream = Device::auto().stream().unwrap();
    let mut memory = stream.zeroed::<f32>(48).unwrap();
    let view = memory.view_mut();
    let (mut low, high) = view.split_at(16).unwrap();
    let (square, c) = (layout!((4, 4):(4, 1)), layout!((4, 4):(4, 1)));
    let (a, b) = (
        Tensor::new(high.view(), square).unwrap(),
        Tensor::new(high.view(), square).unwrap(),
    );
    contract(
        &stream,
        "ij,jk->ik",
        a,
        b,
        TensorMut::new(&mut low, c).unwrap(),
    )
    .unwrap();
}

#[test]
fn a_precision_is_that_of_gemm() {
    let stream = Device::auto().stream().unwrap();
    let a = DeviceTensor::upload(&stream, &[0.1f32; 64 * 64], layout!((64, 64):(64, 1))).unwrap();
    let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!((64, 64):(64, 1))).unwrap();
    Contraction::new("ik,jk->ij", a.tensor(), a.tensor(), c.tensor_mut())
        .unwrap()
        .precision(Precision::Tf32)
        .run(&stream)
        .unwrap();
    assert!((stream.download(c.buffer()).unwrap()[0] - 0.64).abs() < 0.64 / 1024.0);
}
