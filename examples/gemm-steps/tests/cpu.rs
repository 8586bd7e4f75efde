//! Every step on the CPU backend, against a loop in f64.

use cutlet_host::{Device, cpu};
use gemm_steps::check::{check, product, random};
use gemm_steps::{Operands, STEPS};
use half::bf16;

/// Checks a step at sizes that no tile divides. Extents are rounded up to what the step moves at a time.
fn at_odd_sizes(nth: usize) {
    cpu::check_races(true); // also in release builds
    let step = &STEPS[nth - 1];
    let stream = Device::cpu().stream().unwrap();
    for extents in [[1, 1, 1], [131, 35, 67], [137, 261, 305]] {
        let [m, n, k] = step.rounded_up(extents);
        let (a, b) = (random(1, m * k), random(2, n * k));
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let mut on_c = stream.filled::<bf16>(m * n, 0xFF).unwrap();
        let operands = Operands::new([m, n, k], &on_a, &on_b, &mut on_c).unwrap();
        step.gemm(&stream, operands).unwrap();
        let c = stream.download(&on_c).unwrap();
        let result = check([n, k], &c, product([m, n, k], &a, &b));
        result.unwrap_or_else(|error| panic!("step {}, {m}×{n}×{k}: {error}", step.name));
    }
}

macro_rules! steps {
    ($($name:ident: $nth:literal;)+) => {$(
        #[test]
        fn $name() {
            at_odd_sizes($nth);
        }
    )+};
}
steps! {
    naive: 1;
    shared_tiles: 2;
    register_tiles: 3;
    vector_loads: 4;
    cp_async: 5;
    mma_sync: 6;
    tma: 7;
    wgmma: 8;
    clusters: 9;
}

#[test]
fn extents_that_a_step_cannot_move_are_refused() {
    let stream = Device::cpu().stream().unwrap();
    let [a, b, mut c] = [81, 81, 81].map(|count| stream.zeroed::<bf16>(count).unwrap());
    let mut refusal = |nth: usize, extents| {
        let operands = Operands::new(extents, &a, &b, &mut c);
        let done = operands.and_then(|it| STEPS[nth - 1].gemm(&stream, it));
        done.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(4, [9, 9, 9]),
        "step 4 vector loads moves 8 elements along k at a time, and the product has k = 9: pad it with zeros, or take \
         an earlier step"
    );
    assert_eq!(
        refusal(1, [9, 9, 0]),
        "the product has k = 0: extents are 1 to 2^31 - 1, so skip an empty product and split a larger one"
    );
    assert_eq!(
        refusal(1, [9, 9, 10]),
        "A has 90 elements, and its buffer 81: make the buffer as long as the extents say"
    );
}

#[test]
fn threads_that_read_tiles_do_not_meet_in_a_bank() {
    let stream = Device::cpu().stream().unwrap();
    let extents = [128, 128, 64];
    let [a, b] = [1, 2].map(|seed| stream.upload(&random(seed, 128 * 64)).unwrap());
    let mut c = stream.zeroed::<bf16>(128 * 128).unwrap();
    for step in &STEPS {
        let reports = cpu::report(|| {
            let operands = Operands::new(extents, &a, &b, &mut c).unwrap();
            step.gemm(&stream, operands).unwrap();
            Ok(())
        });
        for site in &reports.unwrap()[0].sites {
            assert!(site.worst_conflict <= 1, "step {}: {site}", step.name);
        }
    }
}
