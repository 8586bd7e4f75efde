//! Finds conversions of numbers in software, where the GPU has an instruction.
//!
//! The crate `half` has methods of the names that `cutlet_device::Float` has, and Rust prefers a type's own methods. On a
//! GPU they are compiled to tens of instructions with branches. Constants in them tell them apart.

/// A conversion in software.
struct Conversion {
    /// The method.
    method: &'static str,
    /// Operands that its instructions have, all of them. It has the first one once.
    operands: &'static [&'static str],
    /// What to call instead.
    instead: &'static str,
}

const CONVERSIONS: [Conversion; 4] = [
    Conversion {
        method: "half::bf16::from_f32",
        // The bits that decide on rounding: three times the first bit that is lost, minus one.
        operands: &[", 98303;"],
        instead: "cutlet_device::Float::from_f32(value)",
    },
    Conversion {
        method: "half::f16::from_f32",
        operands: &[", 12287;", ", 2139095040;"],
        instead: "cutlet_device::Float::from_f32(value)",
    },
    Conversion {
        method: "half::f16::to_f32",
        // The exponent of a number below the normal ones.
        operands: &[", 989855744;", "clz.b32"],
        instead: "cutlet_device::Float::to_f32(value)",
    },
    Conversion {
        method: "from_f64` of `half::bf16` or `half::f16",
        operands: &[", 12287;", ", 2146435072;"],
        instead: "cutlet_device::Float::from_f32(value as f32)",
    },
];

/// A line for each kind of conversion in the text of a kernel or function.
pub(crate) fn find(text: &str) -> impl Iterator<Item = String> {
    CONVERSIONS.iter().filter_map(|conversion| {
        let Conversion {
            method,
            operands,
            instead,
        } = conversion;
        let is_there = operands.iter().all(|operand| text.contains(operand));
        is_there.then(|| {
            let count = text.matches(operands[0]).count();
            let times = if count == 1 { String::new() } else { format!(" {count} times") };
            format!(
                "converts in software{times}, by `{method}`: call `{instead}`, which is one instruction. A method of \
                 `half` comes before that of the trait"
            )
        })
    })
}
