//! `#[derive(DeviceData)]`: proves that a struct is plain data.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields};

/// The `unsafe impl DeviceData`, with checks that the compiler evaluates.
pub fn expand(item: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &item.data else {
        return Err(syn::Error::new(
            item.ident.span(),
            "only a struct can be device data: a kernel may leave any bytes in memory, and not \
             every byte pattern is a value of an enum or union",
        ));
    };
    if !is_repr_c(item)? {
        return Err(syn::Error::new(
            item.ident.span(),
            "the compiler may order these fields differently on host and device: add `#[repr(C)]` \
             (or `#[repr(transparent)]`)",
        ));
    }
    let name = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let mut bounds: Vec<TokenStream> = where_clause
        .iter()
        .flat_map(|clause| &clause.predicates)
        .map(|predicate| quote!(#predicate))
        .collect();
    let fields = fields(&data.fields);
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    if !item.generics.params.is_empty() {
        bounds.push(quote!(Self: ::core::marker::Copy + ::core::marker::Send + ::core::marker::Sync + 'static));
    }
    bounds.extend(
        types
            .iter()
            .map(|ty| quote_spanned!(ty.span()=> #ty: ::cutlet_device::DeviceData)),
    );
    let padding = format!(
        "{name}: the compiler puts padding between or after these fields, whose bytes are not \
         data; order the fields by falling alignment, or fill the gap with a field such as \
         `_padding: u32`"
    );
    let unaligned = format!(
        "{name}: a field that needs a more aligned kernel parameter (a tensor map: 64 bytes) is \
         not at a multiple of that; put it first"
    );
    // Only the instances of a generic struct have a layout to check.
    let check = item.generics.params.is_empty().then(|| {
        quote! {
            const _: () = <#name as ::cutlet_device::DeviceData>::CHECK;
        }
    });
    Ok(quote! {
        #check

        // SAFETY: `repr(C)` of fields that are device data themselves; `CHECK` proves that there is
        // no padding.
        #[automatically_derived]
        #[diagnostic::do_not_recommend]
        unsafe impl #impl_generics ::cutlet_device::DeviceData for #name #type_generics
        where
            #(#bounds,)*
        {
            const PARAM_ALIGN: usize = {
                let mut align = ::core::mem::align_of::<Self>();
                #(
                    if <#types as ::cutlet_device::DeviceData>::PARAM_ALIGN > align {
                        align = <#types as ::cutlet_device::DeviceData>::PARAM_ALIGN;
                    }
                )*
                align
            };

            const IN_PLACE: bool =
                false #(|| <#types as ::cutlet_device::DeviceData>::IN_PLACE)*;

            const CHECK: () = {
                #(
                    let () = <#types as ::cutlet_device::DeviceData>::CHECK;;
                    ::core::assert!(
                        ::core::mem::offset_of!(Self, #fields)
                            .is_multiple_of(<#types as ::cutlet_device::DeviceData>::PARAM_ALIGN),
                        #unaligned
                    );
                )*
                ::core::assert!(
                    ::core::mem::size_of::<Self>()
                        == 0 #(+ ::core::mem::size_of::<#types>())*,
                    #padding
                );
            };
        }
    })
}

fn fields(fields: &Fields) -> Vec<TokenStream> {
    fields
        .iter()
        .enumerate()
        .map(|(index, field)| match &field.ident {
            Some(name) => quote!(#name),
            None => {
                let index = syn::Index::from(index);
                quote!(#index)
            }
        })
        .collect()
}

fn is_repr_c(item: &DeriveInput) -> syn::Result<bool> {
    let mut found = false;
    for attr in item
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("repr"))
    {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("packed") {
                return Err(meta.error(
                    "packed fields are not aligned, and a kernel cannot load them in one piece",
                ));
            }
            found |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}
