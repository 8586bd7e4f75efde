//! The errors of approximate functions, compared with their documented bounds.

use cutlet_host::Result;
use cutlet_instructions::PTX;
use cutlet_instructions::launched::approximations::{RESULTS, THREADS, approximate};
use fastrand::Rng;

use crate::devices;

/// How a function's error is bounded.
#[derive(Clone, Copy)]
enum Bound {
    Absolute(f64),
    Relative(f64),
    /// Units in the last place.
    Units(f64),
}

/// The size of a unit in the last place of the `f32` nearest to a number.
fn unit(exact: f64) -> f64 {
    let rounded = (exact as f32).abs();
    f64::from(rounded.next_up()) - f64::from(rounded)
}

/// The exact results for a number, in the kernel's order, with their bounds.
fn expected(x: f32) -> [(f64, Bound); RESULTS] {
    use Bound::*;
    let exact = f64::from(x);
    let positive = exact.abs();
    let is_near_one = positive > 0.5 && positive < 2.0;
    let of_log = |relative: f64| match is_near_one {
        true => Absolute((-22f64).exp2()),
        false => Relative(relative.exp2()),
    };
    let of_angle = match positive <= std::f64::consts::TAU {
        true => Absolute((-20.5f64).exp2()),
        false => Absolute((-14.7f64).exp2()),
    };
    let of_exp = Relative((-22f64).exp2() + positive * (-23.7f64).exp2());
    [
        (exact.exp2(), Units(2.0)),
        (exact.log2(), of_log(-22.0)),
        (exact.exp(), of_exp),
        (exact.ln(), of_log(-21.6)),
        (exact.recip(), Units(1.0)),
        (exact.sqrt(), Relative((-23f64).exp2())),
        (exact.sqrt().recip(), Relative((-22.9f64).exp2())),
        (exact.sin(), of_angle),
        (exact.cos(), of_angle),
        (exact.tanh(), Relative((-11f64).exp2())),
    ]
}

#[test]
fn errors_are_within_the_documented_bounds() -> Result<()> {
    let mut random = Rng::with_seed(5);
    // From 2^-10 to 64, of both signs.
    let mut number = || {
        let size = (random.f32() * 16.0 - 10.0).exp2();
        if random.bool() { size } else { -size }
    };
    for device in devices() {
        let function = device.load(&PTX, &approximate)?;
        let stream = device.stream()?;
        for _ in 0..20 {
            let numbers: Vec<f32> = (0..THREADS).map(|_| number()).collect();
            let on_device = stream.upload(&numbers)?;
            let mut results = stream.zeroed::<f32>(THREADS as usize * RESULTS)?;
            // SAFETY: there are as many elements as the kernel says.
            unsafe { stream.launch(&function, 1, (&on_device, &mut results))? };
            let results = stream.download(&results)?;
            for (&x, found) in numbers.iter().zip(results.chunks(RESULTS)) {
                for (nth, (exact, bound)) in expected(x).into_iter().enumerate() {
                    let found = f64::from(found[nth]);
                    if exact.is_nan() {
                        assert!(found.is_nan(), "function {nth} of {x}: {found}");
                        continue;
                    }
                    // Half a unit more: the nearest number may be that far from the exact one.
                    let most = unit(exact) / 2.0
                        + match bound {
                            Bound::Absolute(error) => error,
                            Bound::Relative(error) => error * exact.abs(),
                            Bound::Units(units) => units * unit(exact),
                        };
                    let error = (found - exact).abs();
                    assert!(error <= most, "function {nth} of {x}: {found}, not {exact}");
                }
            }
        }
    }
    Ok(())
}
