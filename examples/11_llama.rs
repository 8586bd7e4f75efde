//! A decoder of Llama's architecture with random weights: the prompt is one graph, and each further token another one.
//! A small model is compared with a plain loop. `--real` has the sizes of Llama 3.2 1B, for a GPU, and prints times.

#[path = "11_llama/model.rs"]
mod model;
#[path = "11_llama/plain.rs"]
mod plain;

use std::time::Instant;

use cutlet::{Device, OwnedGraph, Result, Sampling, Stream, bf16, capture_owned};

use model::{Config, Decoder, Model};

const SMALL: Config = Config {
    layers: 2,
    width: 64,
    heads: 4,
    heads_of_keys: 2,
    features: 16,
    hidden: 96,
    vocabulary: 200,
    prompt: 13,
    generated: 4,
};
const LLAMA_3_2_1B: Config = Config {
    layers: 16,
    width: 2048,
    heads: 32,
    heads_of_keys: 8,
    features: 64,
    hidden: 8192,
    vocabulary: 128_256,
    prompt: 2048,
    generated: 128,
};

/// The graph of the last tokens, which owns that of the prompt: both use the same decoder.
type Graphs = OwnedGraph<OwnedGraph<Decoder>>;

/// What a run gave.
struct Generated {
    /// (step, sequence)
    tokens: Vec<i32>,
    /// Those of the last step.
    logits: Vec<bf16>,
    /// Seconds of the prompt, and of each step after it.
    seconds: [f64; 2],
}

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let is_real = std::env::args().any(|argument| argument == "--real");
    let (config, many) = if is_real {
        (LLAMA_3_2_1B, 16)
    } else {
        (SMALL, 3)
    };
    let stream = device.stream()?;
    let mut model = Model::random(&stream, config)?;
    for sequences in [1, many] {
        let mut random = fastrand::Rng::with_seed(3);
        let token = |_| random.i32(0..config.vocabulary as i32);
        let prompt: Vec<i32> = (0..sequences * config.prompt).map(token).collect();
        for sampling in [None, Some(Sampling::new(5).temperature(0.8).top_k(20))] {
            let decoder = Decoder::new(&stream, model, &prompt, sequences, sampling)?;
            let mut graphs = capture(&device, decoder)?;
            let first = generate(&stream, &mut graphs, sequences)?;
            let second = generate(&stream, &mut graphs, sequences)?;
            assert!(first.tokens == second.tokens && first.logits == second.logits);
            model = graphs.into_inner().into_inner().model;
            let way = if sampling.is_some() {
                "sampled"
            } else {
                "greedy"
            };
            print!("{sequences} × {way}: ");
            match is_real {
                true => print_times(&model, sequences, second.seconds),
                false => compare(&stream, &model, &prompt, &second)?,
            }
        }
    }
    Ok(())
}

/// Records the prompt and the steps after it.
fn capture(device: &Device, decoder: Decoder) -> Result<Graphs> {
    let of_prompt = capture_owned(device, decoder, |stream, decoder| {
        decoder.step(stream, true)
    })?;
    capture_owned(device, of_prompt, |stream, graph| {
        graph.get_mut().step(stream, false)
    })
}

/// Runs the prompt, and as many steps as the caches have rows for. The host waits for the prompt and for the last step.
fn generate(stream: &Stream, graphs: &mut Graphs, sequences: usize) -> Result<Generated> {
    let config = graphs.get().get().model.config;
    let of_step = |step| config.numbers(sequences, config.prompt + step, 1);
    let numbers: Vec<i32> = (0..config.generated).flat_map(of_step).collect();
    let numbers = stream.upload(&numbers)?;
    let counters = stream.upload(&(0..=config.generated as u64).collect::<Vec<_>>())?;
    let mut tokens = stream.zeroed::<i32>((config.generated + 1) * sequences)?;
    let (mut drawn, mut begin, mut seconds) = (tokens.view_mut(), Instant::now(), [0.0; 2]);
    for step in 0..=config.generated {
        let decoder = graphs.get_mut().get_mut();
        stream.copy(counters.slice(step..=step)?, &mut decoder.counter)?;
        if let Some(step) = step.checked_sub(1) {
            let of_step = step * 3 * sequences..(step + 1) * 3 * sequences;
            stream.copy(numbers.slice(of_step)?, &mut decoder.last.numbers)?;
            graphs.launch(stream)?;
        } else {
            stream.synchronize()?;
            begin = Instant::now();
            graphs.get_mut().launch(stream)?;
            stream.synchronize()?;
            seconds[0] = begin.elapsed().as_secs_f64();
            begin = Instant::now();
        }
        let (of_step, later) = drawn.split_at(sequences)?;
        stream.copy(&graphs.get().get().last.tokens, of_step)?;
        drawn = later;
    }
    stream.synchronize()?;
    seconds[1] = begin.elapsed().as_secs_f64() / config.generated as f64;
    Ok(Generated {
        tokens: stream.download(&tokens)?,
        logits: graphs.get().get().logits.download(stream)?,
        seconds,
    })
}

/// Prints the times of the prompt and of a step, and how fast a step reads the weights.
fn print_times(model: &Model, sequences: usize, [prompt, step]: [f64; 2]) {
    let count = model.config.prompt * sequences;
    let (prompt, milliseconds, speed) = (1e3 * prompt, 1e3 * step, sequences as f64 / step);
    let gigabytes = 2e-9 * model.size() as f64 / step;
    print!(
        "prompt of {count} tokens {prompt:.2} ms, step {milliseconds:.3} ms, {speed:.0} tokens/s, "
    );
    println!("weights at {gigabytes:.0} GB/s");
}

/// Compares the last logits with those of a plain loop over each sequence.
fn compare(stream: &Stream, model: &Model, prompt: &[i32], run: &Generated) -> Result<()> {
    let config = model.config;
    let sequences = prompt.len() / config.prompt;
    let mut worst = 0.0f64;
    for (sequence, own) in prompt.chunks(config.prompt).enumerate() {
        let drawn = run.tokens.iter().skip(sequence).step_by(sequences);
        let tokens: Vec<i32> = own
            .iter()
            .chain(drawn.take(config.generated))
            .copied()
            .collect();
        let exact = plain::logits(stream, model, &tokens)?;
        let found = &run.logits[sequence * config.vocabulary..];
        let errors = exact
            .iter()
            .zip(found)
            .map(|(exact, found)| (exact - found.to_f64()).abs());
        worst = errors.fold(worst, f64::max);
    }
    println!("logits are within {worst:.3} of a plain loop's");
    assert!(worst < 0.1);
    Ok(())
}
