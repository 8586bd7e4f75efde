//! `thread_idx()` in the body of a kernel, which the macro gives the kernel's number of threads.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Expr;

/// The function of `cutlet_device` that a body calls.
const NAME: &str = "thread_idx";

/// The body with `.of_block::<Threads<N>>()` behind each call of `thread_idx()`, where `N` is `threads`.
///
/// A function of this name beside the body would do as well, if it did not make the kernel's own import of
/// `cutlet_device::thread_idx` an unused one.
pub fn with_threads(body: TokenStream, threads: &Expr) -> TokenStream {
    // Braces around a number would be a warning.
    let count = match threads {
        Expr::Lit(number) => quote!(#number),
        _ => quote!({ #threads }),
    };
    with_count(body, &count)
}

fn with_count(body: TokenStream, count: &TokenStream) -> TokenStream {
    let mut tokens = TokenStream::new();
    let mut rest = body.into_iter().peekable();
    let mut may_call = true;
    while let Some(token) = rest.next() {
        let called = matches!(&token, TokenTree::Ident(name) if may_call && name == NAME);
        may_call = !continues_another_name(&token);
        let span = token.span();
        tokens.extend([within(token, count)]);
        if let Some(arguments) = rest.next_if(|next| called && is_empty_list(next)) {
            tokens.extend([arguments]);
            tokens.extend(quote_spanned! {span=>
                .of_block::<::cutlet_device::Threads<#count>>()
            });
        }
    }
    tokens
}

/// The token, and if it is a group, with the calls in it.
fn within(token: TokenTree, count: &TokenStream) -> TokenTree {
    let TokenTree::Group(group) = token else {
        return token;
    };
    let mut changed = Group::new(group.delimiter(), with_count(group.stream(), count));
    changed.set_span(group.span());
    changed.into()
}

/// Whether a name after the token is that of a method or of a definition.
fn continues_another_name(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(punct) => punct.as_char() == '.',
        TokenTree::Ident(word) => word == "fn",
        _ => false,
    }
}

fn is_empty_list(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group)
        if group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(body: TokenStream) -> String {
        with_threads(body, &syn::parse_quote!(N)).to_string()
    }

    #[test]
    fn each_call_has_the_number_of_threads() {
        let counted = quote!(thread_idx().of_block::<::cutlet_device::Threads<{ N }>>());
        let body = quote!(a(thread_idx(), |b| print!(
            "{}",
            cutlet_device::thread_idx()
        )));
        let expected = quote!(a(#counted, |b| print!("{}", cutlet_device::#counted)));
        assert_eq!(changed(body), expected.to_string());
    }

    #[test]
    fn a_number_has_no_braces() {
        let body = with_threads(quote!(thread_idx()), &syn::parse_quote!(256));
        let expected = quote!(thread_idx().of_block::<::cutlet_device::Threads<256>>());
        assert_eq!(body.to_string(), expected.to_string());
    }

    #[test]
    fn other_functions_and_methods_stay() {
        let body = quote! {
            fn thread_idx() {}
            self.thread_idx();
            warpgroup_thread_idx();
            let thread_idx = thread_idx;
            thread_idx(1);
        };
        assert_eq!(changed(body.clone()), body.to_string());
    }
}
