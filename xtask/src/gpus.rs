//! The GPUs that kernels are assembled for.

/// The target whose PTX also runs on later GPUs, for which the driver compiles it.
pub const PORTABLE: &str = "sm_80";

/// The GPUs that PTX for [`PORTABLE`] is assembled for at each change: the oldest, Hopper, and the newest.
pub const FEW_GPUS: &[&str] = &["sm_80", "sm_90", "sm_120"];
/// Those that it is assembled for each night.
pub const ALL_GPUS: &[&str] = &[
    "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_120",
];

/// The GPUs that PTX for `target` is assembled for: these if it is [`PORTABLE`], else the target itself.
pub fn of<'a>(target: &'a str, portable: &[&'a str]) -> Vec<&'a str> {
    match target {
        PORTABLE => portable.to_vec(),
        _ => vec![target],
    }
}
