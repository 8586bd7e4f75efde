//! The model, and its run on a prompt or on the tokens that were drawn last.

use std::ops::Range;

use cutlet::{
    Attention, AttentionDecode, DeviceTensor, Linear, Result, Rope, RopeTable, Sampling, Stream,
    Tensor, bf16, gather, scatter,
};

/// Of norms, and the weight of each column in them.
pub const EPSILON: f32 = 1e-5;
pub const NORM: f32 = 1.25;
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
    /// Normalises what it multiplies, as the gated layer and the head do.
    pub qkv: Linear<bf16>,
    pub output: Linear<bf16>,
    /// To gates and ups, whose rows alternate.
    pub gated: Linear<bf16>,
    pub down: Linear<bf16>,
    /// Keys and values: (sequence, position, head, feature).
    cache: [DeviceTensor<bf16>; 2],
}

pub struct Decoder {
    pub config: Config,
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
    /// Of each token at these positions: its sequence's length up to it, and then its slot in the cache.
    pub fn places(&self, stream: &Stream, positions: Range<usize>) -> Result<DeviceTensor<i32>> {
        let (tokens, rows) = (positions.len(), self.sequences * positions.len());
        DeviceTensor::from_fn(stream, [2, rows], |nth| {
            let (sequence, position) = (nth % rows / tokens, positions.start + nth % tokens);
            let slot = sequence * self.longest + position;
            (if nth < rows { position + 1 } else { slot }) as i32
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
        let norm = || stream.upload(&vec![bf16::from_f32(NORM); config.width]);
        let features = config.width / config.heads;
        let all_heads = config.heads + 2 * config.heads_of_keys;
        let slots = config.sequences * config.longest;
        let (sequences, of_keys) = (config.sequences, config.heads_of_keys);
        let shape = [sequences, config.longest, of_keys, features];
        let cache = || DeviceTensor::zeroed(stream, shape);
        let mut layers = Vec::new();
        for _ in 0..config.layers {
            layers.push(Layer {
                qkv: linear(all_heads * features, config.width)?.rms_norm(norm()?, EPSILON),
                output: linear(config.width, config.width)?,
                gated: linear(2 * config.hidden, config.width)?
                    .rms_norm(norm()?, EPSILON)
                    .swiglu(),
                down: linear(config.width, config.hidden)?,
                cache: [cache()?, cache()?],
            });
        }
        let head = linear(config.vocabulary, config.width)?.rms_norm(norm()?, EPSILON);
        let token = |_| random.i32(0..config.vocabulary as i32);
        Ok(Decoder {
            config,
            layers,
            head,
            angles: RopeTable::new(stream, config.longest + 1, features, BASE)?,
            prompt: DeviceTensor::from_fn(stream, [config.sequences * config.prompt, 1], token)?,
            tokens: DeviceTensor::zeroed(stream, [slots, 1])?,
            next: DeviceTensor::zeroed(stream, [config.sequences, 1])?,
            logits: DeviceTensor::zeroed(stream, [config.sequences, config.vocabulary])?,
            sampling: Sampling::new(5).top_k(20),
            bytes,
        })
    }

    /// Enqueues the computation of the prompt, or of the tokens drawn last, and the draw of the next ones.
    pub fn run(&mut self, stream: &Stream, places: &DeviceTensor<i32>) -> Result<()> {
        let (config, rows) = (self.config, places.view().len() / 2);
        let (sequences, width, heads) = (config.sequences, config.width, config.heads);
        let (tokens, is_prompt) = (rows / sequences, rows > sequences);
        let (lengths, slots) = (places.view().slice(..rows)?, places.view().slice(rows..)?);
        // Lengths serve as positions: only differences of positions count.
        let positions = places.tensor().narrow(0, ..1)?;
        let of_cache = places.tensor().narrow(0, 1..)?;
        // A graph keeps what is allocated while it is captured.
        let zeroed = |columns| DeviceTensor::zeroed(stream, [rows, columns]);
        let (mut x, mut y, mut hidden) = (zeroed(width)?, zeroed(width)?, zeroed(config.hidden)?);
        let (all_heads, features) = (heads + 2 * config.heads_of_keys, width / heads);
        let (all_features, rope) = (all_heads * features, Rope::new(&self.angles));
        let seen = if is_prompt { tokens } else { config.longest };
        let by_heads = |heads| [sequences, tokens, heads, features];
        let mut qkv = DeviceTensor::zeroed(stream, by_heads(all_heads))?;
        let mut attended = DeviceTensor::zeroed(stream, by_heads(heads))?;

        let ids = if is_prompt { &self.prompt } else { &self.next };
        let (list, column) = (ids.view().slice(..rows)?, ids.tensor().narrow(0, ..rows)?);
        scatter(stream, column, slots, &mut self.tokens)?;
        gather(stream, self.head.weights(), list, &mut x)?;
        for layer in &mut self.layers {
            let flat = qkv.tensor_mut().reshape([rows, all_features])?;
            layer.qkv.run(stream, &x, flat)?;
            let [keys, values] = &mut layer.cache;
            rope.append(stream, positions, of_cache, &mut qkv, keys, values)?;
            let queries = qkv.tensor().narrow(2, ..heads)?;
            let cached = |nth: usize| layer.cache[nth].tensor().narrow(0, ..sequences);
            let (keys, values) = (cached(0)?.narrow(1, ..seen)?, cached(1)?.narrow(1, ..seen)?);
            if is_prompt {
                let attention = Attention::new().causal();
                attention.run(stream, queries, keys, values, &mut attended)?;
            } else {
                let attention = AttentionDecode::new().lengths(lengths);
                attention.run(stream, queries, keys, values, &mut attended)?;
            }
            let attended = attended.tensor().reshape([rows, width])?;
            let mut output = layer.output.gemm(attended, &mut y).residual(&x);
            output.run(stream)?;
            layer.gated.run(stream, &y, &mut hidden)?;
            let mut down = layer.down.gemm(&hidden, &mut x).residual(&y);
            down.run(stream)?;
        }
        let last = x.tensor().reshape([sequences, tokens * width])?;
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
