//! `#[derive(SharedStorage)]`: the fields of a struct lie one after the other in shared memory.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Member};

/// The most fields, which are the parts of a tuple that is shared storage.
const MAX_FIELDS: usize = 8;

/// The `impl SharedStorage`, by way of the tuple of the fields.
pub fn expand(item: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &item.data else {
        return Err(syn::Error::new(
            item.ident.span(),
            "only a struct can be shared storage: for parts in the same bytes, one after the other in time, there is \
             `SharedUnion`",
        ));
    };
    if data.fields.is_empty() || data.fields.len() > MAX_FIELDS {
        return Err(syn::Error::new(
            item.ident.span(),
            "shared storage has 1 to 8 fields: put several into a struct of their own",
        ));
    }
    let name = &item.ident;
    let (impl_generics, type_generics, where_clause) = item.generics.split_for_impl();
    let types = data.fields.iter().map(|field| &field.ty);
    let members: Vec<Member> = data.fields.members().collect();
    let parts: Vec<_> = (0..members.len())
        .map(|nth| format_ident!("__part_{nth}"))
        .collect();
    let tuple = quote!((#(#types,)*));
    Ok(quote! {
        impl #impl_generics ::cutlet_device::SharedStorage for #name #type_generics #where_clause {
            const BYTES: u32 = <#tuple as ::cutlet_device::SharedStorage>::BYTES;
            const ALIGN: u32 = <#tuple as ::cutlet_device::SharedStorage>::ALIGN;

            #[inline(always)]
            fn at(address: u32) -> Self {
                let (#(#parts,)*) = <#tuple as ::cutlet_device::SharedStorage>::at(address);
                Self { #(#members: #parts,)* }
            }
        }
    })
}
