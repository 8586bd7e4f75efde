//! Matrices on the host.

use cutlet::Order;

/// A matrix in host memory, with the elements around it.
#[derive(Clone)]
pub struct Host {
    pub elements: Vec<f32>,
    pub rows: usize,
    pub columns: usize,
    pub order: Order,
    pub ld: usize,
    offset: usize,
}

impl Host {
    /// A matrix of normally distributed elements, with `padding` elements between runs and `offset` elements in front.
    pub fn random(
        rows: usize,
        columns: usize,
        order: Order,
        padding: usize,
        offset: usize,
    ) -> Self {
        let (run, count) = match order {
            Order::RowMajor => (columns, rows),
            Order::ColMajor => (rows, columns),
        };
        let ld = run + padding;
        let mut random = fastrand::Rng::with_seed((rows * 1_000_003 + columns) as u64);
        let mut normal = || {
            let (u, v) = (1.0 - random.f32(), random.f32());
            (-2.0 * u.ln()).sqrt() * (std::f32::consts::TAU * v).cos()
        };
        let elements = (0..offset + ld * count).map(|_| normal()).collect();
        Host {
            elements,
            rows,
            columns,
            order,
            ld,
            offset,
        }
    }

    /// Fills the matrix and the elements around it with NaN.
    pub fn poison(&mut self) {
        self.elements.fill(f32::NAN);
    }

    /// A matrix of the same extents with other elements.
    pub fn with_elements(&self, elements: Vec<f32>) -> Self {
        Host {
            elements,
            ..self.clone()
        }
    }

    pub fn at(&self, row: usize, column: usize) -> f32 {
        self.elements[self.index(row, column)]
    }

    fn index(&self, row: usize, column: usize) -> usize {
        let (along, across) = match self.order {
            Order::RowMajor => (column, row),
            Order::ColMajor => (row, column),
        };
        self.offset + across * self.ld + along
    }

    /// Fails if an element that is not part of the matrix differs from `before`.
    pub fn assert_padding_untouched(&self, before: &Host) {
        let mut inside = vec![false; self.elements.len()];
        for row in 0..self.rows {
            for column in 0..self.columns {
                inside[self.index(row, column)] = true;
            }
        }
        for (i, inside) in inside.into_iter().enumerate() {
            let same = self.elements[i].to_bits() == before.elements[i].to_bits();
            assert!(
                inside || same,
                "element {i} lies outside the matrix and was written"
            );
        }
    }
}
