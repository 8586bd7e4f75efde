//! The search for cuBLAS, and its functions.
//!
//! The search goes through the folder in `CUTLET_CUBLAS`, the system's loader, the CUDA toolkit and Python's packages
//! (`nvidia/cu13/lib`, `nvidia/cublas/lib`), in that order.
//!
//! cudarc has bindings of cuBLAS, too, but every call goes through a loader of its own. That loader takes no folder, it
//! panics if a library or a function is missing, and with bindings of CUDA 12 it does not look for version 13.

use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::CublasError;
use super::matmul::Heuristic;
use crate::nvidia_folders::{python_folders, toolkit_folders};

/// The environment variable that names the folder of the libraries.
pub const FOLDER_VARIABLE: &str = "CUTLET_CUBLAS";

/// Versions of the libraries that this program can call, newest first.
const VERSIONS: [u32; 2] = [13, 12];

/// Folders of the libraries in Python's `site-packages`.
const PYTHON_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cublas/lib"];

/// The place where the libraries were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file name that the system's loader found.
    System(String),
    /// A folder.
    Folder(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::System(name) => write!(f, "{name}, from the system's loader"),
            Place::Folder(folder) => write!(f, "{}", folder.display()),
        }
    }
}

/// The two libraries, loaded.
struct Opened {
    blas: libloading::Library,
    lt: libloading::Library,
}

macro_rules! functions {
    ($($field:ident = $library:ident $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of cuBLAS and cuBLASLt that this program calls.
        pub struct Library {
            /// The place where they were found.
            pub place: Place,
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            fn resolve(place: Place, opened: &Opened) -> Result<Library, libloading::Error> {
                Ok(Library {
                    place,
                    // SAFETY: the types are those of cuBLAS 12 and 13's headers.
                    $($field: *unsafe { opened.$library.get($symbol)? },)*
                })
            }
        }
    };
}

type Status = i32;
type Handle = *mut c_void;
type Bytes = *const c_void;
type Float = *const f32;

functions! {
    create = blas b"cublasCreate_v2" (*mut Handle) -> Status;
    destroy = blas b"cublasDestroy_v2" (Handle) -> Status;
    set_stream = blas b"cublasSetStream_v2" (Handle, Handle) -> Status;
    sgemm = blas b"cublasSgemm_v2" (Handle, i32, i32, i32, i32, i32, Float, Float, i32, Float, i32, Float, *mut f32, i32) -> Status;
    lt_version = lt b"cublasLtGetVersion" () -> usize;
    lt_create = lt b"cublasLtCreate" (*mut Handle) -> Status;
    lt_destroy = lt b"cublasLtDestroy" (Handle) -> Status;
    lt_desc_create = lt b"cublasLtMatmulDescCreate" (*mut Handle, i32, i32) -> Status;
    lt_desc_destroy = lt b"cublasLtMatmulDescDestroy" (Handle) -> Status;
    lt_desc_set = lt b"cublasLtMatmulDescSetAttribute" (Handle, i32, Bytes, usize) -> Status;
    lt_layout_create = lt b"cublasLtMatrixLayoutCreate" (*mut Handle, i32, u64, u64, i64) -> Status;
    lt_layout_set = lt b"cublasLtMatrixLayoutSetAttribute" (Handle, i32, Bytes, usize) -> Status;
    lt_layout_destroy = lt b"cublasLtMatrixLayoutDestroy" (Handle) -> Status;
    lt_preference_create = lt b"cublasLtMatmulPreferenceCreate" (*mut Handle) -> Status;
    lt_preference_destroy = lt b"cublasLtMatmulPreferenceDestroy" (Handle) -> Status;
    lt_preference_set = lt b"cublasLtMatmulPreferenceSetAttribute" (Handle, i32, Bytes, usize) -> Status;
    lt_heuristics = lt b"cublasLtMatmulAlgoGetHeuristic" (Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Heuristic, *mut i32) -> Status;
    lt_matmul = lt b"cublasLtMatmul" (Handle, Handle, Bytes, Bytes, Handle, Bytes, Handle, Bytes, Bytes, Handle, *mut c_void, Handle, *const [u64; 8], *mut c_void, usize, Handle) -> Status;
}

impl Library {
    /// Finds and loads the libraries, once a process.
    ///
    /// # Errors
    /// [`CublasError::Missing`] if they are not found.
    pub fn load() -> Result<&'static Library, CublasError> {
        static LIBRARY: OnceLock<Result<Library, CublasError>> = OnceLock::new();
        LIBRARY.get_or_init(search).as_ref().map_err(Clone::clone)
    }

    /// The version of cuBLASLt, as it counts (130200 is 13.2.0).
    pub fn version(&self) -> usize {
        // SAFETY: the function has no arguments and can be called at any time.
        unsafe { (self.lt_version)() }
    }
}

fn search() -> Result<Library, CublasError> {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        let folder = PathBuf::from(folder);
        return open_folder(&folder).ok_or_else(|| CublasError::Missing {
            found: format!(
                "{FOLDER_VARIABLE}={} holds no libcublas and libcublasLt of version 12 or 13",
                folder.display()
            ),
        });
    }
    let system = VERSIONS.into_iter().find_map(|version| {
        let [blas, lt] = names(version);
        open(&blas, &lt, Place::System(blas.clone()))
    });
    system
        .or_else(|| {
            toolkit_folders()
                .iter()
                .find_map(|folder| open_folder(folder))
        })
        .or_else(|| {
            python_folders(&PYTHON_FOLDERS)
                .iter()
                .find_map(|folder| open_folder(folder))
        })
        .ok_or_else(|| CublasError::Missing {
            found: "it is not where the system's loader looks, not in a CUDA toolkit and not among Python's packages"
                .to_string(),
        })
}

/// File names of cuBLAS and cuBLASLt.
fn names(version: u32) -> [String; 2] {
    if cfg!(windows) {
        [
            format!("cublas64_{version}.dll"),
            format!("cublasLt64_{version}.dll"),
        ]
    } else {
        [
            format!("libcublas.so.{version}"),
            format!("libcublasLt.so.{version}"),
        ]
    }
}

fn open_folder(folder: &Path) -> Option<Library> {
    VERSIONS.into_iter().find_map(|version| {
        let [blas, lt] = names(version).map(|name| folder.join(name));
        if !blas.is_file() || !lt.is_file() {
            return None;
        }
        open(&blas, &lt, Place::Folder(folder.to_path_buf()))
    })
}

fn open(
    blas: impl AsRef<std::ffi::OsStr>,
    lt: impl AsRef<std::ffi::OsStr>,
    place: Place,
) -> Option<Library> {
    // cuBLASLt first: cuBLAS needs it and finds it loaded, whatever the loader's path is.
    // SAFETY: NVIDIA's initialisers can run at any time.
    let lt = unsafe { libloading::Library::new(lt.as_ref()) }.ok()?;
    // SAFETY: as above.
    let blas = unsafe { libloading::Library::new(blas.as_ref()) }.ok()?;
    // The libraries are never unloaded: the functions are kept for the life of the process.
    let opened: &'static Opened = Box::leak(Box::new(Opened { blas, lt }));
    Library::resolve(place, opened).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_libraries_holds_none() {
        assert!(open_folder(Path::new("/")).is_none());
    }
}
