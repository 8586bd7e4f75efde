//! The parameters of a kernel: plain data by value, references to data that stays where the launch put it, and
//! storage in shared memory.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, FnArg, Ident, Pat, PatType, Type};

/// The attribute of a reference to data that stays where the launch put it.
const GRID_CONSTANT: &str = "grid_constant";

/// The attribute of a parameter that is in shared memory.
const SHARED: &str = "shared";

/// Refuses a tensor map by value.
const COPIED_MAP: &str = "a tensor map, or what holds one, stays where the launch puts it, and TMA \
    reads it there: take it as in `#[grid_constant] map: &TensorMap`";

/// The parameters of a kernel.
#[derive(Default)]
pub struct Parameters {
    /// Those that the launch passes, in order.
    pub arguments: Vec<Argument>,
    /// Those in shared memory, in order, without the attributes of this crate.
    pub storage: Vec<PatType>,
}

impl Parameters {
    /// Adds a parameter. Returns an error if no kernel can have it.
    pub fn push(&mut self, input: &FnArg) -> syn::Result<()> {
        match input {
            FnArg::Typed(typed) if typed.attrs.iter().any(is_shared) => {
                let mut typed = typed.clone();
                typed.attrs.retain(|attr| !is_shared(attr));
                self.storage.push(typed);
            }
            _ => self.arguments.push(Argument::new(input)?),
        }
        Ok(())
    }

    /// The bytes of what is in shared memory, if there is something. Errors are at its type.
    pub fn storage_bytes(&self) -> Option<TokenStream> {
        let ty = self.storage_type()?;
        Some(quote_spanned!(ty.span()=> <#ty as ::cutlet_device::SharedStorage>::BYTES))
    }

    /// The type of what is in shared memory: of a parameter, or the tuple of several types.
    fn storage_type(&self) -> Option<TokenStream> {
        let types: Vec<_> = self.storage.iter().map(|typed| &typed.ty).collect();
        match types[..] {
            [] => None,
            [ty] => Some(quote!(#ty)),
            [first, ..] => Some(quote_spanned!(first.span()=> (#(#types,)*))),
        }
    }

    /// The statement before the body that takes what is in shared memory.
    pub fn storage_statement(&self) -> Option<TokenStream> {
        let ty = self.storage_type()?;
        let patterns: Vec<_> = self.storage.iter().map(|typed| &typed.pat).collect();
        let pattern = match patterns[..] {
            [pattern] => quote!(#pattern),
            _ => quote!((#(#patterns,)*)),
        };
        let taken = quote_spanned! {ty.span()=>
            ::cutlet_device::SharedMemory::new().take_storage::<#ty>()
        };
        Some(quote!(let #pattern = #taken;))
    }
}

fn is_shared(attr: &Attribute) -> bool {
    attr.path().is_ident(SHARED)
}

/// One argument of a kernel.
pub struct Argument {
    /// The parameter of the body, without the attributes of this crate.
    pub input: PatType,
    /// The type of the data that the launch passes.
    pub data: Type,
    /// The name in `#[grid_constant] name: &Data`.
    reference: Option<Ident>,
}

impl Argument {
    /// Reads a parameter. Returns an error if no kernel can have it.
    pub fn new(input: &FnArg) -> syn::Result<Self> {
        let mut input = match input {
            FnArg::Receiver(receiver) => {
                return Err(syn::Error::new(
                    receiver.span(),
                    "a kernel is a free function: it cannot take `self`",
                ));
            }
            FnArg::Typed(input) => input.clone(),
        };
        let attributes = input.attrs.len();
        input
            .attrs
            .retain(|attr| !attr.path().is_ident(GRID_CONSTANT));
        if input.attrs.len() == attributes {
            check_type(&input.ty)?;
            return Ok(Argument {
                data: (*input.ty).clone(),
                input,
                reference: None,
            });
        }
        let data = match &*input.ty {
            Type::Reference(reference) if reference.mutability.is_none() => {
                (*reference.elem).clone()
            }
            ty => {
                return Err(syn::Error::new(
                    ty.span(),
                    "a `#[grid_constant]` parameter is a shared reference, as in `map: &TensorMap`",
                ));
            }
        };
        check_type(&data)?;
        let Pat::Ident(name) = &*input.pat else {
            return Err(syn::Error::new(
                input.pat.span(),
                "a `#[grid_constant]` parameter has a name of its own",
            ));
        };
        Ok(Argument {
            data,
            reference: Some(name.ident.clone()),
            input,
        })
    }

    /// The name of the parameter; empty for a pattern.
    pub fn name(&self) -> String {
        match &*self.input.pat {
            Pat::Ident(name) => name.ident.unraw().to_string(),
            _ => String::new(),
        }
    }

    /// The parameter of the PTX entry, which takes the data by value.
    pub fn entry_input(&self, position: usize) -> TokenStream {
        let Argument { input, data, .. } = self;
        match &self.reference {
            None => quote!(#input),
            Some(_) => {
                let name = format_ident!("_grid_constant_{}", position);
                quote!(#name: #data)
            }
        }
    }

    /// The statement before the body in the PTX entry `kernel`. `before` are the types of the parameters before this
    /// one: those without bytes have no parameter in the PTX.
    pub fn entry_statement(&self, kernel: &Ident, before: &[&Type]) -> TokenStream {
        let Some(name) = &self.reference else {
            return TokenStream::new();
        };
        let data = &self.data;
        let symbol = format!("{kernel}_param_");
        quote! {
            let #name: &#data = {
                const POSITION: usize =
                    0 #(+ (::core::mem::size_of::<#before>() != 0) as usize)*;
                ::cutlet_device::__grid_constant!(#symbol, POSITION)
            };
        }
    }

    /// The statement that stops the build, with an error at the type, if a kernel cannot have this argument.
    pub fn check(&self) -> TokenStream {
        let data = &self.data;
        match &self.reference {
            None => quote_spanned!(data.span()=>
                ::core::assert!(::cutlet_device::__check_argument::<#data>(), #COPIED_MAP);
            ),
            Some(_) => quote_spanned!(data.span()=> ::cutlet_device::__check_argument::<#data>();),
        }
    }

    /// The expression that passes the data in the variable `value` to the body.
    pub fn body_argument(&self, value: &Ident) -> TokenStream {
        match &self.reference {
            None => quote!(#value),
            Some(_) => quote!(&#value),
        }
    }
}

/// Refuses types that are never device data. The trait `KernelParam` decides about the others.
fn check_type(ty: &Type) -> syn::Result<()> {
    let why = match ty {
        Type::Reference(reference) if matches!(*reference.elem, Type::Slice(_)) => {
            "a kernel cannot take a slice of host memory: take a `Global<T>` (or `GlobalMut<T>` to \
             write) and its length, and pass a buffer at the launch"
        }
        Type::Reference(_) => {
            "a kernel cannot take a reference to host memory: take plain data by value, or where the \
             launch puts it (`#[grid_constant] map: &TensorMap`), or a `Global<T>` (`GlobalMut<T>` \
             to write) and pass a buffer at the launch"
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
