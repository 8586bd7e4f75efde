//! The model, and its run on a prompt or on the tokens that were drawn last.

use std::ops::Range;

use cutlet::{
    Attention, AttentionDecode, DeviceTensor, Linear, Norm, Result, Rope, RopeTable, Sampling,
    Stream, Tensor, bf16, gather, scatter,
};

/// Of norms.
pub const EPSILON: f32 = 1e-5;
/// Of the angles of rotary embeddings.
pub const BASE: f64 = 500_000.0;

#[derive(Clone, Copy)]
pub struct Config {
    pub layers: usize,
    pub width: usize,
    pub heads: usize,
    pub heads_of_keys: usize,
    pub hidden: usize,
    pub vocabulary: usize,
    /// At most so many as the decoder was made for.
    pub sequences: usize,
    pub prompt: usize,
    pub longest: usize,
}

pub struct Layer {
    pub qkv: Linear<bf16>,
    pub output: Linear<bf16>,
    /// To gates and ups, whose rows alternate.
    pub gated: Linear<bf16>,
    pub down: Linear<bf16>,
    /// Behind the attention, and behind the layer.
    pub norms: [DeviceTensor<bf16>; 2],
    /// Keys and values: a row for each position of each sequence.
    cache: DeviceTensor<bf16>,
}

pub struct Decoder {
    pub config: Config,
    pub norm: DeviceTensor<bf16>,
    pub layers: Vec<Layer>,
    /// Its weights are the embeddings, too.
    pub head: Linear<bf16>,
    angles: RopeTable,
    prompt: DeviceTensor<i32>,
    /// A row for each position of each sequence.
    pub tokens: DeviceTensor<i32>,
    next: DeviceTensor<i32>,
    pub logits: DeviceTensor<bf16>,
    pub sampling: Sampling,
    /// Of the weights that are read for a token.
    pub bytes: usize,
}

impl Config {
    /// Of each token at these positions: its sequence's length up to it, and then its row in the tables.
    pub fn places(&self, stream: &Stream, positions: Range<usize>) -> Result<DeviceTensor<i32>> {
        let (tokens, rows) = (positions.len(), self.sequences * positions.len());
        DeviceTensor::from_fn(stream, [2, rows], |nth| {
            let (sequence, position) = (nth % rows / tokens, positions.start + nth % tokens);
            let row = sequence * self.longest + position;
            (if nth < rows { position + 1 } else { row }) as i32
        })
    }
}

impl Decoder {
    pub fn random(stream: &Stream, config: Config) -> Result<Self> {
        let (mut random, mut bytes) = (fastrand::Rng::with_seed(7), 0);
        let mut linear = |outputs: usize, inputs: usize| {
            bytes += 2 * outputs * inputs;
            let most = (3.0 / inputs as f32).sqrt();
            let weight = |_| bf16::from_f32(most * (2.0 * random.f32() - 1.0));
            Linear::new(DeviceTensor::from_fn(stream, [outputs, inputs], weight)?)
        };
        let norm = || DeviceTensor::from_fn(stream, [config.width], |_| bf16::from_f32(1.25));
        let features = config.width / config.heads;
        let cached = 2 * config.heads_of_keys * features;
        let rows = config.sequences * config.longest;
        let mut layers = Vec::new();
        for _ in 0..config.layers {
            layers.push(Layer {
                qkv: linear(config.width + cached, config.width)?,
                output: linear(config.width, config.width)?,
                gated: linear(2 * config.hidden, config.width)?.swiglu(),
                down: linear(config.width, config.hidden)?,
                norms: [norm()?, norm()?],
                cache: DeviceTensor::zeroed(stream, [rows, cached])?,
            });
        }
        let head = linear(config.vocabulary, config.width)?;
        let token = |_| random.i32(0..config.vocabulary as i32);
        Ok(Decoder {
            config,
            norm: norm()?,
            layers,
            head,
            angles: RopeTable::new(stream, config.longest + 1, features, BASE)?,
            prompt: DeviceTensor::from_fn(stream, [config.sequences * config.prompt, 1], token)?,
            tokens: DeviceTensor::zeroed(stream, [rows, 1])?,
            next: DeviceTensor::zeroed(stream, [config.sequences, 1])?,
            logits: DeviceTensor::zeroed(stream, [config.sequences, config.vocabulary])?,
            sampling: Sampling::new(5).top_k(20),
            bytes,
        })
    }

    /// Enqueues the computation of the prompt, or of the tokens drawn last, and the draw of the next ones.
    pub fn run(&mut self, stream: &Stream, places: &DeviceTensor<i32>) -> Result<()> {
        let (config, rows) = (self.config, places.view().len() / 2);
        let (sequences, longest, width) = (config.sequences, config.longest, config.width);
        let (tokens, is_prompt) = (rows / sequences, rows > sequences);
        let (lengths, in_tables) = (places.view().slice(..rows)?, places.view().slice(rows..)?);
        let (heads, of_keys, features) = (config.heads, config.heads_of_keys, width / config.heads);
        let by_heads = |tokens, heads| [sequences, tokens, heads, features];
        // Lengths serve as positions: only differences of positions count.
        let positions = Tensor::new(lengths, [sequences, tokens])?;
        // A graph keeps what is allocated while it is captured.
        let zeroed = |columns| DeviceTensor::zeroed(stream, [rows, columns]);
        let (mut x, mut normal, mut delta) = (zeroed(width)?, zeroed(width)?, zeroed(width)?);
        let (mut attended, mut hidden) = (zeroed(width)?, zeroed(config.hidden)?);
        let all_heads = heads + 2 * of_keys;
        let mut qkv = zeroed(all_heads * features)?;

        let ids = if is_prompt { &self.prompt } else { &self.next };
        let (list, column) = (ids.view().slice(..rows)?, ids.tensor().narrow(0, ..rows)?);
        scatter(stream, column, in_tables, &mut self.tokens)?;
        gather(stream, self.head.weights(), list, &mut x)?;
        let norm = Norm::rms(EPSILON).weight(&self.norm);
        norm.run(stream, &x, &mut normal)?;
        for layer in &mut self.layers {
            layer.qkv.run(stream, &normal, &mut qkv)?;
            let rotated = qkv.tensor_mut().narrow(1, ..width + of_keys * features)?;
            let rotated = rotated.reshape(by_heads(tokens, heads + of_keys))?;
            Rope::new(&self.angles).run_in_place(stream, positions, rotated)?;
            let new = qkv.tensor().narrow(1, width..)?;
            scatter(stream, new, in_tables, &mut layer.cache)?;

            let new = qkv.tensor().reshape(by_heads(tokens, all_heads))?;
            let (queries, new) = (new.narrow(2, ..heads)?, new.narrow(2, heads..)?);
            let cache = layer.cache.tensor().narrow(0, ..sequences * longest)?;
            let cache = cache.reshape(by_heads(longest, 2 * of_keys))?;
            let seen = if is_prompt { new } else { cache };
            let (keys, values) = (seen.narrow(2, ..of_keys)?, seen.narrow(2, of_keys..)?);
            let output = attended.tensor_mut().reshape(by_heads(tokens, heads))?;
            if is_prompt {
                let attention = Attention::new().causal();
                attention.run(stream, queries, keys, values, output)?;
            } else {
                let attention = AttentionDecode::new().lengths(lengths);
                attention.run(stream, queries, keys, values, output)?;
            }
            layer.output.run(stream, &attended, &mut delta)?;
            let norm = Norm::rms(EPSILON).weight(&layer.norms[0]);
            norm.residual(&mut x).run(stream, &delta, &mut normal)?;
            layer.gated.run(stream, &normal, &mut hidden)?;
            layer.down.run(stream, &hidden, &mut delta)?;
            let norm = Norm::rms(EPSILON).weight(&layer.norms[1]);
            norm.residual(&mut x).run(stream, &delta, &mut normal)?;
        }
        let last = normal.tensor().reshape([sequences, tokens * width])?;
        let last = last.narrow(1, (tokens - 1) * width..)?;
        let mut logits = self.logits.tensor_mut().narrow(0, ..sequences)?;
        self.head.run(stream, last, &mut logits)?;
        // A counter is any number that differs from run to run: two places as one.
        let counters = places.view().slice(..2 * sequences)?.cast()?;
        let counters = Tensor::new(counters, [sequences])?;
        let next = self.next.tensor_mut().narrow(0, ..sequences)?;
        self.sampling.run(stream, &logits, counters, next)
    }
}
