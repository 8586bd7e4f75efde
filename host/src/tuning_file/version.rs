//! The version of kernels: a hash of the checksums of their PTX.
//!
//! A crate's version would not do. It stays the same from one release to the next, and kernels change every day. A
//! build that leaves families out has another version, too, because other kernels may be the fastest there.

use cutlet_device::PtxFamily;

/// The version of the kernels of these families, in 16 hexadecimal digits.
pub fn version_of<'a>(families: impl Iterator<Item = &'a PtxFamily>) -> String {
    let modules = families.flat_map(|family| family.modules);
    let hash = modules
        .flat_map(|module| module.ptx.identity())
        .fold(OFFSET_BASIS, hashed);
    format!("{hash:016x}")
}

/// The FNV-1a hash of no bytes.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
/// What FNV-1a multiplies by.
const PRIME: u64 = 0x0100_0000_01b3;

/// FNV-1a over words of eight bytes, which takes an eighth of its time over bytes. The length is hashed last, so that
/// the padding of the last word and the end of a text count.
fn hashed(hash: u64, text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words
        .iter()
        .chain([&last])
        .map(|word| u64::from_le_bytes(*word));
    let words = words.chain([text.len() as u64]);
    words.fold(hash, |hash, word| {
        // High bits of a word reach low bits of the hash by the rotation alone.
        ((hash ^ word).wrapping_mul(PRIME)).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use cutlet_device::{PtxModule, PtxText, PtxWord};

    use super::*;

    #[test]
    fn each_byte_counts_and_each_end_of_a_text() {
        let text = b"0123456789abcdef0123";
        let hash = hashed(OFFSET_BASIS, text);
        for at in 0..text.len() {
            let mut other = text.to_vec();
            other[at] = b'x';
            assert_ne!(hashed(OFFSET_BASIS, &other), hash, "{at}");
        }
        assert_ne!(hashed(OFFSET_BASIS, b"0123456789abcdef0123\0"), hash);
        let two = |one: &[u8], other: &[u8]| hashed(hashed(OFFSET_BASIS, one), other);
        assert_ne!(two(b"ab", b"c"), two(b"a", b"bc"));
    }

    #[test]
    fn a_version_has_16_digits() {
        let version = version_of([].iter());
        assert_eq!(version, "cbf29ce484222325");
    }

    #[test]
    fn a_text_differs_from_that_whose_words_it_replaces() {
        const ZLIB: &[u8] = b"stream, sum1";
        const fn family(modules: &'static [PtxModule]) -> PtxFamily {
            PtxFamily {
                name: "gemm",
                modules,
            }
        }
        let compiled = family(&[PtxModule {
            target: "sm_90a",
            ptx: PtxText::Zlib(ZLIB),
        }]);
        let replaced = family(&[PtxModule {
            target: "sm_90a",
            ptx: PtxText::Replaced {
                zlib: ZLIB,
                words: &[PtxWord {
                    old: "bf16",
                    new: "f16",
                }],
            },
        }]);
        assert_ne!(
            version_of([&compiled].into_iter()),
            version_of([&replaced].into_iter())
        );
    }
}
