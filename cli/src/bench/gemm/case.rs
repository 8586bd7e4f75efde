//! A GEMM set up on a device: its operands in several sets, its contestants and its checks.

use std::rc::Rc;

use cutlet::{Buffer, Layout, Order, Stream, Tensor, TensorMut, View, layout};
use cutlet_host::measure::rechecked;

use super::baseline::Baseline;
use super::types::{InstancesFor, Kernel, Product, Types};
use super::{Problem, has_kernels};
use crate::bench::family::SetUp;
use crate::deviation::Deviation;
use crate::host_memory;
use crate::measure::case::{Case, Contestant, Role};
use crate::measure::check::{self, Check, Number, whole};
use crate::measure::error::Result;
use crate::measure::random::{random, scaled};
use crate::measure::samples::Samples;
use crate::measure::scales::{DeviceScales, HostScales, Scales};
use crate::measure::setting::Setting;

/// Operands begin at multiples of this many elements.
const ALIGNMENT: usize = 256;
/// Elements after each C, which must not be written.
const GUARD: usize = 256;

/// A byte that, repeated, is a NaN in every float type and −1 in every integer type.
const POISON: u8 = 0xff;

struct GemmCase<'a, T: Types> {
    setting: &'a Setting,
    problem: Problem,
    kernel: Option<Kernel<T>>,
    baseline: Baseline<'a, T>,
    contestants: Vec<Contestant>,
    /// cutlet's instances. They follow cutlet among the contestants.
    instances: Vec<&'static str>,
    sets: usize,
    /// Elements from one set to the next, of A, B and C.
    strides: [usize; 3],
    a: Buffer<T::In>,
    b: Buffer<T::In>,
    c: Buffer<T::Out>,
    /// A number for each column. All sets share it.
    bias: Rc<Buffer<T::Out>>,
    /// The scales of A and B. All sets share them.
    scales: DeviceScales,
    /// Memory for another C.
    other: Buffer<T::Out>,
    /// The samples of set 0, once they were asked for.
    samples: Option<Rc<Samples>>,
}

/// Sets a problem up, or says why it is not measured.
pub fn set_up<'a, T: Types>(problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
    let kernel = T::KERNEL.filter(|_| !setting.baselines_only);
    if !setting.baselines_only {
        if kernel.is_none() || !has_kernels(setting.stream.device(), T::DTYPE) {
            return Ok(SetUp::Skipped(format!(
                "cutlet has no {} kernel for this device",
                T::DTYPE
            )));
        }
        if let Some(activation) = problem.epilogue.activation
            && !T::DTYPE.has(activation)
        {
            return Ok(SetUp::Skipped(format!(
                "{activation:?} is not computed in {}",
                T::DTYPE
            )));
        }
    }
    if T::DTYPE.scales() != Scales::None && !problem.may_have_scales() {
        return Ok(SetUp::Skipped(
            "with scales, single products of K-major operands are measured".to_string(),
        ));
    }
    if !setting.on_gpu() {
        // The plain loops have their own operands and results.
        host_memory::expect(2 * set_bytes::<T>(strides(problem)))?;
    }
    let bias = bias::<T>(problem, setting)?;
    let scales = scales(problem, setting)?;
    Ok(
        match Baseline::<T>::new(problem, &bias, &scales, setting)? {
            Ok(baseline) => {
                let case = GemmCase::new(problem, setting, kernel, (bias, scales), baseline)?;
                SetUp::Ready(Box::new(case))
            }
            Err(why) => SetUp::Skipped(format!("there is no baseline: {why}")),
        },
    )
}

/// Elements from one set to the next, of A, B and C.
fn strides(problem: &Problem) -> [usize; 3] {
    let [a, b, c] = problem.lengths();
    [a, b, c + GUARD].map(|len| len.next_multiple_of(ALIGNMENT))
}

/// Bytes of a set. Those of the largest matrices exceed a `usize`.
fn set_bytes<T: Types>(strides: [usize; 3]) -> u128 {
    let [a, b, c] = strides.map(|stride| stride as u128);
    (a + b) * size_of::<T::In>() as u128 + c * size_of::<T::Out>() as u128
}

/// A number for each column of C.
fn bias<T: Types>(problem: &Problem, setting: &Setting) -> Result<Rc<Buffer<T::Out>>> {
    let mut bias = setting.stream.zeroed(problem.n)?;
    let random = random(&setting.stream, problem.n, setting.seed.wrapping_add(2))?;
    setting.stream.copy(random.slice(..problem.n)?, &mut bias)?;
    Ok(Rc::new(bias))
}

/// The scales of A and B.
fn scales(problem: &Problem, setting: &Setting) -> Result<DeviceScales> {
    let scales = HostScales::random(problem.places(), setting.seed.wrapping_add(3));
    Ok(scales.upload(&setting.stream)?)
}

impl<'a, T: Types> GemmCase<'a, T> {
    fn new(
        problem: &Problem,
        setting: &'a Setting,
        kernel: Option<Kernel<T>>,
        (bias, scales): (Rc<Buffer<T::Out>>, DeviceScales),
        baseline: Baseline<'a, T>,
    ) -> Result<Self> {
        let ours = kernel.map(|_| Contestant {
            name: "cutlet".to_string(),
            role: Role::Cutlet,
        });
        let instances = match kernel {
            Some(_) if !setting.instances.is_empty() => {
                let mut instances = (T::INSTANCES)(InstancesFor {
                    backend: setting.stream.device().backend(),
                    orders: problem.layout.orders(),
                    epilogue: problem.epilogue,
                    of_batches: problem.batch > 1,
                });
                instances.retain(|name| setting.instances.iter().any(|part| name.contains(part)));
                instances
            }
            _ => Vec::new(),
        };
        let each = instances.iter().map(|name| Contestant {
            name: (*name).to_string(),
            role: Role::Instance,
        });
        let strides = strides(problem);
        let bytes = set_bytes::<T>(strides);
        let sets = setting.sets(usize::try_from(bytes).unwrap_or(usize::MAX));
        let stream = &setting.stream;
        Ok(GemmCase {
            setting,
            problem: problem.clone(),
            kernel,
            contestants: ours
                .into_iter()
                .chain(each)
                .chain(baseline.contestants())
                .collect(),
            instances,
            baseline,
            sets,
            strides,
            a: scaled(stream, sets * strides[0], setting.seed, problem.scale())?,
            b: random(stream, sets * strides[1], setting.seed.wrapping_add(1))?,
            c: stream.filled(sets * strides[2], POISON)?,
            bias,
            scales,
            other: stream.filled(strides[2], POISON)?,
            samples: None,
        })
    }
}

impl<T: Types> GemmCase<'_, T> {
    fn result(&self, set: usize) -> Result<View<'_, T::Out>> {
        let [.., len] = self.problem.lengths();
        let first = set * self.strides[2];
        Ok(self.c.slice(first..first + len)?)
    }

    fn poison_set(&mut self, set: usize) -> Result<()> {
        let stride = self.strides[2];
        let c = self.c.slice_mut(set * stride..(set + 1) * stride)?;
        Ok(self.setting.stream.fill_bytes(c, POISON)?)
    }

    /// Copies the C of a set and its guard to the other C.
    fn keep(&mut self, set: usize) -> Result<()> {
        let stride = self.strides[2];
        let c = self.c.slice(set * stride..(set + 1) * stride)?;
        Ok(self.setting.stream.copy(c, &mut self.other)?)
    }

    /// Whether the guard after the C of a set is unchanged.
    fn guarded(&self, set: usize) -> Result<bool> {
        let [.., len] = self.problem.lengths();
        let first = set * self.strides[2];
        let guard = self.c.slice(first + len..first + self.strides[2])?;
        let guard = self.setting.stream.download(guard)?;
        Ok(guard.into_iter().all(Number::is_poison))
    }

    /// How far the C of a set is from the other C.
    fn distance_from_other(&self, set: usize) -> Result<Deviation> {
        let [.., len] = self.problem.lengths();
        let other = self.other.slice(..len)?;
        whole(&self.setting.stream, self.result(set)?, other)
    }

    fn samples(&mut self) -> Result<Rc<Samples>> {
        if let Some(samples) = &self.samples {
            return Ok(samples.clone());
        }
        let Problem { m, n, k, .. } = self.problem;
        // Of the last product of a batch.
        let [a, b, _] = self.problem.lengths();
        let (a, b) = (self.a.slice(a - m * k..a)?, self.b.slice(b - k * n..b)?);
        let (stream, seed) = (&self.setting.stream, self.setting.seed);
        let (bias, scales) = (self.bias.view(), &self.scales.host);
        let samples = self.problem.samples(stream, a, b, bias, scales, seed)?;
        Ok(self.samples.insert(Rc::new(samples)).clone())
    }

    /// Has a contestant solve set 0. Returns how far samples of its output are from f64, and what is wrong, if
    /// anything.
    fn solve(&mut self, contestant: usize) -> Result<(Deviation, Option<String>)> {
        let samples = self.samples()?;
        self.poison_set(0)?;
        self.run(contestant, 0)?;
        let Problem { m, n, .. } = self.problem;
        let result = self.result(0)?;
        let last = result.slice(result.len() - m * n..)?;
        let deviation = samples.deviation(&self.setting.stream, last, n)?;
        let name = &self.contestants[contestant].name;
        let tolerance = T::DTYPE.tolerance(self.problem.k);
        let wrong = match self.wrong(&deviation, tolerance) {
            Some(wrong) => Some(format!("{name} against f64: {wrong}")),
            None if !self.guarded(0)? => Some(format!("{name} wrote past the end of C")),
            None => None,
        };
        Ok((deviation, wrong))
    }

    fn run(&mut self, contestant: usize, set: usize) -> Result<()> {
        let stream = &self.setting.stream;
        self.enqueue(stream, contestant, set)
    }

    /// What is wrong with an output of this deviation, if its relative distance may be at most `tolerance`.
    fn wrong(&self, deviation: &Deviation, tolerance: f64) -> Option<String> {
        check::wrong(deviation, tolerance, self.problem.size())
    }
}

/// The layout of so many packed matrices, one behind the other.
fn packed([rows, columns]: [usize; 2], count: usize, order: Order) -> Layout {
    let (down, across) = match order {
        Order::RowMajor => (columns, 1),
        Order::ColMajor => (1, rows),
    };
    layout!((dyn rows, dyn columns, dyn count):(dyn down, dyn across, dyn (rows * columns)))
}

impl<T: Types> Case for GemmCase<'_, T> {
    fn sets(&self) -> usize {
        self.sets
    }

    fn contestants(&self) -> &[Contestant] {
        &self.contestants
    }

    fn enqueue(&mut self, stream: &Stream, contestant: usize, set: usize) -> Result<()> {
        let Problem {
            m,
            n,
            k,
            batch,
            layout,
            epilogue,
            ..
        } = self.problem;
        let [order_a, order_b] = layout.orders();
        let [a, b, c] = self.strides.map(|stride| set * stride);
        let [len_a, len_b, len_c] = self.problem.lengths();
        let (a, b) = (self.a.slice(a..a + len_a)?, self.b.slice(b..b + len_b)?);
        let c = self.c.slice_mut(c..c + len_c)?;
        let ours = self.kernel.map_or(0, |_| 1 + self.instances.len());
        match self.kernel {
            Some(kernel) if contestant < ours => {
                let product = Product {
                    a: Tensor::new(a, packed([m, k], batch, order_a))?,
                    b: Tensor::new(b, packed([k, n], batch, order_b))?,
                    c: TensorMut::new(c, packed([m, n], batch, Order::RowMajor))?,
                    epilogue,
                    bias: &self.bias,
                    scales: &self.scales,
                    instance: contestant.checked_sub(1).map(|nth| self.instances[nth]),
                };
                Ok(kernel(product, stream)?)
            }
            _ => self.baseline.enqueue(stream, contestant - ours, a, b, c),
        }
    }

    fn fault(&mut self, contestant: usize) -> Result<Option<String>> {
        let (_, wrong) = self.solve(contestant)?;
        Ok(wrong)
    }

    fn check(&mut self, baseline: usize) -> Result<Check> {
        let tolerance = T::DTYPE.tolerance(self.problem.k);
        let mut check = Check::new(tolerance);

        let (deviation, wrong) = self.solve(baseline)?;
        if let Some(wrong) = wrong {
            check.fail(wrong);
        }
        check.baseline_to_f64 = Some(deviation);
        if self.kernel.is_none() {
            return Ok(check);
        }

        self.keep(0)?;
        let (deviation, wrong) = self.solve(0)?;
        if let Some(wrong) = wrong {
            check.fail(wrong);
        }
        check.to_f64 = Some(deviation);
        let deviation = self.distance_from_other(0)?;
        if let Some(wrong) = self.wrong(&deviation, 2.0 * tolerance) {
            check.fail(format!("cutlet against the baseline: {wrong}"));
        }
        check.to_baseline = Some(deviation);
        Ok(check)
    }

    fn poison(&mut self) -> Result<()> {
        rechecked(self.sets).try_for_each(|set| self.poison_set(set))
    }

    fn recheck(&mut self, baseline: usize) -> Result<Check> {
        let tolerance = T::DTYPE.tolerance(self.problem.k);
        let mut check = Check::new(tolerance);
        for set in rechecked(self.sets) {
            if !self.guarded(set)? {
                check.fail("cutlet wrote past the end of C");
            }
            self.keep(set)?;
            self.poison_set(set)?;
            self.run(baseline, set)?;
            let deviation = self.distance_from_other(set)?;
            if let Some(wrong) = self.wrong(&deviation, 2.0 * tolerance) {
                check.fail(format!(
                    "cutlet, as it was timed, against the baseline: {wrong}"
                ));
            }
            check.to_baseline = Some(deviation);
        }
        Ok(check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::gemm::Layout;
    use crate::bench::gemm::types::{Bf16, E4m3Blocks, F32};
    use crate::measure::dtype::Dtype;
    use crate::measure::epilogue::Epilogue;
    use cutlet::{Activation, Device, MAX_EXTENT};

    fn problem(m: usize, n: usize, k: usize) -> Problem {
        Problem {
            m,
            n,
            k,
            batch: 1,
            dtype: Dtype::F32,
            layout: Layout::Nt,
            epilogue: Epilogue::default(),
            label: String::new(),
            apart: false,
        }
    }

    /// The check's finding about a kernel.
    fn verdict(kernel: Kernel<F32>) -> Option<String> {
        verdict_of::<F32>(&problem(20, 30, 40), kernel)
    }

    /// The check's finding about a kernel for a problem.
    fn verdict_of<T: Types>(problem: &Problem, kernel: Kernel<T>) -> Option<String> {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        let bias = bias::<T>(problem, &setting).unwrap();
        let scales = scales(problem, &setting).unwrap();
        let baseline = Baseline::<T>::new(problem, &bias, &scales, &setting);
        let baseline = baseline.unwrap().unwrap();
        let own = (bias, scales);
        let mut case = GemmCase::new(problem, &setting, Some(kernel), own, baseline).unwrap();
        let check = case.check(1).unwrap();
        assert_eq!(case.fault(0).unwrap().is_some(), check.wrong.is_some());
        assert_eq!(case.fault(1).unwrap(), None);
        case.poison().unwrap();
        case.run(0, 0).unwrap();
        let recheck = case.recheck(1).unwrap();
        assert_eq!(check.wrong.is_some(), recheck.wrong.is_some());
        let entries = |deviation: Option<Deviation>| deviation.map(|deviation| deviation.entries);
        let one = problem.m * problem.n;
        assert_eq!(entries(check.to_f64), Some(one));
        assert_eq!(entries(check.to_baseline), Some(problem.batch * one));
        check.wrong
    }

    fn right(Product { a, b, c, .. }: Product<'_, F32>, stream: &Stream) -> cutlet::Result<()> {
        cutlet::gemm(stream, 1.0, a, b, 0.0, c)
    }

    #[test]
    fn the_largest_problem_is_refused() {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        let refused = set_up::<F32>(&problem(MAX_EXTENT, 1, MAX_EXTENT), &setting);
        let Err(error) = refused else {
            panic!("there is so much memory");
        };
        let error = error.to_string();
        assert!(error.contains("bytes were asked for on"), "{error}");
    }

    #[test]
    fn a_right_kernel_passes() {
        assert_eq!(verdict(right), None);
        let batch = Problem {
            batch: 3,
            ..problem(20, 30, 40)
        };
        assert_eq!(verdict_of::<F32>(&batch, right), None);
    }

    #[test]
    fn scales_that_are_left_out_are_found() {
        for dtype in [Dtype::E4m3Outer, Dtype::E4m3Blocks] {
            let scaled = Problem {
                dtype,
                ..problem(20, 136, 300)
            };
            let without: Kernel<E4m3Blocks> = |product, stream| product.gemm().run(stream);
            let with = E4m3Blocks::KERNEL.unwrap();
            assert_eq!(verdict_of::<E4m3Blocks>(&scaled, with), None, "{dtype}");
            let wrong = verdict_of::<E4m3Blocks>(&scaled, without).unwrap();
            assert!(wrong.contains("relative distance"), "{wrong}");
        }
    }

    #[test]
    fn an_output_left_out_is_found() {
        let wrong = verdict(|_, _| Ok(())).unwrap();
        assert!(
            wrong.contains("600 of 600 entries are no numbers"),
            "{wrong}"
        );
    }

    #[test]
    fn another_activation_is_found() {
        let gelu = Problem {
            epilogue: Epilogue {
                bias: false,
                activation: Some(Activation::Gelu),
            },
            ..problem(20, 30, 1024)
        };
        assert_eq!(verdict_of::<Bf16>(&gelu, Bf16::KERNEL.unwrap()), None);
        let others: [Kernel<Bf16>; 2] = [
            |product, stream| product.gemm().activation(Activation::Relu).run(stream),
            |product, stream| product.gemm().activation(Activation::Silu).run(stream),
        ];
        for other in others {
            let wrong = verdict_of::<Bf16>(&gelu, other).unwrap();
            assert!(wrong.contains("relative distance"), "{wrong}");
        }
    }

    #[test]
    fn a_factor_is_found() {
        let wrong = verdict(|product, stream| product.gemm().alpha(1.001).run(stream)).unwrap();
        assert!(wrong.contains("relative distance"), "{wrong}");
    }
}
