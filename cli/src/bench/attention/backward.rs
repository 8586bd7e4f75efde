//! `cutlet bench attention --backward`: the gradients of queries, keys and values, and their check.

use cutlet::{Attention, DeviceTensor, Stream};
use half::bf16;

use super::heads::{Call, Check, Heads, Shape};
use crate::measure::error::Result;
use crate::measure::random::random;
use crate::measure::setting::Setting;

/// The tensors of a call: those of attention, and the gradients.
pub struct Gradients {
    forward: Heads,
    log_sum_exp: DeviceTensor<f32>,
    output_gradient: DeviceTensor<bf16>,
    of_queries: DeviceTensor<bf16>,
    of_keys: DeviceTensor<bf16>,
    of_values: DeviceTensor<bf16>,
}

impl Gradients {
    /// Tensors of random numbers, and the output of attention.
    ///
    /// # Errors
    /// If the device is out of memory, or fails.
    pub fn new(shape: Shape, setting: &Setting) -> Result<Gradients> {
        let stream = &setting.stream;
        let [of_queries, of_keys] = shape.extents();
        let numbers = random(stream, of_queries.iter().product(), setting.seed ^ 1 << 32)?;
        let sums = [shape.sequences, shape.tokens, shape.heads];
        let mut gradients = Gradients {
            forward: Heads::new(shape, setting)?,
            log_sum_exp: DeviceTensor::zeroed(stream, sums)?,
            output_gradient: DeviceTensor::new(numbers, of_queries)?,
            of_queries: DeviceTensor::zeroed(stream, of_queries)?,
            of_keys: DeviceTensor::zeroed(stream, of_keys)?,
            of_values: DeviceTensor::zeroed(stream, of_keys)?,
        };
        let sums = &mut gradients.log_sum_exp;
        let attention = shape.attention().log_sum_exp(sums);
        gradients.forward.run(stream, attention)?;
        Ok(gradients)
    }

    /// Everything that the check needs, on the host.
    fn download(&self, stream: &Stream) -> Result<OnHost> {
        let Heads {
            shape,
            queries,
            keys,
            values,
            output,
            ..
        } = &self.forward;
        Ok(OnHost {
            shape: *shape,
            queries: queries.download(stream)?,
            keys: keys.download(stream)?,
            values: values.download(stream)?,
            output: output.download(stream)?,
            log_sum_exp: self.log_sum_exp.download(stream)?,
            output_gradient: self.output_gradient.download(stream)?,
        })
    }
}

impl Call for Gradients {
    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        let attention: Attention<'_> = self.forward.shape.attention();
        let Heads {
            queries,
            keys,
            values,
            output,
            ..
        } = &self.forward;
        Ok(attention.backward(
            stream,
            (queries, keys, values),
            (output, &self.log_sum_exp),
            &self.output_gradient,
            (&mut self.of_queries, &mut self.of_keys, &mut self.of_values),
        )?)
    }

    fn check(&mut self, stream: &Stream) -> Result<Check> {
        for gradient in [&mut self.of_queries, &mut self.of_keys, &mut self.of_values] {
            stream.fill_bytes(gradient.view_mut(), 0xff)?;
        }
        self.enqueue(stream)?;
        let given = self.download(stream)?;
        let Shape { features, .. } = given.shape;
        let of = |found: &DeviceTensor<bf16>,
                  exact: &(dyn Fn(usize) -> Vec<f64> + Sync)|
         -> Result<Check> {
            let found = found.download(stream)?;
            let rows = found.len() / features;
            Ok(Check::of(rows, features, &found, exact))
        };
        let checks = [
            of(&self.of_queries, &|row| given.of_query(row))?,
            of(&self.of_keys, &|row| given.of_key(row))?,
            of(&self.of_values, &|row| given.of_value(row))?,
        ];
        Ok(Check::worst(checks))
    }
}

/// Operands and results of attention on the host. Their gradients follow from them in f64.
struct OnHost {
    shape: Shape,
    queries: Vec<bf16>,
    keys: Vec<bf16>,
    values: Vec<bf16>,
    output: Vec<bf16>,
    log_sum_exp: Vec<f32>,
    output_gradient: Vec<bf16>,
}

impl OnHost {
    fn features<'a>(&self, of: &'a [bf16], row: usize) -> &'a [bf16] {
        &of[row * self.shape.features..][..self.shape.features]
    }

    /// The sequence, the token and the head of a row of a tensor of so many heads.
    fn place(&self, row: usize, heads: usize) -> [usize; 3] {
        let (at, head) = (row / heads, row % heads);
        [at / self.shape.tokens, at % self.shape.tokens, head]
    }

    /// The row of a tensor of so many heads that is at this place.
    fn row(&self, [sequence, token, head]: [usize; 3], heads: usize) -> usize {
        (sequence * self.shape.tokens + token) * heads + head
    }

    /// The weight of a key for a query, and the gradient of their score.
    fn weight(&self, query: usize, key: usize) -> (f64, f64) {
        let keys = self.features(&self.keys, key);
        let score = dot(self.features(&self.queries, query), keys) * self.scale();
        let weight = (score - f64::from(self.log_sum_exp[query])).exp();
        let gradient = self.features(&self.output_gradient, query);
        let of_weight = dot(gradient, self.features(&self.values, key))
            - dot(gradient, self.features(&self.output, query));
        (weight, weight * of_weight)
    }

    fn scale(&self) -> f64 {
        1.0 / (self.shape.features as f64).sqrt()
    }

    /// The gradient of a query.
    fn of_query(&self, row: usize) -> Vec<f64> {
        let Shape {
            tokens,
            heads,
            heads_of_keys,
            causal,
            ..
        } = self.shape;
        let [sequence, token, head] = self.place(row, heads);
        let head = head / (heads / heads_of_keys);
        let visible = if causal { token + 1 } else { tokens };
        let mut gradient = vec![0.0; self.shape.features];
        for token in 0..visible {
            let key = self.row([sequence, token, head], heads_of_keys);
            let (_, of_score) = self.weight(row, key);
            let keys = self.features(&self.keys, key);
            add(&mut gradient, of_score * self.scale(), keys);
        }
        gradient
    }

    /// The gradient of a key.
    fn of_key(&self, row: usize) -> Vec<f64> {
        let mut gradient = vec![0.0; self.shape.features];
        for query in self.queries_of(row) {
            let (_, of_score) = self.weight(query, row);
            let queries = self.features(&self.queries, query);
            add(&mut gradient, of_score * self.scale(), queries);
        }
        gradient
    }

    /// The gradient of a key's value.
    fn of_value(&self, row: usize) -> Vec<f64> {
        let mut gradient = vec![0.0; self.shape.features];
        for query in self.queries_of(row) {
            let (weight, _) = self.weight(query, row);
            let of_output = self.features(&self.output_gradient, query);
            add(&mut gradient, weight, of_output);
        }
        gradient
    }

    /// The rows of the queries that see a key.
    fn queries_of(&self, key: usize) -> impl Iterator<Item = usize> {
        let Shape {
            tokens,
            heads,
            heads_of_keys,
            causal,
            ..
        } = self.shape;
        let [sequence, token, head] = self.place(key, heads_of_keys);
        let group = heads / heads_of_keys;
        let first = if causal { token } else { 0 };
        (first..tokens).flat_map(move |token| {
            let of_head = move |head| self.row([sequence, token, head], heads);
            (head * group..(head + 1) * group).map(of_head)
        })
    }
}

fn dot(a: &[bf16], b: &[bf16]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.to_f64() * b.to_f64()).sum()
}

/// Adds so many times a row.
fn add(to: &mut [f64], factor: f64, row: &[bf16]) {
    for (to, element) in to.iter_mut().zip(row) {
        *to += factor * element.to_f64();
    }
}
