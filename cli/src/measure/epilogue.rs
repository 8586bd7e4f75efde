//! The epilogue of a problem, as suites name it: `bias`, `gelu`, `bias+gelu`.

use std::fmt;

use cutlet::{Activation, Bias, Buffer, Gemm, Operand};
use cutlet_cli::cublas;
use cutlet_device::DeviceData;
use serde::Deserialize;

/// A bias for each column of C, an activation, or both; or neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Epilogue {
    pub bias: bool,
    pub activation: Option<Activation>,
}

/// The activations, by name.
const ACTIVATIONS: [(&str, Activation); 4] = [
    ("relu", Activation::Relu),
    ("gelu", Activation::Gelu),
    ("silu", Activation::Silu),
    ("gelu-erf", Activation::GeluErf),
];

impl TryFrom<String> for Epilogue {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (bias, activation) = match text.strip_prefix("bias+") {
            None if text == "bias" => {
                return Ok(Epilogue {
                    bias: true,
                    activation: None,
                });
            }
            None => (false, text.as_str()),
            Some(rest) => (true, rest),
        };
        let known = ACTIVATIONS.iter().find(|(name, _)| *name == activation);
        match known {
            Some(&(_, activation)) => Ok(Epilogue {
                bias,
                activation: Some(activation),
            }),
            None => Err(format!(
                "the epilogue `{text}` is none of bias, relu, gelu, silu, gelu-erf and bias+ one of these"
            )),
        }
    }
}

impl fmt::Display for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bias = self.bias.then_some("bias");
        let activation = ACTIVATIONS
            .iter()
            .find(|(_, activation)| Some(*activation) == self.activation)
            .map(|(name, _)| *name);
        let parts: Vec<&str> = bias.into_iter().chain(activation).collect();
        f.write_str(&parts.join("+"))
    }
}

impl Epilogue {
    /// Nothing, a bias alone, and a bias with each activation.
    pub fn each() -> Vec<Epilogue> {
        let biased = |activation| Epilogue {
            bias: true,
            activation,
        };
        let activations = ACTIVATIONS.map(|(_, activation)| biased(Some(activation)));
        [Epilogue::default(), biased(None)]
            .into_iter()
            .chain(activations)
            .collect()
    }

    /// Whether there is neither a bias nor an activation.
    pub fn is_none(&self) -> bool {
        *self == Epilogue::default()
    }

    /// Applies the epilogue to an entry of the product. `bias` is that of the entry's column.
    pub fn apply(&self, product: f64, bias: f64) -> f64 {
        let x = if self.bias { product + bias } else { product };
        match self.activation {
            None => x,
            // `max` would drop a NaN, which the kernels pass on.
            Some(Activation::Relu) if x.is_nan() => x,
            Some(Activation::Relu) => x.max(0.0),
            // The limit, where the formulas would multiply infinity by 0.
            Some(_) if x == f64::NEG_INFINITY => 0.0,
            Some(Activation::Gelu) => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            Some(Activation::Silu) => x / (1.0 + (-x).exp()),
            Some(Activation::GeluErf) => x * normal_distribution(x),
        }
    }

    /// cutlet's GEMM with this epilogue.
    pub fn fuse<'a, T: Operand, D: DeviceData>(
        &self,
        mut gemm: Gemm<'a, T, D>,
        bias: &'a Buffer<D>,
    ) -> Gemm<'a, T, D> {
        if self.bias {
            gemm = gemm.bias(Bias::columns(bias));
        }
        match self.activation {
            Some(activation) => gemm.activation(activation),
            None => gemm,
        }
    }

    /// The same epilogue of cuBLASLt, if it has one.
    pub fn for_cublas<D: DeviceData>(
        &self,
        bias: &std::rc::Rc<Buffer<D>>,
    ) -> Option<cublas::Epilogue<D>> {
        Some(cublas::Epilogue {
            bias: self.bias.then(|| bias.clone()),
            activation: match self.activation {
                None => None,
                Some(Activation::Relu) => Some(cublas::Activation::Relu),
                Some(Activation::Gelu) => Some(cublas::Activation::Gelu),
                // cuBLASLt has one GELU: the one with the hyperbolic tangent.
                Some(Activation::Silu | Activation::GeluErf) => return None,
            },
        })
    }
}

/// `Φ(x)` by the series around 0, or by the continued fraction of the tail.
fn normal_distribution(x: f64) -> f64 {
    /// From here on, the fraction has converged after its terms.
    const FAR: f64 = 3.0;
    const TERMS: u32 = 200;
    if x > FAR {
        return 1.0 - normal_distribution(-x);
    }
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < -FAR {
        let fraction = (1..TERMS)
            .rev()
            .fold(-x, |below, k| -x + f64::from(k) / below);
        return density / fraction;
    }
    let (mut term, mut sum) = (x, x);
    for k in 1..TERMS {
        term *= x * x / f64::from(2 * k + 1);
        sum += term;
    }
    0.5 + density * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_tables() {
        for (x, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-2.5, 0.006_209_665_325_776),
            (-3.5, 0.000_232_629_079_035_5),
            (4.0, 0.999_968_328_758_167),
        ] {
            let found = normal_distribution(x);
            assert!((found / expected - 1.0).abs() < 1e-12, "{x}: {found}");
        }
        assert!(normal_distribution(f64::NAN).is_nan());
    }

    #[test]
    fn infinities_become_their_limits() {
        for (name, activation) in ACTIVATIONS {
            let epilogue = Epilogue {
                bias: false,
                activation: Some(activation),
            };
            let infinity = f64::INFINITY;
            assert_eq!(epilogue.apply(-infinity, 0.0), 0.0, "{name}");
            assert_eq!(epilogue.apply(infinity, 0.0), infinity, "{name}");
            assert!(epilogue.apply(f64::NAN, 0.0).is_nan(), "{name}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "bias",
            "relu",
            "gelu",
            "silu",
            "bias+relu",
            "bias+gelu",
            "bias+silu",
        ] {
            let epilogue = Epilogue::try_from(name.to_string()).unwrap();
            assert_eq!(epilogue.to_string(), name);
        }
        for name in ["", "bias+", "biasgelu", "gelu+bias", "swish"] {
            assert!(Epilogue::try_from(name.to_string()).is_err(), "{name}");
        }
    }
}
