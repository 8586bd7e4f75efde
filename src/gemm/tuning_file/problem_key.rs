//! Problem keys: what the fastest kernel for a GEMM depends on, as a value and as a line of text.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};

use cutlet_device::DeviceData;
use cutlet_host::tuning_file::{end, value};
use cutlet_kernels::gemm::epilogue::{Activation, BiasAlong};

use super::words::Word;
use crate::gemm::element_type::ElementType;
use crate::gemm::operand::Operand;
use crate::gemm::outer_mode::OuterMode;
use crate::gemm::precision::Precision;
use crate::gemm::problem::{BetaKind, Problem};
use crate::gemm::scales::ScalesKind;
use crate::{MAX_EXTENT, Order};

/// What the fastest kernel for a GEMM depends on. Two GEMMs with the same key are the same problem to a tuning file.
///
/// C is row-major. A GEMM with a column-major C is the GEMM of the transposed matrices: Cᵀ = Bᵀ·Aᵀ.
///
/// ```
/// use cutlet::ProblemKey;
///
/// let line = "operands=bf16 c=bf16 precision=exact m=4096 n=4096 k=1024 a=row b=col alignments=128,128,128 beta=0 \
///             bias=none residual=none activation=none";
/// let key: ProblemKey = line.parse()?;
/// assert_eq!(key.extents, [4096, 4096, 1024]);
/// assert_eq!(key.to_string(), line);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProblemKey {
    /// The element type of A and B.
    pub operands: ElementType,
    /// The element type of C.
    pub c: ElementType,
    /// The precision of products.
    pub precision: Precision,
    /// Which scales A and B have.
    pub scales: ScalesKind,
    /// m, n and k.
    pub extents: [usize; 3],
    /// How many products there are: 1, or those of a batch.
    pub batch: usize,
    /// Whether all products of a batch have the same A, and the same B.
    pub shared: [bool; 2],
    /// The orders of A and B.
    pub orders: [Order; 2],
    /// The largest power of two, at most 128, that each contiguous run of A, of B and of C starts at a multiple of, in
    /// bytes: in all products of a batch.
    pub alignments: [usize; 3],
    /// The factor of the old C or of the residual, which is 1 unless the residual is a
    /// [source](crate::Gemm::source).
    pub beta: BetaKind,
    /// What the bias has a number for, if there is a bias.
    pub bias: Option<BiasAlong>,
    /// The order of the residual, if there is one.
    pub residual: Option<Order>,
    /// The function that is applied last.
    pub activation: Option<Activation>,
}

impl ProblemKey {
    /// The widest alignment that is told apart, in bytes: a cache line.
    pub const WIDEST_ALIGNMENT: usize = 128;

    /// The largest power of two, at most [`WIDEST_ALIGNMENT`](Self::WIDEST_ALIGNMENT), that divides a number of bytes:
    /// the alignment of runs that start at multiples of it.
    pub fn alignment(bytes: usize) -> usize {
        1 << (bytes | Self::WIDEST_ALIGNMENT).trailing_zeros()
    }

    /// The key of a problem of these types of A and B, and of C. None for those that are not tuned.
    ///
    /// These are groups of rows, rows that indices name, and gated products. So are products whose batch or k has an outer
    /// mode, or whose k is 0.
    pub(crate) fn of<T: Operand, D: DeviceData>(
        problem: &Problem<'_, T, D>,
        [operands, c]: [ElementType; 2],
    ) -> Option<Self> {
        let (m, n, k) = problem.extents();
        let is_gated = problem.epilogue.gate.is_some();
        if k == 0 || is_gated || problem.groups.have_sizes() || !problem.rows.are_own() {
            return None;
        }
        let [inner, outer] = problem.groups.modes;
        if [outer, problem.outer_k].iter().any(|mode| mode.count != 1) {
            return None;
        }
        let alignment = |address: u64, ld: usize, stride: usize, bytes: usize| {
            let distances = ld.wrapping_mul(bytes) | stride.wrapping_mul(bytes);
            ProblemKey::alignment(address as usize | distances)
        };
        let (a, b, of_c) = (&problem.a, &problem.b, &problem.c);
        let OuterMode { count, strides } = inner;
        let [stride_a, stride_b, stride_c] = strides;
        Some(ProblemKey {
            operands,
            c,
            precision: problem.least_precision(None),
            scales: problem.scales.kind(),
            extents: [m, n, k],
            batch: count,
            shared: [stride_a, stride_b].map(|stride| count > 1 && stride == 0),
            orders: [a.order(), b.order()],
            alignments: [
                alignment(a.view.address(), a.ld(), stride_a, size_of::<T>()),
                alignment(b.view.address(), b.ld(), stride_b, size_of::<T>()),
                alignment(of_c.view.address(), of_c.ld(), stride_c, size_of::<D>()),
            ],
            beta: BetaKind::of(problem.beta),
            bias: problem.epilogue.bias.map(|bias| bias.along),
            residual: problem.epilogue.residual.map(|residual| residual.order()),
            activation: problem.epilogue.activation,
        })
    }

    /// Reads the key from the first words of a line.
    pub(super) fn read(words: &mut SplitWhitespace<'_>) -> Result<Self, String> {
        let [operands, c] = [word(words, "operands")?, word(words, "c")?];
        let precision = word(words, "precision")?;
        let scales = match is_next(words, "scales") {
            false => ScalesKind::None,
            true => word(words, "scales")?,
        };
        let extents = [
            extent(words, "m", 1)?,
            extent(words, "n", 1)?,
            extent(words, "k", 1)?,
        ];
        let (batch, shared) = match is_next(words, "batch") {
            false => (1, [false; 2]),
            true => (extent(words, "batch", 2)?, word(words, "shared")?),
        };
        Ok(ProblemKey {
            operands,
            c,
            precision,
            scales,
            extents,
            batch,
            shared,
            orders: [word(words, "a")?, word(words, "b")?],
            alignments: alignments(words)?,
            beta: word(words, "beta")?,
            bias: word(words, "bias")?,
            residual: word(words, "residual")?,
            activation: word(words, "activation")?,
        })
    }
}

impl fmt::Display for ProblemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.extents;
        let [a, b] = self.orders.map(Word::word);
        let [of_a, of_b, of_c] = self.alignments;
        write!(
            f,
            "operands={} c={} precision={}",
            self.operands.word(),
            self.c.word(),
            self.precision.word(),
        )?;
        if self.scales != ScalesKind::None {
            write!(f, " scales={}", self.scales.word())?;
        }
        write!(f, " m={m} n={n} k={k}")?;
        if self.batch > 1 {
            write!(f, " batch={} shared={}", self.batch, self.shared.word())?;
        }
        write!(
            f,
            " a={a} b={b} alignments={of_a},{of_b},{of_c} beta={} bias={} residual={} activation={}",
            self.beta.word(),
            self.bias.word(),
            self.residual.word(),
            self.activation.word(),
        )
    }
}

impl FromStr for ProblemKey {
    /// What was found and what belongs there.
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let key = ProblemKey::read(&mut words)?;
        end(&mut words)?;
        Ok(key)
    }
}

/// Whether the next word is `name=value`.
fn is_next(words: &SplitWhitespace<'_>, name: &str) -> bool {
    let word = words.clone().next().and_then(|word| word.split_once('='));
    word.is_some_and(|(found, _)| found == name)
}

fn word<W: Word>(words: &mut SplitWhitespace<'_>, name: &str) -> Result<W, String> {
    let found = value(words, name)?;
    W::read(found).ok_or_else(|| {
        format!(
            "{name} is `{found}`, which is none of {}",
            W::all().join(", ")
        )
    })
}

fn extent(words: &mut SplitWhitespace<'_>, name: &str, least: usize) -> Result<usize, String> {
    let found = value(words, name)?;
    match found.parse() {
        Ok(extent) if (least..=MAX_EXTENT).contains(&extent) => Ok(extent),
        _ => Err(format!(
            "{name} is `{found}`, which is no whole number from {least} to {MAX_EXTENT}"
        )),
    }
}

fn alignments(words: &mut SplitWhitespace<'_>) -> Result<[usize; 3], String> {
    let found = value(words, "alignments")?;
    let read = |text: &str| {
        let bytes: usize = text.parse().ok()?;
        (bytes.is_power_of_two() && bytes <= ProblemKey::WIDEST_ALIGNMENT).then_some(bytes)
    };
    let all: Option<Vec<usize>> = found.split(',').map(read).collect();
    all.and_then(|all| all.try_into().ok()).ok_or_else(|| {
        format!(
            "alignments is `{found}`, which is not three powers of two up to {}, as `128,128,16`",
            ProblemKey::WIDEST_ALIGNMENT
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alignment_is_a_power_of_two_of_at_most_a_cache_line() {
        let numbers = [0, 1, 2, 6, 48, 128, 256, 4096 + 64];
        assert_eq!(
            numbers.map(ProblemKey::alignment),
            [128, 1, 2, 2, 16, 128, 128, 64]
        );
    }

    /// A key whose fields are drawn at random.
    fn random(random: &mut fastrand::Rng) -> ProblemKey {
        fn any<W: Word>(random: &mut fastrand::Rng) -> W {
            W::WORDS[random.usize(..W::WORDS.len())].1
        }
        let (batch, shared) = match random.bool() {
            false => (1, [false; 2]),
            true => (random.usize(2..=MAX_EXTENT), any(random)),
        };
        ProblemKey {
            operands: any(random),
            c: any(random),
            precision: any(random),
            scales: any(random),
            extents: [(); 3].map(|()| random.usize(1..=MAX_EXTENT)),
            batch,
            shared,
            orders: [any(random), any(random)],
            alignments: [(); 3].map(|()| 1 << random.u32(0..=7)),
            beta: any(random),
            bias: any(random),
            residual: any(random),
            activation: any(random),
        }
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..1000 {
            let key = random(&mut rng);
            assert_eq!(key.to_string().parse(), Ok(key));
        }
    }

    #[test]
    fn a_wrong_word_is_refused_with_what_belongs_there() {
        let right = ProblemKey {
            batch: 7,
            scales: ScalesKind::Blocks,
            ..random(&mut fastrand::Rng::with_seed(2))
        };
        let right = right.to_string();
        let words: Vec<&str> = right.split(' ').collect();
        for (at, word) in words.iter().enumerate() {
            let (name, _) = word.split_once('=').unwrap();
            let with = |other: &str| {
                let mut words = words.clone();
                words[at] = other;
                words.join(" ").parse::<ProblemKey>().unwrap_err()
            };
            // A line without a batch or scales is right, but for what follows.
            let belongs = match name {
                "batch" => "a",
                "scales" => "m",
                name => name,
            };
            let refused = with("other=1");
            assert!(
                refused.contains(&format!("`{belongs}=…` belongs")),
                "{refused}"
            );
            let refused = with(&format!("{name}=x"));
            assert!(
                refused.starts_with(&format!("{name} is `x`, which is")),
                "{refused}"
            );
            let refused = words[..at].join(" ").parse::<ProblemKey>().unwrap_err();
            assert!(refused.contains("the line ends where"), "{refused}");
        }
        let refused = format!("{right} more").parse::<ProblemKey>().unwrap_err();
        assert!(refused.contains("`more` was found where the line should end"));
        for wrong in [
            "m=0",
            "m=-1",
            "m=4294967296",
            "batch=1",
            "shared=c",
            "alignments=128,128",
            "alignments=128,3,1",
        ] {
            let (name, _) = wrong.split_once('=').unwrap();
            let line = words
                .iter()
                .map(|word| match word.starts_with(&format!("{name}=")) {
                    true => wrong,
                    false => word,
                });
            let line = line.collect::<Vec<_>>().join(" ");
            assert!(line.parse::<ProblemKey>().is_err(), "{line}");
        }
    }
}
