//! Compresses PTX files for the program that embeds them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;

use crate::at_once::at_once;
use crate::built::Built;
use crate::error::BuildError;
use crate::library;

/// Compresses the files of a build into a folder, which then holds these alone. Returns the compressed files, in the order
/// of the modules. Files whose text is older stay as they are: neither are they compressed again, nor is what embeds them
/// compiled again.
pub(crate) fn pack(built: &Built, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let level = level();
    let packed: Vec<PathBuf> = built
        .modules()
        .iter()
        .map(|module| {
            let name = module.path.file_name().unwrap_or_default();
            folder.join(name).with_extension("zlib")
        })
        .collect();
    library::keep_only(folder, |path| packed.iter().any(|packed| packed == path))?;
    let files: Vec<_> = built.modules().iter().zip(&packed).collect();
    at_once(&files, |(module, path)| {
        if is_newer(path, &module.path) {
            return Ok(());
        }
        let text = fs::read(&module.path).map_err(BuildError::io("reading", &module.path))?;
        // An interrupted write must not leave a file that looks newer than its text.
        let part = path.with_extension("part");
        fs::write(&part, compress_to_vec_zlib(&text, level))
            .map_err(BuildError::io("writing", &part))?;
        fs::rename(&part, path).map_err(BuildError::io("writing", path))
    })?;
    Ok(packed)
}

/// Whether a file was written after the other one. Not if one of them is missing.
fn is_newer(file: &Path, other: &Path) -> bool {
    let written = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    written(file)
        .zip(written(other))
        .is_some_and(|(file, other)| file > other)
}

/// The best trade of a build's time for the program's size. Build scripts are usually not optimised. There, level 6
/// takes four times as long as level 1 and saves a third.
fn level() -> u8 {
    match env::var("PROFILE").as_deref() {
        Ok("release") => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host tells texts apart by it, whichever profile they were built in.
    #[test]
    fn a_stream_ends_with_a_sum_that_depends_on_the_text_alone() {
        let sum = |text: &str, level| {
            let stream = compress_to_vec_zlib(text.as_bytes(), level);
            *stream.last_chunk::<4>().unwrap()
        };
        let text = ".version 8.0\n".repeat(100);
        assert_eq!(sum(&text, 1), sum(&text, 6));
        assert_ne!(sum(&text, 1), sum(&text.replace('8', "7"), 1));
    }

    #[test]
    fn a_missing_file_is_not_newer() {
        let folder = env::temp_dir().join(format!("cutlet-packed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.join(name));
        fs::write(&old, "").unwrap();
        assert!(!is_newer(&new, &old) && !is_newer(&old, &new) && !is_newer(&old, &old));
        fs::remove_dir_all(&folder).unwrap();
    }
}
