//! The comment line that `#[kernel]` leaves in the PTX, with what rustc has no attribute for.

use crate::parameter::Parameter;
use crate::replacement::Replacement;

/// Begins the line.
const MARK: &str = "// cutlet-kernel ";

/// What the line says about its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    /// Name of the entry.
    pub entry: String,
    /// Path of its module, with the crate's name in front.
    pub module: String,
    /// Threads of a block.
    pub threads: u32,
    /// Blocks that must fit on a multiprocessor; 0 if it does not matter.
    pub min_blocks: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// The target that the kernel is for, or none for all: see [`fits`](Self::fits).
    pub arch: Option<String>,
    /// The replacements that make other kernels of this one.
    pub also: Vec<Replacement>,
    /// Its parameters; arguments without bytes have none.
    pub parameters: Vec<Parameter>,
}

impl KernelInfo {
    /// Reads the line, if it is one.
    pub fn parse(line: &str) -> Option<Result<KernelInfo, String>> {
        let fields = line.trim().strip_prefix(MARK)?;
        Some(KernelInfo::read(fields).map_err(|what| {
            format!(
                "`{}` has no valid `{what}`: are cutlet-device and cutlet-ptx-builder of the same \
                 version?",
                line.trim()
            )
        }))
    }

    fn read(fields: &str) -> Result<KernelInfo, &'static str> {
        let text = |name: &'static str| {
            fields
                .split(' ')
                .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
                .ok_or(name)
        };
        let number = |name: &'static str| text(name)?.parse().map_err(|_| name);
        let parameters = text("params")?
            .split(',')
            .filter(|param| !param.is_empty())
            .map(|param| Parameter::parse(param).ok_or("params"))
            .filter(|param| param.as_ref().map_or(true, |it| it.bytes != 0))
            .collect::<Result<_, _>>()?;
        let also = match text("also")? {
            "-" => Vec::new(),
            words => words
                .split(',')
                .map(Replacement::parse)
                .collect::<Option<_>>()
                .ok_or("also")?,
        };
        Ok(KernelInfo {
            entry: text("entry")?.to_owned(),
            module: text("family")?.to_owned(),
            threads: number("maxntid")?,
            min_blocks: number("minnctapersm")?,
            cluster: number("cluster")?,
            shared_bytes: number("shared")?,
            arch: Some(text("arch")?)
                .filter(|arch| *arch != "-")
                .map(str::to_owned),
            also,
            parameters,
        })
    }

    /// The crate that the kernel was written in.
    pub fn krate(&self) -> &str {
        self.module.split("::").next().unwrap_or_default()
    }

    /// The module's path below the crate; the crate's name at its root. As `Kernel::family`.
    pub fn family(&self) -> &str {
        self.module
            .split_once("::")
            .map_or(&self.module, |(_, below)| below)
    }

    /// Whether modules for this target hold the kernel.
    ///
    /// A kernel for a target with a letter (`sm_90a`) is in that target's modules only. A kernel for a target without
    /// one is in those of all newer targets as well. Clusters begin with `sm_90`.
    pub fn fits(&self, target: &str) -> bool {
        let fits_arch = match &self.arch {
            None => true,
            Some(arch) if arch.ends_with(|last: char| last.is_ascii_digit()) => {
                capability(target) >= capability(arch)
            }
            Some(arch) => arch == target,
        };
        fits_arch && (self.cluster <= 1 || capability(target) >= 90)
    }
}

/// 90 for `sm_90` and `sm_90a`.
pub(crate) fn capability(target: &str) -> u32 {
    target
        .trim_start_matches("sm_")
        .trim_end_matches(|last: char| last.is_ascii_alphabetic())
        .parse()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "// cutlet-kernel entry=gemm family=mine::dense::gemm maxntid=384 \
        minnctapersm=1 cluster=2 shared=1024 arch=sm_90a also=f16:bf16 params=c:8:8:24016,:0:1:0,map:128:64:30000";

    #[test]
    fn a_line_is_read() {
        let info = KernelInfo::parse(LINE).unwrap().unwrap();
        assert_eq!(info.entry, "gemm");
        assert_eq!((info.krate(), info.family()), ("mine", "dense::gemm"));
        assert_eq!((info.threads, info.min_blocks, info.cluster), (384, 1, 2));
        assert_eq!(info.arch.as_deref(), Some("sm_90a"));
        let words: Vec<_> = info.also.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["f16 for bf16"]);
        let aligns: Vec<_> = info.parameters.iter().map(|it| it.align).collect();
        assert_eq!(
            aligns,
            [8, 64],
            "an argument without bytes has no parameter"
        );
    }

    #[test]
    fn a_kernel_at_the_crate_root_has_the_crate_as_family() {
        let line = LINE.replace("mine::dense::gemm", "mine");
        let info = KernelInfo::parse(&line).unwrap().unwrap();
        assert_eq!((info.krate(), info.family()), ("mine", "mine"));
    }

    #[test]
    fn other_comments_are_none_and_broken_lines_say_what_is_missing() {
        assert_eq!(KernelInfo::parse("// Generated by LLVM"), None);
        let broken = LINE.replace("maxntid=384", "maxntid=many");
        let error = KernelInfo::parse(&broken).unwrap().unwrap_err();
        assert!(error.contains("no valid `maxntid`"), "{error}");
        let broken = LINE.replace("24016", "7");
        let error = KernelInfo::parse(&broken).unwrap().unwrap_err();
        assert!(error.contains("no valid `params`"), "{error}");
    }

    #[test]
    fn targets_with_a_letter_are_for_themselves_and_others_for_all_newer_ones() {
        let mut info = KernelInfo::parse(LINE).unwrap().unwrap();
        assert!(info.fits("sm_90a") && !info.fits("sm_90") && !info.fits("sm_100a"));
        info.arch = Some("sm_90".to_owned());
        assert!(info.fits("sm_90a") && info.fits("sm_100") && !info.fits("sm_80"));
        info.arch = None;
        assert!(
            info.fits("sm_90") && !info.fits("sm_80"),
            "clusters begin with sm_90"
        );
        info.cluster = 1;
        assert!(info.fits("sm_80"));
    }
}
