//! A movement set up on a device: random inputs, indices, outputs, and the check of an output against its inputs.

use std::ops::Range;

use cutlet::{
    AddElement, Bags, Buffer, EmbeddingBag, Matrix, MatrixMut, MoeRows, PooledElement, Pooling,
    Scatter, ScatterAdd, Stream, TakeAlongDim, Tensor, TensorMut, View, permute,
};
use cutlet_device::Float;
use cutlet_host::measure::rechecked;
use cutlet_layout_core::Layout;
use half::{bf16, f16};

use super::expected::{Expected, Source, Sums};
use super::{Operation, Problem};
use crate::bench::family::SetUp;
use crate::measure::case::{Case, Contestant, Role};
use crate::measure::check::Check;
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::random::{Fill, random};
use crate::measure::setting::Setting;

/// An element type of the operations.
pub trait Element: Fill + AddElement + PooledElement + Float {}
impl Element for f32 {}
impl Element for f16 {}
impl Element for bf16 {}

/// What an operation keeps between its runs.
enum Plan {
    Scatter(Scatter),
    Add(ScatterAdd),
    Bag(EmbeddingBag),
    Take(TakeAlongDim),
    /// The layouts of source and target.
    Permute(Box<[Layout; 2]>),
    Moe {
        rows: Box<MoeRows>,
        weights: Buffer<f32>,
    },
}

/// Elements of an operand, and whether all sets share them.
#[derive(Clone, Copy)]
struct Extent {
    len: usize,
    shared: bool,
}

impl Extent {
    fn of_each(len: usize) -> Extent {
        Extent { len, shared: false }
    }

    fn of_all(len: usize) -> Extent {
        Extent { len, shared: true }
    }

    /// Elements of all sets.
    fn total(self, sets: usize) -> usize {
        self.len * if self.shared { 1 } else { sets }
    }

    /// The elements of a set.
    fn range(self, set: usize) -> Range<usize> {
        let first = if self.shared { 0 } else { set * self.len };
        first..first + self.len
    }
}

struct MovementCase<'a, T: Element> {
    setting: &'a Setting,
    problem: Problem,
    contestants: Vec<Contestant>,
    plan: Option<Plan>,
    /// What is read: rows, tokens, or a table.
    source: (Buffer<T>, Extent),
    /// What is written: a table, rows, or sums.
    target: (Buffer<T>, Extent),
    /// The sorted rows of a mixture of experts.
    between: (Buffer<T>, Extent),
    /// The indices of each set, on the host and on the device.
    indices: Vec<(Vec<i32>, Buffer<i32>)>,
    /// Source and target of the copies.
    copied: (Buffer<u32>, Buffer<u32>, Extent),
}

/// Sets a problem up.
pub fn set_up<'a>(problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
    Ok(SetUp::Ready(match problem.dtype {
        Dtype::F16 => Box::new(MovementCase::<f16>::new(problem, setting)?),
        Dtype::Bf16 => Box::new(MovementCase::<bf16>::new(problem, setting)?),
        _ => Box::new(MovementCase::<f32>::new(problem, setting)?),
    }))
}

impl<'a, T: Element> MovementCase<'a, T> {
    fn new(problem: &Problem, setting: &'a Setting) -> Result<Self> {
        let stream = &setting.stream;
        let sets = setting.sets(problem.bytes());
        let columns = problem.columns();
        let of_rows = Extent::of_each(problem.rows * columns);
        let of_groups = Extent::of_each(problem.groups() * columns);
        let of_table = Extent::of_all(problem.table_rows * columns);
        let (source, between, target) = match problem.operation {
            Operation::Scatter | Operation::ScatterAdd | Operation::ScatterAddInOrder => {
                (of_rows, Extent::of_all(0), of_table)
            }
            Operation::EmbeddingBag => (of_table, Extent::of_all(0), of_groups),
            Operation::TakeAlongDim => (of_table, Extent::of_all(0), of_rows),
            Operation::Permute => (of_rows, Extent::of_all(0), of_rows),
            Operation::Moe => (of_groups, of_rows, of_groups),
        };
        let count = match problem.operation {
            Operation::TakeAlongDim => problem.rows * columns,
            Operation::Permute => 0,
            _ => problem.rows,
        };
        let indices = (0..sets as u64)
            .map(|set| {
                let seed = setting.seed.wrapping_add(set);
                let indices = problem.indices.indices(count, problem.table_rows, seed);
                let on_device = stream.upload(&indices)?;
                Ok((indices, on_device))
            })
            .collect::<Result<_>>()?;
        let contestant = |name: &str, role| Contestant {
            name: name.to_string(),
            role,
        };
        let copy = contestant("device copy", Role::Baseline);
        let (plan, contestants) = match setting.baselines_only {
            true => (None, vec![copy]),
            false => (
                Some(Plan::new(problem, stream)?),
                vec![contestant("cutlet", Role::Cutlet), copy],
            ),
        };
        let words = Extent::of_each(problem.bytes().div_ceil(8));
        Ok(MovementCase {
            setting,
            problem: problem.clone(),
            contestants,
            plan,
            source: (random(stream, source.total(sets), setting.seed)?, source),
            target: (stream.filled(target.total(sets), 0xff)?, target),
            between: (stream.filled(between.total(sets), 0xff)?, between),
            indices,
            copied: (
                random(stream, words.total(sets), setting.seed)?,
                stream.filled(words.total(sets), 0xff)?,
                words,
            ),
        })
    }

    /// Enqueues one run of the operation.
    fn enqueue_own(&mut self, stream: &Stream, set: usize) -> Result<()> {
        let (columns, rows) = (self.problem.columns(), self.problem.rows);
        let (table_rows, groups) = (self.problem.table_rows, self.problem.groups());
        let source = self.source.0.slice(self.source.1.range(set))?;
        let target = self.target.0.slice_mut(self.target.1.range(set))?;
        let (_, indices) = &self.indices[set];
        match &mut self.plan {
            None => {}
            Some(Plan::Scatter(plan)) => plan.enqueue(
                stream,
                Matrix::row_major(source, rows, columns)?,
                indices,
                MatrixMut::row_major(target, table_rows, columns)?,
            )?,
            Some(Plan::Add(plan)) => plan.enqueue(
                stream,
                Matrix::row_major(source, rows, columns)?,
                indices,
                MatrixMut::row_major(target, table_rows, columns)?,
            )?,
            Some(Plan::Bag(plan)) => plan.enqueue(
                stream,
                Matrix::row_major(source, table_rows, columns)?,
                indices,
                Bags::of_len(self.problem.group),
                MatrixMut::row_major(target, groups, columns)?,
            )?,
            Some(Plan::Take(plan)) => {
                let shape = [rows, columns];
                let table = Tensor::new(source, [table_rows, columns])?;
                let (indices, output) =
                    (Tensor::new(indices, shape)?, TensorMut::new(target, shape)?);
                plan.enqueue(stream, table, 0, indices, output)?;
            }
            Some(Plan::Permute(layouts)) => {
                let source = Tensor::new(source, layouts[0])?;
                permute(stream, source, TensorMut::new(target, layouts[1])?)?;
            }
            Some(Plan::Moe {
                rows: plan,
                weights,
            }) => {
                let between = self.between.1.range(set);
                plan.route(stream, indices)?;
                plan.permute(
                    stream,
                    Matrix::row_major(source, groups, columns)?,
                    MatrixMut::row_major(
                        self.between.0.slice_mut(between.clone())?,
                        rows,
                        columns,
                    )?,
                )?;
                plan.unpermute(
                    stream,
                    Matrix::row_major(self.between.0.slice(between)?, rows, columns)?,
                    &*weights,
                    MatrixMut::row_major(target, groups, columns)?,
                )?;
            }
        }
        Ok(())
    }

    /// Overwrites what a run of the set writes. Sums begin at 0.
    fn poison_set(&mut self, set: usize) -> Result<()> {
        let byte = match self.problem.operation {
            Operation::ScatterAdd | Operation::ScatterAddInOrder => 0,
            _ => 0xff,
        };
        let target = self.target.0.slice_mut(self.target.1.range(set))?;
        Ok(self.setting.stream.fill_bytes(target, byte)?)
    }

    /// Compares rows of the set's target with what they must be.
    fn compare(&self, set: usize) -> Result<Check> {
        let (columns, stream) = (self.problem.columns(), &self.setting.stream);
        let target = self.target.0.slice(self.target.1.range(set))?;
        let source = self.source.0.slice(self.source.1.range(set))?;
        let expected = Expected {
            problem: &self.problem,
            indices: &self.indices[set].0,
            source: Source::new(stream, source),
        };
        let mut wrong = 0;
        for row in expected.rows() {
            let found = download_row(stream, target, row, columns)?;
            let Sums { candidates, within } = expected.row(row)?;
            let mut found = found.iter().map(|it| f64::from(it.to_f32())).enumerate();
            let is_right = found.all(|(column, found)| {
                let mut expected = candidates.iter().map(|candidate| candidate[column]);
                expected.any(|expected| (expected - found).abs() <= within)
            });
            wrong += usize::from(!is_right);
        }
        let mut check = Check::new(0.0);
        if wrong > 0 {
            check.fail(format!(
                "{wrong} of {} rows that were screened are wrong",
                expected.rows().count()
            ));
        }
        Ok(check)
    }
}

fn download_row<T: Element>(
    stream: &Stream,
    target: View<'_, T>,
    row: usize,
    columns: usize,
) -> Result<Vec<T>> {
    Ok(stream.download(target.slice(row * columns..(row + 1) * columns)?)?)
}

impl Plan {
    fn new(problem: &Problem, stream: &Stream) -> Result<Plan> {
        let (rows, columns) = (problem.rows as i64, problem.columns() as i64);
        let matrix = |strides: [i64; 2]| {
            let text = format!("({rows},{columns}):({},{})", strides[0], strides[1]);
            text.parse()
                .expect("a shape and strides in the notation of layouts")
        };
        Ok(match problem.operation {
            Operation::Scatter => Plan::Scatter(Scatter::new(stream.device())?),
            Operation::ScatterAdd => Plan::Add(ScatterAdd::new(stream.device())?),
            Operation::ScatterAddInOrder => Plan::Add(ScatterAdd::new(stream.device())?.in_order()),
            Operation::EmbeddingBag => Plan::Bag(EmbeddingBag::new(stream.device(), Pooling::Sum)?),
            Operation::TakeAlongDim => Plan::Take(TakeAlongDim::new(stream.device())?),
            Operation::Permute => {
                Plan::Permute(Box::new([matrix([columns, 1]), matrix([1, rows])]))
            }
            Operation::Moe => {
                let (tokens, top_k) = (problem.groups(), problem.group);
                // Each token's sum is the token.
                let weights = vec![1.0 / top_k as f32; problem.rows];
                Plan::Moe {
                    rows: Box::new(MoeRows::new(
                        stream.device(),
                        tokens,
                        top_k,
                        problem.table_rows,
                    )?),
                    weights: stream.upload(&weights)?,
                }
            }
        })
    }
}

impl<T: Element> Case for MovementCase<'_, T> {
    fn sets(&self) -> usize {
        self.indices.len()
    }

    fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        if self.contestants[contestant].role == Role::Cutlet {
            return self.enqueue_own(stream, set);
        }
        let (from, to, words) = &mut self.copied;
        Ok(stream.copy(
            from.slice(words.range(set))?,
            to.slice_mut(words.range(set))?,
        )?)
    }

    fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        self.poison_set(0)?;
        self.enqueue(stream, contestant, 0)?;
        Ok(match self.contestants[contestant].role {
            Role::Cutlet => self.compare(0)?.wrong,
            _ => None,
        })
    }

    fn check(&mut self, _: usize) -> Result<Check> {
        let mut check = Check::new(0.0);
        if self.plan.is_some()
            && let Some(fault) = self.fault(0)?
        {
            check.fail(format!("cutlet: {fault}"));
        }
        Ok(check)
    }

    fn poison(&mut self) -> Result<()> {
        rechecked(self.sets()).try_for_each(|set| self.poison_set(set))
    }

    /// Sums of many runs are not compared: each run adds again.
    fn recheck(&mut self, _: usize) -> Result<Check> {
        let mut check = Check::new(0.0);
        if self.target.1.shared {
            return Ok(check);
        }
        for set in rechecked(self.sets()) {
            if let Some(wrong) = self.compare(set)?.wrong {
                check.fail(wrong);
            }
        }
        Ok(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::family::Family;
    use crate::bench::movement::Movement;
    use cutlet::Device;

    const ALL: &str = "operation = [\"scatter\", \"scatter-add\", \"scatter-add-in-order\", \"embedding-bag\", \
                       \"take-along-dim\", \"permute\", \"moe\"]\nindices = [\"uniform\", \"zipf\"]\n\
                       row_bytes = [64]\nmoved_bytes = 8192\ntable_bytes = 65536\nexperts = 4\ngroup = 2\n";

    /// Runs every operation, then changes the last element of one row that is looked at: in its last bits if the
    /// row is exact, else by more than a sum of roundings.
    fn expect_found<T: Element>(dtype: &str, change: impl Fn(T, bool) -> T) {
        let setting = Setting::new(&Device::cpu(), 3).unwrap();
        let entry = format!("{ALL}dtypes = [\"{dtype}\"]");
        let problems = Movement.problems(toml::from_str(&entry).unwrap(), &[]);
        for problem in problems.unwrap() {
            let mut case = MovementCase::<T>::new(&problem, &setting).unwrap();
            assert_eq!(case.fault(0).unwrap(), None, "{problem:?}");
            let (indices, source) = (&case.indices[0].0, case.source.0.view());
            let expected = Expected {
                problem: &problem,
                indices,
                source: Source::new(&setting.stream, source),
            };
            let row = expected.rows().last().unwrap();
            let exact = expected.row(row).unwrap().within == 0.0;
            let mut target = setting.stream.download(&case.target.0).unwrap();
            let at = (row + 1) * problem.columns() - 1;
            target[at] = change(target[at], exact);
            case.target.0 = setting.stream.upload(&target).unwrap();
            let wrong = case.compare(0).unwrap().wrong;
            assert!(
                wrong.is_some_and(|wrong| wrong.contains("of 64 rows")),
                "{problem:?}"
            );
        }
    }

    #[test]
    fn a_wrong_row_is_found_and_right_rows_are_not() {
        expect_found("f32", |x: f32, exact| match exact {
            true => f32::from_bits(x.to_bits() ^ 1),
            false => x + 0.01,
        });
        expect_found("bf16", |x: bf16, exact| match exact {
            true => bf16::from_bits(x.to_bits() ^ 1),
            false => bf16::from_f32(x.to_f32() + 40.0),
        });
    }
}
