//! The key of a problem: what a tuning file names it by.

use cutlet::{BetaKind, BiasAlong, ElementType, Order, Precision, ProblemKey, ScalesKind};

use super::Problem;
use super::types::element_bytes;
use crate::measure::dtype::Dtype;
use crate::measure::scales::Scales;

impl Problem {
    /// The key of the problem's packed matrices.
    pub fn key(&self) -> ProblemKey {
        let Problem {
            m,
            n,
            k,
            batch,
            dtype,
            layout,
            epilogue,
            ..
        } = *self;
        let (operands, c, precision) = types(dtype);
        let orders @ [order_a, order_b] = layout.orders();
        let run = |order: Order, rows: usize, columns: usize| match order {
            Order::RowMajor => columns,
            Order::ColMajor => rows,
        };
        let (of_ab, of_c) = element_bytes(dtype);
        // Matrices are packed, and so are those of a batch: each begins where a run could begin.
        let runs = [
            run(order_a, m, k) * of_ab,
            run(order_b, k, n) * of_ab,
            n * of_c,
        ];
        ProblemKey {
            operands,
            c,
            precision: precision.for_k(k),
            scales: match dtype.scales() {
                Scales::None => ScalesKind::None,
                Scales::Blocks => ScalesKind::Blocks,
                Scales::Tensor => ScalesKind::Outer { in_pairs: true },
                // Scales begin a buffer.
                Scales::Outer => ScalesKind::Outer {
                    in_pairs: n.is_multiple_of(2),
                },
            },
            extents: [m, n, k],
            batch,
            shared: [false; 2],
            orders,
            alignments: runs.map(ProblemKey::alignment),
            beta: BetaKind::Zero,
            bias: epilogue.bias.then_some(BiasAlong::Columns),
            residual: None,
            activation: epilogue.activation,
        }
    }
}

/// The types of A and B, and of C, and the precision.
pub fn types(dtype: Dtype) -> (ElementType, ElementType, Precision) {
    let same = |of: ElementType| (of, of, Precision::Exact);
    match dtype {
        Dtype::F32 => same(ElementType::F32),
        Dtype::Tf32 => (ElementType::F32, ElementType::F32, Precision::Tf32),
        Dtype::Tf32x3 => (ElementType::F32, ElementType::F32, Precision::Tf32x3),
        Dtype::F16 => same(ElementType::F16),
        Dtype::Bf16 => same(ElementType::Bf16),
        Dtype::F64 => same(ElementType::F64),
        Dtype::I8 => (ElementType::I8, ElementType::I32, Precision::Exact),
        Dtype::E4m3 | Dtype::E4m3Outer | Dtype::E4m3Blocks => {
            (ElementType::E4m3, ElementType::Bf16, Precision::Exact)
        }
        Dtype::E4m3Fast => (
            ElementType::E4m3,
            ElementType::Bf16,
            Precision::FastAccumulation,
        ),
    }
}
