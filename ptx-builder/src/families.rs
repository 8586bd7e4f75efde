//! Splits a PTX text into one for each family of kernels.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::at_once::at_once;
use crate::entry;
use crate::isa;
use crate::metadata::KernelInfo;
use crate::module::{Kind, Module, names};
use crate::replacement::Replacement;

/// The PTX of one family for one target.
#[derive(Debug)]
pub(crate) struct FamilyText {
    /// Its name, as `Kernel::family`.
    pub family: String,
    /// A complete PTX module.
    pub ptx: String,
    /// The replacements that make other families of this one.
    pub also: Vec<Replacement>,
    /// The kernels' names and bytes of shared memory; of a copy, none.
    pub shared_bytes: Vec<(String, u32)>,
}

/// The families of the crate with kernels for this target, sorted by name. It is an error if a family is in two texts.
pub(crate) fn of(texts: &[String], krate: &str, target: &str) -> Result<Vec<FamilyText>, String> {
    let families = at_once(texts, |text| split(&Module::parse(text)?, krate, target))?;
    let mut families: Vec<_> = families.into_iter().flatten().collect();
    families.sort_by(|a, b| a.family.cmp(&b.family));
    match families
        .windows(2)
        .find(|pair| pair[0].family == pair[1].family)
    {
        Some(pair) => Err(format!(
            "kernels of the module `{krate}::{}` are in two texts",
            pair[0].family
        )),
        None => Ok(families),
    }
}

/// One text for each family of the crate with kernels for this target, sorted by name.
///
/// A text holds the family's entries with their launch bounds, and the functions and variables that they reach. Kernels
/// of other crates that were linked in are left out: their own package has them.
fn split(module: &Module<'_>, krate: &str, target: &str) -> Result<Vec<FamilyText>, String> {
    let mut families: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    let mut kernels = HashMap::new();
    for kernel in &module.kernels {
        if kernel.krate() == krate && kernel.fits(target) {
            families
                .entry(kernel.family())
                .or_default()
                .insert(&kernel.entry);
            kernels.insert(kernel.entry.as_str(), kernel);
        }
    }
    for (name, kernel) in &kernels {
        if !module
            .items
            .iter()
            .any(|item| item.kind == Kind::Entry && item.name == *name)
        {
            return Err(format!(
                "the kernel `{name}` of the module `{}` has no entry",
                kernel.module
            ));
        }
    }

    let reached_from = References::of(module);
    let mut texts = Vec::new();
    for (family, entries) in families {
        let mut shared_bytes: Vec<_> = entries
            .iter()
            .map(|entry| ((*entry).to_owned(), kernels[entry].shared_bytes))
            .collect();
        shared_bytes.sort();
        let kept = reached_from.closure(&entries);
        let mut declared = HashSet::new();
        let mut items = String::new();
        for (index, item) in module.items.iter().enumerate() {
            let item_text = match item.kind {
                Kind::Entry if !entries.contains(item.name) => continue,
                Kind::Entry => &entry::with_bounds(item.text, kernels[item.name])?,
                Kind::Directive => item.text,
                _ if !kept.contains(item.name) && !reached_from.is_anonymous(index) => continue,
                // Each kernel declares the block's shared memory.
                Kind::Variable if item.is_extern() && !declared.insert(item.text) => continue,
                _ => item.text,
            };
            items.push('\n');
            items.push_str(item_text);
            items.push('\n');
        }
        texts.push(FamilyText {
            family: family.to_owned(),
            ptx: isa::header(&module.header, &items)? + &items,
            also: also(family, entries.iter().map(|entry| kernels[entry]))?.to_vec(),
            shared_bytes,
        });
    }
    Ok(texts)
}

/// The replacements of a family, on which all its kernels must agree.
fn also<'a>(
    family: &str,
    kernels: impl Iterator<Item = &'a KernelInfo>,
) -> Result<&'a [Replacement], String> {
    let mut asked = kernels.map(|kernel| &kernel.also[..]);
    let first = asked.next().unwrap_or_default();
    if asked.all(|other| other == first) {
        Ok(first)
    } else {
        Err(format!(
            "kernels of the module `{family}` differ in `also`: move those that have it to a module of their own"
        ))
    }
}

/// The names that each item uses. Entries are not among them: nothing can call an entry, and the name of an entry `add`
/// would be found in every instruction `add`.
struct References<'a> {
    mentions: HashMap<&'a str, HashSet<&'a str>>,
    anonymous: HashSet<usize>,
}

impl<'a> References<'a> {
    fn of(module: &Module<'a>) -> References<'a> {
        let items = module.items.iter();
        let defined: HashSet<&str> = items
            .filter(|item| item.kind != Kind::Entry)
            .map(|item| item.name)
            .collect();
        let mut mentions: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut anonymous = HashSet::new();
        for (index, item) in module.items.iter().enumerate() {
            if item.name.is_empty() {
                anonymous.insert(index);
            }
            // A text has many registers, and a module defines none of them.
            let names = names(item.text).filter(|name| !name.starts_with('%'));
            mentions
                .entry(item.name)
                .or_default()
                .extend(names.filter(|name| defined.contains(name)));
        }
        References {
            mentions,
            anonymous,
        }
    }

    /// Whether the item has no name, so that its users are unknown.
    fn is_anonymous(&self, index: usize) -> bool {
        self.anonymous.contains(&index)
    }

    /// These names and all that they reach.
    fn closure(&self, from: &HashSet<&'a str>) -> HashSet<&'a str> {
        let mut open: Vec<&str> = from.iter().copied().collect();
        let mut kept = from.clone();
        while let Some(name) = open.pop() {
            for next in self.mentions.get(name).into_iter().flatten() {
                if kept.insert(next) {
                    open.push(next);
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.version 8.0
.target sm_90a
.address_size 64
// cutlet-kernel entry=one family=mine::a maxntid=32 minnctapersm=0 cluster=1 shared=0 arch=- also=- params=
// cutlet-kernel entry=two family=mine::b maxntid=64 minnctapersm=0 cluster=1 shared=0 arch=- also=- params=
// cutlet-kernel entry=new family=mine::b maxntid=96 minnctapersm=0 cluster=1 shared=0 arch=sm_90a also=- params=
// cutlet-kernel entry=other family=theirs::b maxntid=32 minnctapersm=0 cluster=1 shared=0 arch=- also=- params=
.extern .shared .align 1024 .b8 buffer[];
.extern .shared .align 1024 .b8 buffer[];
.global .u32 deep = 4;
.global .u64 table[2] = {deep, 0};
.func helper() { mov.u64 %rd1, table; ret; }
.visible .entry one() { call.uni helper; ret; }
.visible .entry two() { mov.u32 %r1, buffer; ret; }
.visible .entry new() { ret; }
.visible .entry other() { ret; }
";

    fn split_for(target: &str) -> Vec<FamilyText> {
        split(&Module::parse(TEXT).unwrap(), "mine", target).unwrap()
    }

    #[test]
    fn each_family_gets_what_it_reaches_and_nothing_else() {
        let texts = split_for("sm_90a");
        let [a, b] = &texts[..] else {
            panic!("{texts:?}")
        };
        assert_eq!((a.family.as_str(), b.family.as_str()), ("a", "b"));
        for word in [
            ".target sm_90a",
            "entry one",
            ".func helper",
            "table[2]",
            "deep = 4",
        ] {
            assert!(a.ptx.contains(word), "{word} in\n{}", a.ptx);
        }
        for word in ["buffer", "entry two", "entry other", "entry new"] {
            assert!(!a.ptx.contains(word), "{word} in\n{}", a.ptx);
        }
        for word in [
            "buffer[]",
            "entry two",
            ".maxntid 64",
            "entry new",
            ".maxntid 96",
        ] {
            assert!(b.ptx.contains(word), "{word} in\n{}", b.ptx);
        }
        assert!(!b.ptx.contains("helper"), "{}", b.ptx);
        assert_eq!(b.ptx.matches("buffer[]").count(), 1, "{}", b.ptx);
    }

    #[test]
    fn families_are_gathered_from_texts_and_a_family_in_two_is_an_error() {
        let [one, two] = ["a", "b"].map(|family| {
            TEXT.replace("mine::", "theirs::")
                .replace(&format!("theirs::{family}"), &format!("mine::{family}"))
        });
        let families = of(&[two, one.clone()], "mine", "sm_90a").unwrap();
        let names: Vec<_> = families.iter().map(|text| text.family.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let error = of(&[one.clone(), one], "mine", "sm_90a").unwrap_err();
        assert!(error.contains("`mine::a` are in two texts"), "{error}");
    }

    #[test]
    fn a_kernel_for_another_target_is_left_out() {
        let texts = split_for("sm_80");
        assert!(texts.iter().all(|text| !text.ptx.contains("new")));
    }

    #[test]
    fn a_kernel_named_like_an_instruction_is_in_its_own_family_only() {
        let named = TEXT
            .replace("entry=one", "entry=ret")
            .replace("entry one", "entry ret")
            .replace("entry=other", "entry=mov")
            .replace("entry other", "entry mov");
        let texts = split(&Module::parse(&named).unwrap(), "mine", "sm_90a").unwrap();
        let [a, b] = &texts[..] else {
            panic!("{texts:?}")
        };
        assert!(a.ptx.contains("entry ret()"), "{}", a.ptx);
        for word in ["entry ret", "entry mov", "helper"] {
            assert!(!b.ptx.contains(word), "{word} in\n{}", b.ptx);
        }
    }

    #[test]
    fn kernels_of_a_module_agree_on_what_else_it_is() {
        let of_a = TEXT.replacen("arch=- also=-", "arch=- also=uno:one", 1);
        let families = of(&[of_a], "mine", "sm_90a").unwrap();
        let also: Vec<_> = families.iter().map(|text| text.also.len()).collect();
        assert_eq!(also, [1, 0]);
        let of_new = TEXT.replacen("arch=sm_90a also=-", "arch=sm_90a also=old:new", 1);
        let error = of(&[of_new], "mine", "sm_90a").unwrap_err();
        assert!(error.contains("module `b` differ in `also`"), "{error}");
    }

    #[test]
    fn a_kernel_without_entry_is_an_error() {
        let text = TEXT.replace(".visible .entry one", ".visible .entry uno");
        let error = split(&Module::parse(&text).unwrap(), "mine", "sm_90a").unwrap_err();
        assert!(
            error.contains("`one` of the module `mine::a` has no entry"),
            "{error}"
        );
    }
}
