//! The autotuner: which candidates it takes, leaves out and remembers.

use std::cell::Cell;

use cutlet_device::{Global, GlobalMut, Kernel, PtxLibrary, block_idx, kernel, thread_idx};
use cutlet_host::{Autotuner, Buffer, Candidates, Device, Error, Result, Stream, Tuned, gpu_count};

/// On the CPU, kernels need no PTX.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

/// Elements of each buffer.
const LEN: usize = 200;

/// Declares a kernel that computes `y[i] = body(x[i], y[i])` for the elements that it covers.
macro_rules! elementwise {
    ($name:ident, $threads:literal, $if:expr, |$x:ident, $y:ident| $value:expr) => {
        #[kernel(threads = $threads)]
        unsafe fn $name(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
            let i = block_idx().x.get() * $threads + thread_idx().get();
            let covers: fn(u32) -> bool = $if;
            if i < n && covers(i) {
                let i = i64::from(i);
                // SAFETY: the launcher promises n elements.
                unsafe {
                    let ($x, $y) = (x.load(i), || y.load(i));
                    let _ = &$y;
                    y.store(i, $value);
                }
            }
        }
    };
}

elementwise!(double_32, 32, |_| true, |x, y| 2.0 * x);
elementwise!(double_64, 64, |_| true, |x, y| x + x);
elementwise!(triple, 64, |_| true, |x, y| 3.0 * x);
elementwise!(most, 64, |i| i != 77, |x, y| 2.0 * x);
elementwise!(add_32, 32, |_| true, |x, y| x + y());
elementwise!(add_64, 64, |_| true, |x, y| y() + x);

type Elementwise = Kernel<(u32, Global<f32>, GlobalMut<f32>)>;

struct Operands {
    x: Buffer<f32>,
    y: Buffer<f32>,
}

fn operands(stream: &Stream) -> Result<Operands> {
    let x: Vec<f32> = (0..LEN).map(|i| i as f32).collect();
    Ok(Operands {
        x: stream.upload(&x)?,
        y: stream.upload(&[1.0; LEN])?,
    })
}

fn launch(kernel: &Elementwise, stream: &Stream, Operands { x, y }: &mut Operands) -> Result<()> {
    let function = stream.device().load(&PTX, kernel)?;
    let blocks = (LEN as u32).div_ceil(kernel.bounds().threads());
    // SAFETY: the buffers have as many elements.
    unsafe { stream.launch(&function, blocks, (LEN as u32, &*x, y)) }
}

fn candidates<'a>(kernels: &[&'a Elementwise]) -> Candidates<'a, Operands> {
    let none = Candidates::new(2 * LEN * size_of::<f32>(), operands);
    kernels.iter().fold(none, |candidates, &kernel| {
        candidates.candidate(kernel.name(), move |stream, operands| {
            launch(kernel, stream, operands)
        })
    })
}

/// Tunes on the CPU backend.
fn tune(candidates: Candidates<'_, Operands>) -> Result<Tuned> {
    let stream = Device::cpu().stream()?;
    Autotuner::new(stream.device()).tune(&stream, "double", candidates)
}

fn with_output<'a>(candidates: Candidates<'a, Operands>) -> Candidates<'a, Operands> {
    candidates.output(0.0, |operands| operands.y.view_mut())
}

#[test]
fn on_the_cpu_the_first_right_candidate_is_taken_and_nothing_is_measured() {
    let tuned = tune(with_output(candidates(&[&double_64, &double_32]))).unwrap();
    assert_eq!((tuned.index(), tuned.name()), (0, "double_64"));
    assert_eq!((tuned.microseconds(), tuned.ranking().len()), (None, 0));
    let said = tuned.to_string();
    assert!(
        said.starts_with("double: double_64, the first that is right. The CPU's times"),
        "{said}"
    );
}

#[test]
fn wrong_candidates_are_left_out_with_their_reasons() {
    let no_blocks = |stream: &Stream, Operands { x, y }: &mut Operands| {
        let function = stream.device().load(&PTX, &double_32)?;
        // SAFETY: nothing is launched.
        unsafe { stream.launch(&function, 0, (LEN as u32, &*x, y)) }
    };
    let waits = |stream: &Stream, operands: &mut Operands| {
        launch(&double_64, stream, operands)?;
        stream.download(&operands.y).map(drop)
    };
    let of = candidates(&[&double_32, &triple, &most])
        .candidate("no_blocks", no_blocks)
        .candidate("waits", waits);
    let tuned = tune(with_output(of)).unwrap();
    assert_eq!(tuned.name(), "double_32");
    let left_out: Vec<(&str, &str)> = tuned.left_out().collect();
    for ((name, why), (expected, found)) in left_out.iter().zip([
        ("triple", "output 1 is not that of double_32: 199 of 200 elements differ, most of all element 199, which \
                    is 5.97e2 in place of 3.98e2"),
        ("most", "1 of 200 elements differ, most of all element 77, which is 3.2"),
        ("no_blocks", "there are no blocks along x"),
        ("waits", "it cannot be captured into a graph: "),
    ]) {
        assert_eq!(*name, expected);
        assert!(why.contains(found), "{why}");
    }
    assert_eq!(left_out.len(), 4);
    assert!(
        tuned
            .to_string()
            .contains("\n  triple is left out: output 1 is not"),
        "{tuned}"
    );
}

#[test]
fn an_element_that_no_candidate_writes_is_found() {
    let refused = tune(with_output(candidates(&[&most]))).unwrap_err();
    let said = refused.to_string();
    assert!(matches!(refused, Error::Autotune { .. }), "{said}");
    let begin = "`double` was autotuned, but no candidate runs and is right; most is left out: output 1 is not written";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains("element 77"), "{said}");
    // The next candidate is compared with itself instead, and a baseline is never chosen.
    let tuned = tune(with_output(candidates(&[&most, &double_64]))).unwrap();
    assert_eq!((tuned.index(), tuned.name()), (1, "double_64"));
    let baseline = |stream: &Stream, operands: &mut Operands| launch(&double_32, stream, operands);
    let refused = tune(with_output(candidates(&[&most])).baseline("double", baseline));
    assert!(
        matches!(refused, Err(Error::Autotune { .. })),
        "{refused:?}"
    );
    // Without an output, nothing is compared.
    assert_eq!(tune(candidates(&[&most])).unwrap().name(), "most");
}

#[test]
fn elements_that_launches_also_read_are_compared_after_one_launch() {
    let of = candidates(&[&add_32, &add_64, &triple]);
    let tuned = tune(of.in_out(0.0, |operands| operands.y.view_mut())).unwrap();
    assert_eq!(tuned.name(), "add_32");
    assert_eq!(
        tuned.left_out().map(|(name, _)| name).collect::<Vec<_>>(),
        ["triple"]
    );
}

#[test]
fn a_choice_is_remembered_for_the_key_and_the_candidates() {
    let stream = Device::cpu().stream().unwrap();
    let mut autotuner = Autotuner::new(stream.device());
    let made = Cell::new(0);
    let mut tune = |key: &str, kernels: &[&Elementwise]| {
        let counted = |stream: &Stream| {
            made.set(made.get() + 1);
            operands(stream)
        };
        let mut of = Candidates::new(8, counted);
        for &kernel in kernels {
            of = of.candidate(kernel.name(), |stream, operands| {
                launch(kernel, stream, operands)
            });
        }
        autotuner.tune(&stream, key, of).unwrap();
        made.take() > 0
    };
    assert!(tune("double n=1", &[&double_32]));
    assert!(!tune(" double  n=1", &[&double_32]));
    assert!(tune("double n=2", &[&double_32]));
    assert!(tune("double n=1", &[&double_32, &double_64]));
    assert!(!tune("double n=1", &[&double_32, &double_64]));
}

#[test]
fn keys_and_names_that_say_nothing_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let mut autotuner = Autotuner::new(stream.device());
    for (key, name, found) in [
        (" ", "a", "the key has no word"),
        ("double", "", "`` is no name of a candidate"),
        (
            "double",
            "in blocks",
            "`in blocks` is no name of a candidate",
        ),
        (
            "double",
            "double_32",
            "two candidates are named `double_32`",
        ),
    ] {
        let of = candidates(&[&double_32]).candidate(name, |_, _| Ok::<_, Error>(()));
        let refused = autotuner.tune(&stream, key, of).unwrap_err().to_string();
        assert!(refused.contains(found), "{refused}");
    }
    let none = tune(candidates(&[])).unwrap_err().to_string();
    assert_eq!(
        none,
        "`double` was autotuned, but no candidate runs and is right"
    );
}

#[test]
fn errors_of_operands_and_of_captures_are_returned() {
    let of = Candidates::new(8, |stream: &Stream| {
        stream.upload(&[1.0f32; 2])?.slice(..3).map(drop)
    });
    let stream = Device::cpu().stream().unwrap();
    let mut autotuner = Autotuner::new(stream.device());
    let of = of.candidate("a", |_, _| Ok::<_, Error>(()));
    let refused = autotuner.tune(&stream, "nothing", of).unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { .. }), "{refused}");
    let in_a_capture = |autotuner: &mut Autotuner| {
        stream.device().capture(|stream| {
            let tuned = autotuner.tune(stream, "double", candidates(&[&double_32]));
            tuned.map(drop)
        })
    };
    let captured = in_a_capture(&mut autotuner);
    assert!(
        matches!(captured, Err(Error::Capturing { .. })),
        "{captured:?}"
    );
    let of = candidates(&[&double_32]);
    autotuner.tune(&stream, "double", of).unwrap();
    // What is remembered needs no measurement.
    in_a_capture(&mut autotuner).unwrap();
}

/// Copies of one buffer to another, once and twice, for the GPU.
fn copies<'a>(len: usize) -> Candidates<'a, Operands> {
    let make = move |stream: &Stream| {
        Ok(Operands {
            x: stream.upload(&vec![1.5; len])?,
            y: stream.zeroed(len)?,
        })
    };
    let twice = |stream: &Stream, Operands { x, y }: &mut Operands| {
        stream.copy(&*x, &mut *y)?;
        stream.copy(&*x, y)
    };
    let nothing = |_: &Stream, _: &mut Operands| Ok::<_, Error>(());
    Candidates::new(2 * len * size_of::<f32>(), make)
        .candidate("twice", twice)
        .candidate("once", |stream, Operands { x, y }| stream.copy(&*x, y))
        .candidate("nothing", nothing)
        .baseline("fill", |stream, operands| {
            stream.fill_bytes(&mut operands.y, 0)
        })
        .output(0.0, |operands| operands.y.view_mut())
}

#[test]
fn on_a_gpu_the_fastest_is_measured_and_remembered_in_a_file() {
    if gpu_count().unwrap_or(0) == 0 {
        return cutlet_not_run::not_run("there is no GPU");
    }
    let device = Device::gpu(0).unwrap();
    let stream = device.stream().unwrap();
    let name = format!("cutlet-autotune-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    // Runs in graphs, and single ones.
    for len in [1 << 16, 1 << 26] {
        let key = format!("copy len={len}");
        let mut autotuner = Autotuner::in_folder(&device, &PTX, &folder).unwrap();
        let tuned = autotuner.tune(&stream, &key, copies(len)).unwrap();
        println!("{tuned}");
        assert_eq!((tuned.index(), tuned.name()), (1, "once"));
        let left_out: Vec<&str> = tuned.left_out().map(|(name, _)| name).collect();
        assert_eq!(left_out, ["nothing"]);
        let names = tuned.ranking().iter().map(|ranked| ranked.name.as_str());
        assert_eq!(names.collect::<Vec<_>>().len(), 3);
        let twice = tuned.ranking().iter().find(|ranked| ranked.name == "twice");
        assert!(twice.unwrap().microseconds.median > 1.3 * tuned.microseconds().unwrap());

        let mut another = Autotuner::in_folder(&device, &PTX, &folder).unwrap();
        let remembered = another.tune(&stream, &key, copies(len)).unwrap();
        assert_eq!(remembered.index(), 1);
        assert!(remembered.ranking().is_empty());
        let distance = remembered.microseconds().unwrap() - tuned.microseconds().unwrap();
        assert!(distance.abs() < 1e-3, "{remembered}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
