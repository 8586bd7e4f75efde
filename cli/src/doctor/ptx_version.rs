//! PTX versions: of the kernels, and the highest that a driver reads.

use std::fmt;

use cutlet_device::{PtxLibrary, PtxModule};

/// A version of the PTX ISA, as in a module's `.version` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PtxVersion(u32, u32);

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX {}.{}", self.0, self.1)
    }
}

/// A version of CUDA, the highest PTX that it reads, and the first version of the driver that supports it.
struct Release {
    cuda: (u32, u32),
    ptx: PtxVersion,
    driver: u32,
}

const fn release(cuda: (u32, u32), ptx: (u32, u32), driver: u32) -> Release {
    Release {
        cuda,
        ptx: PtxVersion(ptx.0, ptx.1),
        driver,
    }
}

/// The releases since PTX 7.0, oldest first.
const RELEASES: [Release; 20] = [
    release((11, 0), (7, 0), 450),
    release((11, 1), (7, 1), 455),
    release((11, 2), (7, 2), 460),
    release((11, 3), (7, 3), 465),
    release((11, 4), (7, 4), 470),
    release((11, 5), (7, 5), 495),
    release((11, 6), (7, 6), 510),
    release((11, 7), (7, 7), 515),
    release((11, 8), (7, 8), 520),
    release((12, 0), (8, 0), 525),
    release((12, 1), (8, 1), 530),
    release((12, 2), (8, 2), 535),
    release((12, 3), (8, 3), 545),
    release((12, 4), (8, 4), 550),
    release((12, 5), (8, 5), 555),
    release((12, 6), (8, 5), 560),
    release((12, 7), (8, 6), 565),
    release((12, 8), (8, 7), 570),
    release((12, 9), (8, 8), 575),
    release((13, 0), (9, 0), 580),
];

impl PtxVersion {
    /// The version of a module.
    pub fn of(module: &PtxModule) -> Option<PtxVersion> {
        let text = cutlet_host::ptx_text(module.ptx)?;
        let mut lines = text.lines();
        let version = lines.find_map(|line| line.strip_prefix(".version "))?;
        let (major, minor) = version.trim().split_once('.')?;
        Some(PtxVersion(major.parse().ok()?, minor.parse().ok()?))
    }

    /// The highest version of the modules that a GPU of this compute capability loads.
    pub fn loaded_by(library: &PtxLibrary, (major, minor): (u32, u32)) -> Option<PtxVersion> {
        let families = library.families.iter();
        let modules = families.filter_map(|family| family.best_for(major, minor));
        modules.filter_map(PtxVersion::of).max()
    }

    /// The highest version of all modules.
    pub fn highest(library: &PtxLibrary) -> Option<PtxVersion> {
        let families = library.families.iter();
        let modules = families.flat_map(|family| family.modules);
        modules.filter_map(PtxVersion::of).max()
    }

    /// The highest version that a driver reads, by the version of CUDA that it supports. For a newer CUDA than the last
    /// known, it is the last known.
    pub fn read_by(cuda: (u32, u32)) -> Option<PtxVersion> {
        let releases = RELEASES.iter().rev();
        let mut older = releases.filter(|release| release.cuda <= cuda);
        older.next().map(|release| release.ptx)
    }

    /// The first driver that reads this version: `version 530 (CUDA 12.1) or newer`.
    pub fn first_driver(self) -> String {
        let mut releases = RELEASES.iter();
        match releases.find(|release| release.ptx >= self) {
            Some(Release { cuda, driver, .. }) => {
                format!("version {driver} (CUDA {}.{}) or newer", cuda.0, cuda.1)
            }
            None => "the latest version".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_reads_the_ptx_of_its_cuda_and_older() {
        for (cuda, ptx) in [
            ((11, 0), (7, 0)),
            ((12, 1), (8, 1)),
            ((12, 6), (8, 5)),
            ((12, 8), (8, 7)),
            ((13, 0), (9, 0)),
            ((14, 2), (9, 0)),
        ] {
            let expected = PtxVersion(ptx.0, ptx.1);
            assert_eq!(PtxVersion::read_by(cuda), Some(expected), "{cuda:?}");
        }
        assert_eq!(PtxVersion::read_by((10, 2)), None);
        assert!(RELEASES.is_sorted_by_key(|release| (release.cuda, release.ptx, release.driver)));
    }

    #[test]
    fn the_first_driver_of_a_version_is_the_oldest_that_reads_it() {
        let first = |major, minor| PtxVersion(major, minor).first_driver();
        assert_eq!(first(8, 1), "version 530 (CUDA 12.1) or newer");
        assert_eq!(first(8, 5), "version 555 (CUDA 12.5) or newer");
        assert_eq!(first(9, 5), "the latest version");
    }

    #[test]
    fn every_module_has_a_version_that_a_known_driver_reads() {
        let library = &cutlet_kernels::PTX;
        let families = library.families.iter();
        for module in families.flat_map(|family| family.modules) {
            let version = PtxVersion::of(module).expect("a version");
            assert!(version <= RELEASES[RELEASES.len() - 1].ptx, "{version}");
        }
        let highest = PtxVersion::highest(library);
        assert!(highest >= PtxVersion::loaded_by(library, (8, 0)));
        assert_eq!(PtxVersion::loaded_by(library, (7, 5)), None);
    }
}
