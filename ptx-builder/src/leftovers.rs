//! Finds in the PTX what slows kernels down unseen: calls that were not inlined, arrays in local memory, and conversions
//! in software.

use std::collections::{BTreeSet, HashMap};

use crate::conversions;
use crate::demangle;
use crate::families::FamilyText;
use crate::module::{Item, Kind, Module, names};

/// Functions of the driver that a kernel calls on purpose, to print.
pub(crate) const DRIVER_FUNCTIONS: [&str; 2] = ["vprintf", "__assertfail"];

/// The module of cutlet-device that prints and asserts in kernels.
const DEBUGGING: &str = "cutlet_device::debug::";

/// A line for each finding in a kernel of the family, with its likely cause.
pub(crate) fn find(text: &FamilyText, target: &str) -> Result<Vec<String>, String> {
    let module = Module::parse(&text.ptx)?;
    let functions: HashMap<&str, &Item<'_>> = module
        .items
        .iter()
        .filter(|item| matches!(item.kind, Kind::Function | Kind::Prototype))
        .map(|item| (item.name, item))
        .collect();
    let mut found = Vec::new();
    for entry in module.items.iter().filter(|item| item.kind == Kind::Entry) {
        for what in findings(entry, &functions) {
            found.push(format!(
                "kernel `{}` of `{}` for {target} {what}",
                entry.name, text.family
            ));
        }
    }
    Ok(found)
}

/// The findings in the kernel and in the functions that it reaches. Functions of `core` are not searched: they only end
/// the kernel.
fn findings(entry: &Item<'_>, functions: &HashMap<&str, &Item<'_>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![entry];
    while let Some(item) = open.pop() {
        let mut prints = false;
        for callee in called(item, functions) {
            let path = demangle::path(callee);
            if DRIVER_FUNCTIONS.contains(&callee) {
                prints = true;
                continue;
            }
            if path.starts_with(DEBUGGING) || !seen.insert(callee) {
                continue;
            }
            found.insert(format!("calls `{path}`: {}", cause_of_call(&path)));
            let callee = functions[callee];
            if callee.kind == Kind::Function && !path.starts_with("core::") {
                open.push(callee);
            }
        }
        if calls_by_address(item.text) {
            found.insert(
                "calls a function by its address: a function pointer or a `dyn` value; make the code \
                 generic over it"
                    .to_owned(),
            );
        }
        let place = match item.kind {
            Kind::Entry => String::new(),
            _ => format!("in `{}` ", demangle::path(item.name)),
        };
        found.extend(conversions::find(item.text).map(|what| format!("{place}{what}")));
        let bytes = local_bytes(item.text);
        // Printed values are passed in local memory.
        if bytes != 0 && !prints {
            found.insert(format!(
                "{place}keeps {bytes} bytes in local memory: an array is indexed by a value that \
                 the compiler does not know, or the address of a local escapes"
            ));
        }
    }
    found
}

/// The functions that the item calls by name.
fn called<'a>(item: &Item<'a>, functions: &HashMap<&'a str, &Item<'a>>) -> BTreeSet<&'a str> {
    calls(item.text)
        .flat_map(names)
        .filter(|name| functions.contains_key(name))
        .collect()
}

/// Whether a call finds its function by an address in a register, which stands in the place of the name: `call
/// (retval0), %rd5`.
fn calls_by_address(text: &str) -> bool {
    calls(text).any(|call| {
        let call = call.trim_start_matches("call").trim_start_matches(".uni");
        let callee = match call.trim_start().strip_prefix('(') {
            Some(returned) => returned.split_once("),").map_or("", |(_, callee)| callee),
            None => call,
        };
        callee.trim_start().starts_with('%')
    })
}

/// The call instructions in a text, each up to its `;`.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(at) = rest.find("call") {
            let before = rest[..at].chars().next_back();
            let call = &rest[at..];
            rest = &call["call".len()..];
            if before.is_none_or(|before| before.is_whitespace() || before == '}') {
                return Some(&call[..call.find(';').unwrap_or(call.len())]);
            }
        }
        None
    })
}

/// Bytes of the item's `.local` arrays.
fn local_bytes(text: &str) -> u64 {
    text.lines()
        .filter(|line| line.trim_start().starts_with(".local"))
        .filter_map(|line| {
            let (_, size) = line.split_once('[')?;
            size.split_once(']')?.0.trim().parse::<u64>().ok()
        })
        .sum()
}

/// The most likely cause, in the source, of a call of this function.
fn cause_of_call(path: &str) -> &'static str {
    let is = |part: &str| path.contains(part);
    if is("panic_bounds_check") {
        "an index may be out of bounds; index fixed arrays by constants, and memory by a layout"
    } else if is("by_zero") || is("div_overflow") || is("rem_overflow") {
        "`/` or `%` by a value that may be zero; divide by a constant or a non-zero type"
    } else if is("_overflow") {
        "arithmetic is checked for overflow; use the wrapping operation"
    } else if is("core::slice") || is("core::str") {
        "a slice is cut where the compiler cannot see that it fits"
    } else if is("unwrap_failed") || is("expect_failed") {
        "`unwrap` or `expect` of a value that may be absent"
    } else if is("core::panicking") || is("core::option") || is("core::result") {
        "a panic that the compiler cannot rule out, such as `assert!` or `unwrap`"
    } else if matches!(path, "memcpy" | "memmove" | "memset" | "memcmp") {
        "a large value is copied or cleared; keep it in pieces that fit registers"
    } else if path.starts_with("__") {
        "an operation that the GPU has no instruction for, such as 128-bit division"
    } else {
        "the function was not inlined; mark it `#[inline(always)]`"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(body: &str) -> Vec<String> {
        let ptx = format!(
            ".version 8.0
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func _RNvNtCs8Sua4jwmxpo_4core9panicking18panic_bounds_check(.param .b64 p) {{ trap; }}
.func _RNvNtCs8Sua4jwmxpo_4mine3mat4tail(.param .b64 p) {{
	.local .align 8 .b8 __local_depot1[16];
	ret;
}}
.visible .entry k() {{
{body}
	ret;
}}
"
        );
        let text = FamilyText {
            family: "mat".to_owned(),
            ptx,
            also: Vec::new(),
            shared_bytes: Vec::new(),
        };
        find(&text, "sm_90a").unwrap()
    }

    #[test]
    fn a_clean_kernel_has_none() {
        assert_eq!(find_in("\tld.global.b32 %r1, [%rd1+4];"), [""; 0]);
    }

    #[test]
    fn a_bounds_check_is_named_with_its_cause() {
        let found = find_in(
            "	{ // callseq 0, 0
	call.uni _RNvNtCs8Sua4jwmxpo_4core9panicking18panic_bounds_check, (param0);
	}",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(
                "kernel `k` of `mat` for sm_90a calls `core::panicking::panic_bounds_check`: an index"
            ),
            "{found:?}"
        );
    }

    #[test]
    fn a_conversion_in_software_is_named_with_the_instruction_s_function() {
        let bf16 = "\tsetp.gt.u32 \t%p1, %r3, 2139095040;\n\tand.b32 \t%r6, %r1, 98303;";
        let found = find_in(bf16);
        let expected = "kernel `k` of `mat` for sm_90a converts in software, by `half::bf16::from_f32`: call \
                        `cutlet_device::Float::from_f32(value)`";
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{found:?}"
        );
        let twice = find_in(&[bf16, bf16].join("\n"));
        assert!(twice[0].contains("in software 2 times"), "{twice:?}");
        for (body, method) in [
            (
                "\tand.b32 %r2, %r6, 2139095040;\n\tand.b32 %r13, %r6, 12287;",
                "half::f16::from_f32",
            ),
            (
                "\tclz.b32 %r10, %r2;\n\tor.b32 %r15, %r4, 989855744;",
                "half::f16::to_f32",
            ),
            (
                "\tand.b32 %r3, %r1, 2146435072;\n\tand.b32 %r13, %r1, 12287;",
                "from_f64",
            ),
        ] {
            let found = find_in(body);
            assert!(found.len() == 1 && found[0].contains(method), "{found:?}");
        }
        // Masks of other meaning.
        assert_eq!(
            find_in("\tand.b32 %r1, %r2, 2139095040;\n\tclz.b32 %r3, %r1;"),
            [""; 0]
        );
    }

    #[test]
    fn a_call_by_address_is_found() {
        for call in [
            "call (retval0), %rd5, (param0), prototype_0;",
            "call.uni %rd5, (param0), prototype_0;",
            "call \t%rd5, prototype_0;",
        ] {
            let found = find_in(&format!(
                "\t{{ // callseq 0, 0\n\tprototype_0 : .callprototype ()_ (.param .b64 _);\n\t{call}\n\t}}"
            ));
            assert!(
                found.len() == 1 && found[0].contains("calls a function by its address"),
                "{call}: {found:?}"
            );
        }
    }

    #[test]
    fn a_function_is_looked_into() {
        let found = find_in("\tcall.uni _RNvNtCs8Sua4jwmxpo_4mine3mat4tail, (param0);");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("`mine::mat::tail`: the function was not inlined"),
            "{found:?}"
        );
        assert!(
            found[1].contains("in `mine::mat::tail` keeps 16 bytes"),
            "{found:?}"
        );
    }

    #[test]
    fn local_memory_is_found_unless_it_is_for_printing() {
        let local = "\t.local .align 8 .b8 \t__local_depot0[24];";
        let found = find_in(local);
        assert!(
            found.len() == 1 && found[0].contains("keeps 24 bytes"),
            "{found:?}"
        );
        let printing = format!("{local}\n\tcall.uni (retval0), vprintf, (param0, param1);");
        assert_eq!(find_in(&printing), [""; 0]);
    }
}
