//! `instantiate!`: makes kernels of generic device functions.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, FnArg, FnModifiers, Ident, ItemFn, Pat, Safety, Signature, Token, Visibility,
    parse_quote_spanned,
};

use crate::attributes::KernelAttributes;
use crate::kernel;

/// The lines of one `instantiate!`.
pub struct Instances(Vec<Instance>);

/// `#[kernel(…)] pub fn name(arguments) = function;`
struct Instance {
    attrs: Vec<Attribute>,
    vis: Visibility,
    sig: Signature,
    function: Expr,
}

impl Parse for Instances {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut instances = Vec::new();
        while !input.is_empty() {
            instances.push(input.parse()?);
        }
        Ok(Instances(instances))
    }
}

impl Parse for Instance {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let attrs = Attribute::parse_outer(input)?;
        let vis = input.parse()?;
        let sig = input.parse()?;
        input.parse::<Token![=]>()?;
        let function = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Instance {
            attrs,
            vis,
            sig,
            function,
        })
    }
}

impl Instances {
    /// The items of all lines.
    pub fn expand(self) -> syn::Result<TokenStream> {
        self.0.into_iter().map(Instance::expand).collect()
    }
}

impl Instance {
    fn expand(self) -> syn::Result<TokenStream> {
        let Instance {
            mut attrs,
            vis,
            sig,
            function,
        } = self;
        let is_kernel = |attr: &Attribute| {
            attr.path()
                .segments
                .last()
                .is_some_and(|segment| segment.ident == "kernel")
        };
        let Some(at) = attrs.iter().position(is_kernel) else {
            return Err(syn::Error::new(
                sig.ident.span(),
                "an instance needs its launch bounds: write `#[kernel(threads = …)]` before it",
            ));
        };
        let attribute = attrs.remove(at);
        let attributes = match &attribute.meta {
            syn::Meta::Path(_) => syn::parse2(TokenStream::new())
                .map_err(|error: syn::Error| syn::Error::new(attribute.span(), error))?,
            _ => attribute
                .parse_args::<KernelAttributes>()
                .map_err(|error| {
                    // An empty list has no token that could show the place of the error.
                    let empty = attribute
                        .meta
                        .require_list()
                        .is_ok_and(|list| list.tokens.is_empty());
                    if empty {
                        syn::Error::new(attribute.span(), error)
                    } else {
                        error
                    }
                })?,
        };
        let mut names = Vec::new();
        for input in &sig.inputs {
            match input {
                FnArg::Typed(argument) => match &*argument.pat {
                    Pat::Ident(name) => names.push(name.ident.clone()),
                    pattern => {
                        return Err(syn::Error::new(
                            pattern.span(),
                            "an instance hands its arguments on by name: give this one a name",
                        ));
                    }
                },
                FnArg::Receiver(receiver) => {
                    return Err(syn::Error::new(
                        receiver.span(),
                        "a kernel is a free function: it cannot take `self`",
                    ));
                }
            }
        }
        let span = function.span();
        let call = call(function, &names);
        let block = if matches!(sig.safety, Safety::Unsafe(_)) {
            // The `unsafe` of the line itself says that the caller keeps the promise of the function.
            parse_quote_spanned!(span=> {
                #[allow(clippy::undocumented_unsafe_blocks)]
                unsafe { #call }
            })
        } else {
            parse_quote_spanned!(span=> { #call })
        };
        let function = ItemFn {
            attrs,
            vis,
            modifiers: FnModifiers::default(),
            sig,
            block: Box::new(block),
        };
        kernel::expand(&attributes, function)
    }
}

/// The call of the function with the kernel's arguments: all of `function`, or those that `function(first, ..)` has for
/// `..`.
fn call(function: Expr, names: &[Ident]) -> TokenStream {
    match function {
        Expr::Call(mut call) if call.args.last().is_some_and(is_rest) => {
            call.args.pop();
            let (attrs, function, first) = (&call.attrs, &call.func, &call.args);
            quote_spanned!(call.span()=> #(#attrs)* #function(#first #(#names),*))
        }
        _ => quote_spanned!(function.span()=> #function(#(#names),*)),
    }
}

/// Whether the argument is `..`.
fn is_rest(argument: &Expr) -> bool {
    matches!(argument, Expr::Range(range) if range.start.is_none() && range.end.is_none())
}
