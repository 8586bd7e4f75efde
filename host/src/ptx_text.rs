//! PTX texts as they were before a program embedded them.

use std::borrow::Cow;

use cutlet_device::PtxText;
use miniz_oxide::inflate::decompress_to_vec_zlib;

/// The text of a PTX module, unpacked. `None` if what the program embeds is no compressed text.
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
        PtxText::Zlib(bytes) => {
            let text = String::from_utf8(decompress_to_vec_zlib(bytes).ok()?).ok()?;
            Some(Cow::Owned(text))
        }
    }
}
