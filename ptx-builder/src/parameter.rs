//! A parameter of a kernel: its name and type, as the PTX tells them to hosts that have nothing else of the kernel.

use std::fmt;

/// A parameter, from the line of its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// Empty for a pattern.
    name: String,
    /// Its size.
    pub bytes: u64,
    /// Its alignment in bytes.
    pub align: u32,
    /// `f32`, `*const f32`, `*mut f32`, `[u8; 12]`, `TensorMap`.
    type_name: String,
}

impl Parameter {
    /// Reads `name:bytes:align:code`, whose code is `DeviceData::TYPE_CODE` of cutlet-device.
    pub fn parse(text: &str) -> Option<Parameter> {
        let mut fields = text.split(':');
        let name = fields.next()?.to_owned();
        let bytes = fields.next()?.parse().ok()?;
        let align = fields.next()?.parse().ok()?;
        let code: u32 = fields.next()?.parse().ok()?;
        let (pointer, element) = (code / 10_000, code % 10_000);
        let type_name = match (pointer, element) {
            (0, 0) => format!("[u8; {bytes}]"),
            (0, number) => number_name(number)?,
            // Elements that are no numbers.
            (1, 0) => "*const _".to_owned(),
            (2, 0) => "*mut _".to_owned(),
            (1, number) => format!("*const {}", number_name(number)?),
            (2, number) => format!("*mut {}", number_name(number)?),
            (3, 0) => "TensorMap".to_owned(),
            _ => return None,
        };
        Some(Parameter {
            name,
            bytes,
            align,
            type_name,
        })
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.name[..] {
            "" => "_",
            name => name,
        };
        write!(f, "{name}: {}", self.type_name)
    }
}

/// The name of a number's type in Rust.
fn number_name(code: u32) -> Option<String> {
    let (class, bits) = (code / 1000, code % 1000);
    match class {
        1 => Some(format!("u{bits}")),
        2 => Some(format!("i{bits}")),
        3 => Some(format!("f{bits}")),
        4 => Some(format!("bf{bits}")),
        5 => Some("bool".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_their_names() {
        for (text, expected) in [
            ("n:4:4:2032", "n: i32"),
            ("n:8:8:1064", "n: u64"),
            ("scale:2:2:4016", "scale: bf16"),
            ("doubles:1:1:5008", "doubles: bool"),
            ("x:8:8:13032", "x: *const f32"),
            ("y:8:8:24016", "y: *mut bf16"),
            ("pairs:8:8:10000", "pairs: *const _"),
            ("sums:8:8:20000", "sums: *mut _"),
            (":12:4:0", "_: [u8; 12]"),
            ("map:128:64:30000", "map: TensorMap"),
        ] {
            let parameter = Parameter::parse(text).map(|it| it.to_string());
            assert_eq!(parameter.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_codes_are_refused() {
        for text in [
            "n:4:4",
            "n:4:4:7",
            "n:4:4:9032",
            "n:8:8:43032",
            "n:4:four:2032",
        ] {
            assert_eq!(Parameter::parse(text), None, "{text}");
        }
    }
}
