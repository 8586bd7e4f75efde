//! `cutlet bench attention --decode`: a step of decoding, contiguous and in pages, each against a copy of as many bytes.

use std::fmt;

use cutlet::{AttentionDecode, DeviceTensor, Stream, Tensor};
use cutlet_host::measure::{Contestants, Sampling, Timer};
use half::bf16;
use serde::Serialize;

use super::heads::{Check, KeyRows};
use crate::measure::error::{Error, Result};
use crate::measure::random::random;
use crate::measure::setting::Setting;
use crate::measure::statistics::Spread;

/// Keys of a page, of those that are measured.
const PAGES: [usize; 2] = [16, 64];
/// Contestants: a contiguous cache, one for each size of pages, and the copy.
const CONTIGUOUS: usize = 0;
const COPY: usize = 1 + PAGES.len();

/// The extents of a step: one query a sequence.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shape {
    pub sequences: usize,
    pub keys: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub features: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape {
            sequences,
            keys,
            heads,
            heads_of_keys,
            features,
        } = *self;
        write!(
            f,
            "{sequences}×{keys}, {heads}:{heads_of_keys} heads of {features}"
        )
    }
}

impl Shape {
    /// Elements of the keys, or of the values.
    fn elements(&self) -> usize {
        self.sequences * self.keys * self.heads_of_keys * self.features
    }

    /// Bytes of the cache, which a step reads.
    fn bytes(&self) -> usize {
        2 * self.elements() * size_of::<bf16>()
    }
}

/// What was found out about a shape.
#[derive(Serialize)]
pub struct RowReport {
    #[serde(flatten)]
    shape: Shape,
    /// Keys of a page; none if the cache is contiguous.
    page: Option<usize>,
    bytes: usize,
    microseconds: f64,
    /// Of a copy that reads and writes as many bytes.
    copy_microseconds: f64,
    pub check: Check,
}

impl fmt::Display for RowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowReport {
            shape,
            microseconds,
            copy_microseconds,
            check,
            ..
        } = self;
        let place = match self.page {
            None => "contiguous".to_string(),
            Some(page) => format!("pages of {page}"),
        };
        write!(
            f,
            "{microseconds:>9.1} us, a copy {copy_microseconds:>7.1} us  {shape}, {place}: {check}"
        )
    }
}

/// Times and checks a shape: a report for each kind of cache.
///
/// # Errors
/// If the device is out of memory, or fails.
pub fn rows(shape: Shape, rounds: u32, setting: &Setting) -> Result<Vec<RowReport>> {
    let mut timer = Timer::new(&setting.stream).map_err(cutlet::Error::from)?;
    setting.progress.step("inputs");
    let mut case = Case::new(shape, setting)?;
    let sampling = Sampling::bursts(rounds as usize, setting.on_gpu());
    let contestants: Vec<usize> = (CONTIGUOUS..=COPY).collect();
    let times = timer.compare(&mut case, &contestants, &sampling)?;
    setting.progress.step("checking");
    let median = |contestant: usize| Spread::of(&times[contestant].rounds).median;
    let report = |contestant: usize| {
        Ok(RowReport {
            shape,
            page: page_of(contestant),
            bytes: shape.bytes(),
            microseconds: median(contestant),
            copy_microseconds: median(COPY),
            check: case.check(&setting.stream, contestant)?,
        })
    };
    (CONTIGUOUS..COPY).map(report).collect()
}

/// Keys of a page, if the cache of a contestant has pages.
fn page_of(contestant: usize) -> Option<usize> {
    contestant.checked_sub(1).map(|nth| PAGES[nth])
}

/// A step of decoding with several caches, so that no run finds its own in the L2 cache.
struct Case {
    shape: Shape,
    queries: DeviceTensor<bf16>,
    output: DeviceTensor<bf16>,
    /// The pages of each sequence, in no order, for each of [`PAGES`].
    tables: Vec<(Vec<i32>, DeviceTensor<i32>)>,
    sets: Vec<Set>,
}

struct Set {
    keys: cutlet::Buffer<bf16>,
    values: cutlet::Buffer<bf16>,
    copied: cutlet::Buffer<bf16>,
}

impl Case {
    fn new(shape: Shape, setting: &Setting) -> Result<Case> {
        let stream = &setting.stream;
        let numbers = |len, nth: u64| random(stream, len, setting.seed.wrapping_add(nth));
        let rows = [shape.sequences, 1, shape.heads, shape.features];
        let set = |nth: u64| {
            Ok(Set {
                keys: numbers(shape.elements(), 2 * nth + 1)?,
                values: numbers(shape.elements(), 2 * nth + 2)?,
                copied: stream.zeroed(shape.elements())?,
            })
        };
        let mut order = fastrand::Rng::with_seed(setting.seed);
        let table = |page: usize| {
            let pages = shape.keys / page;
            let mut table: Vec<i32> = (0..(shape.sequences * pages) as i32).collect();
            order.shuffle(&mut table);
            let on_device = DeviceTensor::upload(stream, &table, [shape.sequences, pages])?;
            Ok((table, on_device))
        };
        Ok(Case {
            shape,
            queries: DeviceTensor::new(numbers(rows.iter().product(), 0)?, rows)?,
            output: DeviceTensor::zeroed(stream, rows)?,
            tables: PAGES.into_iter().map(table).collect::<Result<_>>()?,
            sets: (0..setting.sets(shape.bytes()) as u64)
                .map(set)
                .collect::<Result<_>>()?,
        })
    }

    /// Runs a contestant into an output of NaN, and compares the outputs of some queries.
    fn check(&mut self, stream: &Stream, contestant: usize) -> Result<Check> {
        stream.fill_bytes(self.output.view_mut(), 0xff)?;
        self.enqueue(stream, contestant, 0)?;
        let (queries, output) = (
            self.queries.download(stream)?,
            self.output.download(stream)?,
        );
        let set = &self.sets[0];
        let (keys, values) = (stream.download(&set.keys)?, stream.download(&set.values)?);
        let Shape {
            sequences,
            keys: count,
            heads,
            heads_of_keys,
            features,
        } = self.shape;
        let exact = |row: usize| {
            let (sequence, head) = (row / heads, row % heads);
            let row_of_key = |key: usize| match page_of(contestant) {
                None => sequence * count + key,
                Some(page) => {
                    let (table, _) = &self.tables[contestant - 1];
                    table[sequence * (count / page) + key / page] as usize * page + key % page
                }
            };
            let head_of_keys = head / (heads / heads_of_keys);
            let first = |key| (row_of_key(key) * heads_of_keys + head_of_keys) * features;
            let rows = KeyRows {
                keys: &keys,
                values: &values,
                first: &first,
            };
            rows.attend(&queries[row * features..][..features], count)
        };
        Ok(Check::of(sequences * heads, features, &output, exact))
    }
}

impl Contestants for Case {
    type Error = Error;

    fn sets(&self) -> usize {
        self.sets.len()
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let Set {
            keys,
            values,
            copied,
        } = &mut self.sets[set];
        if contestant == COPY {
            return Ok(stream.copy(&*keys, copied)?);
        }
        let Shape {
            sequences,
            keys: count,
            heads_of_keys,
            features,
            ..
        } = self.shape;
        let mut attention = AttentionDecode::new();
        let shape = match page_of(contestant) {
            None => [sequences, count, heads_of_keys, features],
            Some(page) => {
                attention = attention.paged(&self.tables[contestant - 1].1);
                [sequences * (count / page), page, heads_of_keys, features]
            }
        };
        let (keys, values) = (Tensor::new(&*keys, shape)?, Tensor::new(&*values, shape)?);
        Ok(attention.run(stream, &self.queries, keys, values, &mut self.output)?)
    }
}
