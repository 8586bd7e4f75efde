//! Instructions of sm_90 in PTX for older targets: comments, which a newer GPU gets as instructions. So one text serves
//! all GPUs.

/// What stands before an instruction of sm_90 in PTX for an older target.
const SINCE_SM_90: &str = "// cutlet-sm_90 ";
/// The first version of PTX that has the target sm_90.
const VERSION: (u32, u32) = (7, 8);

/// An instruction of sm_90 in assembly: a comment for older targets.
#[cfg(target_arch = "nvptx64")]
macro_rules! since_sm_90 {
    ($instruction:literal $($operands:tt)*) => {
        #[cfg(target_feature = "sm_90")]
        core::arch::asm!($instruction $($operands)*);
        #[cfg(not(target_feature = "sm_90"))]
        core::arch::asm!(concat!("// cutlet-sm_90 ", $instruction) $($operands)*);
    };
}
#[cfg(target_arch = "nvptx64")]
pub(crate) use since_sm_90;

/// PTX for an older target as PTX for sm_90, in pieces, if it has instructions of sm_90. `None` if it has none, or is for
/// sm_90 or a newer target.
///
/// ```
/// use cutlet_device::for_sm_90;
/// let ptx = ".version 7.0\n.target sm_80\n.address_size 64\n// cutlet-sm_90 griddepcontrol.wait;\n";
/// let newer: String = for_sm_90(ptx).unwrap().collect();
/// assert_eq!(newer, ".version 7.8\n.target sm_90\n.address_size 64\ngriddepcontrol.wait;\n");
/// assert!(for_sm_90(".version 7.0\n.target sm_80\n.address_size 64\n").is_none());
/// ```
pub fn for_sm_90(ptx: &str) -> Option<impl Iterator<Item = &str>> {
    let (version, rest) = ptx.strip_prefix(".version ")?.split_once('\n')?;
    let (_, rest) = rest.split_once('\n')?;
    let (major, minor) = version.split_once('.')?;
    let version = match (major.parse().ok()?, minor.parse().ok()?) < VERSION {
        true => "7.8",
        false => version,
    };
    let header = [".version ", version, "\n.target sm_90\n"];
    let has_some = rest.contains(SINCE_SM_90);
    has_some.then(|| header.into_iter().chain(rest.split(SINCE_SM_90)))
}

/// Whether the kernel runs on a GPU from sm_90 on. The assembler of the GPU knows it, so a branch by it costs nothing.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn is_since_sm_90() -> bool {
    let mut is_newer = 0u32;
    // SAFETY: sets a number.
    unsafe {
        since_sm_90!("mov.b32 {0}, 1;", inout(reg32) is_newer,
            options(pure, nomem, nostack, preserves_flags));
    }
    is_newer != 0
}
