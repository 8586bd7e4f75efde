//! `cutlet contract`: one contraction of random tensors in einsum's notation, explained, timed and checked.

pub mod problem;
mod report;
pub mod sums;

use std::process::ExitCode;

use clap::Args;
use cutlet::{Buffer, Contraction, DeviceData, Stream, Tensor, TensorMut};
use cutlet_host::Backend;
use cutlet_kernels::gemm::epilogue::Accumulator;
use cutlet_layout_core::Layout;
use rayon::prelude::*;

use crate::deviation::{Deviation, Entry};
use crate::gemm::arithmetic::{Element, Factor, Stored};
use crate::gemm::elements::{ElementsArgs, ForElements};
use crate::gemm::reference::Exact;
use crate::gemm::{Factors, verdict};
use crate::host_memory::{self, TooLittle, room};
use crate::progress::Progress;
use crate::timed::{TimedArgs, extent};
use problem::Problem;
use report::{Measured, Report};
use sums::{SAMPLES, Sums};

/// Contract two random tensors and time it, in einsum's notation: C = alpha·Σ A·B + beta·C.
///
/// The notation names the modes of A, B and C. Modes that C does not have are summed: `bshd,bthd->bhst` has the scores
/// of attention, for each batch b and head h.
#[derive(Args, Clone, Debug)]
pub struct ContractArgs {
    /// The modes of A, B and C: `bshd,bthd->bhst`.
    #[arg(value_name = "MODES")]
    notation: String,
    /// The extents of the modes, separated by commas: `b=16,s=2048`. A mode of a tensor whose layout is given needs
    /// none.
    #[arg(long, value_name = "MODE=EXTENT", value_delimiter = ',', value_parser = mode_extent)]
    extents: Vec<(char, usize)>,
    #[command(flatten)]
    elements: ElementsArgs,
    /// The layout of A, in CuTe's notation: `(2048,128):(384,1)`. A tensor without one is packed, its last mode
    /// innermost.
    #[arg(long, value_name = "LAYOUT", value_parser = layout)]
    layout_a: Option<Layout>,
    /// The layout of B.
    #[arg(long, value_name = "LAYOUT", value_parser = layout)]
    layout_b: Option<Layout>,
    /// The layout of C. Each of its coordinates has an element of its own.
    #[arg(long, value_name = "LAYOUT", value_parser = layout)]
    layout_c: Option<Layout>,
    /// Factor of the sums.
    #[arg(long, default_value_t = 1.0, allow_hyphen_values = true)]
    alpha: f64,
    /// Factor of the old C.
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    beta: f64,
    /// Compare with a reference in f64, exact for i8: all of C if that takes about a second, else up to 8192 entries.
    #[arg(long)]
    check: bool,
    /// Only say how it is computed: as which products of matrices, and what is copied first and why.
    #[arg(long, conflicts_with = "check")]
    explain: bool,
    #[command(flatten)]
    pub timed: TimedArgs,
}

/// Parses the extent of a mode: `b=16`.
fn mode_extent(text: &str) -> Result<(char, usize), String> {
    let (name, number) = text.split_once('=').unwrap_or(("", text));
    let mut name = name.trim().chars();
    match (name.next(), name.next()) {
        (Some(name), None) if name.is_alphabetic() => Ok((name, extent(number.trim())?)),
        _ => Err("write a mode's letter, `=` and its extent: `b=16`".to_string()),
    }
}

/// Parses the layout of a tensor.
fn layout(text: &str) -> Result<Layout, String> {
    let layout: Layout = text.parse().map_err(|error| format!("{error}"))?;
    let mut strides = (0..layout.num_leaves()).map(|leaf| layout.leaf_stride(leaf));
    match strides.all(|stride| stride.basis().is_none() && stride.value() >= 0) {
        true => Ok(layout),
        false => Err("a tensor's strides are numbers of elements from 0 on".to_string()),
    }
}

impl ContractArgs {
    fn problem(&self) -> Result<Problem, String> {
        let layouts = [self.layout_a, self.layout_b, self.layout_c];
        Problem::new(&self.notation, &self.extents, layouts)
    }
}

/// Runs the command.
pub fn run(args: &ContractArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    struct Run<'a>(&'a ContractArgs);
    impl ForElements for Run<'_> {
        type Output = Result<ExitCode, Box<dyn std::error::Error>>;

        fn run<T: Element<D>, D: Stored>(self) -> Self::Output {
            run_as::<T, D>(self.0)
        }
    }
    args.elements.run(Run(args))?
}

fn run_as<T: Element<D>, D: Stored>(
    args: &ContractArgs,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let problem = &args.problem()?;
    let factors = Factors {
        alpha: T::Factor::of(args.alpha)?,
        beta: T::Factor::of(args.beta)?,
    };
    let stream = args.timed.stream()?;
    let output = &args.timed.output;
    if args.explain {
        let mut tensors = OnDevice::<T, D>::empty(problem, &stream)?;
        let explained = tensors.contraction(args, factors)?.explain(&stream)?;
        output.result(&Report::new(args, &stream, problem, &explained, None))?;
        return Ok(ExitCode::SUCCESS);
    }
    host_memory::expect(host_bytes::<T, D>(args, problem, stream.device().backend()))?;
    let progress = &args.timed.progress();
    let inputs = Inputs::<T, D>::random(args, problem, factors.beta, progress)?;
    progress.wait("upload");
    let mut tensors = inputs.upload(problem, &stream)?;
    let mut contraction = tensors.contraction(args, factors)?;
    let explained = contraction.explain(&stream)?;

    progress.wait("first contraction");
    contraction.run(&stream)?;
    let found = args
        .check
        .then(|| stream.download(&tensors.c))
        .transpose()?;
    let mut contraction = tensors.contraction(args, factors)?;
    let time = args.timed.median(&stream, progress, "contractions", || {
        contraction.run(&stream)
    })?;
    let check = found.map(|found| {
        let seed = args.timed.seed;
        deviation(problem, factors, &inputs, &found, (seed, progress))
    });
    progress.end();
    let bytes = problem.bytes(size_of::<T>(), size_of::<D>());
    let old = match args.beta {
        0.0 => 0.0,
        _ => problem.bytes(0, size_of::<D>()),
    };
    let measured = Measured {
        time,
        bytes: bytes + old,
        check,
    };
    output.result(&Report::new(
        args,
        &stream,
        problem,
        &explained,
        Some(measured),
    ))?;
    Ok(verdict(
        output,
        check,
        args.elements.tolerance(problem.terms()),
    ))
}

/// Bytes of host memory that the data takes. The CPU backend's device memory is host memory too.
fn host_bytes<T, D>(args: &ContractArgs, problem: &Problem, backend: Backend) -> u128 {
    let [a, b, c] = problem.lengths().map(|length| length as u128);
    let result = c * size_of::<D>() as u128;
    let data = (a + b) * size_of::<T>() as u128 + result;
    let on_device = match backend {
        Backend::Gpu => 0,
        Backend::Cpu => data,
    };
    let checked = match args.check {
        true => result + (problem.terms() * size_of::<[usize; 2]>()) as u128,
        false => 0,
    };
    data + on_device + checked
}

/// The tensors on the host.
struct Inputs<T, D> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<D>,
}

impl<T: Element<D>, D: Stored> Inputs<T, D> {
    /// Random ones. A C that is not read is NaN. All memory is reserved before any of it is filled, so that a problem
    /// that is too large is refused at once.
    fn random(
        args: &ContractArgs,
        problem: &Problem,
        beta: T::Factor,
        progress: &Progress,
    ) -> Result<Self, TooLittle> {
        let [of_a, of_b, of_c] = problem.lengths();
        let seed = args.timed.seed;
        let (mut a, mut b, mut c) = (room(of_a)?, room(of_b)?, room(of_c)?);
        progress.begin("random tensors", of_a + of_b + of_c);
        progress.extend(&mut a, T::random(seed).take(of_a));
        progress.extend(&mut b, T::random(seed.wrapping_add(1)).take(of_b));
        if beta == T::Factor::ZERO {
            c.resize(of_c, D::nearest(f64::NAN));
            progress.advance(of_c);
        } else {
            progress.extend(&mut c, D::random(seed.wrapping_add(2)).take(of_c));
        }
        Ok(Inputs { a, b, c })
    }

    fn upload(&self, problem: &Problem, stream: &Stream) -> cutlet::Result<OnDevice<T, D>> {
        Ok(OnDevice {
            problem: problem.clone(),
            a: stream.upload(&self.a)?,
            b: stream.upload(&self.b)?,
            c: stream.upload(&self.c)?,
        })
    }
}

/// The tensors on the device.
struct OnDevice<T: DeviceData, D: DeviceData> {
    problem: Problem,
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<D>,
}

impl<T: Element<D>, D: Stored> OnDevice<T, D> {
    /// Tensors of zeros.
    fn empty(problem: &Problem, stream: &Stream) -> cutlet::Result<Self> {
        let [a, b, c] = problem.lengths();
        Ok(OnDevice {
            problem: problem.clone(),
            a: stream.zeroed(a)?,
            b: stream.zeroed(b)?,
            c: stream.zeroed(c)?,
        })
    }

    fn contraction(
        &mut self,
        args: &ContractArgs,
        factors: Factors<T::Factor>,
    ) -> cutlet::Result<Contraction<'_, T, D>> {
        let [of_a, of_b, of_c] = self.problem.layouts;
        let contraction = Contraction::new(
            &self.problem.notation,
            Tensor::new(&self.a, of_a)?,
            Tensor::new(&self.b, of_b)?,
            TensorMut::new(&mut self.c, of_c)?,
        )?;
        let contraction = contraction.alpha(factors.alpha).beta(factors.beta);
        Ok(contraction.precision(args.elements.precision()))
    }
}

/// How far the entries of `found` that are looked at are from their references.
fn deviation<T: Element<D>, D: Stored>(
    problem: &Problem,
    factors: Factors<T::Factor>,
    Inputs { a, b, c }: &Inputs<T, D>,
    found: &[D],
    (seed, progress): (u64, &Progress),
) -> Deviation {
    let sums = Sums::new(problem);
    let looked_at = sums.looked_at(seed, SAMPLES);
    progress.begin("reference in f64", looked_at.len());
    let entries: Vec<Entry> = looked_at
        .par_iter()
        .map(|&entry| {
            progress.advance(1);
            let place = sums.place(entry);
            let exact = Exact {
                factors,
                sum: sums.at(entry, a, b),
                old: c[place].to_f64(),
                bias: 0.0,
            };
            exact.beside(found[place], |sum| sum)
        })
        .collect();
    Deviation::of_entries(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use half::bf16;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        contract: ContractArgs,
    }

    #[test]
    fn all_memory_of_the_data_is_counted() {
        let bytes = |options: &str, backend| {
            let words = format!("contract ik,jk->ij --extents i=20,j=30,k=40 {options}");
            let Alone { contract } = Alone::parse_from(words.split_whitespace());
            host_bytes::<bf16, f32>(&contract, &contract.problem().unwrap(), backend)
        };
        let data = 2 * (20 * 40 + 30 * 40) + 4 * 20 * 30;
        assert_eq!(bytes("", Backend::Gpu), data);
        assert_eq!(bytes("", Backend::Cpu), 2 * data);
        // The result, and the places of the terms.
        assert_eq!(bytes("--check", Backend::Gpu), data + 4 * 20 * 30 + 40 * 16);
    }

    #[test]
    fn extents_are_of_single_letters() {
        assert_eq!(mode_extent("b=16"), Ok(('b', 16)));
        for wrong in ["b", "16", "bs=3", "=3", "1=3", "b=0", "b=x"] {
            assert!(mode_extent(wrong).is_err(), "{wrong}");
        }
        assert!(layout("(2,3):(-1,2)").unwrap_err().contains("from 0 on"));
        assert!(layout("(2,3):(1@0,1@1)").unwrap_err().contains("from 0 on"));
        assert!(layout("(2,3").is_err());
    }
}
