//! NVIDIA's assembler and disassembler, of a CUDA toolkit or fetched for the user.

use std::env;
use std::path::PathBuf;

use cutlet_cli::nvidia_folders::toolkit_folders;
use cutlet_machine_code::{Error, Lookup, Nvdisasm, Ptxas};

use crate::progress::Progress;

/// Both programs.
pub struct Programs {
    pub ptxas: Ptxas,
    pub nvdisasm: Nvdisasm,
}

impl Programs {
    /// Finds them, or fetches them.
    pub fn find(progress: &Progress) -> Result<Programs, Error> {
        let path = env::var_os("PATH").unwrap_or_default();
        let installed: Vec<PathBuf> = env::split_paths(&path).chain(toolkit_folders()).collect();
        let lookup = Lookup {
            installed: &installed,
            cache: &cache(),
            fetching: &|wheel| progress.wait(&format!("fetching {wheel} with pip")),
        };
        Ok(Programs {
            ptxas: Ptxas::get(&lookup)?,
            nvdisasm: Nvdisasm::get(&lookup)?,
        })
    }
}

/// The user's folder for what can be fetched again.
fn cache() -> PathBuf {
    let named = ["XDG_CACHE_HOME", "LOCALAPPDATA"];
    let named = named.into_iter().filter_map(env::var_os).map(PathBuf::from);
    let home = env::home_dir().map(|home| home.join(".cache"));
    let mut folders = named.chain(home).filter(|folder| folder.is_absolute());
    folders.next().unwrap_or_else(env::temp_dir).join("cutlet")
}
