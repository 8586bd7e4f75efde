//! Reads the list in `#[kernel(threads = 256, …)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Ident, LitStr, Token, bracketed};

use crate::argument::Parameters;

/// Targets that rustc 1.95 knows as target features. A `cfg` with another one would be a warning in the crate of the
/// kernel.
const FEATURES: [&str; 11] = [
    "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100",
    "sm_100a",
];

/// The attributes of a kernel.
pub struct KernelAttributes {
    threads: Expr,
    min_blocks: Option<Expr>,
    cluster: Option<Expr>,
    shared: Option<Expr>,
    arch: Option<LitStr>,
    also: Option<Also>,
    cpu: Option<Expr>,
}

/// `["f16 for bf16"]`: each entry makes the PTX of another kernel out of this one's.
struct Also(Vec<Replacement>);

/// `"f16 for bf16"`, or several such words with commas between them.
struct Replacement {
    literal: LitStr,
    words: Vec<Word>,
}

/// `f16 for bf16`.
struct Word {
    new: String,
    old: String,
}

impl KernelAttributes {
    /// Threads of a block.
    pub fn threads(&self) -> &Expr {
        &self.threads
    }

    /// The expression of type `LaunchBounds` of a kernel that keeps `storage` bytes in shared memory.
    pub fn launch_bounds(&self, storage: Option<TokenStream>) -> TokenStream {
        let threads = &self.threads;
        let or = |value: &Option<Expr>, default: u32| match value {
            Some(value) => quote!(#value),
            None => quote!(#default),
        };
        let min_blocks = or(&self.min_blocks, 0);
        let cluster = or(&self.cluster, 1);
        let shared = match storage {
            Some(bytes) => bytes,
            None => or(&self.shared, 0),
        };
        quote!(::cutlet_device::LaunchBounds::new(#threads, #min_blocks, #cluster, #shared))
    }

    /// The `cfg` predicate under which the kernel is compiled to PTX.
    ///
    /// A kernel for one target need not take time in the build for another. `cutlet-ptx-builder` leaves it out of other
    /// targets in any case, which is what counts for targets that rustc has no name for.
    pub fn on_device(&self) -> TokenStream {
        match self.arch() {
            arch if FEATURES.contains(&arch.as_str()) => {
                quote!(all(target_arch = "nvptx64", target_feature = #arch))
            }
            _ => quote!(target_arch = "nvptx64"),
        }
    }

    /// The target that the kernel is for, or `-` for every target. A target without a letter stands for all newer ones
    /// as well.
    pub fn arch(&self) -> String {
        self.arch.as_ref().map_or("-".to_owned(), LitStr::value)
    }

    /// The expression of type `CpuBody`.
    pub fn cpu(&self) -> TokenStream {
        let is_for_one_arch = || {
            self.arch()
                .ends_with(|last: char| last.is_ascii_alphabetic())
        };
        match &self.cpu {
            Some(cpu) => quote!(#cpu),
            None if is_for_one_arch() => quote!(::cutlet_device::CpuBody::Plain),
            None => quote!(::cutlet_device::CpuBody::Vector),
        }
    }

    /// The replacements that make the PTX of other kernels, separated by commas, or `-` if there are none. One is as in
    /// `f16:bf16`, and has a `+` between its words.
    pub fn also(&self) -> String {
        let all: Vec<_> = self
            .replacements()
            .map(|Replacement { words, .. }| {
                let words = words.iter().map(|Word { new, old }| format!("{new}:{old}"));
                words.collect::<Vec<_>>().join("+")
            })
            .collect();
        match all.is_empty() {
            true => "-".to_owned(),
            false => all.join(","),
        }
    }

    /// Refuses bytes of shared memory beside parameters in it.
    pub fn check_storage(&self, parameters: &Parameters) -> syn::Result<()> {
        match &self.shared {
            Some(shared) if !parameters.storage.is_empty() => Err(syn::Error::new(
                shared.span(),
                "the `#[shared]` parameters say how much shared memory the kernel has: leave out `shared`",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses replacements that would not change the name of the kernel.
    pub fn check_name(&self, kernel: &Ident) -> syn::Result<()> {
        let name = kernel.to_string();
        let changes_name = |it: &&Replacement| it.words.iter().any(|word| name.contains(&word.old));
        match self.replacements().find(|it| !changes_name(it)) {
            None => Ok(()),
            Some(Replacement { literal, words }) => {
                let old: Vec<_> = words.iter().map(|it| format!("`{}`", it.old)).collect();
                let old = old.join(" or ");
                Err(syn::Error::new(
                    literal.span(),
                    format!("`{name}` has no {old} in its name, which tells the kernels apart"),
                ))
            }
        }
    }

    fn replacements(&self) -> impl Iterator<Item = &Replacement> {
        self.also.iter().flat_map(|Also(words)| words)
    }
}

impl Parse for Also {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let list;
        bracketed!(list in input);
        Punctuated::<Replacement, Token![,]>::parse_terminated(&list)
            .map(|words| Also(words.into_iter().collect()))
    }
}

impl Parse for Replacement {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let literal: LitStr = input.parse()?;
        let value = literal.value();
        match value.split(", ").map(Word::parse).collect() {
            Some(words) => Ok(Replacement { literal, words }),
            None => Err(syn::Error::new(
                literal.span(),
                format!(
                    "`{value}` does not replace one word by another: write it as in `f16 for bf16`"
                ),
            )),
        }
    }
}

impl Word {
    /// Reads `f16 for bf16`. Words may have points in them, as types of instructions have.
    fn parse(text: &str) -> Option<Self> {
        let is_word = |word: &str| {
            let is_of_word =
                |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
            !word.is_empty() && word.bytes().all(is_of_word)
        };
        let (new, old) = text.split_once(" for ")?;
        (is_word(new) && is_word(old) && new != old).then(|| Word {
            new: new.to_owned(),
            old: old.to_owned(),
        })
    }
}

impl Parse for KernelAttributes {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut threads = None;
        let mut min_blocks = None;
        let mut cluster = None;
        let mut shared = None;
        let mut arch = None;
        let mut also = None;
        let mut cpu = None;
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match name.to_string().as_str() {
                "threads" => set(&mut threads, &name, input)?,
                "min_blocks" => set(&mut min_blocks, &name, input)?,
                "cluster" => set(&mut cluster, &name, input)?,
                "shared" => set(&mut shared, &name, input)?,
                "arch" => {
                    set(&mut arch, &name, input)?;
                    check_arch(arch.as_ref())?;
                }
                "also" => set(&mut also, &name, input)?,
                "cpu" => set(&mut cpu, &name, input)?,
                _ => {
                    return Err(syn::Error::new(
                        name.span(),
                        format!(
                            "`{name}` is not an argument of a kernel: there are `threads`, `min_blocks`, \
                             `cluster`, `shared`, `arch`, `also` and `cpu`"
                        ),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let threads = threads.ok_or_else(|| {
            syn::Error::new(
                Span::call_site(),
                "how many threads does a block of this kernel have? Write `#[kernel(threads = 256)]`",
            )
        })?;
        Ok(KernelAttributes {
            threads,
            min_blocks,
            cluster,
            shared,
            arch,
            also,
            cpu,
        })
    }
}

fn set<T: Parse>(slot: &mut Option<T>, name: &Ident, input: ParseStream) -> syn::Result<()> {
    if slot.is_some() {
        return Err(syn::Error::new(
            name.span(),
            format!("`{name}` is given twice"),
        ));
    }
    *slot = Some(input.parse()?);
    Ok(())
}

fn check_arch(arch: Option<&LitStr>) -> syn::Result<()> {
    let Some(arch) = arch else { return Ok(()) };
    let value = arch.value();
    let digits = value
        .strip_prefix("sm_")
        .map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest))
        .unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(syn::Error::new(
            arch.span(),
            format!("`{value}` is not a PTX target: write it as in `sm_80` or `sm_90a`"),
        ));
    }
    Ok(())
}
