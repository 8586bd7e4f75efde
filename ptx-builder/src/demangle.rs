//! Reads the path in a mangled Rust symbol, so that messages name functions as the source does.

/// The identifiers in the symbol, joined with `::`; the symbol itself if it is not a Rust one.
///
/// Types and constants of a generic instance follow the function's own path in a symbol; their
/// identifiers are left out.
pub(crate) fn path(symbol: &str) -> String {
    let (rest, legacy) = if let Some(rest) = symbol.strip_prefix("_R") {
        (rest, false)
    } else if let Some(rest) = symbol.strip_prefix("_ZN") {
        (rest, true)
    } else {
        return symbol.to_owned();
    };
    let mut parts = Vec::new();
    let mut rest = rest;
    // In a v0 symbol each `N` opens a path that one identifier closes, around a crate (`C`).
    let mut wanted = if legacy { usize::MAX } else { 1 };
    while parts.len() < wanted {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first.is_ascii_digit() {
            let Some((part, after)) = identifier(rest) else {
                break;
            };
            parts.push(part);
            rest = after;
        } else if first == 's' || first == 'C' && rest[1..].starts_with('s') {
            // A number in base 62, up to `_`, that distinguishes items of the same name.
            rest = rest.split_once('_').map_or("", |(_, after)| after);
        } else if first == 'N' && !legacy {
            wanted += 1;
            // The letter after it is the kind of item.
            rest = rest.get(2..).unwrap_or_default();
        } else if legacy && first == 'E' {
            break;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    let is_hash = |part: &&str| legacy && part.len() == 17 && part.starts_with('h');
    parts.retain(|part| !is_hash(part));
    if parts.is_empty() {
        return symbol.to_owned();
    }
    parts.join("::")
}

/// `5gemm…` is `gemm`.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_are_read_from_both_manglings() {
        assert_eq!(
            path("_RNvNtCskiQTbpq80M1_9scratch_k3mat4tail"),
            "scratch_k::mat::tail"
        );
        assert_eq!(
            path("_RNvNtCs8Sua4jwmxpo_4core9panicking18panic_bounds_check"),
            "core::panicking::panic_bounds_check"
        );
        assert_eq!(
            path("_RINvNtCs8Sua4jwmxpo_4mine4gemm4tilefKj80_EB4_"),
            "mine::gemm::tile"
        );
        assert_eq!(
            path("_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE"),
            "core::panicking::panic_bounds_check"
        );
    }

    #[test]
    fn other_symbols_stay_as_they_are() {
        assert_eq!(path("vprintf"), "vprintf");
        assert_eq!(path("_R"), "_R");
    }
}
