//! Writes launch bounds, cluster size and parameter alignment into a PTX entry.

use std::fmt::Write;

use crate::metadata::KernelInfo;

/// Begins a comment line with the bytes of shared memory that each launch gives a block. PTX has no directive for them,
/// and `cutlet ptx` shows them.
const SHARED: &str = "// cutlet-shared ";

/// Begins a comment line with names and types of the parameters, from which the Python package knows the kernel.
const PARAMETERS: &str = "// cutlet-parameters ";

/// The entry's text with the directives that its kernel asks for.
pub(crate) fn with_bounds(entry: &str, kernel: &KernelInfo) -> Result<String, String> {
    let broken = |what: &str| format!("the entry `{}` {what}", kernel.entry);
    let open = entry.find('(').ok_or_else(|| broken("has no parameters"))?;
    let close = open
        + entry[open..]
            .find(')')
            .ok_or_else(|| broken("has no end of parameters"))?;
    let (head, params) = (&entry[..=open], &entry[open + 1..close]);
    let mut out = String::with_capacity(entry.len() + 128);
    out.push_str(head);

    let params: Vec<&str> = params.split(',').collect();
    let found = params
        .iter()
        .filter(|param| param.contains(".param"))
        .count();
    let expected = kernel.parameters.len();
    if found != expected {
        return Err(broken(&format!(
            "has {found} parameters, but its kernel has {expected} arguments with bytes"
        )));
    }
    for (index, param) in params.iter().enumerate() {
        if index != 0 {
            out.push(',');
        }
        match kernel.parameters.get(index) {
            Some(parameter) => out.push_str(&aligned(param, parameter.align)),
            None => out.push_str(param),
        }
    }
    out.push_str(")\n");

    // Writing to a `String` cannot fail.
    let _ = writeln!(out, ".maxntid {}, 1, 1", kernel.threads);
    if kernel.min_blocks != 0 {
        let _ = writeln!(out, ".minnctapersm {}", kernel.min_blocks);
    }
    if kernel.cluster > 1 {
        let _ = writeln!(out, ".reqnctapercluster {}, 1, 1", kernel.cluster);
    }
    if kernel.shared_bytes != 0 {
        let _ = writeln!(out, "{SHARED}{}", kernel.shared_bytes);
    }
    if !kernel.parameters.is_empty() {
        let parameters: Vec<_> = kernel.parameters.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{PARAMETERS}{}", parameters.join(", "));
    }
    out.push_str(entry[close + 1..].trim_start());
    Ok(out)
}

/// The parameter with at least this alignment. Only parameters in bytes (`.param .align 16 .b8`) state an alignment of
/// their own. A number is aligned to its size, and the alignment in `.param .u64 .ptr .align 1` is that of the memory
/// that the pointer refers to.
fn aligned(param: &str, align: u32) -> String {
    const WORD: &str = ".param .align ";
    let Some(at) = param.find(WORD).map(|at| at + WORD.len()) else {
        return param.to_owned();
    };
    let end = at + param[at..].find(' ').unwrap_or(param.len() - at);
    let has: u32 = param[at..end].parse().unwrap_or(0);
    format!("{}{}{}", &param[..at], has.max(align), &param[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = ".visible .entry mapped(
	.param .u64 mapped_param_0,
	.param .align 16 .b8 mapped_param_1[128]
)
{
	ret;

}";

    fn kernel(line_end: &str) -> KernelInfo {
        let line = format!("// cutlet-kernel entry=mapped family=mine::a arch=- also=- {line_end}");
        KernelInfo::parse(&line).unwrap().unwrap()
    }

    #[test]
    fn bounds_cluster_shared_memory_and_alignment_are_written() {
        let kernel = kernel(
            "maxntid=384 minnctapersm=1 cluster=2 shared=1024 params=n:8:8:2064,map:128:64:30000",
        );
        assert_eq!(
            with_bounds(ENTRY, &kernel).unwrap(),
            ".visible .entry mapped(
	.param .u64 mapped_param_0,
	.param .align 64 .b8 mapped_param_1[128]
)
.maxntid 384, 1, 1
.minnctapersm 1
.reqnctapercluster 2, 1, 1
// cutlet-shared 1024
// cutlet-parameters n: i64, map: TensorMap
{
	ret;

}"
        );
    }

    #[test]
    fn what_is_not_asked_for_is_not_written() {
        let kernel =
            kernel("maxntid=32 minnctapersm=0 cluster=1 shared=0 params=n:8:8:2064,:128:16:0");
        let text = with_bounds(ENTRY, &kernel).unwrap();
        let end = ".maxntid 32, 1, 1\n// cutlet-parameters n: i64, _: [u8; 128]\n{";
        assert!(text.contains(end), "{text}");
        assert!(text.contains(".align 16"), "{text}");
    }

    #[test]
    fn the_alignment_of_memory_pointed_to_stays() {
        let kernel = kernel("maxntid=32 minnctapersm=0 cluster=1 shared=0 params=x:8:8:13032");
        let entry = ".visible .entry mapped(\n\t.param .u64 .ptr .align 1 mapped_param_0\n)\n{\n}";
        let text = with_bounds(entry, &kernel).unwrap();
        assert!(
            text.contains(".param .u64 .ptr .align 1 mapped_param_0"),
            "{text}"
        );
    }

    #[test]
    fn an_entry_without_parameters_gets_bounds() {
        let kernel = kernel("maxntid=32 minnctapersm=0 cluster=1 shared=0 params=");
        let text = with_bounds(".visible .entry mapped(\n\n)\n{\n\tret;\n}", &kernel).unwrap();
        assert_eq!(
            text,
            ".visible .entry mapped(\n\n)\n.maxntid 32, 1, 1\n{\n\tret;\n}"
        );
    }

    #[test]
    fn a_parameter_too_few_is_an_error() {
        let kernel = kernel("maxntid=32 minnctapersm=0 cluster=1 shared=0 params=x:8:8:13032");
        let error = with_bounds(ENTRY, &kernel).unwrap_err();
        assert!(
            error.contains("has 2 parameters, but its kernel has 1"),
            "{error}"
        );
    }
}
