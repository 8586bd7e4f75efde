//! Compresses PTX files for the program that embeds them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec;

use crate::at_once::at_once;
use crate::built::Built;
use crate::error::BuildError;

/// Compresses the files of a build into a folder. Returns the compressed files, in the order of the modules.
pub(crate) fn pack(built: &Built, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    fs::create_dir_all(folder).map_err(BuildError::io("making the folder", folder))?;
    let level = level();
    at_once(built.modules(), |module| {
        let text = fs::read(&module.path).map_err(BuildError::io("reading", &module.path))?;
        let name = module.path.file_name().unwrap_or_default();
        let path = folder.join(name).with_extension("deflate");
        fs::write(&path, compress_to_vec(&text, level))
            .map_err(BuildError::io("writing", &path))?;
        Ok(path)
    })
}

/// The best trade of a build's time for the program's size. Build scripts are usually not optimised. There, level 6
/// takes four times as long as level 1 and saves a third.
fn level() -> u8 {
    match env::var("PROFILE").as_deref() {
        Ok("release") => 6,
        _ => 1,
    }
}
