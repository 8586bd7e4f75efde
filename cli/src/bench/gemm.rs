//! The GEMM family: cutlet against cuBLASLt, or against plain loops where there is no GPU.

mod baseline;
mod case;
mod key;
mod samples;
pub mod types;

use clap::ValueEnum;
use cutlet::{Device, KernelFamily, MAX_EXTENT, Order};
use cutlet_host::Backend;
use serde::Deserialize;

use super::cells::Cells;
use super::family::{Family, Row, SetUp, Unit};
use crate::measure::dtype::Dtype;
use crate::measure::epilogue::Epilogue;
use crate::measure::error::Result;
use crate::measure::scales::{Places, Scales};
use crate::measure::setting::Setting;
use types::{InstancesFor, Types};

/// The most products of a batch.
const MOST_PRODUCTS: usize = 1 << 20;

/// The family's name in results.
pub const NAME: &str = "gemm";

/// The family.
pub struct Gemm;

/// `C = A·B` with an epilogue, or a batch of such products. A is `m × k`, B is `k × n`, and C is row-major.
#[derive(Clone, Debug)]
pub struct Problem {
    m: usize,
    n: usize,
    k: usize,
    batch: usize,
    dtype: Dtype,
    layout: Layout,
    epilogue: Epilogue,
    label: String,
    apart: bool,
}

impl Problem {
    /// The factor of A's random numbers. It brings the input of an activation to about N(0, 1): far from 0, where a sum
    /// of k products lies, all activations are alike, and a wrong one would pass. The factor is a power of two, so that
    /// no digit is lost (except in e4m3, whose normal numbers end at 2⁻⁶).
    fn scale(&self) -> f32 {
        match self.epilogue.activation {
            // Integers cannot be scaled.
            _ if self.dtype == Dtype::I8 => 1.0,
            None => 1.0,
            Some(_) => (-0.5 * (self.k as f32).log2()).round().exp2(),
        }
    }

    /// Where the scales of A and B lie.
    fn places(&self) -> Places {
        Places {
            are: self.dtype.scales(),
            extents: [self.m, self.n, self.k],
            matrices: [self.batch; 2],
        }
    }

    /// Whether products with scales are measured: single ones of K-major operands, with nothing fused.
    fn may_have_scales(&self) -> bool {
        self.batch == 1 && self.layout == Layout::Nt && self.epilogue.is_none()
    }

    /// Elements of all A, of all B and of all C.
    fn lengths(&self) -> [usize; 3] {
        let Problem { m, n, k, batch, .. } = *self;
        [m * k, k * n, m * n].map(|len| batch * len)
    }

    /// The typical size of an entry of C before the activation.
    fn size(&self) -> f64 {
        let bias = if self.epilogue.bias { 1.0 } else { 0.0 };
        (f64::from(self.scale()).powi(2) * self.k as f64 + bias).sqrt()
    }
}

/// The layouts of A and B in BLAS' letters: `n` is row-major, `t` is column-major.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Layout {
    /// Both row-major.
    Nn,
    /// A row-major, B column-major: k is contiguous in both.
    #[default]
    Nt,
    /// A column-major, B row-major.
    Tn,
    /// Both column-major.
    Tt,
}

impl Layout {
    fn name(self) -> &'static str {
        match self {
            Layout::Nn => "nn",
            Layout::Nt => "nt",
            Layout::Tn => "tn",
            Layout::Tt => "tt",
        }
    }

    fn a_transposed(self) -> bool {
        matches!(self, Layout::Tn | Layout::Tt)
    }

    fn b_transposed(self) -> bool {
        matches!(self, Layout::Nt | Layout::Tt)
    }

    /// The orders of A and B.
    fn orders(self) -> [Order; 2] {
        [self.a_transposed(), self.b_transposed()].map(|transposed| match transposed {
            false => Order::RowMajor,
            true => Order::ColMajor,
        })
    }
}

fn one() -> usize {
    1
}

/// An entry of a suite: shapes as `mnk`, or as every `m` with every `nk`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    label: String,
    #[serde(default)]
    mnk: Vec<[usize; 3]>,
    #[serde(default)]
    m: Vec<usize>,
    #[serde(default)]
    nk: Vec<[usize; 2]>,
    /// How many products of each shape are computed together.
    #[serde(default = "one")]
    batch: usize,
    /// The element types that it is for; all if it names none.
    dtypes: Option<Vec<Dtype>>,
    #[serde(default)]
    layout: Layout,
    #[serde(default)]
    epilogue: Epilogue,
    #[serde(default)]
    apart: bool,
}

impl Family for Gemm {
    type Problem = Problem;

    fn problems(&self, entry: toml::Value, dtypes: &[Dtype]) -> Result<Vec<Problem>, String> {
        let entry: Entry = entry.try_into().map_err(|error| format!("{error}"))?;
        if entry.m.is_empty() != entry.nk.is_empty() {
            let (there, lacking) = match entry.m.is_empty() {
                true => ("nk", "m"),
                false => ("m", "nk"),
            };
            return Err(format!(
                "a GEMM has `{there}` without `{lacking}`; give both, or `mnk`"
            ));
        }
        let crossed = entry
            .nk
            .iter()
            .flat_map(|&[n, k]| entry.m.iter().map(move |&m| [m, n, k]));
        let shapes: Vec<[usize; 3]> = entry.mnk.iter().copied().chain(crossed).collect();
        if shapes.is_empty() {
            return Err("a GEMM has no shape; give `mnk`, or `m` and `nk`".to_string());
        }
        let refused = |extent: &usize| !(1..=MAX_EXTENT).contains(extent);
        if let Some(shape) = shapes.iter().find(|shape| shape.iter().any(refused)) {
            return Err(format!(
                "a GEMM has the shape {shape:?}; extents are from 1 to {MAX_EXTENT}"
            ));
        }
        if !(1..=MOST_PRODUCTS).contains(&entry.batch) {
            return Err(format!(
                "a GEMM has `batch = {}`; a batch has 1 to {MOST_PRODUCTS} products",
                entry.batch
            ));
        }
        if entry.dtypes.as_ref().is_some_and(Vec::is_empty) {
            return Err("a GEMM has no `dtypes`; name one, or leave it out for all".to_string());
        }
        let wanted = dtypes
            .iter()
            .filter(|dtype| entry.dtypes.as_ref().is_none_or(|all| all.contains(dtype)));
        Ok(wanted
            .flat_map(|&dtype| shapes.iter().map(move |&shape| (dtype, shape)))
            .map(|(dtype, [m, n, k])| Problem {
                m,
                n,
                k,
                batch: entry.batch,
                dtype,
                layout: entry.layout,
                epilogue: entry.epilogue,
                label: entry.label.clone(),
                apart: entry.apart,
            })
            .collect())
    }

    fn row(&self, problem: &Problem) -> Row {
        let Problem {
            m,
            n,
            k,
            batch,
            dtype,
            ..
        } = *problem;
        let of_batch = match batch {
            1 => String::new(),
            count => format!("{count} × "),
        };
        let layout = match problem.layout {
            Layout::Nt => String::new(),
            other => format!(" {}", other.name()),
        };
        let epilogue = match problem.epilogue.is_none() {
            true => String::new(),
            false => format!(" {}", problem.epilogue),
        };
        let [m_, n_, k_] = [m, n, k].map(|extent| extent as f64);
        let products = batch as f64;
        let (input, output) = types::element_bytes(dtype);
        Row {
            id: format!("gemm {dtype} {of_batch}{m}x{n}x{k}{layout}{epilogue}"),
            family: NAME,
            label: problem.label.clone(),
            dtype: dtype.to_string(),
            shape: format!("{of_batch}{m} {n} {k}{layout}{epilogue}"),
            columns: vec![
                ("m", m.to_string()),
                ("n", n.to_string()),
                ("k", k.to_string()),
                ("batch", batch.to_string()),
                ("layout", problem.layout.name().to_string()),
                ("epilogue", problem.epilogue.to_string()),
            ],
            series: String::new(),
            unit: Unit::Teraflops,
            operations: products * 2.0 * m_ * n_ * k_,
            bytes: products * ((m_ * k_ + n_ * k_) * input as f64 + m_ * n_ * output as f64),
            apart: problem.apart,
        }
    }

    fn problem(&self, cells: &Cells) -> Result<Problem, String> {
        Ok(Problem {
            m: cells.extent("m")?,
            n: cells.extent("n")?,
            k: cells.extent("k")?,
            batch: match cells.text("batch") {
                // Results of earlier versions have no batches.
                "" => 1,
                _ => cells.extent("batch")?,
            },
            dtype: cells.named("type")?,
            layout: cells.named("layout")?,
            epilogue: match cells.text("epilogue") {
                "" => Epilogue::default(),
                _ => cells.named("epilogue")?,
            },
            label: String::new(),
            apart: false,
        })
    }

    fn set_up<'a>(&self, problem: &Problem, setting: &'a Setting) -> Result<SetUp<'a>> {
        match problem.dtype {
            Dtype::F32 => case::set_up::<types::F32>(problem, setting),
            Dtype::Tf32 => case::set_up::<types::Tf32>(problem, setting),
            Dtype::F16 => case::set_up::<types::F16>(problem, setting),
            Dtype::Bf16 => case::set_up::<types::Bf16>(problem, setting),
            Dtype::E4m3 => case::set_up::<types::E4m3>(problem, setting),
            Dtype::E4m3Fast => case::set_up::<types::E4m3Fast>(problem, setting),
            Dtype::E4m3Outer => case::set_up::<types::E4m3Outer>(problem, setting),
            Dtype::E4m3Blocks => case::set_up::<types::E4m3Blocks>(problem, setting),
            Dtype::Tf32x3 => case::set_up::<types::Tf32x3>(problem, setting),
            Dtype::F64 => case::set_up::<types::F64>(problem, setting),
            Dtype::I8 => case::set_up::<types::I8>(problem, setting),
        }
    }
}

/// Parses a part of the name of one of cutlet's kernel instances, of any types.
pub fn part_of_instance(part: &str) -> Result<String, String> {
    let layouts = [Layout::Nn, Layout::Nt, Layout::Tn, Layout::Tt];
    let of_types = [
        types::F32::INSTANCES,
        types::Tf32::INSTANCES,
        types::Tf32x3::INSTANCES,
        types::F16::INSTANCES,
        types::Bf16::INSTANCES,
        types::E4m3Fast::INSTANCES,
        types::F64::INSTANCES,
        types::I8::INSTANCES,
    ];
    let mut asked = Vec::new();
    for orders in layouts.map(Layout::orders) {
        for of_batches in [false, true] {
            asked.extend(Epilogue::each().into_iter().map(|epilogue| InstancesFor {
                backend: Backend::Gpu,
                orders,
                epilogue,
                of_batches,
            }));
        }
    }
    let lists = of_types
        .into_iter()
        .flat_map(|of| asked.iter().map(move |asked| of(*asked)));
    match lists.flatten().any(|name| name.contains(part)) {
        true => Ok(part.to_string()),
        false => Err("no instance has that in its name".to_string()),
    }
}

/// The element types, without scales, that cutlet has kernels for on a device.
pub fn dtypes_with_kernels(device: &Device) -> Vec<Dtype> {
    let all = Dtype::value_variants().iter().copied();
    all.filter(|dtype| dtype.scales() == Scales::None && has_kernels(device, *dtype))
        .collect()
}

/// Whether cutlet has kernels for these element types on a device.
fn has_kernels(device: &Device, dtype: Dtype) -> bool {
    let families = cutlet::Gemm::families(device);
    let (operands, c, _) = key::types(dtype);
    let (operands, c) = (operands.to_string(), c.to_string());
    let runs = |family: &KernelFamily| {
        family.refusal.is_none()
            && family.is_general
            && (family.operands, family.c) == (&operands, &c)
    };
    families.iter().any(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Result<Vec<Problem>, String> {
        Gemm.problems(toml::from_str(text).unwrap(), &[Dtype::F32, Dtype::Bf16])
    }

    #[test]
    fn an_entry_is_every_m_with_every_nk_in_every_type() {
        let ids: Vec<String> = problems("m = [1, 2]\nnk = [[3, 4], [5, 6]]")
            .unwrap()
            .iter()
            .map(|problem| Gemm.row(problem).id)
            .collect();
        assert_eq!(ids.len(), 8);
        assert_eq!(ids[0], "gemm f32 1x3x4");
        assert_eq!(ids[7], "gemm bf16 2x5x6");
    }

    #[test]
    fn a_batch_is_work_of_all_its_products() {
        let row = |text| Gemm.row(&problems(text).unwrap()[0]);
        let (one, batch) = (
            row("mnk = [[2, 3, 4]]"),
            row("mnk = [[2, 3, 4]]\nbatch = 5"),
        );
        assert_eq!(batch.id, "gemm f32 5 × 2x3x4");
        assert_eq!(batch.operations, 5.0 * one.operations);
        assert_eq!(batch.bytes, 5.0 * one.bytes);
        assert!(problems("mnk = [[2, 3, 4]]\nbatch = 0").is_err());
    }

    #[test]
    fn a_problem_is_read_from_the_columns_that_it_is_written_in() {
        for layout in ["nn", "nt", "tn", "tt"] {
            for epilogue in ["", "epilogue = \"bias+gelu\""] {
                let text =
                    format!("mnk = [[1, 2, 3]]\nbatch = 7\nlayout = \"{layout}\"\n{epilogue}");
                for problem in problems(&text).unwrap() {
                    let row = Gemm.row(&problem);
                    let columns = row.columns.iter();
                    let mut cells = Cells::new(columns.map(|(column, text)| (*column, &**text)));
                    cells.set("type", &row.dtype);
                    assert_eq!(Gemm.row(&Gemm.problem(&cells).unwrap()), row);
                }
            }
        }
        let wrong = Cells::new([("type", "bf16"), ("m", "1"), ("n", "0"), ("k", "1")]);
        assert!(Gemm.problem(&wrong).unwrap_err().starts_with("n is `0`"));
    }

    #[test]
    fn entries_that_mean_nothing_are_refused() {
        assert!(problems("m = [1]").is_err());
        assert!(problems("mnk = [[1, 0, 1]]").is_err());
        assert!(problems("mnk = [[1, 1, 1]]\ndtypes = []").is_err());
        let most = format!("mnk = [[{MAX_EXTENT}, 1, {MAX_EXTENT}]]");
        assert!(problems(&most).is_ok());
        let more = format!("m = [1]\nnk = [[1, 1], [{}, 1]]", MAX_EXTENT + 1);
        let found = format!("[1, {}, 1]", MAX_EXTENT + 1);
        assert!(problems(&more).unwrap_err().contains(&found));
        assert!(problems("mkn = [[1, 1, 1]]").unwrap_err().contains("mkn"));
        assert!(problems("mnk = [[1, 1, 1]]\nlayout = \"xy\"").is_err());
        assert!(problems("mnk = [[1, 1, 1]]\nepilogue = \"xy\"").is_err());
    }

    #[test]
    fn the_epilogue_is_part_of_the_name() {
        let text = "mnk = [[1, 2, 3]]\nlayout = \"nn\"\nepilogue = \"bias+gelu\"";
        let row = Gemm.row(&problems(text).unwrap()[1]);
        assert_eq!(row.id, "gemm bf16 1x2x3 nn bias+gelu");
        assert_eq!(row.shape, "1 2 3 nn bias+gelu");
    }

    #[test]
    fn the_input_of_an_activation_is_about_1() {
        for (k, epilogue, size) in [
            (64, "", 8.0),
            (64, "gelu", 1.0),
            (64, "bias+silu", 2.0f64.sqrt()),
            (5120, "relu", 5120.0f64.sqrt() / 64.0),
        ] {
            let entry = match epilogue {
                "" => format!("mnk = [[1, 2, {k}]]"),
                _ => format!("mnk = [[1, 2, {k}]]\nepilogue = \"{epilogue}\""),
            };
            assert_eq!(problems(&entry).unwrap()[0].size(), size, "{k} {epilogue}");
        }
    }

    #[test]
    fn work_counts_each_operand_once() {
        let row = Gemm.row(&problems("mnk = [[2, 3, 5]]\ndtypes = [\"bf16\"]").unwrap()[0]);
        assert_eq!(row.operations, 60.0);
        assert_eq!(row.bytes, (10.0 + 15.0 + 6.0) * 2.0);
    }
}
