//! Tuning files: an installed entry decides which kernel runs, for exactly its problem, and only where it fits.

mod batches;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process};

use cutlet::{
    Activation, Bias, Device, DeviceData, Element, Error, F8E4M3, Gemm, Matrix, MatrixMut, Operand,
    Order, Plan, Precision, ProblemKey, Quantize, ScalesKind, Stream, Tuning, TuningEntry,
    recorded_problems,
};
use half::bf16;

use batches::{batch, batch_mut};

/// A path of its own for each call.
fn path() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("cutlet-tuning-{}-{nth}", process::id()))
}

/// The key of a packed, row-major product of f32.
fn key([m, n, k]: [usize; 3]) -> ProblemKey {
    let [a, b, c] = [k, n, n].map(|columns| ProblemKey::alignment(4 * columns));
    let line = format!(
        "operands=f32 c=f32 precision=exact m={m} n={n} k={k} a=row b=row alignments={a},{b},{c} beta=0 bias=none \
         residual=none activation=none"
    );
    line.parse().unwrap()
}

/// A tuning with this kernel for a problem.
fn tuning(problem: ProblemKey, kernel: &str) -> Tuning {
    let mut tuning = Tuning::new(&Device::cpu());
    tuning.insert(TuningEntry {
        problem,
        kernel: kernel.to_string(),
        microseconds: 1.5,
    });
    tuning
}

/// The option that a GEMM has, if any.
enum With<'a, T: DeviceData> {
    Nothing,
    Estimate,
    Kernel(&'a str),
    Bias(Bias<'a, T>),
}

impl<'a, T: Operand> With<'a, T> {
    fn add_to(self, gemm: Gemm<'a, T>) -> Gemm<'a, T> {
        match self {
            With::Nothing => gemm,
            With::Estimate => gemm.untuned(),
            With::Kernel(name) => gemm.instance(name),
            With::Bias(bias) => gemm.bias(bias),
        }
    }
}

/// The kernel that a GEMM with this option runs, whose C is checked. A bias is of zeros.
fn kernel_of(with: With<'_, f32>, stream: &Stream, [m, n, k]: [usize; 3]) -> &'static str {
    let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11 % 3) as f32 - 1.0);
    let (a, b): (Vec<f32>, Vec<f32>) = (numbers(m * k).collect(), numbers(k * n).collect());
    let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut on_c = stream.zeroed::<f32>(m * n).unwrap();
    let mut gemm = with.add_to(Gemm::new(
        Matrix::row_major(&on_a, m, k).unwrap(),
        Matrix::row_major(&on_b, k, n).unwrap(),
        MatrixMut::row_major(&mut on_c, m, n).unwrap(),
    ));
    let plan = gemm.plan(stream).unwrap();
    gemm.run(stream).unwrap();
    let expected = |at: usize| (0..k).map(|l| a[at / n * k + l] * b[l * n + at % n]).sum();
    let expected: Vec<f32> = (0..m * n).map(expected).collect();
    assert_eq!(stream.download(&on_c).unwrap(), expected);
    plan.kernel().expect("C has elements")
}

/// A kernel that is not the estimated one for a problem.
fn another_kernel(stream: &Stream, extents: [usize; 3]) -> &'static str {
    let (row, estimated) = (Order::RowMajor, kernel_of(With::Nothing, stream, extents));
    let all = Gemm::<f32>::instances(Device::auto().backend(), row, row, Precision::Exact);
    let mut others = all.into_iter().filter(|name| *name != estimated);
    others
        .find(|name| {
            let (a, b) = (
                stream.zeroed::<f32>(64).unwrap(),
                stream.zeroed::<f32>(64).unwrap(),
            );
            let mut c = stream.zeroed::<f32>(64).unwrap();
            let [a, b] = [&a, &b].map(|of| Matrix::row_major(of, 8, 8).unwrap());
            let c = MatrixMut::row_major(&mut c, 8, 8).unwrap();
            Gemm::new(a, b, c).instance(name).plan(stream).is_ok()
        })
        .expect("there is another kernel")
}

#[test]
fn an_entry_decides_the_kernel_of_exactly_its_problem() {
    let stream = Device::cpu().stream().unwrap();
    let (extents, near) = ([40, 48, 56], [41, 48, 56]);
    let kernel = another_kernel(&stream, extents);
    let estimated = kernel_of(With::Nothing, &stream, near);
    tuning(key(extents), kernel).install();
    assert_eq!(kernel_of(With::Nothing, &stream, extents), kernel);
    // Neither another extent, nor an epilogue, nor a lower precision is the problem.
    assert_eq!(kernel_of(With::Nothing, &stream, near), estimated);
    let zeros = stream.zeroed::<f32>(48).unwrap();
    let biased = With::Bias(Bias::columns(&zeros));
    assert_ne!(kernel_of(biased, &stream, extents), kernel);
    let [a, b] = [40 * 56, 56 * 48].map(|count| stream.zeroed::<f32>(count).unwrap());
    let mut c = stream.zeroed::<f32>(40 * 48).unwrap();
    let gemm = Gemm::new(
        Matrix::row_major(&a, 40, 56).unwrap(),
        Matrix::row_major(&b, 56, 48).unwrap(),
        MatrixMut::row_major(&mut c, 40, 48).unwrap(),
    );
    let plan = gemm.activation(Activation::Relu).plan(&stream);
    assert_ne!(plan.unwrap().kernel(), Some(kernel));
    // Other choices leave it out.
    assert_ne!(kernel_of(With::Estimate, &stream, extents), kernel);
    let other = kernel_of(With::Estimate, &stream, extents);
    assert_eq!(kernel_of(With::Kernel(other), &stream, extents), other);
    // A later tuning replaces the entry.
    tuning(key(extents), other).install();
    assert_eq!(kernel_of(With::Nothing, &stream, extents), other);
}

/// C = A·B with a column-major C is Cᵀ = Bᵀ·Aᵀ.
#[test]
fn the_key_of_a_column_major_c_is_that_of_the_transposed_product() {
    let stream = Device::cpu().stream().unwrap();
    let [m, n, k] = [72, 80, 88];
    let kernel = another_kernel(&stream, [m, n, k]);
    tuning(key([m, n, k]), kernel).install();
    let [a, b] = [m * k, k * n].map(|count| stream.zeroed::<f32>(count).unwrap());
    let mut c = stream.zeroed::<f32>(m * n).unwrap();
    let mut gemm = Gemm::new(
        Matrix::row_major(&b, k, n).unwrap().transposed(),
        Matrix::row_major(&a, m, k).unwrap().transposed(),
        MatrixMut::row_major(&mut c, m, n).unwrap().transposed(),
    );
    assert_eq!(gemm.plan(&stream).unwrap().kernel(), Some(kernel));
}

/// The plan of `count` products of 64×64×64, all with the same B if it is shared.
fn batched_plan(with: With<'_, bf16>, stream: &Stream, count: usize, shares_b: bool) -> Plan<bf16> {
    let size = 64 * 64;
    let elements = stream.zeroed::<bf16>(count * size).unwrap();
    let mut c = stream.zeroed::<bf16>(count * size).unwrap();
    let a = batch(&elements, count, 64, 64, Order::RowMajor);
    let b = match shares_b {
        false => batch(&elements, count, 64, 64, Order::ColMajor),
        true => batch(elements.slice(..size).unwrap(), 1, 64, 64, Order::ColMajor),
    };
    let c = batch_mut(&mut c, count, 64, 64, Order::RowMajor);
    with.add_to(Gemm::new(a, b, c)).plan(stream).unwrap()
}

#[test]
fn an_entry_for_a_batch_decides_the_kernel_of_exactly_its_batch() {
    let stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<bf16>(3 * 64 * 64).unwrap();
    let mut c = stream.zeroed::<bf16>(3 * 64 * 64).unwrap();
    let a = batch(&elements, 3, 64, 64, Order::RowMajor);
    let b = batch(&elements, 3, 64, 64, Order::ColMajor);
    let batch = batch_mut(&mut c, 3, 64, 64, Order::RowMajor);
    let mut gemm = Gemm::new(a, b, batch);
    let key = gemm.problem_key(&stream).unwrap();
    let key = key.expect("batches are tuned");
    let line = "operands=bf16 c=bf16 precision=exact m=64 n=64 k=64 batch=3 shared=none a=row b=col \
                alignments=128,128,128 beta=0 bias=none residual=none activation=none";
    assert_eq!(key.to_string(), line);

    // Every candidate computes the batch in one launch.
    let candidates = gemm.candidates(&stream).unwrap();
    assert!(
        candidates
            .iter()
            .any(|name| name.starts_with("bf16_grouped_"))
    );
    assert!(candidates.iter().any(|name| name.starts_with("mma_bf16_")));
    for name in &candidates {
        let plan = batched_plan(With::Kernel(name), &stream, 3, false);
        assert_eq!(plan.kernel(), Some(name.as_str()));
    }

    let kernel = |count, shares_b| batched_plan(With::Nothing, &stream, count, shares_b).kernel();
    let estimated = [(3, false), (4, false), (3, true), (1, false)];
    let estimated = estimated.map(|(count, shares_b)| ((count, shares_b), kernel(count, shares_b)));
    let is_another = |name: &&String| estimated.iter().all(|(_, it)| *it != Some(name.as_str()));
    let another = candidates
        .iter()
        .find(is_another)
        .expect("there is another kernel");
    tuning(key, another).install();
    assert_eq!(kernel(3, false), Some(another.as_str()));
    // Neither another number of products, nor a shared B, nor a single product is the problem.
    for ((count, shares_b), estimated) in &estimated[1..] {
        assert_eq!(kernel(*count, *shares_b), *estimated, "{count} {shares_b}");
    }
    assert_eq!(
        batched_plan(With::Estimate, &stream, 3, false).kernel(),
        estimated[0].1
    );
}

#[test]
fn an_entry_whose_kernel_does_not_solve_the_problem_is_ignored() {
    let stream = Device::cpu().stream().unwrap();
    for (extents, kernel) in [
        ([24, 32, 40], "a_kernel_that_is_gone"),
        // It reads vectors, and rows of 3 elements have none.
        ([24, 3, 5], another_kernel(&stream, [24, 32, 40])),
    ] {
        let estimated = kernel_of(With::Nothing, &stream, extents);
        tuning(key(extents), kernel).install();
        assert_eq!(kernel_of(With::Nothing, &stream, extents), estimated);
    }
}

#[test]
fn entries_of_another_version_or_device_do_not_count() {
    let (stream, device) = (Device::cpu().stream().unwrap(), Device::cpu());
    let extents = [56, 64, 72];
    let kernel = another_kernel(&stream, extents);
    let path = path();
    let right = tuning(key(extents), kernel);
    assert_eq!(right.mismatch(&device), None);
    right.save(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    for (name, other, said) in [
        (
            "kernels=",
            "kernels=0123456789abcdef",
            "with kernels 0123456789abcdef, and this program has",
        ),
        (
            "cutlet=",
            "cutlet=0.0.1",
            "it is of cutlet 0.0.1 with kernels",
        ),
        (
            "device=",
            "device=NVIDIA H200",
            "it was made on NVIDIA H200 (",
        ),
        (
            "multiprocessors=",
            "multiprocessors=7777",
            "it was made on cpu (7777 multiprocessors), and this is cpu (",
        ),
    ] {
        fs::write(&path, text.replace(line(name), other)).unwrap();
        let tuning = Tuning::load(&path).unwrap();
        let mismatch = tuning.mismatch(&device).expect("it is another one");
        assert!(mismatch.contains(said), "{mismatch}");
        assert!(mismatch.contains("its 1 entries are ignored"), "{mismatch}");
        assert!(tuning.merge_refusal(&device).is_some());
        tuning.install();
        assert_ne!(kernel_of(With::Nothing, &stream, extents), kernel);
    }
    // Drivers may differ, but times of two of them are not put into one file.
    fs::write(&path, text.replace(line("cuda="), "cuda=99.0")).unwrap();
    let other_driver = Tuning::load(&path).unwrap();
    assert_eq!(other_driver.mismatch(&device), None);
    let refusal = other_driver.merge_refusal(&device).unwrap();
    assert!(
        refusal.contains("it was measured with CUDA 99.0"),
        "{refusal}"
    );
    fs::remove_file(path).unwrap();
}

#[test]
fn a_file_is_loaded_as_it_was_saved_and_a_missing_one_is_an_error() {
    let path = path();
    let mut saved = tuning(key([1, 2, 3]), "one");
    saved.insert(TuningEntry {
        problem: key([4, 5, 6]),
        kernel: "two".to_string(),
        microseconds: 0.125,
    });
    saved.save(&path).unwrap();
    let loaded = Tuning::load(&path).unwrap();
    assert_eq!(loaded.entries(), saved.entries());
    fs::remove_file(&path).unwrap();
    let error = Tuning::load(&path).unwrap_err();
    assert!(matches!(error, Error::TuningFile { .. }));
    assert!(error.to_string().contains("reading it failed"), "{error}");
}

/// The problem of the process that [`a_file_of_the_environment_counts`] starts.
const OF_CHILD: [usize; 3] = [88, 96, 104];

/// Runs in a process of its own, because variables are read once. Without the variable, it has nothing to test.
#[test]
fn child_with_a_file_of_the_environment() {
    if env::var_os(Tuning::VARIABLE).is_none() {
        return;
    }
    let stream = Device::cpu().stream().unwrap();
    println!("kernel: {}", kernel_of(With::Nothing, &stream, OF_CHILD));
    println!(
        "estimated: {}",
        kernel_of(With::Estimate, &stream, OF_CHILD)
    );
}

#[test]
fn a_file_of_the_environment_counts_and_problems_are_recorded() {
    let stream = Device::cpu().stream().unwrap();
    let (file, recorded) = (path(), path());
    let kernel = another_kernel(&stream, OF_CHILD);
    tuning(key(OF_CHILD), kernel).save(&file).unwrap();
    let child = process::Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "child_with_a_file_of_the_environment",
            "--nocapture",
        ])
        .env(Tuning::VARIABLE, &file)
        .env("CUTLET_RECORD", &recorded)
        .output()
        .unwrap();
    let said = String::from_utf8(child.stdout).unwrap();
    assert!(child.status.success(), "{said}");
    assert!(said.contains(&format!("kernel: {kernel}\n")), "{said}");
    assert!(!said.contains(&format!("estimated: {kernel}\n")), "{said}");
    // Its GEMMs with a named kernel, or an estimated one, are not recorded.
    assert_eq!(recorded_problems(&recorded).unwrap(), [key(OF_CHILD)]);
    for path in [file, recorded] {
        fs::remove_file(path).unwrap();
    }
}

/// The key, the candidates and the kernel of a product of e4m3 with scales of this kind. All numbers and scales are 1, and
/// C is checked. An error if the named kernel does not solve the problem.
fn scaled(
    stream: &Stream,
    [m, n, k]: [usize; 3],
    kind: ScalesKind,
    named: Option<&str>,
) -> cutlet::Result<(Option<ProblemKey>, Vec<String>, &'static str)> {
    let ones = vec![F8E4M3::from_f32(1.0); m.max(n) * k];
    let ones = stream.upload(&ones).unwrap();
    let scales = stream.upload(&vec![1f32; m.max(n) + 1]).unwrap();
    let mut c = stream.filled::<bf16>(m * n, 0xFF).unwrap();
    let mut gemm = Gemm::new(
        Matrix::row_major(ones.slice(..m * k).unwrap(), m, k).unwrap(),
        Matrix::col_major(ones.slice(..k * n).unwrap(), k, n).unwrap(),
        MatrixMut::row_major(&mut c, m, n).unwrap(),
    );
    gemm = match kind {
        ScalesKind::None => gemm,
        ScalesKind::Outer { in_pairs } => {
            let first = usize::from(!in_pairs);
            let of_b = scales.slice(first..first + n).unwrap();
            gemm.outer_scales(scales.slice(..m).unwrap(), of_b)
        }
        ScalesKind::Blocks => {
            assert!(k <= 128 && n <= 128);
            gemm.block_scales(
                Matrix::col_major(scales.slice(..m).unwrap(), m, 1).unwrap(),
                Matrix::col_major(scales.slice(..1).unwrap(), 1, 1).unwrap(),
            )
        }
    };
    let candidates = gemm.candidates(stream).unwrap();
    let key = gemm.problem_key(stream).unwrap();
    if let Some(name) = named {
        gemm = gemm.instance(name);
    }
    let plan = gemm.plan(stream)?;
    gemm.run(stream)?;
    let found = stream.download(&c)?;
    assert!(found.iter().all(|it| it.to_f32() == k as f32), "{kind:?}");
    let kernel = plan.kernel().expect("C has elements");
    Ok((key, candidates, kernel))
}

#[test]
fn products_with_scales_have_entries_of_their_own() {
    let stream = Device::cpu().stream().unwrap();
    let extents = [24, 64, 96];
    let kinds = [
        ScalesKind::None,
        ScalesKind::Outer { in_pairs: true },
        ScalesKind::Outer { in_pairs: false },
        ScalesKind::Blocks,
    ];
    let near = [extents[0] + 1, extents[1], extents[2]];
    let of_near = kinds.map(|kind| scaled(&stream, near, kind, None).unwrap());
    let tuned = kinds.map(|kind| {
        let (key, candidates, estimated) = scaled(&stream, extents, kind, None).unwrap();
        let key = key.expect("single products are tuned");
        assert_eq!(key.scales, kind);
        let others = candidates.iter().filter(|name| *name != estimated);
        // A decomposition is no part of a plan's kernel.
        let mut others = others.filter(|name| !name.contains('/'));
        let other = others.find(|name| {
            let run = scaled(&stream, extents, kind, Some(name));
            run.is_ok_and(|(.., kernel)| kernel == **name)
        });
        let other = other.unwrap_or_else(|| panic!("{kind:?} has one kernel: {candidates:?}"));
        tuning(key, other).install();
        other.clone()
    });
    for ((kind, tuned), (.., estimated)) in kinds.into_iter().zip(tuned).zip(of_near) {
        let (.., kernel) = scaled(&stream, extents, kind, None).unwrap();
        assert_eq!(kernel, tuned, "{kind:?}");
        let (.., kernel) = scaled(&stream, near, kind, None).unwrap();
        assert_eq!(kernel, estimated, "{kind:?}");
    }
}

/// Asserts that the product has this key, and that an entry with another kernel than the estimated one counts.
fn assert_has_entries<T: Element<D>, D: DeviceData>(
    stream: &Stream,
    gemm: &mut Gemm<'_, T, D>,
    line: &str,
) {
    let key = gemm.problem_key(stream).unwrap().expect(line);
    assert_eq!(key.to_string(), line);
    let estimated = gemm.plan(stream).unwrap().kernel();
    let candidates = gemm.candidates(stream).unwrap();
    // A decomposition is no part of a plan's kernel.
    let others = candidates.iter().filter(|name| !name.contains('/'));
    let mut others = others.filter(|name| Some(name.as_str()) != estimated);
    let runs = |name: &String| {
        tuning(key, name).install();
        gemm.plan(stream).unwrap().kernel() == Some(name.as_str())
    };
    assert!(others.any(runs), "{estimated:?} of {candidates:?}");
}

#[test]
fn products_by_two_kernels_have_entries() {
    let stream = Device::cpu().stream().unwrap();
    let ones = stream.filled::<i8>(64 * 96, 1).unwrap();
    let mut c = stream.zeroed::<bf16>(24 * 64).unwrap();
    let scales = stream.zeroed::<f32>(64).unwrap();
    let mut gemm = Gemm::<i8, bf16>::new(
        Matrix::row_major(ones.slice(..24 * 96).unwrap(), 24, 96).unwrap(),
        Matrix::col_major(&ones, 96, 64).unwrap(),
        MatrixMut::row_major(&mut c, 24, 64).unwrap(),
    )
    .outer_scales(scales.slice(..24).unwrap(), &scales);
    let line = "operands=i8 c=bf16 precision=exact scales=outer m=24 n=64 k=96 a=row b=col alignments=32,32,128 beta=0 \
                bias=none residual=none activation=none";
    assert_has_entries(&stream, &mut gemm, line);
}

#[test]
fn products_whose_c_is_quantised_have_entries() {
    let stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<F8E4M3>(64 * 128).unwrap();
    let mut c = stream.zeroed::<F8E4M3>(64 * 64).unwrap();
    let mut of_c = stream.zeroed::<f32>(64).unwrap();
    let scales = stream.zeroed::<f32>(64).unwrap();
    let mut gemm = Gemm::<F8E4M3, F8E4M3>::new(
        Matrix::row_major(&elements, 64, 128).unwrap(),
        Matrix::col_major(&elements, 128, 64).unwrap(),
        MatrixMut::row_major(&mut c, 64, 64).unwrap(),
    )
    .block_scales(
        Matrix::col_major(&scales, 64, 1).unwrap(),
        Matrix::col_major(scales.slice(..1).unwrap(), 1, 1).unwrap(),
    )
    .quantized(
        Quantize::by_blocks(),
        MatrixMut::col_major(&mut of_c, 64, 1).unwrap(),
    );
    let line = "operands=F8E4M3 c=F8E4M3 precision=exact scales=blocks m=64 n=64 k=128 a=row b=col alignments=128,128,64 \
                beta=0 bias=none residual=none activation=none";
    assert_has_entries(&stream, &mut gemm, line);
}

#[test]
fn batches_with_scales_have_entries_of_their_own() {
    let stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<F8E4M3>(3 * 64 * 64).unwrap();
    let mut c = stream.zeroed::<bf16>(3 * 64 * 64).unwrap();
    let scales = stream.zeroed::<f32>(3 * 64).unwrap();
    let mut gemm = Gemm::<F8E4M3, bf16>::new(
        batch(&elements, 3, 64, 64, Order::RowMajor),
        batch(&elements, 3, 64, 64, Order::ColMajor),
        batch_mut(&mut c, 3, 64, 64, Order::RowMajor),
    )
    .outer_scales(&scales, &scales);
    let key = gemm.problem_key(&stream).unwrap().unwrap();
    let line = "operands=F8E4M3 c=bf16 precision=exact scales=outer m=64 n=64 k=64 batch=3 shared=none a=row b=col \
                alignments=64,64,128 beta=0 bias=none residual=none activation=none";
    assert_eq!(key.to_string(), line);
    for name in gemm.candidates(&stream).unwrap() {
        tuning(key, &name).install();
        assert_eq!(gemm.plan(&stream).unwrap().kernel(), Some(name.as_str()));
    }
}
