//! `#[kernel]`: checks the function's signature and writes the PTX entry and the host's handle.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, ItemFn, PatType, ReturnType, Signature, Type};

use crate::attributes::KernelAttributes;

/// The most arguments that `cutlet_device::KernelArgs` covers.
const MAX_ARGS: usize = 12;

/// The items that replace a `#[kernel]` function.
pub fn expand(attributes: &KernelAttributes, function: ItemFn) -> syn::Result<TokenStream> {
    let arguments = check_signature(&function.sig)?;
    let entry = device_entry(attributes, &function, &arguments);
    let handle = host_handle(attributes, &function, &arguments);
    Ok(quote!(#entry #handle))
}

/// On nvptx64: the entry, and a comment line in the PTX that carries what Rust has no attribute for
/// (`cutlet-ptx-builder` reads it and edits the entry).
fn device_entry(
    attributes: &KernelAttributes,
    function: &ItemFn,
    arguments: &[&PatType],
) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
        ..
    } = function;
    let Signature {
        safety,
        ident,
        inputs,
        ..
    } = sig;
    let bounds = attributes.launch_bounds();
    let bounds_name = format_ident!("__{}_launch_bounds", ident);
    let types: Vec<&Type> = arguments.iter().map(|argument| &*argument.ty).collect();
    let params = vec!["{}:{}"; types.len()].join(",");
    let line_head = format!("// cutlet-kernel entry={ident} family=");
    let line_tail = format!(
        " maxntid={{}} minnctapersm={{}} cluster={{}} shared={{}} arch={} params={params}",
        attributes.arch()
    );
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #[allow(non_upper_case_globals)]
        const #bounds_name: ::cutlet_device::LaunchBounds = #bounds;

        #[cfg(target_arch = "nvptx64")]
        ::cutlet_device::__ptx_entry! {
            {
                #(#attrs)*
                #[unsafe(no_mangle)]
                #[allow(improper_ctypes_definitions, clippy::too_many_arguments)]
                #vis #safety
            }
            { fn #ident(#inputs) #block }
            {
                ::core::concat!(#line_head, ::core::module_path!(), #line_tail),
                const #bounds_name.threads,
                const #bounds_name.min_blocks,
                const #bounds_name.cluster,
                const #bounds_name.shared_bytes,
                #(
                    const ::core::mem::size_of::<#types>(),
                    const <#types as ::cutlet_device::DeviceData>::PARAM_ALIGN,
                )*
            }
        }
    }
}

/// On the host: the handle, with the function inside it as the body for the CPU.
fn host_handle(
    attributes: &KernelAttributes,
    function: &ItemFn,
    arguments: &[&PatType],
) -> TokenStream {
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
        ..
    } = function;
    let Signature {
        safety,
        ident,
        inputs,
        ..
    } = sig;
    let (docs, attrs): (Vec<&Attribute>, Vec<&Attribute>) = attrs
        .iter()
        .partition(|attr| attr.path().is_ident("doc") || attr.path().is_ident("deprecated"));
    let bounds = attributes.launch_bounds();
    let types: Vec<&Type> = arguments.iter().map(|argument| &*argument.ty).collect();
    let names: Vec<_> = (0..types.len())
        .map(|index| format_ident!("argument_{}", index))
        .collect();
    let name = ident.to_string();
    let tuple = quote!((#(#types,)*));
    let checks = types.iter().map(|ty| {
        quote_spanned! {ty.span()=>
            #[cfg(not(target_arch = "nvptx64"))]
            const _: () = ::cutlet_device::__check_argument::<#ty>();
        }
    });
    quote! {
        #(#checks)*

        #[cfg(not(target_arch = "nvptx64"))]
        #(#docs)*
        #[allow(non_upper_case_globals)]
        #vis static #ident: ::cutlet_device::Kernel<#tuple> = {
            #(#attrs)*
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            #safety fn #ident(#inputs) #block

            // Compiled a second time for processors with these instructions, which most have.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn body_with_fma((#(#names,)*): #tuple) {
                unsafe { #ident(#(#names),*) }
            }

            #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn body(arguments: #tuple) {
                #[cfg(target_arch = "x86_64")]
                if ::cutlet_device::__has_avx2_and_fma() {
                    return unsafe { body_with_fma(arguments) };
                }
                let (#(#names,)*) = arguments;
                unsafe { #ident(#(#names),*) }
            }

            ::cutlet_device::Kernel::new(#name, ::core::module_path!(), #bounds, body)
        };
    }
}

/// Refuses what a kernel cannot have, at the token that says it.
fn check_signature(signature: &Signature) -> syn::Result<Vec<&PatType>> {
    let refuse = |span, why: &str| Err(syn::Error::new(span, why));
    if let Some(token) = &signature.asyncness {
        return refuse(
            token.span(),
            "a kernel cannot be `async`: its threads run on the GPU, which has no executor",
        );
    }
    if let Some(token) = &signature.constness {
        return refuse(token.span(), "a kernel cannot be a `const fn`");
    }
    if let Some(abi) = &signature.abi {
        return refuse(
            abi.span(),
            "`#[kernel]` chooses the ABI itself: leave out `extern`",
        );
    }
    if !signature.generics.params.is_empty() {
        return refuse(
            signature.generics.span(),
            "a kernel cannot be generic, because its PTX is made when its crate is compiled: \
             keep a generic device function and make a kernel of each instance with `instantiate!`",
        );
    }
    if let Some(clause) = &signature.generics.where_clause {
        return refuse(clause.span(), "a kernel has no generics to constrain");
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        return refuse(
            ty.span(),
            "a kernel returns nothing: write the result to memory, through a `GlobalMut<T>`",
        );
    }
    if let Some(variadic) = &signature.variadic {
        return refuse(
            variadic.span(),
            "a kernel has a fixed number of arguments: take a `GlobalMut<T>` or an array",
        );
    }
    let mut arguments = Vec::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                return refuse(
                    receiver.span(),
                    "a kernel is a free function: it cannot take `self`",
                );
            }
            FnArg::Typed(argument) => {
                check_type(&argument.ty)?;
                arguments.push(argument);
            }
        }
    }
    if let Some(argument) = arguments.get(MAX_ARGS) {
        return refuse(
            argument.span(),
            "a kernel takes up to 12 arguments: put more into a `#[repr(C)]` struct that derives \
             `DeviceData`",
        );
    }
    Ok(arguments)
}

/// Refuses the types that are never device data; the others are left to the trait `DeviceData`.
fn check_type(ty: &Type) -> syn::Result<()> {
    let why = match ty {
        Type::Reference(reference) if matches!(*reference.elem, Type::Slice(_)) => {
            "a kernel cannot take a slice of host memory: take a `Global<T>` (or `GlobalMut<T>` to \
             write) and its length, and pass a buffer at the launch"
        }
        Type::Reference(_) => {
            "a kernel cannot take a reference to host memory: take plain data by value, or a \
             `Global<T>` (`GlobalMut<T>` to write) and pass a buffer at the launch"
        }
        Type::Slice(_) => {
            "a kernel cannot take a slice: take a `Global<T>` (or `GlobalMut<T>` to write) and its \
             length"
        }
        Type::Ptr(_) => {
            "a raw pointer does not say whose memory it points to: take a `Global<T>`, or \
             `GlobalMut<T>` to write"
        }
        Type::ImplTrait(_) | Type::TraitObject(_) => {
            "a kernel argument has one known type: keep a generic device function and make a \
             kernel of each instance with `instantiate!`"
        }
        Type::FnPtr(_) => {
            "a host function has no address on the device: make the operation a type and the \
             kernel an instance of a generic device function, with `instantiate!`"
        }
        _ => return Ok(()),
    };
    Err(syn::Error::new(ty.span(), why))
}
