//! Adds the families whose PTX is that of another family with words replaced.

use crate::families::FamilyText;
use crate::replacement::Replacement;

/// The families and their copies. A family that is compiled as well must equal its copy.
pub(crate) fn with_copies(mut families: Vec<FamilyText>) -> Result<Vec<FamilyText>, String> {
    let copies: Vec<FamilyText> = families
        .iter()
        .flat_map(|text| text.also.iter().map(move |words| copy_of(text, words)))
        .collect::<Result<_, _>>()?;
    for copy in copies {
        match families.iter().find(|text| text.family == copy.family) {
            None => families.push(copy),
            Some(other) if other.ptx == copy.ptx => {}
            Some(other) => return Err(difference(other, &copy)),
        }
    }
    families.sort_by(|a, b| a.family.cmp(&b.family));
    Ok(families)
}

/// The family with the words replaced, in its name and in all of its text.
fn copy_of(
    FamilyText { family, ptx, .. }: &FamilyText,
    words: &Replacement,
) -> Result<FamilyText, String> {
    let name = words.apply(family).ok_or_else(|| {
        format!(
            "the kernels of module `{family}` have `also = [\"{words}\"]`, but the module's name has no `{}`: move them \
             to a module whose name has it",
            words.old()
        )
    })?;
    Ok(FamilyText {
        family: name,
        ptx: words.apply(ptx).unwrap_or_else(|| ptx.clone()),
        also: Vec::new(),
        shared_bytes: Vec::new(),
    })
}

/// Says where a compiled family differs from its copy.
fn difference(compiled: &FamilyText, copy: &FamilyText) -> String {
    let mut lines = compiled.ptx.lines().zip(copy.ptx.lines());
    let lines = match lines.find(|(compiled, copy)| compiled != copy) {
        Some((compiled, copy)) => format!("`{}` should be `{}`", compiled.trim(), copy.trim()),
        None => "one of the two is longer".to_owned(),
    };
    format!(
        "`{}` is compiled as well, and is not the text that `also` promises: {lines}",
        compiled.family
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(name: &str, ptx: &str, also: &[&str]) -> FamilyText {
        FamilyText {
            family: name.to_owned(),
            ptx: ptx.to_owned(),
            also: also
                .iter()
                .map(|words| Replacement::parse(words).unwrap())
                .collect(),
            shared_bytes: Vec::new(),
        }
    }

    const BF16: &str = ".entry mul_bf16()\n{ mul.bf16x2; ret; }";
    const F16: &str = ".entry mul_f16()\n{ mul.f16x2; ret; }";

    #[test]
    fn a_word_is_replaced_in_name_and_text() {
        let families = vec![
            family("mul::bf16", BF16, &["f16:bf16"]),
            family("other", "add.bf16x2;", &[]),
        ];
        let families = with_copies(families).unwrap();
        let found: Vec<_> = families
            .iter()
            .map(|text| (text.family.as_str(), text.ptx.as_str()))
            .collect();
        let expected = [
            ("mul::bf16", BF16),
            ("mul::f16", F16),
            ("other", "add.bf16x2;"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn two_words_are_replaced_one_after_the_other() {
        let words = "e4m3e5m2_:e4m3_+e4m3.e5m2:e4m3.e4m3";
        let text = ".entry mul_e4m3_64()\n{ wgmma.f32.e4m3.e4m3; cvt.e4m3x2; }";
        let families = with_copies(vec![family("mul::e4m3_64", text, &[words])]).unwrap();
        let [_, copy] = &families[..] else {
            panic!("{families:?}")
        };
        assert_eq!(copy.family, "mul::e4m3e5m2_64");
        let expected = ".entry mul_e4m3e5m2_64()\n{ wgmma.f32.e4m3.e5m2; cvt.e4m3x2; }";
        assert_eq!(copy.ptx, expected);
        let error = with_copies(vec![family("mul", text, &[words])]).unwrap_err();
        assert!(
            error.contains("name has no `e4m3_` or `e4m3.e4m3`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_compiled_must_be_the_same() {
        let both = |f16: &str| {
            with_copies(vec![
                family("mul::bf16", BF16, &["f16:bf16"]),
                family("mul::f16", f16, &[]),
            ])
        };
        assert_eq!(both(F16).unwrap().len(), 2);
        let error = both(&F16.replace("f16x2", "rn.f16x2")).unwrap_err();
        let lines = "`{ mul.rn.f16x2; ret; }` should be `{ mul.f16x2; ret; }`";
        assert!(error.contains("`mul::f16` is compiled"), "{error}");
        assert!(error.contains(lines), "{error}");
        let error = both(".entry mul_f16()").unwrap_err();
        assert!(error.contains("longer"), "{error}");
    }

    #[test]
    fn a_module_without_the_word_is_refused() {
        let error = with_copies(vec![family("mul", BF16, &["f16:bf16"])]).unwrap_err();
        assert!(error.contains("name has no `bf16`"), "{error}");
    }
}
