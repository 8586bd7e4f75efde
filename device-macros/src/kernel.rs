//! `#[kernel]`: checks the function's signature, and writes the PTX entry and the host's handle.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, ItemFn, ReturnType, Signature, Type};

use crate::argument::{Argument, Parameters};
use crate::attributes::KernelAttributes;
use crate::thread_idx;

/// The most arguments that `cutlet_device::KernelArgs` covers.
const MAX_ARGS: usize = 12;

/// Declares the block's shared memory, `cutlet_device::SharedMemory`, in each PTX module. Modules are compiled apart,
/// and the compiler knows only the name. The launch gives the size. The largest swizzle of a tile needs an alignment of
/// 1024 bytes.
const SHARED_MEMORY: &str = ".extern .shared .align 1024 .b8 cutlet_shared[];";

/// The items that replace a `#[kernel]` function. Each has the `#[cfg(…)]` attributes that follow the macro's.
pub fn expand(attributes: &KernelAttributes, mut function: ItemFn) -> syn::Result<TokenStream> {
    let parameters = check_signature(&function.sig)?;
    let block = &function.block;
    let body = thread_idx::with_threads(quote!(#block), attributes.threads());
    attributes.check_name(&function.sig.ident)?;
    attributes.check_storage(&parameters)?;
    let conditions: Vec<Attribute> = function
        .attrs
        .extract_if(.., |attr| attr.path().is_ident("cfg"))
        .collect();
    let entry = device_entry(attributes, &conditions, &function, &parameters, &body);
    let handle = host_handle(attributes, &conditions, &function, &parameters, &body);
    Ok(quote!(#entry #handle))
}

/// The items for nvptx64: the entry, and a comment line in the PTX with what Rust has no attribute for.
/// `cutlet-ptx-builder` reads the line and edits the entry.
fn device_entry(
    attributes: &KernelAttributes,
    conditions: &[Attribute],
    function: &ItemFn,
    parameters: &Parameters,
    body: &TokenStream,
) -> TokenStream {
    let arguments = &parameters.arguments;
    let ItemFn {
        attrs, vis, sig, ..
    } = function;
    let Signature { safety, ident, .. } = sig;
    let bounds = attributes.launch_bounds(parameters.storage_bytes());
    let bounds_name = format_ident!("__{}_launch_bounds", ident);
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.data).collect();
    let inputs = arguments
        .iter()
        .enumerate()
        .map(|(position, argument)| argument.entry_input(position));
    let statements = arguments
        .iter()
        .enumerate()
        .map(|(position, argument)| argument.entry_statement(ident, &types[..position]));
    let storage = parameters.storage_statement();
    let params: Vec<String> = arguments
        .iter()
        .map(|argument| format!("{}:{{}}:{{}}:{{}}", argument.name()))
        .collect();
    let params = params.join(",");
    let line_head = format!("// cutlet-kernel entry={ident} family=");
    let line_tail = format!(
        " maxntid={{}} minnctapersm={{}} cluster={{}} shared={{}} arch={} also={} params={params}",
        attributes.arch(),
        attributes.also(),
    );
    let on_device = attributes.on_device();
    quote! {
        #(#conditions)*
        #[cfg(#on_device)]
        #[allow(non_upper_case_globals)]
        const #bounds_name: ::cutlet_device::LaunchBounds = #bounds;

        #(#conditions)*
        #[cfg(#on_device)]
        ::cutlet_device::__ptx_entry! {
            {
                #(#attrs)*
                #[unsafe(no_mangle)]
                #[allow(improper_ctypes_definitions, clippy::too_many_arguments)]
                #vis #safety
            }
            { fn #ident(#(#inputs),*) { #(#statements)* #storage #body } }
            {
                #SHARED_MEMORY,
                ::core::concat!(#line_head, ::core::module_path!(), #line_tail),
                const #bounds_name.threads(),
                const #bounds_name.min_blocks(),
                const #bounds_name.cluster(),
                const #bounds_name.shared_bytes(),
                #(
                    const ::core::mem::size_of::<#types>(),
                    const <#types as ::cutlet_device::KernelParam>::ENTRY_ALIGN,
                    const <#types as ::cutlet_device::KernelParam>::ENTRY_TYPE_CODE,
                )*
            }
        }
    }
}

/// The items for the host: the handle, with the function in it as the body for the CPU. The user's function can name
/// the items beside it, so their names are none that a user would choose.
fn host_handle(
    attributes: &KernelAttributes,
    conditions: &[Attribute],
    function: &ItemFn,
    parameters: &Parameters,
    body: &TokenStream,
) -> TokenStream {
    let arguments = &parameters.arguments;
    let ItemFn {
        attrs, vis, sig, ..
    } = function;
    let Signature { safety, ident, .. } = sig;
    let (docs, attrs): (Vec<&Attribute>, Vec<&Attribute>) = attrs
        .iter()
        .partition(|attr| attr.path().is_ident("doc") || attr.path().is_ident("deprecated"));
    let bounds = attributes.launch_bounds(parameters.storage_bytes());
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.data).collect();
    let names: Vec<_> = (0..types.len())
        .map(|index| format_ident!("__argument_{}", index))
        .collect();
    let inputs = arguments.iter().map(|argument| &argument.input);
    let storage = parameters.storage_statement();
    let passed: Vec<TokenStream> = arguments
        .iter()
        .zip(&names)
        .map(|(argument, name)| argument.body_argument(name))
        .collect();
    let name = ident.to_string();
    let tuple = quote!((#(#types,)*));
    let argument_names = arguments.iter().map(Argument::name);
    let checks = arguments.iter().map(Argument::check);
    let call = quote! {
        let (#(#names,)*) = __arguments;
        unsafe { #ident(#(#passed),*) }
    };
    let cpu = attributes.cpu();
    quote! {
        #(#conditions)*
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = { #(#checks)* };

        #(#conditions)*
        #[cfg(not(target_arch = "nvptx64"))]
        #(#docs)*
        #[allow(non_upper_case_globals)]
        #vis static #ident: ::cutlet_device::Kernel<#tuple> = {
            #(#attrs)*
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            #safety fn #ident(#(#inputs),*) { #storage #body }

            #[allow(dead_code, unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn __plain(__arguments: #tuple) { #call }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(dead_code, unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn __with_fma(__arguments: #tuple) { #call }

            #[allow(dead_code, unused_unsafe, clippy::undocumented_unsafe_blocks)]
            unsafe fn __vector(__arguments: #tuple) {
                #[cfg(target_arch = "x86_64")]
                if ::cutlet_device::__has_avx2_and_fma() {
                    return unsafe { __with_fma(__arguments) };
                }
                unsafe { __plain(__arguments) }
            }

            // Outside the unsafe block, because the user's expressions are in it.
            let __bounds = #bounds;
            // SAFETY: the PTX entry is made of the same function, with its name, arguments and bounds.
            unsafe {
                ::cutlet_device::Kernel::new(
                    #name,
                    ::core::module_path!(),
                    &[#(#argument_names),*],
                    __bounds,
                    ::cutlet_device::__cpu_body!(#cpu, __plain, __vector),
                )
            }
        };
    }
}

/// Returns the parameters, or an error at the token that a kernel cannot have.
fn check_signature(signature: &Signature) -> syn::Result<Parameters> {
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
    let mut parameters = Parameters::default();
    for input in &signature.inputs {
        parameters.push(input)?;
    }
    if let Some(argument) = parameters.arguments.get(MAX_ARGS) {
        return refuse(
            argument.input.span(),
            "a kernel takes up to 12 arguments: put more into a `#[repr(C)]` struct that derives \
             `DeviceData`",
        );
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn a_condition_is_on_every_item() {
        let function = parse_quote! {
            #[cfg(feature = "large")]
            #[inline(never)]
            pub fn fill(n: u32, #[grid_constant] value: &[u32; 2]) {}
        };
        let attributes = parse_quote!(threads = 32);
        let items: syn::File = syn::parse2(expand(&attributes, function).unwrap()).unwrap();
        assert_eq!(items.items.len(), 4, "{}", quote!(#items));
        for item in &items.items {
            let item = quote!(#item).to_string();
            assert!(item.starts_with("# [cfg (feature = \"large\")]"), "{item}");
            assert_eq!(item.matches("large").count(), 1, "{item}");
        }
    }

    #[test]
    fn a_kernel_for_several_architectures_has_a_second_body_for_the_cpu() {
        let has_second = |attributes: KernelAttributes| {
            let function = parse_quote! { pub fn fill(n: u32) {} };
            let items = expand(&attributes, function).unwrap().to_string();
            items.contains("CpuBody :: Vector")
        };
        assert!(has_second(parse_quote!(threads = 32)));
        assert!(has_second(parse_quote!(threads = 32, arch = "sm_80")));
        assert!(!has_second(parse_quote!(threads = 32, arch = "sm_90a")));
        assert!(!has_second(parse_quote!(threads = 32, cpu = CpuBody::None)));
    }
}
