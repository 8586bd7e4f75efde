//! Warp votes: conditions of all lanes of a warp.
//!
//! All lanes of the warp must call a vote together. If the block's size is not a multiple of 32, missing lanes of the
//! last warp do not vote.

/// Whether `condition` holds in any lane of the warp.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn any(condition: bool) -> bool {
    imp::any(condition)
}

/// Whether `condition` holds in all lanes of the warp.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn all(condition: bool) -> bool {
    imp::all(condition)
}

/// A mask in which bit `i` is set if `condition` holds in lane `i`.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn ballot(condition: bool) -> u32 {
    imp::ballot(condition)
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    // The intrinsics are convergent: LLVM does not move them into divergent code. Inline assembly is not.
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.vote.any.sync"]
        fn vote_any(mask: u32, condition: bool) -> bool;
        #[link_name = "llvm.nvvm.vote.all.sync"]
        fn vote_all(mask: u32, condition: bool) -> bool;
        #[link_name = "llvm.nvvm.vote.ballot.sync"]
        fn vote_ballot(mask: u32, condition: bool) -> u32;
    }

    const ALL: u32 = u32::MAX;

    #[inline(always)]
    pub fn any(condition: bool) -> bool {
        // SAFETY: only exchanges registers.
        unsafe { vote_any(ALL, condition) }
    }

    #[inline(always)]
    pub fn all(condition: bool) -> bool {
        // SAFETY: only exchanges registers.
        unsafe { vote_all(ALL, condition) }
    }

    #[inline(always)]
    pub fn ballot(condition: bool) -> u32 {
        // SAFETY: only exchanges registers.
        unsafe { vote_ballot(ALL, condition) }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::warp_exchange;

    #[track_caller]
    pub fn any(condition: bool) -> bool {
        warp_exchange("any", condition.into()).non_zero() != 0
    }

    #[track_caller]
    pub fn all(condition: bool) -> bool {
        let lanes = warp_exchange("all", condition.into());
        lanes.non_zero() == lanes.members()
    }

    #[track_caller]
    pub fn ballot(condition: bool) -> u32 {
        warp_exchange("ballot", condition.into()).non_zero()
    }
}
