//! The PTX version of a family: the compiler's, or a later one that assembly in the family asks for.

/// Begins a comment line in assembly that asks for a version. The compiler does not read assembly, so it need not know
/// the version.
const NEEDED: &str = "// cutlet-isa ";

/// Begins the line of the header with the version.
const VERSION: &str = ".version";

/// The header's lines for a text with these items.
pub(crate) fn header(lines: &[&str], items: &str) -> Result<String, String> {
    let mut header = String::new();
    for line in lines {
        match line.strip_prefix(VERSION) {
            Some(written) => {
                let latest = needed(items).try_fold(version(written)?, |latest, needed| {
                    Ok::<_, String>(latest.max(version(needed)?))
                })?;
                header.push_str(&format!("{VERSION} {}.{}", latest.0, latest.1));
            }
            None => header.push_str(line),
        }
        header.push('\n');
    }
    Ok(header)
}

/// The versions that the items ask for.
fn needed(items: &str) -> impl Iterator<Item = &str> {
    items
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(NEEDED))
}

fn version(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.trim().split_once('.');
    numbers
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        .ok_or_else(|| {
            format!(
                "`{}` is not a version of PTX: write it as in 8.3",
                text.trim()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = [".version 8.1", ".target sm_90a", ".address_size 64"];

    #[test]
    fn the_latest_version_that_is_needed_is_written() {
        let of = |items: &str| header(&LINES, items).unwrap();
        let rest = "\n.target sm_90a\n.address_size 64\n";
        assert_eq!(of("ret;"), format!(".version 8.1{rest}"));
        let items = "\t// cutlet-isa 8.3\n// cutlet-isa 8.10\n// cutlet-isa 8.0\nret;";
        assert_eq!(of(items), format!(".version 8.10{rest}"));
    }

    #[test]
    fn what_is_no_version_is_an_error() {
        let error = header(&LINES, "// cutlet-isa ptx83").unwrap_err();
        assert_eq!(error, "`ptx83` is not a version of PTX: write it as in 8.3");
    }
}
