//! A contraction set up on a device: its tensors in several sets, its contestants and its checks.

use cutlet::{Buffer, Contraction, Precision, Stream, Tensor, TensorMut, View};
use cutlet_host::measure::rechecked;
use rayon::prelude::*;

use super::Problem;
use super::baseline::Baseline;
use crate::bench::family::SetUp;
use crate::bench::gemm::types::Types;
use crate::contract::sums::{SAMPLES, Sums};
use crate::deviation::Deviation;
use crate::host_memory;
use crate::measure::case::{Case, Contestant, Role};
use crate::measure::check::{self, Check, Number, in_chunks};
use crate::measure::dtype::Dtype;
use crate::measure::error::Result;
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// Tensors begin at multiples of this many elements.
const ALIGNMENT: usize = 256;
/// Elements after each C, which must not be written.
const GUARD: usize = 256;
/// A byte that, repeated, is a NaN in every float type and −1 in every integer type.
const POISON: u8 = 0xff;
/// Elements that are searched for entries that were not written, at a time.
const CHUNK: usize = 8 << 20;

struct ContractCase<'a, T: Types> {
    setting: &'a Setting,
    problem: Problem,
    baseline: Baseline<'a, T>,
    contestants: Vec<Contestant>,
    sums: Sums,
    /// The entries of C that are compared with f64.
    looked_at: Vec<usize>,
    sets: usize,
    /// Elements from one set to the next, of A, B and C.
    strides: [usize; 3],
    a: Buffer<T::In>,
    b: Buffer<T::In>,
    c: Buffer<T::Out>,
}

/// Sets a problem up, or says why it is not measured.
pub fn set_up<'a, T>(problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>>
where
    T: Types<In: cutlet::Element<T::Out>>,
{
    let [a, b, c] = strides(problem).map(|stride| stride as u128);
    let [of_operand, of_c] = [size_of::<T::In>(), size_of::<T::Out>()].map(|bytes| bytes as u128);
    // The check copies A, B and the places of the terms to the host. Plain loops have copies of their own.
    let terms = (problem.contraction.terms() * size_of::<[usize; 2]>()) as u128;
    let copies = if setting.on_gpu() { 1 } else { 3 };
    host_memory::expect(copies * ((a + b) * of_operand + terms) + c * of_c)?;
    Ok(match Baseline::<T>::new(problem, setting)? {
        Ok(baseline) => SetUp::Ready(Box::new(ContractCase::new(problem, setting, baseline)?)),
        Err(why) => SetUp::Skipped(format!("there is no baseline: {why}")),
    })
}

/// Elements from one set to the next, of A, B and C.
fn strides(problem: &Problem) -> [usize; 3] {
    let [a, b, c] = problem.contraction.lengths();
    [a, b, c + GUARD].map(|length| length.next_multiple_of(ALIGNMENT))
}

/// The precision in which products of a type are asked for.
fn precision(dtype: Dtype) -> Precision {
    match dtype {
        Dtype::Tf32 => Precision::Tf32,
        Dtype::Tf32x3 => Precision::Tf32x3,
        _ => Precision::Exact,
    }
}

impl<'a, T: Types> ContractCase<'a, T> {
    fn new(problem: &Problem, setting: &'a Setting, baseline: Baseline<'a, T>) -> Result<Self> {
        let ours = (!setting.baselines_only).then(|| Contestant {
            name: "cutlet".to_string(),
            role: Role::Cutlet,
        });
        let strides = strides(problem);
        let [of_operand, of_c] = [size_of::<T::In>(), size_of::<T::Out>()];
        let bytes = (strides[0] + strides[1]) * of_operand + strides[2] * of_c;
        let sets = setting.sets(bytes);
        let (stream, seed) = (&setting.stream, setting.seed);
        let sums = Sums::new(&problem.contraction);
        Ok(ContractCase {
            setting,
            problem: problem.clone(),
            contestants: ours.into_iter().chain(baseline.contestants()).collect(),
            baseline,
            looked_at: sums.looked_at(seed, SAMPLES),
            sums,
            sets,
            strides,
            a: random(stream, sets * strides[0], seed)?,
            b: random(stream, sets * strides[1], seed.wrapping_add(1))?,
            c: stream.filled(sets * strides[2], POISON)?,
        })
    }

    /// The number of a baseline's contestant among them; `None` of cutlet.
    fn pick(&self, contestant: usize) -> Option<usize> {
        let ours = usize::from(!self.setting.baselines_only);
        contestant.checked_sub(ours)
    }

    fn operands(&self, set: usize) -> Result<[View<'_, T::In>; 2]> {
        let [a, b, _] = self.problem.contraction.lengths();
        let [first_a, first_b, _] = self.strides.map(|stride| set * stride);
        Ok([
            self.a.slice(first_a..first_a + a)?,
            self.b.slice(first_b..first_b + b)?,
        ])
    }

    fn result(&self, set: usize) -> Result<View<'_, T::Out>> {
        let [.., length] = self.problem.contraction.lengths();
        let first = set * self.strides[2];
        Ok(self.c.slice(first..first + length)?)
    }

    fn poison_set(&mut self, set: usize) -> Result<()> {
        let stride = self.strides[2];
        let c = self.c.slice_mut(set * stride..(set + 1) * stride)?;
        Ok(self.setting.stream.fill_bytes(c, POISON)?)
    }

    /// How far the entries of a set's C that are looked at are from f64.
    fn deviation(&self, set: usize) -> Result<Deviation> {
        let stream = &self.setting.stream;
        let [a, b] = self.operands(set)?;
        let (a, b) = (stream.download(a)?, stream.download(b)?);
        let found = self.entries(set)?;
        let sums = &self.sums;
        let pairs: Vec<(f64, f64)> = (self.looked_at.par_iter().zip(found))
            .map(|(&entry, found)| (found, sums.at(entry, &a, &b).product()))
            .collect();
        Ok(Deviation::of(pairs))
    }

    /// The entries of a set's C that are looked at.
    fn entries(&self, set: usize) -> Result<Vec<f64>> {
        let stream = &self.setting.stream;
        let c = self.result(set)?;
        if self.looked_at.len() == self.sums.entries() {
            let all = stream.download(c)?;
            let places = self.looked_at.iter().map(|&entry| self.sums.place(entry));
            return Ok(places.map(|place| all[place].to_f64()).collect());
        }
        let one = |&entry: &usize| {
            let place = self.sums.place(entry);
            Ok(stream.download(c.slice(place..=place)?)?[0].to_f64())
        };
        self.looked_at.iter().map(one).collect()
    }

    /// What is wrong with a set's C, and how far it is from f64.
    fn verdict(&self, set: usize) -> Result<(Deviation, Option<String>)> {
        let deviation = self.deviation(set)?;
        let terms = self.problem.contraction.terms();
        let tolerance = T::DTYPE.tolerance(terms);
        // An entry is a sum of products of N(0, 1), or of integers.
        let size = match T::DTYPE {
            Dtype::I8 => 0.0,
            _ => (terms as f64).sqrt(),
        };
        let wrong = check::wrong(&deviation, tolerance, size)
            .map(|wrong| format!("cutlet against f64: {wrong}"));
        Ok((deviation, wrong.or(self.unwritten(set)?)))
    }

    /// Whether entries of a set's C were not written, or elements past its end were.
    fn unwritten(&self, set: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        let mut missing = 0;
        // A result in integers may be −1.
        if T::DTYPE != Dtype::I8 {
            in_chunks(stream, self.result(set)?, CHUNK, |_, chunk| {
                missing += chunk.iter().filter(|it| it.is_poison()).count();
            })?;
        }
        if missing > 0 {
            return Ok(Some(format!(
                "cutlet left {missing} entries of C without a number"
            )));
        }
        let [.., length] = self.problem.contraction.lengths();
        let (first, next) = (set * self.strides[2], (set + 1) * self.strides[2]);
        let guard = stream.download(self.c.slice(first + length..next)?)?;
        let is_whole = guard.into_iter().all(Number::is_poison);
        Ok((!is_whole).then(|| "cutlet wrote past the end of C".to_string()))
    }
}

impl<T: Types<In: cutlet::Element<T::Out>>> Case for ContractCase<'_, T> {
    fn sets(&self) -> usize {
        self.sets
    }

    fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let pick = self.pick(contestant);
        let contraction = &self.problem.contraction;
        let [of_a, of_b, of_c] = contraction.lengths();
        let [a, b, c] = self.strides.map(|stride| set * stride);
        let (a, b) = (self.a.slice(a..a + of_a)?, self.b.slice(b..b + of_b)?);
        let c = self.c.slice_mut(c..c + of_c)?;
        if let Some(pick) = pick {
            return self.baseline.enqueue(stream, pick, a, b, c);
        }
        let [in_a, in_b, in_c] = contraction.layouts;
        let contraction = Contraction::new(
            &contraction.notation,
            Tensor::new(a, in_a)?,
            Tensor::new(b, in_b)?,
            TensorMut::new(c, in_c)?,
        )?;
        Ok(contraction.precision(precision(T::DTYPE)).run(stream)?)
    }

    fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
        let stream = &self.setting.stream;
        self.poison_set(0)?;
        self.enqueue(stream, contestant, 0)?;
        match self.pick(contestant).is_some() && !self.baseline.is_same() {
            true => Ok(None),
            false => Ok(self.verdict(0)?.1),
        }
    }

    fn check(&mut self, _: usize) -> Result<Check> {
        let tolerance = T::DTYPE.tolerance(self.problem.contraction.terms());
        let mut check = Check::new(tolerance);
        if self.setting.baselines_only {
            return Ok(check);
        }
        let stream = &self.setting.stream;
        self.poison_set(0)?;
        self.enqueue(stream, 0, 0)?;
        let (deviation, wrong) = self.verdict(0)?;
        if let Some(wrong) = wrong {
            check.fail(wrong);
        }
        check.to_f64 = Some(deviation);
        Ok(check)
    }

    fn poison(&mut self) -> Result<()> {
        rechecked(self.sets).try_for_each(|set| self.poison_set(set))
    }

    fn recheck(&mut self, _: usize) -> Result<Check> {
        let mut check = Check::new(T::DTYPE.tolerance(self.problem.contraction.terms()));
        for set in rechecked(self.sets) {
            if let (_, Some(wrong)) = self.verdict(set)? {
                check.fail(format!("as it was timed, {wrong}"));
            }
        }
        Ok(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contract::Contract;
    use crate::bench::family::Family;
    use crate::bench::gemm::types::{Bf16, F32, I8};
    use cutlet::Device;

    /// Contracts, then changes an entry of C, and expects that to be found.
    fn expect_found<T: Types<In: cutlet::Element<T::Out>>>(notation: &str, wrong: T::Out) {
        let setting = Setting::new(&Device::cpu(), 3).unwrap();
        let text =
            format!("notation = \"{notation}\"\nextents = {{ a = 3, b = 4, c = 20, d = 24 }}");
        let problems = Contract.problems(toml::from_str(&text).unwrap(), &[T::DTYPE]);
        let problem = &problems.unwrap()[0];
        let baseline = Baseline::<T>::new(problem, &setting).unwrap().unwrap();
        let mut case = ContractCase::new(problem, &setting, baseline).unwrap();
        assert_eq!(case.fault(1).unwrap(), None);
        let right = case.check(1).unwrap();
        assert_eq!(right.wrong, None);
        assert!(
            right
                .to_f64
                .is_some_and(|found| found.entries == case.sums.entries())
        );
        assert_eq!(case.recheck(1).unwrap().wrong, None);

        let mut c = setting.stream.download(&case.c).unwrap();
        let right = std::mem::replace(&mut c[7], wrong);
        setting.stream.copy_from_host(&c, &mut case.c).unwrap();
        assert!(case.recheck(1).unwrap().wrong.is_some());
        c[7] = right;
        c[case.sums.entries()] = right;
        setting.stream.copy_from_host(&c, &mut case.c).unwrap();
        let wrong = case.recheck(1).unwrap().wrong.unwrap();
        assert!(wrong.contains("past the end of C"), "{wrong}");
    }

    #[test]
    fn a_wrong_entry_is_found() {
        expect_found::<F32>("abc,bda->dc", 1e3);
        expect_found::<Bf16>("cad,bad->abc", half::bf16::from_f32(f32::INFINITY));
        expect_found::<I8>("cab,dab->dc", 1 << 30);
    }

    #[test]
    fn an_entry_left_out_is_found() {
        expect_found::<F32>("cd,ab->abcd", f32::NAN);
    }
}
