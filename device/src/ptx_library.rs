//! The compiled kernels of a package: a PTX text for each family and target.

/// The PTX of a package's kernels, which `cutlet-ptx-builder` writes.
#[derive(Debug)]
pub struct PtxLibrary {
    /// The families, sorted by name.
    pub families: &'static [PtxFamily],
}

/// The kernels of one module of the package, which a device loads together.
#[derive(Debug)]
pub struct PtxFamily {
    /// The module's path in the crate (`gemm`, `gather::by_rows`), or the crate's name for kernels at the crate root.
    /// It is the [`Kernel::family`](crate::Kernel::family) of its kernels.
    pub name: &'static str,
    /// One module for each target, in ascending order of compute capability.
    pub modules: &'static [PtxModule],
}

/// The PTX of a family for one target.
#[derive(Debug)]
pub struct PtxModule {
    /// The target in the `.target` line of the PTX: `sm_80`, `sm_90a`.
    pub target: &'static str,
    /// The text, which the driver or ptxas compiles.
    pub ptx: PtxText,
}

/// A PTX text in a program. `cutlet_host::ptx_text` makes the whole text of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtxText {
    /// As it is.
    Plain(&'static str),
    /// Compressed by zlib, as `cutlet-ptx-builder` writes it: PTX shrinks to a sixth.
    Zlib(&'static [u8]),
    /// Another module's compressed text with words replaced: see `also` of [`kernel`](macro@crate::kernel). The program
    /// has its bytes once.
    Replaced {
        /// The other module's text.
        zlib: &'static [u8],
        /// The words, which are replaced one after the other.
        words: &'static [PtxWord],
    },
}

/// A word for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtxWord {
    /// The word that is replaced wherever it stands.
    pub old: &'static str,
    /// The word in its place.
    pub new: &'static str,
}

impl PtxText {
    /// Bytes that tell texts apart: the text itself, or its checksum, which ends a zlib stream, and the replaced words.
    /// They do not depend on the level of compression.
    ///
    /// ```
    /// use cutlet_device::{PtxText, PtxWord};
    /// let identity = |text: PtxText| text.identity().collect::<Vec<_>>();
    /// assert_eq!(identity(PtxText::Plain(".version 8.0")), [b".version 8.0"]);
    /// let zlib = b"stream, sum1";
    /// assert_eq!(identity(PtxText::Zlib(zlib)), [b"sum1"]);
    /// let replaced = PtxText::Replaced { zlib, words: &[PtxWord { old: "bf16", new: "f16" }] };
    /// assert_eq!(identity(replaced), [&b"sum1"[..], b"bf16", b"f16"]);
    /// ```
    pub fn identity(self) -> impl Iterator<Item = &'static [u8]> {
        let (text, words): (_, &[PtxWord]) = match self {
            PtxText::Plain(text) => (text.as_bytes(), &[]),
            PtxText::Zlib(zlib) => (checksum(zlib), &[]),
            PtxText::Replaced { zlib, words } => (checksum(zlib), words),
        };
        let words = words
            .iter()
            .flat_map(|word| [word.old.as_bytes(), word.new.as_bytes()]);
        core::iter::once(text).chain(words)
    }
}

/// The checksum of a text, which ends its zlib stream.
fn checksum(zlib: &'static [u8]) -> &'static [u8] {
    zlib.last_chunk::<4>().map_or(zlib, |sum| sum)
}

impl PtxLibrary {
    /// The family with this name.
    pub fn family(&self, name: &str) -> Option<&'static PtxFamily> {
        self.families.iter().find(|family| family.name == name)
    }
}

impl PtxFamily {
    /// The best module for a device of compute capability `major.minor`, or `None` if no module runs on it.
    ///
    /// A plain target (`sm_80`) runs on its capability and on every later one. A target with an `a` (`sm_90a`) runs on
    /// exactly its capability. A target with an `f` (`sm_100f`) runs on its capability and on later minors of the same
    /// major. The best module has the highest capability and, at equal capability, the more specific target.
    ///
    /// ```
    /// use cutlet_device::{PtxFamily, PtxModule, PtxText};
    /// let family = PtxFamily {
    ///     name: "gemm",
    ///     modules: &[
    ///         PtxModule { target: "sm_80", ptx: PtxText::Plain("") },
    ///         PtxModule { target: "sm_90a", ptx: PtxText::Plain("") },
    ///     ],
    /// };
    /// assert_eq!(family.best_for(9, 0).unwrap().target, "sm_90a");
    /// assert_eq!(family.best_for(8, 9).unwrap().target, "sm_80");
    /// assert_eq!(family.best_for(12, 0).unwrap().target, "sm_80");
    /// assert!(family.best_for(7, 5).is_none());
    /// ```
    pub fn best_for(&self, major: u32, minor: u32) -> Option<&'static PtxModule> {
        let modules: &'static [PtxModule] = self.modules;
        modules
            .iter()
            .filter_map(|module| Some((module, Target::parse(module.target)?)))
            .filter(|(_, target)| target.runs_on(major, minor))
            .max_by_key(|(_, target)| (target.major, target.minor, target.suffix))
            .map(|(module, _)| module)
    }
}

impl PtxModule {
    /// Whether a kernel of the module can begin while the kernel before it ends, because it can wait for that kernel:
    /// targets from sm_90 on. The host can make such a module of the PTX for an older target.
    pub fn can_begin_early(&self) -> bool {
        Target::parse(self.target).is_some_and(|target| target.major >= 9)
    }
}

/// A parsed target: `sm_90a` is 9, 0, `Arch`.
struct Target {
    major: u32,
    minor: u32,
    suffix: Suffix,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suffix {
    None,
    Family,
    Arch,
}

impl Target {
    fn parse(name: &str) -> Option<Target> {
        let digits = name.strip_prefix("sm_")?;
        let (digits, suffix) = match digits.as_bytes().last()? {
            b'a' => (&digits[..digits.len() - 1], Suffix::Arch),
            b'f' => (&digits[..digits.len() - 1], Suffix::Family),
            _ => (digits, Suffix::None),
        };
        let capability: u32 = digits.parse().ok()?;
        Some(Target {
            major: capability / 10,
            minor: capability % 10,
            suffix,
        })
    }

    fn runs_on(&self, major: u32, minor: u32) -> bool {
        match self.suffix {
            Suffix::None => (major, minor) >= (self.major, self.minor),
            Suffix::Family => major == self.major && minor >= self.minor,
            Suffix::Arch => (major, minor) == (self.major, self.minor),
        }
    }
}
