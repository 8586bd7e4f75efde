//! PTX texts as they were before a program embedded them.

use std::borrow::Cow;

use cutlet_device::PtxText;
use miniz_oxide::inflate::decompress_to_vec_zlib;

/// The text of a PTX module, unpacked and with its words replaced. `None` if what the program embeds is no compressed
/// text.
///
/// ```
/// use cutlet_device::PtxText;
/// let text = cutlet_host::ptx_text(PtxText::Plain(".version 8.0"));
/// assert_eq!(text.as_deref(), Some(".version 8.0"));
/// assert_eq!(cutlet_host::ptx_text(PtxText::Zlib(b"no PTX")), None);
/// ```
pub fn ptx_text(ptx: PtxText) -> Option<Cow<'static, str>> {
    match ptx {
        PtxText::Plain(text) => Some(Cow::Borrowed(text)),
        PtxText::Zlib(zlib) => unpacked(zlib).map(Cow::Owned),
        PtxText::Replaced { zlib, words } => {
            let mut text = unpacked(zlib)?;
            for word in words {
                text = text.replace(word.old, word.new);
            }
            Some(Cow::Owned(text))
        }
    }
}

fn unpacked(zlib: &[u8]) -> Option<String> {
    String::from_utf8(decompress_to_vec_zlib(zlib).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use cutlet_device::PtxWord;

    use super::*;

    /// The stream of the text below, stored without compression.
    const ZLIB: &[u8] = b"x\x01\x01\x1c\x00\xe3\xffmul.bf16x2; add.bf16; // f16}\xba\x07\xdd";

    #[test]
    fn words_are_replaced_one_after_the_other_wherever_they_stand() {
        let text = |ptx| ptx_text(ptx).unwrap().into_owned();
        assert_eq!(text(PtxText::Zlib(ZLIB)), "mul.bf16x2; add.bf16; // f16");
        let words = &[
            PtxWord {
                old: "bf16",
                new: "f16",
            },
            PtxWord {
                old: "add.f16",
                new: "sub.f16",
            },
        ];
        let replaced = PtxText::Replaced { zlib: ZLIB, words };
        assert_eq!(text(replaced), "mul.f16x2; sub.f16; // f16");
    }
}
