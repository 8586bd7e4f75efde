//! A decoder of Llama's architecture with random weights: the prompt is one graph, and each further token another one.
//! A small model is compared with plain loops. `--real` has the sizes of Llama 3.2 1B, for a GPU.

#[path = "11_llama/model.rs"]
mod model;
#[path = "11_llama/plain.rs"]
mod plain;

use std::time::Instant;

use cutlet::{Device, Result, Stream, capture_owned};

use model::{Config, Decoder};

const SMALL: Config = Config {
    layers: 2,
    width: 64,
    heads: 4,
    heads_of_keys: 2,
    hidden: 96,
    vocabulary: 200,
    sequences: 3,
    prompt: 13,
    longest: 17,
};
const LLAMA_3_2_1B: Config = Config {
    layers: 16,
    width: 2048,
    heads: 32,
    heads_of_keys: 8,
    hidden: 8192,
    vocabulary: 128_256,
    sequences: 16,
    prompt: 2048,
    longest: 2176,
};

fn main() -> Result<()> {
    let stream = Device::auto().stream()?;
    println!("running on {}", stream.device().describe());
    let is_real = std::env::args().any(|argument| argument == "--real");
    let config = if is_real { LLAMA_3_2_1B } else { SMALL };
    let mut decoder = Decoder::random(&stream, config)?;
    for sequences in [1, config.sequences] {
        decoder.config.sequences = sequences;
        for temperature in [0.0, 0.8] {
            println!("batch of {sequences}, temperature {temperature}:");
            decoder.sampling = decoder.sampling.temperature(temperature);
            generate(&stream, &mut decoder)?;
            if !is_real {
                compare(&stream, &decoder)?;
            }
        }
    }
    Ok(())
}

/// Generates all tokens twice, and expects the same ones and the same logits.
fn generate(stream: &Stream, decoder: &mut Decoder) -> Result<()> {
    let (config, device) = (decoder.config, stream.device());
    let of_prompt = config.places(stream, 0..config.prompt)?;
    let mut of_step = config.places(stream, 0..1)?;
    let steps = (config.prompt..config.longest).map(|at| config.places(stream, at..at + 1));
    let steps = steps.collect::<Result<Vec<_>>>()?;
    let mut prompt = capture_owned(device, (), |stream, ()| decoder.run(stream, &of_prompt))?;
    let mut step = capture_owned(device, (), |stream, ()| decoder.run(stream, &of_step))?;
    let mut results = Vec::new();
    for _ in 0..2 {
        let begin = Instant::now();
        prompt.launch(stream)?;
        stream.synchronize()?;
        let of_prompt = begin.elapsed();
        for places in &steps {
            stream.copy(places.view(), of_step.view_mut())?;
            step.launch(stream)?;
        }
        stream.synchronize()?;
        let of_step = (begin.elapsed() - of_prompt) / steps.len() as u32;
        let speed = config.sequences as f64 / of_step.as_secs_f64();
        let rate = decoder.bytes as f64 / of_step.as_secs_f64() / 1e9;
        print!("    prompt {of_prompt:.2?}, step {of_step:.3?}, {speed:.0} tokens/s, ");
        println!("weights at {rate:.0} GB/s");
        let tokens = decoder.tokens.download(stream)?;
        results.push((tokens, decoder.logits.download(stream)?));
    }
    assert!(results[0] == results[1], "two runs differ");
    Ok(())
}

/// Compares the last logits with those of plain loops.
fn compare(stream: &Stream, decoder: &Decoder) -> Result<()> {
    let (config, tokens) = (decoder.config, decoder.tokens.download(stream)?);
    let logits = decoder.logits.download_as::<f64>(stream)?;
    let sequences = tokens.chunks(config.longest).take(config.sequences);
    for (tokens, found) in sequences.zip(logits.chunks(config.vocabulary)) {
        let exact = plain::logits(stream, decoder, tokens)?;
        let pairs = exact.iter().zip(found);
        let worst = pairs.fold(0.0, |worst, (a, b)| (a - b).abs().max(worst));
        println!("    logits are within {worst:.3} of plain loops'");
        assert!(worst < 0.1);
    }
    Ok(())
}
