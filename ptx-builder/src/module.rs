//! Takes a PTX text apart into its header and its module-level items.

use crate::metadata::KernelInfo;

/// A PTX text as the compiler wrote it.
#[derive(Debug, Default)]
pub(crate) struct Module<'a> {
    /// `.version`, `.target` and `.address_size`, a line each.
    pub header: Vec<&'a str>,
    /// What `#[kernel]` said about the entries.
    pub kernels: Vec<KernelInfo>,
    /// Everything else, in order.
    pub items: Vec<Item<'a>>,
}

/// One item at module level.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The name that it declares or defines; empty for an item without one.
    pub name: &'a str,
    /// Its text, from the first token to the last.
    pub text: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `.entry` with a body.
    Entry,
    /// `.func` with a body.
    Function,
    /// `.func` without a body: defined elsewhere, such as `vprintf` in the driver.
    Prototype,
    /// A variable in some address space.
    Variable,
    /// `.file` and the like, without a name.
    Directive,
}

impl<'a> Module<'a> {
    /// Takes a text apart.
    pub fn parse(text: &'a str) -> Result<Module<'a>, String> {
        let mut module = Module::default();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                break;
            }
            if rest.starts_with("//") {
                let line = take_line(&mut rest);
                if let Some(info) = KernelInfo::parse(line) {
                    module.kernels.push(info?);
                }
            } else if [".version", ".target", ".address_size"]
                .iter()
                .any(|word| rest.starts_with(word))
            {
                module.header.push(take_line(&mut rest).trim_end());
            } else if rest.starts_with(".file") {
                module.items.push(Item {
                    kind: Kind::Directive,
                    name: "",
                    text: take_line(&mut rest).trim_end(),
                });
            } else {
                let (text, has_body) = take_item(&mut rest)?;
                module.items.push(Item::of(text, has_body));
            }
        }
        if module.header.len() != 3 {
            return Err(format!(
                "it begins with .version, .target and .address_size, but {} of these were found",
                module.header.len()
            ));
        }
        Ok(module)
    }
}

impl<'a> Item<'a> {
    fn of(text: &'a str, has_body: bool) -> Item<'a> {
        let words: Vec<&str> = head_words(text);
        let function = words
            .iter()
            .position(|word| *word == ".func" || *word == ".entry");
        let kind = match function {
            Some(at) if words[at] == ".entry" => Kind::Entry,
            Some(_) if has_body => Kind::Function,
            Some(_) => Kind::Prototype,
            None => Kind::Variable,
        };
        // The name follows the directives and, in a function, the return value.
        let from = function.map_or(0, |at| at + 1);
        let name = words[from..]
            .iter()
            .find(|word| is_name_start(word.as_bytes()[0]))
            .copied()
            .unwrap_or_default();
        Item { kind, name, text }
    }

    /// Whether the item is only declared: another text defines it, or the launch does.
    pub fn is_extern(&self) -> bool {
        self.text.starts_with(".extern")
    }
}

/// The names in a text, in order.
///
/// Texts are long, and build scripts are usually not optimised. Loops over bytes are then much faster than the methods
/// of `str`.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            match bytes[at] {
                b'/' if bytes.get(at + 1) == Some(&b'/') => {
                    while at < bytes.len() && bytes[at] != b'\n' {
                        at += 1;
                    }
                }
                b'"' => at += string_length(&text[at..]),
                first if is_name_start(first) => {
                    at = name_end(bytes, at);
                    return Some(&text[start..at]);
                }
                // A directive or number: its letters are no name.
                b'.' | b'0'..=b'9' => at = name_end(bytes, at + 1),
                _ => at += 1,
            }
        }
        None
    })
}

fn is_name_start(first: u8) -> bool {
    matches!(first, b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%')
}

/// The end of the name or number that contains `start`.
fn name_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while at < bytes.len()
        && matches!(bytes[at], b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'%')
    {
        at += 1;
    }
    at
}

/// The directives and names of an item, up to its parameters, size, value or body. The return value of a function, in
/// parentheses before its name, is left out.
fn head_words(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut words: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let named = words
            .last()
            .is_some_and(|word| is_name_start(word.as_bytes()[0]));
        match bytes[at] {
            b'(' if !named => at += text[at..].find(')').map_or(text.len() - at, |end| end + 1),
            b'(' | b'[' | b'=' | b'{' | b';' => break,
            first if first == b'.' || is_name_start(first) => {
                at = name_end(bytes, at + 1);
                words.push(&text[start..at]);
            }
            b'0'..=b'9' => at = name_end(bytes, at),
            _ => at += 1,
        }
    }
    words
}

fn take_line<'a>(rest: &mut &'a str) -> &'a str {
    let end = rest.find('\n').unwrap_or(rest.len());
    let (line, after) = rest.split_at(end);
    *rest = after;
    line
}

/// Takes one item, up to its `;` or the `}` of its body. Also returns whether it has a body.
fn take_item<'a>(rest: &mut &'a str) -> Result<(&'a str, bool), String> {
    let text = *rest;
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut is_value = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if text[at..].starts_with("//") => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            b'"' => {
                at += string_length(&text[at..]);
                continue;
            }
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !is_value {
                    *rest = &text[at + 1..];
                    return Ok((&text[..=at], true));
                }
            }
            b'=' if depth == 0 => is_value = true,
            b';' if depth == 0 => {
                *rest = &text[at + 1..];
                return Ok((&text[..=at], false));
            }
            _ => {}
        }
        at += 1;
    }
    let line = text.lines().next().unwrap_or_default();
    Err(format!("the item that begins with `{line}` has no end"))
}

/// Length of the string literal at the start of the text, with both quotes.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"//
// Generated by LLVM NVPTX Back-End
//

.version 7.0
.target sm_80
.address_size 64

// cutlet-kernel entry=first family=mine::a maxntid=32 minnctapersm=0 cluster=1 shared=0 arch=- also=- params=
.extern .shared .align 1024 .b8 buffer[];
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.global .align 4 .b8 table[8] = {3, 0, 0, 0, 1};
.global .align 8 .u64 pointer = table;

.func  (.param .b64 func_retval0) helper(
	.param .b64 helper_param_0
)
{
	.reg .b64 	%rd<3>;
	ret; // a comment with a }
}
	// .globl	first
.visible .entry first(

)
{
	{ .reg .b32 tmp; mov.b64 {tmp, %r2}, %rd2; }
	mov.u64 	%rd6, pointer;
	ret;

}
.file	1 "/a b/mat.rs"
"#;

    #[test]
    fn a_text_is_taken_apart() {
        let module = Module::parse(TEXT).unwrap();
        assert_eq!(
            module.header,
            [".version 7.0", ".target sm_80", ".address_size 64"]
        );
        assert_eq!(module.kernels.len(), 1);
        let items: Vec<_> = module
            .items
            .iter()
            .map(|item| (item.kind, item.name))
            .collect();
        assert_eq!(
            items,
            [
                (Kind::Variable, "buffer"),
                (Kind::Prototype, "vprintf"),
                (Kind::Variable, "table"),
                (Kind::Variable, "pointer"),
                (Kind::Function, "helper"),
                (Kind::Entry, "first"),
                (Kind::Directive, ""),
            ]
        );
        assert!(module.items[5].text.ends_with("ret;\n\n}"));
    }

    #[test]
    fn names_leave_out_directives_numbers_strings_and_comments() {
        let text = "ld.global.b32 %r1, [table+0x4f]; // helper\n.b8 \"first\"; bra $L__BB0_2;";
        let found: Vec<_> = names(text).collect();
        assert_eq!(found, ["ld", "%r1", "table", "bra", "$L__BB0_2"]);
    }

    #[test]
    fn a_text_without_header_or_end_is_refused() {
        assert!(Module::parse(".version 7.0\n").is_err());
        let error = Module::parse(".version 7.0\n.visible .entry k() { ret;").unwrap_err();
        assert!(error.contains(".visible .entry k()"), "{error}");
    }
}
