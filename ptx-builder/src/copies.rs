//! Families whose PTX is that of another family with words replaced: their texts, and the list of them.
//!
//! A program embeds no copies, and a package ships none. The list says how to make them.

use std::fs;
use std::io;
use std::path::Path;

use crate::built::file_name;
use crate::error::BuildError;
use crate::families::FamilyText;
use crate::replacement::Replacement;

/// Name of the list of copies in a folder of PTX.
pub(crate) const LIST: &str = "copies";

/// A file of PTX whose text is that of another file with words replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Name of the file.
    pub file: String,
    /// Name of the other file.
    pub of: String,
    /// The words.
    pub words: Replacement,
}

impl Copy {
    /// Reads a line of the list.
    pub fn parse(line: &str) -> Option<Copy> {
        let mut parts = line.split(' ');
        let [file, of, words] = [parts.next()?, parts.next()?, parts.next()?];
        Some(Copy {
            file: file.to_owned(),
            of: of.to_owned(),
            words: Replacement::parse(words)?,
        })
    }

    /// The line of the list.
    fn line(&self) -> String {
        let Copy { file, of, words } = self;
        format!("{file} {of} {}\n", words.written())
    }

    /// The file's text, made of that of the other file.
    pub fn text(&self, of: &str) -> String {
        self.words.apply(of).unwrap_or_else(|| of.to_owned())
    }
}

/// The lines of the list for the copies of these families.
pub(crate) fn lines(families: &[FamilyText], target: &str) -> String {
    let copies = families.iter().flat_map(|text| {
        text.also.iter().filter_map(|words| {
            Some(Copy {
                file: file_name(&words.apply(&text.family)?, target),
                of: file_name(&text.family, target),
                words: words.clone(),
            })
        })
    });
    copies.map(|copy| copy.line()).collect()
}

/// The copies that a folder of PTX lists; none if it has no list.
pub(crate) fn read(folder: &Path) -> Result<Vec<Copy>, BuildError> {
    let path = folder.join(LIST);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let parse = |line: &str| {
        let why = || format!("`{line}` should be two files and words as `new:old`");
        Copy::parse(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why()))
    };
    fs::read_to_string(&path)
        .and_then(|list| list.lines().map(parse).collect())
        .map_err(BuildError::io("reading", path))
}

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
    fn the_list_says_how_to_make_each_copy() {
        let families = [
            family("mul::bf16", BF16, &["f16:bf16", "f16:bf16+sub:mul"]),
            family("mul::f16", F16, &[]),
        ];
        let list = lines(&families, "sm_90a");
        let expected = "mul-f16.sm_90a.ptx mul-bf16.sm_90a.ptx f16:bf16\n\
                        sub-f16.sm_90a.ptx mul-bf16.sm_90a.ptx f16:bf16+sub:mul\n";
        assert_eq!(list, expected);
        let copies = list.lines().map(|line| Copy::parse(line).unwrap());
        let texts: Vec<_> = copies.map(|copy| copy.text(BF16)).collect();
        assert_eq!(texts, [F16.to_owned(), F16.replace("mul", "sub")]);
    }

    #[test]
    fn a_line_that_is_no_copy_is_shown() {
        let folder = std::env::temp_dir().join(format!("cutlet-copies-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(LIST), "mul-f16.sm_90a.ptx f16:bf16\n").unwrap();
        let error = read(&folder).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(
            error.contains("`mul-f16.sm_90a.ptx f16:bf16` should be"),
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
