//! Words: how lines of a tuning file name the values of a choice.

use cutlet_kernels::gemm::epilogue::{Activation, BiasAlong};

use crate::Order;
use crate::gemm::element_type::ElementType;
use crate::gemm::precision::Precision;
use crate::gemm::problem::BetaKind;
use crate::gemm::scales::ScalesKind;

/// A type of few values, each with a word of its own.
pub trait Word: Copy + PartialEq + 'static {
    /// All values with their words.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for this value.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value)| *value == self);
        found.map_or("", |(word, _)| word)
    }

    /// The value of a word.
    fn read(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, value)| *value)
    }

    /// All words.
    fn all() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(word, _)| *word).collect()
    }
}

impl Word for ElementType {
    const WORDS: &'static [(&'static str, Self)] = &[
        (ElementType::F32.name(), ElementType::F32),
        (ElementType::Bf16.name(), ElementType::Bf16),
        (ElementType::F16.name(), ElementType::F16),
        (ElementType::E4m3.name(), ElementType::E4m3),
        (ElementType::E5m2.name(), ElementType::E5m2),
        (ElementType::E4m3E5m2.name(), ElementType::E4m3E5m2),
        (ElementType::E5m2E4m3.name(), ElementType::E5m2E4m3),
        (ElementType::F64.name(), ElementType::F64),
        (ElementType::I8.name(), ElementType::I8),
        (ElementType::I32.name(), ElementType::I32),
    ];
}

impl Word for Precision {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("exact", Precision::Exact),
        ("tf32", Precision::Tf32),
        ("3xtf32", Precision::Tf32x3),
        ("fast-accumulation", Precision::FastAccumulation),
    ];
}

impl Word for ScalesKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", ScalesKind::None),
        ("outer", ScalesKind::Outer { in_pairs: true }),
        ("outer-unpaired", ScalesKind::Outer { in_pairs: false }),
        ("blocks", ScalesKind::Blocks),
    ];
}

impl Word for Order {
    const WORDS: &'static [(&'static str, Self)] =
        &[("row", Order::RowMajor), ("col", Order::ColMajor)];
}

/// Which of A and B all products of a batch have in common.
impl Word for [bool; 2] {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", [false, false]),
        ("a", [true, false]),
        ("b", [false, true]),
        ("ab", [true, true]),
    ];
}

impl Word for BetaKind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("0", BetaKind::Zero),
        ("1", BetaKind::One),
        ("other", BetaKind::Other),
    ];
}

impl Word for Option<BiasAlong> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", None),
        ("rows", Some(BiasAlong::Rows)),
        ("columns", Some(BiasAlong::Columns)),
    ];
}

impl Word for Option<Order> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", None),
        ("row", Some(Order::RowMajor)),
        ("col", Some(Order::ColMajor)),
    ];
}

impl Word for Option<Activation> {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("none", None),
        ("relu", Some(Activation::Relu)),
        ("gelu", Some(Activation::Gelu)),
        ("silu", Some(Activation::Silu)),
        ("gelu-erf", Some(Activation::GeluErf)),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_value_is_its_words<W: Word + std::fmt::Debug>() {
        for &(word, value) in W::WORDS {
            assert_eq!((value.word(), W::read(word)), (word, Some(value)));
        }
        assert_eq!(W::read("nothing"), None);
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        each_value_is_its_words::<ElementType>();
        each_value_is_its_words::<Precision>();
        each_value_is_its_words::<ScalesKind>();
        each_value_is_its_words::<Order>();
        each_value_is_its_words::<[bool; 2]>();
        each_value_is_its_words::<BetaKind>();
        each_value_is_its_words::<Option<BiasAlong>>();
        each_value_is_its_words::<Option<Order>>();
        each_value_is_its_words::<Option<Activation>>();
    }
}
