//! The model: its layers, the tokens that are computed together, and the steps of a decoder.

use cutlet::{
    Attention, AttentionDecode, Buffer, DeviceTensor, Layout, Linear, Norm, Result, Rope,
    RopeTable, Sampling, Stream, Tensor, TensorMut, argmax, bf16, gather, layout, scatter,
};

/// What is added to a mean of squares.
pub const EPSILON: f32 = 1e-5;
/// Positions are rotated by powers of it.
pub const BASE: f64 = 500_000.0;

/// The sizes of a model, and of what it is asked.
#[derive(Clone, Copy)]
pub struct Config {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub features: usize,
    pub hidden: usize,
    pub vocabulary: usize,
    pub prompt: usize,
    pub generated: usize,
}

impl Config {
    /// Elements of a token's keys and values.
    pub fn cached(&self) -> usize {
        2 * self.heads_of_keys * self.features
    }

    /// Elements of a token's queries, keys and values.
    pub fn qkv(&self) -> usize {
        self.heads * self.features + self.cached()
    }

    pub fn longest(&self) -> usize {
        self.prompt + self.generated
    }

    /// The [numbers](Tokens::numbers) of `of_each` tokens from `first` on.
    pub fn numbers(&self, sequences: usize, first: usize, of_each: usize) -> Vec<i32> {
        let positions = || (0..sequences * of_each).map(|token| first + token % of_each);
        let begins = (0..sequences * of_each).map(|token| token / of_each * self.longest());
        let rows = positions()
            .zip(begins)
            .map(|(position, begin)| begin + position);
        let lengths = (0..sequences).map(|_| first + of_each);
        positions()
            .chain(rows)
            .chain(lengths)
            .map(|number| number as i32)
            .collect()
    }
}

pub struct Layer {
    pub norms: [DeviceTensor<bf16>; 2],
    /// To queries, keys and values.
    pub qkv: Linear<bf16>,
    pub output: Linear<bf16>,
    /// To gates and ups, whose rows alternate.
    pub gated: Linear<bf16>,
    pub down: Linear<bf16>,
}

pub struct Model {
    pub config: Config,
    pub layers: Vec<Layer>,
    pub norm: DeviceTensor<bf16>,
    /// Its weights are the embeddings, too.
    pub head: Linear<bf16>,
    pub angles: RopeTable,
}

/// Tokens of each sequence that are computed together, and what becomes of them.
pub struct Tokens {
    pub sequences: usize,
    pub of_each: usize,
    pub tokens: Buffer<i32>,
    /// Positions of the tokens, then their rows of the cache, then the lengths of the sequences with them.
    pub numbers: Buffer<i32>,
    /// The residual, and what is added to it next.
    pub x: DeviceTensor<bf16>,
    pub delta: DeviceTensor<bf16>,
    pub normal: DeviceTensor<bf16>,
    pub qkv: DeviceTensor<bf16>,
    pub attended: DeviceTensor<bf16>,
    pub hidden: DeviceTensor<bf16>,
}

/// A model, its sequences, and the buffers of a step.
pub struct Decoder {
    pub model: Model,
    /// Of each layer: (sequence, key, heads of keys and then of values, feature).
    pub caches: Vec<Buffer<bf16>>,
    pub prompt: Tokens,
    pub last: Tokens,
    pub normal: DeviceTensor<bf16>,
    pub logits: DeviceTensor<bf16>,
    /// Draws the next token. Without it, that is the most probable one.
    pub sampling: Option<Sampling>,
    pub counter: Buffer<u64>,
}

impl Model {
    pub fn random(stream: &Stream, config: Config) -> Result<Model> {
        let mut random = fastrand::Rng::with_seed(7);
        let norm = || {
            DeviceTensor::upload(
                stream,
                &vec![bf16::from_f32(1.25); config.width],
                [config.width],
            )
        };
        let mut linear = |outputs: usize, inputs: usize| {
            let most = (3.0 / inputs as f32).sqrt();
            let number = |_| bf16::from_f32(most * (2.0 * random.f32() - 1.0));
            let weights: Vec<bf16> = (0..outputs * inputs).map(number).collect();
            Linear::new(DeviceTensor::upload(stream, &weights, [outputs, inputs])?)
        };
        let mut layers = Vec::new();
        for _ in 0..config.layers {
            layers.push(Layer {
                norms: [norm()?, norm()?],
                qkv: linear(config.qkv(), config.width)?,
                output: linear(config.width, config.heads * config.features)?,
                gated: linear(2 * config.hidden, config.width)?.swiglu(),
                down: linear(config.width, config.hidden)?,
            });
        }
        Ok(Model {
            config,
            layers,
            norm: norm()?,
            head: linear(config.vocabulary, config.width)?,
            angles: RopeTable::new(stream, config.longest(), config.features, BASE)?,
        })
    }

    /// Elements of all weights that a token is multiplied by.
    pub fn size(&self) -> usize {
        let of_layer = |it: &Layer| {
            [&it.qkv, &it.output, &it.gated, &it.down].map(|it| it.weights().view().len())
        };
        let layers = self.layers.iter().flat_map(of_layer).sum::<usize>();
        layers + self.head.weights().view().len()
    }

    /// Runs all layers on tokens, and writes their keys and values to the caches.
    pub fn run(&self, stream: &Stream, caches: &mut [Buffer<bf16>], on: &mut Tokens) -> Result<()> {
        let Config {
            heads,
            heads_of_keys,
            features,
            ..
        } = self.config;
        let (qkv, cached, longest) = (
            self.config.qkv(),
            self.config.cached(),
            self.config.longest(),
        );
        let (sequences, of_each) = (on.sequences, on.of_each);
        let (rows, queries, both) = (sequences * of_each, heads * features, heads + heads_of_keys);
        // (sequence, token, head, feature)
        let by_heads = |tokens: usize, heads: usize, apart: usize, width: usize| -> Layout {
            let sequence = apart * width;
            layout!((dyn sequences, dyn tokens, dyn heads, dyn features):(dyn sequence, dyn width, dyn features, 1))
        };
        let positions = layout!((dyn sequences, dyn of_each, dyn both):(dyn of_each, 1, 0));
        let positions = Tensor::new(on.numbers.slice(..rows)?, positions)?;
        gather(stream, self.head.weights(), &on.tokens, &mut on.x)?;
        for (nth, (layer, cache)) in self.layers.iter().zip(caches).enumerate() {
            let [before_attention, before_mlp] = &layer.norms;
            let norm = Norm::rms(EPSILON).weight(before_attention);
            match nth {
                0 => norm.run(stream, &on.x, &mut on.normal)?,
                _ => norm
                    .residual(&mut on.x)
                    .run(stream, &on.delta, &mut on.normal)?,
            }
            layer.qkv.run(stream, &on.normal, &mut on.qkv)?;
            let rotated = TensorMut::new(on.qkv.view_mut(), by_heads(of_each, both, of_each, qkv))?;
            Rope::new(&self.angles).run_in_place(stream, positions, rotated)?;
            let new = layout!((dyn rows, dyn cached):(dyn qkv, 1));
            let new = Tensor::new(on.qkv.view().slice(queries..)?, new)?;
            let all = TensorMut::new(&mut *cache, [sequences * longest, cached])?;
            scatter(stream, new, on.numbers.slice(rows..2 * rows)?, all)?;

            let seen = if of_each > 1 { of_each } else { longest };
            let of_cache = by_heads(seen, heads_of_keys, longest, cached);
            let (keys, values) = (
                Tensor::new(cache.view(), of_cache)?,
                cache.slice(cached / 2..)?,
            );
            let values = Tensor::new(values, of_cache)?;
            let of_queries = Tensor::new(on.qkv.view(), by_heads(of_each, heads, of_each, qkv))?;
            let attended = by_heads(of_each, heads, of_each, queries);
            let attended = TensorMut::new(on.attended.view_mut(), attended)?;
            if of_each > 1 {
                let attention = Attention::new().causal();
                attention.run(stream, of_queries, keys, values, attended)?;
            } else {
                let attention = AttentionDecode::new().lengths(on.numbers.slice(2 * rows..)?);
                attention.run(stream, of_queries, keys, values, attended)?;
            }
            layer.output.run(stream, &on.attended, &mut on.delta)?;
            let norm = Norm::rms(EPSILON).weight(before_mlp).residual(&mut on.x);
            norm.run(stream, &on.delta, &mut on.normal)?;
            layer.gated.run(stream, &on.normal, &mut on.hidden)?;
            layer.down.run(stream, &on.hidden, &mut on.delta)?;
        }
        Ok(())
    }
}

impl Tokens {
    pub fn new(
        stream: &Stream,
        config: &Config,
        sequences: usize,
        tokens: &[i32],
    ) -> Result<Tokens> {
        let (rows, of_each) = (tokens.len(), tokens.len() / sequences);
        let features = |features: usize| DeviceTensor::zeroed(stream, [rows, features]);
        Ok(Tokens {
            sequences,
            of_each,
            tokens: stream.upload(tokens)?,
            numbers: stream.upload(&config.numbers(sequences, 0, of_each))?,
            x: features(config.width)?,
            delta: features(config.width)?,
            normal: features(config.width)?,
            qkv: features(config.qkv())?,
            attended: features(config.heads * config.features)?,
            hidden: features(config.hidden)?,
        })
    }
}

impl Decoder {
    pub fn new(
        stream: &Stream,
        model: Model,
        prompt: &[i32],
        sequences: usize,
        sampling: Option<Sampling>,
    ) -> Result<Self> {
        let config = model.config;
        let cache = |_: usize| stream.zeroed(sequences * config.longest() * config.cached());
        Ok(Decoder {
            caches: (0..config.layers).map(cache).collect::<Result<_, _>>()?,
            prompt: Tokens::new(stream, &config, sequences, prompt)?,
            last: Tokens::new(stream, &config, sequences, &vec![0; sequences])?,
            normal: DeviceTensor::zeroed(stream, [sequences, config.width])?,
            logits: DeviceTensor::zeroed(stream, [sequences, config.vocabulary])?,
            sampling,
            counter: stream.zeroed(1)?,
            model,
        })
    }

    /// Computes the prompt, or the last tokens, and the tokens after them.
    pub fn step(&mut self, stream: &Stream, of_prompt: bool) -> Result<()> {
        let on = if of_prompt {
            &mut self.prompt
        } else {
            &mut self.last
        };
        self.model.run(stream, &mut self.caches, on)?;
        let (sequences, width) = (on.sequences, self.model.config.width);
        let (apart, before) = (on.of_each * width, (on.of_each - 1) * width);
        let last = layout!((dyn sequences, dyn width):(dyn apart, 1));
        let x = TensorMut::new(on.x.view_mut().split_at(before)?.1, last)?;
        let delta = Tensor::new(on.delta.view().slice(before..)?, last)?;
        let norm = Norm::rms(EPSILON).weight(&self.model.norm).residual(x);
        norm.run(stream, delta, &mut self.normal)?;
        self.model
            .head
            .run(stream, &self.normal, &mut self.logits)?;
        let next = TensorMut::new(&mut self.last.tokens, [sequences])?;
        match self.sampling {
            None => argmax(stream, &self.logits, next),
            Some(sampling) => {
                let counters = Tensor::new(&self.counter, layout!((dyn sequences):(0)))?;
                sampling.run(stream, &self.logits, counters, next)
            }
        }
    }
}
