//! Checks that kernels leave index arithmetic to layouts.
//!
//! A thread or block index has a type without arithmetic, so the compiler already refuses `thread_idx().x * 4`. The
//! compiler cannot refuse a kernel that takes the plain number out first. This lint finds the ways to do that, in
//! expressions and inside macro calls: `.get()` and `.index()`, casts and transmutes, the raw intrinsics, and the
//! special registers in inline assembly. It also finds an operator that is applied to an index, in case an index type
//! ever gets one.
//!
//! Some methods of the device crate return plain numbers, and kernels may compute with these: which part or share of
//! something is the index's own (`part`, `own`, `share`), and the number of a thread's warp in its warpgroup (`warp`).

use std::{
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::{
    BinOp, Expr, ExprLit, FnArg, Lit, Local, Pat, Token, Type,
    parse::Parser,
    punctuated::Punctuated,
    spanned::Spanned,
    visit::{self, Visit},
};

use crate::process::{Outcome, root};

/// The functions of cutlet-device that return an index.
const INDEX_FUNCTIONS: &[&str] = &[
    "thread_idx",
    "lane_idx",
    "warp_idx",
    "warp_idx_sync",
    "block_idx",
    "cluster_rank",
    "multiprocessor_idx",
    "warpgroup_idx",
    "warpgroup_thread_idx",
];

/// The types of these indices. Some indices have no type of their own.
const INDEX_TYPES: &[&str] = &[
    "ThreadIdx",
    "LaneIdx",
    "WarpIdx",
    "BlockIdx",
    "BlockCoord",
    "ClusterRank",
    "WarpgroupIdx",
    "WarpgroupThread",
];

/// The methods that return an index when called on one.
const INDEX_METHODS: &[&str] = &["x", "y", "z", "clone", "after", "of_block", "of_group"];

/// The methods that return an index as a plain number, for layouts to call.
const NUMBER_OF_AN_INDEX: &[&str] = &["get", "index"];

/// Names that reach a raw index, or reinterpret a typed one.
const FORBIDDEN_NAMES: &[&str] = &[
    "transmute",
    "transmute_copy",
    "transmute_unchecked",
    "nvptx",
];

/// Beginnings of the names of raw index intrinsics (`_thread_idx_x`, `__nvvm_read_ptx_sreg_tid_x`).
const FORBIDDEN_PREFIXES: &[&str] = &["_thread_idx", "_block_idx", "__nvvm_read"];

/// Inline assembly and link names that read a raw index.
const FORBIDDEN_TEXT: &[&str] = &[
    "%tid",
    "%ctaid",
    "%laneid",
    "%warpid",
    "%smid",
    "%clusterid",
    "%cluster_ctaid",
    "%cluster_ctarank",
    "read.ptx.sreg",
];

/// A violation of the rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    file: PathBuf,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}: {}",
            self.file.display(),
            self.line,
            self.message
        )
    }
}

/// Lints every source file of `kernels/src`.
pub fn run() -> Outcome {
    let sources = root().join("kernels/src");
    println!("\n$ xtask lint-kernels ({})", sources.display());
    let mut files = Vec::new();
    rust_files(&sources, &mut files)?;
    files.sort();
    let mut findings = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let shown = file.strip_prefix(root()).unwrap_or(file);
        findings.extend(lint(shown, &text)?);
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{} files, no index arithmetic outside layouts", files.len());
            Ok(())
        }
        count => Err(format!(
            "{count} places in kernels/src take the number out of a thread or block index: \
             let a layout consume the index instead (partition a tensor, or apply a layout to it)"
        )),
    }
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            rust_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The findings in one file, in line order.
pub fn lint(file: &Path, text: &str) -> Outcome<Vec<Finding>> {
    let unparsable = |error: syn::Error| {
        let line = error.span().start().line;
        format!("{}:{line}: {error}", file.display())
    };
    let syntax = syn::parse_file(text).map_err(unparsable)?;
    let tokens: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| {
        format!("{}:{}: {error}", file.display(), error.span().start().line)
    })?;

    let mut found = HashSet::new();
    scan_tokens(tokens, &mut found);
    let mut arithmetic = Arithmetic {
        indices: HashSet::new(),
        found: &mut found,
    };
    arithmetic.visit_file(&syntax);

    let mut findings: Vec<Finding> = found
        .into_iter()
        .map(|(line, message)| Finding {
            file: file.to_owned(),
            line,
            message,
        })
        .collect();
    findings.sort();
    Ok(findings)
}

type Found = HashSet<(usize, String)>;

fn report(found: &mut Found, span: Span, message: String) {
    found.insert((span.start().line, message));
}

/// Finds what tokens alone show, and so also what is inside macro calls.
fn scan_tokens(tokens: TokenStream, found: &mut Found) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => scan_tokens(group.stream(), found),
            TokenTree::Ident(name) => {
                let text = name.to_string();
                if NUMBER_OF_AN_INDEX.contains(&text.as_str()) && is_called(&tokens, place) {
                    let message = format!("`{text}` takes the plain number out of an index");
                    report(found, name.span(), message);
                }
                if FORBIDDEN_NAMES.contains(&text.as_str())
                    || FORBIDDEN_PREFIXES
                        .iter()
                        .any(|begin| text.starts_with(begin))
                {
                    let message = format!("`{text}` reaches a raw index");
                    report(found, name.span(), message);
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                for forbidden in FORBIDDEN_TEXT {
                    // Doc comments are literals, too: `#[doc = "…"]` may mention registers.
                    if text.contains(forbidden) && !is_doc(&tokens, place) {
                        let message = format!("`{forbidden}` reads a raw index");
                        report(found, literal.span(), message);
                    }
                }
            }
            TokenTree::Punct(_) => {}
        }
    }
}

/// Whether the name is called as a method without arguments, or ends a path.
fn is_called(tokens: &[TokenTree], place: usize) -> bool {
    let is_punct = |at: Option<usize>, sign: char| {
        at.and_then(|at| tokens.get(at)).is_some_and(
            |token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign),
        )
    };
    let called_on_nothing_else = matches!(
        tokens.get(place + 1),
        Some(TokenTree::Group(group)) if group.stream().is_empty()
    );
    let is_method = is_punct(place.checked_sub(1), '.') && called_on_nothing_else;
    let is_path = is_punct(place.checked_sub(1), ':')
        && is_punct(place.checked_sub(2), ':')
        && !is_punct(Some(place + 1), ':');
    is_method || is_path
}

fn is_doc(tokens: &[TokenTree], place: usize) -> bool {
    place
        .checked_sub(2)
        .is_some_and(|at| matches!(&tokens[at], TokenTree::Ident(name) if name == "doc"))
}

/// Finds operators, casts and conversions that are applied to an index. Follows `let` and the types of parameters.
struct Arithmetic<'a> {
    /// Variables that hold an index in the current function.
    indices: HashSet<String>,
    found: &'a mut Found,
}

impl Arithmetic<'_> {
    /// Whether the expression is an index: a call that returns one, a variable that holds one, or a field of one.
    fn is_index(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Call(call) => {
                last_name(&call.func).is_some_and(|name| INDEX_FUNCTIONS.contains(&name.as_str()))
            }
            Expr::Path(path) => path
                .path
                .get_ident()
                .is_some_and(|name| self.indices.contains(&name.to_string())),
            Expr::Field(field) => self.is_index(&field.base),
            Expr::MethodCall(call) => {
                INDEX_METHODS.contains(&call.method.to_string().as_str())
                    && self.is_index(&call.receiver)
            }
            Expr::Paren(inner) => self.is_index(&inner.expr),
            Expr::Group(inner) => self.is_index(&inner.expr),
            Expr::Reference(inner) => self.is_index(&inner.expr),
            Expr::Cast(inner) => self.is_index(&inner.expr),
            Expr::Unary(inner) => self.is_index(&inner.expr),
            Expr::Block(block) => match block.block.stmts.last() {
                Some(syn::Stmt::Expr(last, None)) => self.is_index(last),
                _ => false,
            },
            _ => false,
        }
    }

    /// Binds the variables of a `let`. The parts of a tuple are bound one by one.
    fn bind_value(&mut self, pattern: &Pat, value: Option<&Expr>) {
        if let (Pat::Tuple(patterns), Some(Expr::Tuple(values))) = (pattern, value)
            && patterns.elems.len() == values.elems.len()
        {
            for (pattern, value) in patterns.elems.iter().zip(&values.elems) {
                self.bind_value(pattern, Some(value));
            }
        } else {
            self.bind(pattern, value.is_some_and(|value| self.is_index(value)));
        }
    }

    fn bind(&mut self, pattern: &Pat, holds_index: bool) {
        match pattern {
            Pat::Ident(name) => {
                let name = name.ident.to_string();
                if holds_index {
                    self.indices.insert(name);
                } else {
                    self.indices.remove(&name);
                }
            }
            Pat::Type(typed) => self.bind(&typed.pat, holds_index || is_index_type(&typed.ty)),
            Pat::Reference(inner) => self.bind(&inner.pat, holds_index),
            Pat::Tuple(parts) => {
                for part in &parts.elems {
                    self.bind(part, false);
                }
            }
            Pat::Struct(pattern) => {
                for field in &pattern.fields {
                    self.bind(&field.pat, holds_index);
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, span: Span, message: String) {
        report(self.found, span, message);
    }

    fn in_function(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = self.indices.clone();
        visit(self);
        self.indices = outer;
    }
}

fn last_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

fn is_index_type(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| INDEX_TYPES.contains(&last.ident.to_string().as_str())),
        Type::Reference(reference) => is_index_type(&reference.elem),
        _ => false,
    }
}

fn is_arithmetic(operator: &BinOp) -> bool {
    !matches!(
        operator,
        BinOp::Eq(_)
            | BinOp::Ne(_)
            | BinOp::Lt(_)
            | BinOp::Le(_)
            | BinOp::Gt(_)
            | BinOp::Ge(_)
            | BinOp::And(_)
            | BinOp::Or(_)
    )
}

impl<'ast> Visit<'ast> for Arithmetic<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.in_function(|this| visit::visit_item_fn(this, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.in_function(|this| visit::visit_impl_item_fn(this, function));
    }

    fn visit_fn_arg(&mut self, argument: &'ast FnArg) {
        if let FnArg::Typed(typed) = argument {
            self.bind(&typed.pat, is_index_type(&typed.ty));
        }
        visit::visit_fn_arg(self, argument);
    }

    fn visit_local(&mut self, local: &'ast Local) {
        visit::visit_local(self, local);
        let value = local.init.as_ref().map(|init| &*init.expr);
        self.bind_value(&local.pat, value);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let on_index = self.is_index(&binary.left) || self.is_index(&binary.right);
        if on_index && is_arithmetic(&binary.op) {
            let operator = &binary.op;
            let operator = quote::quote!(#operator);
            self.report(
                binary.op.span(),
                format!("`{operator}` is applied to an index"),
            );
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_cast(&mut self, cast: &'ast syn::ExprCast) {
        if self.is_index(&cast.expr) {
            self.report(cast.as_token.span(), "`as` casts an index".to_owned());
        }
        visit::visit_expr_cast(self, cast);
    }

    fn visit_expr_field(&mut self, field: &'ast syn::ExprField) {
        if matches!(field.member, syn::Member::Unnamed(_)) && self.is_index(&field.base) {
            self.report(
                field.member.span(),
                "the field takes the plain number out of an index".to_owned(),
            );
        }
        visit::visit_expr_field(self, field);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        if ["into", "try_into"].contains(&method.as_str()) && self.is_index(&call.receiver) {
            self.report(call.method.span(), format!("`{method}` converts an index"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let converts =
            last_name(&call.func).is_some_and(|name| name == "from" || name == "try_from");
        if converts && call.args.iter().any(|argument| self.is_index(argument)) {
            self.report(call.func.span(), "`from` converts an index".to_owned());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // Arguments that parse as expressions are checked as such. The scan of the tokens has seen the others.
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(arguments) = arguments.parse2(call.tokens.clone()) {
            for argument in &arguments {
                if !matches!(
                    argument,
                    Expr::Lit(ExprLit {
                        lit: Lit::Str(_),
                        ..
                    })
                ) {
                    self.visit_expr(argument);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(body: &str) -> Vec<String> {
        lint(Path::new("kernel.rs"), body)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[track_caller]
    fn good(body: &str) {
        assert_eq!(messages(body), Vec::<String>::new(), "{body}");
    }

    #[track_caller]
    fn bad(body: &str, expected: &str) {
        let found = messages(body);
        assert!(
            found.iter().any(|finding| finding == expected),
            "expected `{expected}`, found {found:?} in {body}"
        );
    }

    #[test]
    fn every_index_of_the_device_crate_is_known() {
        let sources = [("device/src/index.rs", 5), ("device/src/warpgroup.rs", 2)];
        for (source, least) in sources {
            let text = std::fs::read_to_string(root().join(source)).unwrap();
            let mut seen = 0;
            for item in syn::parse_file(&text).unwrap().items {
                let syn::Item::Fn(function) = item else {
                    continue;
                };
                let syn::ReturnType::Type(_, returned) = &function.sig.output else {
                    continue;
                };
                let name = function.sig.ident.to_string();
                let returned = quote::quote!(#returned).to_string();
                let has_type = !["u32", "Dim3"].contains(&returned.as_str());
                if has_type || name.ends_with("_idx") {
                    assert!(INDEX_FUNCTIONS.contains(&name.as_str()), "{name}");
                    seen += 1;
                }
                if has_type {
                    assert!(INDEX_TYPES.contains(&returned.as_str()), "{returned}");
                }
            }
            assert!(seen >= least, "{source} no longer defines the indices");
        }
    }

    #[test]
    fn layouts_may_consume_indices() {
        good("fn k() { let t = thread_idx(); let mine = tile.partition::<Tv>(t); mine.load(); }");
        good("fn k() { let c = LAYOUT.apply(block_idx().x); store(c * 4 + 1); }");
        good("fn k() { if thread_idx().x == 0 { barrier.init(); } }");
        good("fn k() { let consumer = warpgroup_idx().after(1); f(consumer.own(2, 0) + 1) }");
        good("fn k() { if warpgroup_thread_idx().warp() % 2 == 0 { arrive(); } }");
        good("fn k(n: u32) { let rows = grid_dim() * block_dim(); f(rows / n) }");
        good("use device::index::{ThreadIdx, thread_idx};");
        good("fn k() { let x = table.get(3); let y = map.get(&key); f(x, y) }");
    }

    #[test]
    fn a_name_bound_again_is_no_index() {
        good("fn k() { let t = thread_idx(); let t = view(t); f(t + 1) }");
        good("fn k() { let t = thread_idx(); let (t, u) = (view(t), 2); f(t + u) }");
        good("fn k() { let t = thread_idx(); let (t, u) = views(t); f(t + u) }");
        good("fn a() { let t = thread_idx(); f(t) } fn b(t: u32) -> u32 { t * 2 }");
    }

    #[test]
    fn taking_the_number_is_found() {
        let message = "kernel.rs:2: `get` takes the plain number out of an index";
        bad(
            "fn k() {\n let t = thread_idx().x.get(); f(t * 4) }",
            message,
        );
        bad(
            "fn k() {\n let t = thread_idx().of_block::<Threads<8>>(); f(t.get() * 4) }",
            message,
        );
        bad(
            "fn k(t: ThreadIdx<Threads<8>>) {\n f(t.get() * 4) }",
            message,
        );
        bad(
            "fn k(t: Option<ThreadIdx>) {\n t.map(ThreadIdx::get); }",
            message,
        );
        bad(
            "fn k() {\n device::assert!(thread_idx().get() < 3, \"…\"); }",
            message,
        );
        let message = "kernel.rs:2: `index` takes the plain number out of an index";
        bad("fn k() {\n f(block_idx().x.index() / 2) }", message);
        bad("fn k() {\n f(TileIndex::index(block_idx().x)) }", message);
        bad(
            "instantiate! {\n fn k() = f(lane_idx().index()); }",
            message,
        );
    }

    #[test]
    fn operators_on_indices_are_found() {
        for operator in ["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"] {
            let expected = format!("kernel.rs:1: `{operator}` is applied to an index");
            bad(
                &format!("fn k() {{ f(thread_idx().x {operator} 4) }}"),
                &expected,
            );
            bad(
                &format!("fn k() {{ f(4 {operator} block_idx()) }}"),
                &expected,
            );
            bad(
                &format!("fn k() {{ let t = thread_idx(); f((t) {operator} 4) }}"),
                &expected,
            );
            bad(
                &format!("fn k(t: ThreadIdx) {{ f(t.x {operator} 4) }}"),
                &expected,
            );
            bad(
                &format!("fn k() {{ check!(lane_idx() {operator} 4, 1) }}"),
                &expected,
            );
        }
        for index in [
            "warpgroup_idx()",
            "warpgroup_idx().after(1)",
            "warpgroup_thread_idx()",
            "multiprocessor_idx()",
        ] {
            bad(
                &format!("fn k() {{ f({index} * 64) }}"),
                "kernel.rs:1: `*` is applied to an index",
            );
            bad(
                &format!("fn k() {{ let (warp, index) = (warp_idx(), {index}); f(index * 64) }}"),
                "kernel.rs:1: `*` is applied to an index",
            );
        }
        for index in ["WarpgroupIdx", "WarpgroupThread"] {
            bad(
                &format!("fn k(index: {index}) {{ f(index / 2) }}"),
                "kernel.rs:1: `/` is applied to an index",
            );
        }
        bad(
            "fn k() { let mut t = warp_idx(); t *= 2; }",
            "kernel.rs:1: `*=` is applied to an index",
        );
        bad(
            "impl K { fn k() { let ThreadIdx { x, .. } = thread_idx(); f(x / 2) } }",
            "kernel.rs:1: `/` is applied to an index",
        );
    }

    #[test]
    fn conversions_are_found() {
        bad(
            "fn k() { f(thread_idx().x as u32) }",
            "kernel.rs:1: `as` casts an index",
        );
        bad(
            "fn k() { let t = &thread_idx(); f(t as *const ThreadIdx as *const u32) }",
            "kernel.rs:1: `as` casts an index",
        );
        bad(
            "fn k() { f(u32::from(lane_idx())) }",
            "kernel.rs:1: `from` converts an index",
        );
        bad(
            "fn k() { f(i64::from(multiprocessor_idx())) }",
            "kernel.rs:1: `from` converts an index",
        );
        bad(
            "fn k(thread: WarpgroupThread) { f(thread as u32) }",
            "kernel.rs:1: `as` casts an index",
        );
        bad(
            "fn k() { let t: u32 = block_idx().x.into(); }",
            "kernel.rs:1: `into` converts an index",
        );
        bad(
            "fn k() { f(thread_idx().0) }",
            "kernel.rs:1: the field takes the plain number out of an index",
        );
        bad(
            "fn k() { f(core::mem::transmute::<_, u32>(thread_idx())) }",
            "kernel.rs:1: `transmute` reaches a raw index",
        );
    }

    #[test]
    fn raw_indices_are_found() {
        bad(
            "fn k() { f(core::arch::nvptx::_thread_idx_x()) }",
            "kernel.rs:1: `_thread_idx_x` reaches a raw index",
        );
        bad(
            "fn k() { core::arch::asm!(\"mov.u32 {}, %tid.x;\", out(reg32) t); }",
            "kernel.rs:1: `%tid` reads a raw index",
        );
        bad(
            "unsafe extern \"C\" { #[link_name = \"llvm.nvvm.read.ptx.sreg.tid.x\"] fn tid() -> i32; }",
            "kernel.rs:1: `read.ptx.sreg` reads a raw index",
        );
        good("/// Reads what `%tid` was.\nfn k() {}");
    }

    #[test]
    fn a_file_that_is_not_rust_is_an_error() {
        let error = lint(Path::new("kernel.rs"), "fn k( {").unwrap_err();
        assert!(error.starts_with("kernel.rs:1: "), "{error}");
    }
}
