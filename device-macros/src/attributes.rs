//! The list in `#[kernel(threads = 256, …)]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, LitStr, Token};

/// Targets that rustc knows as target features since before Rust 1.95; asking for another one in a
/// `cfg` would be a warning in the crate that has the kernel.
const FEATURES: [&str; 11] = [
    "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100",
    "sm_100a",
];

/// What `#[kernel(…)]` says about the launches of a kernel.
pub struct KernelAttributes {
    threads: Expr,
    min_blocks: Option<Expr>,
    cluster: Option<Expr>,
    shared: Option<Expr>,
    arch: Option<LitStr>,
}

impl KernelAttributes {
    /// The expression of type `LaunchBounds`.
    pub fn launch_bounds(&self) -> TokenStream {
        let threads = &self.threads;
        let or = |value: &Option<Expr>, default: u32| match value {
            Some(value) => quote!(#value),
            None => quote!(#default),
        };
        let min_blocks = or(&self.min_blocks, 0);
        let cluster = or(&self.cluster, 1);
        let shared = or(&self.shared, 0);
        quote!(::cutlet_device::LaunchBounds::new(#threads, #min_blocks, #cluster, #shared))
    }

    /// The `cfg` predicate under which the kernel is compiled to PTX.
    ///
    /// A kernel for one target need not take time in the build for another. `cutlet-ptx-builder`
    /// leaves it out there in any case, which is what counts for targets that rustc has no name for.
    pub fn on_device(&self) -> TokenStream {
        match self.arch() {
            arch if FEATURES.contains(&arch.as_str()) => {
                quote!(all(target_arch = "nvptx64", target_feature = #arch))
            }
            _ => quote!(target_arch = "nvptx64"),
        }
    }

    /// The target that the kernel is for, and with it all newer ones if it has no letter; `-` for every target.
    pub fn arch(&self) -> String {
        self.arch.as_ref().map_or("-".to_owned(), LitStr::value)
    }
}

impl Parse for KernelAttributes {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut threads = None;
        let mut min_blocks = None;
        let mut cluster = None;
        let mut shared = None;
        let mut arch = None;
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
                _ => {
                    return Err(syn::Error::new(
                        name.span(),
                        format!(
                            "`{name}` is not a launch bound: there are `threads`, `min_blocks`, \
                             `cluster`, `shared` and `arch`"
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
