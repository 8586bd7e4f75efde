//! Finds names that a family's text uses but does not define: without them the driver could not compile it.

use std::collections::HashSet;

use crate::at_once::at_once;
use crate::demangle;
use crate::families::FamilyText;
use crate::leftovers::DRIVER_FUNCTIONS;
use crate::module::{Item, Kind, Module, names};

/// A constant that PTX itself defines: the threads of a warp.
const WARP_SIZE: &str = "WARP_SZ";

/// Returns the families if each text defines what it uses, apart from functions of the driver. Otherwise says what is
/// missing.
pub(crate) fn complete(families: Vec<FamilyText>) -> Result<Vec<FamilyText>, String> {
    at_once(&families, check)?;
    Ok(families)
}

fn check(text: &FamilyText) -> Result<(), String> {
    let family = &text.family;
    let module = Module::parse(&text.ptx)
        .map_err(|why| format!("the text of `{family}` cannot be read: {why}"))?;
    match missing(&module) {
        None => Ok(()),
        Some(name) => Err(format!(
            "kernels of `{family}` need `{}`, which is compiled elsewhere",
            demangle::path(name)
        )),
    }
}

/// The first name that is declared or used, and defined neither here nor by the driver.
fn missing<'a>(module: &Module<'a>) -> Option<&'a str> {
    let items = || module.items.iter();
    let defined: HashSet<&str> = items()
        .filter(|item| match item.kind {
            Kind::Prototype => DRIVER_FUNCTIONS.contains(&item.name),
            Kind::Variable => !item.is_extern() || item.text.contains(".shared"),
            _ => true,
        })
        .map(|item| item.name)
        .collect();
    items()
        .map(|item| item.name)
        .find(|name| !defined.contains(name))
        .or_else(|| {
            items()
                .filter(|item| matches!(item.kind, Kind::Entry | Kind::Function))
                .find_map(|item| undeclared(item, &defined))
        })
}

/// The first operand that neither the item nor the module declares. Assembly may use names that only assembly of
/// another crate declares.
fn undeclared<'a>(item: &Item<'a>, defined: &HashSet<&str>) -> Option<&'a str> {
    let bytes = item.text.as_bytes();
    let mut declared = HashSet::from([WARP_SIZE]);
    let mut numbered = Vec::new();
    let mut operands = Vec::new();
    for name in names(item.text) {
        // A register, a label of the compiler, or a result that is discarded.
        if matches!(name.as_bytes()[0], b'%' | b'$') || name == "_" {
            continue;
        }
        let at = name.as_ptr() as usize - item.text.as_ptr() as usize;
        let after = item.text[at + name.len()..].trim_start();
        if after.starts_with(':') && !after.starts_with("::") {
            // A label.
            declared.insert(name);
            continue;
        }
        let before = last_kept(&bytes[..at], |byte| matches!(byte, b' ' | b'\t'));
        let before = before.map_or(b';', |at| bytes[at]);
        if is_end(before) {
            // An instruction.
            continue;
        }
        let statement = last_kept(&bytes[..at], |byte| !is_end(byte)).map_or(0, |end| end + 1);
        if item.text[statement..].trim_start().starts_with('.') {
            declared.insert(name);
            numbered.extend(count(after).map(|count| (name, count)));
        } else if matches!(before, b',' | b'[' | b'(') {
            operands.push(name);
        }
    }
    let is_numbered = |operand: &str| {
        numbered.iter().any(|(name, count)| {
            let number = operand.strip_prefix(name).map(str::parse::<u32>);
            matches!(number, Some(Ok(number)) if number < *count)
        })
    };
    operands
        .into_iter()
        .find(|name| !declared.contains(name) && !defined.contains(name) && !is_numbered(name))
}

/// How many names a declaration stands for: `t<4>` is `t0` to `t3`.
fn count(after_name: &str) -> Option<u32> {
    let (count, _) = after_name.strip_prefix('<')?.split_once('>')?;
    count.trim().parse().ok()
}

/// Whether this byte ends a statement or a label.
fn is_end(byte: u8) -> bool {
    matches!(byte, b';' | b'{' | b'}' | b'\n' | b':')
}

/// The position of the last byte for which `skip` is false.
fn last_kept(bytes: &[u8], skip: impl Fn(u8) -> bool) -> Option<usize> {
    let mut end = bytes.len();
    while end > 0 && skip(bytes[end - 1]) {
        end -= 1;
    }
    end.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacking(declarations: &str, body: &str) -> Option<String> {
        let ptx = format!(
            ".version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .shared .align 1024 .b8 buffer[];
.global .align 4 .b8 table[8] = {{3, 0, 0, 0, 1}};
.func here(.param .b64 here_param_0) {{ ret; }}
{declarations}
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 32, 1, 1
{{
	.reg .b32 	%r<4>;
	.loc	1 30 5, function_name $L__info_string0, inlined_at 1 20 5
	ld.param.b64 	%rd1, [k_param_0];
{body}
	ret; // a comment, (elsewhere)
}}
"
        );
        let text = FamilyText {
            family: "mat".to_owned(),
            ptx,
            also: Vec::new(),
            shared_bytes: Vec::new(),
        };
        check(&text).err()
    }

    #[test]
    fn what_is_declared_or_of_the_driver_is_there() {
        let body = "	{ // callseq 0, 0
	.param .b64 param0;
	.param .b32 retval0;
	st.param.b64 	[param0], %rd1;
	call.uni (retval0), vprintf, (param0, param0);
	call.uni here, (param0);
	} // callseq 0
	// begin inline asm
	{ .reg .pred p, q; .reg .b32 low; setp.ne.b32 p, %r1, 0; mov.b64 {low, _}, %rd1; @!p bra DONE; selp.b32 %r1, low, 0, q; DONE: }
	mov.u32 %r2, buffer;
	mbarrier.arrive.shared::cta.b64 _, [%r2], 0x10;
	ld.global.b32 	%r3, [table+4];
	@%p1 bra 	$L__BB0_2;
	.pragma \"nounroll\";";
        assert_eq!(lacking("", body), None);
    }

    #[test]
    fn labels_numbered_registers_and_constants_of_ptx_are_there() {
        let call = "	prototype_0 : .callprototype ()_ (.param .b64 _);
	call %rd5, (param0), prototype_0;";
        assert_eq!(lacking("", &format!("	.param .b64 param0;\n{call}")), None);
        assert_eq!(lacking("", "	mul.lo.u32 %r1, %r2, WARP_SZ;"), None);
        let registers = "	{ HERE: .reg .b32 t<4>; mov.b32 t3, %r1; add.u32 %r1, t0, t3; }";
        assert_eq!(lacking("", registers), None);
        let beyond = lacking("", "	{ .reg .b32 t<4>; add.u32 %r1, t0, t4; }");
        assert!(beyond.is_some_and(|why| why.contains("need `t4`")));
    }

    #[test]
    fn what_is_elsewhere_is_missed() {
        let call = "	call.uni there, (%rd1);";
        let why = lacking(".extern .func there(.param .b64 p);", call);
        let expected = "kernels of `mat` need `there`, which is compiled elsewhere";
        assert_eq!(why.as_deref(), Some(expected));
        let defined = ".func there(.param .b64 p);\n.func there(.param .b64 p) { ret; }";
        assert_eq!(lacking(defined, call), None);
        let load = "	ld.global.b32 	%r3, [there];";
        for why in [
            lacking(".extern .global .align 4 .b8 there[8];", load),
            lacking("", load),
            lacking("", "	mov.u32 	%r3, there;"),
        ] {
            assert_eq!(why.as_deref(), Some(expected));
        }
    }
}
