//! Compresses PTX files for the program that embeds them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::compress_to_vec_zlib;

use crate::at_once::at_once;
use crate::built::{Built, BuiltModule};
use crate::error::BuildError;
use crate::library;
use crate::replacement::Replacement;

/// A module's text in the program.
pub(crate) struct Packed<'a> {
    /// The compressed file.
    pub file: PathBuf,
    /// What is replaced in it, if the text is a copy.
    pub words: Option<&'a Replacement>,
}

/// Compresses the files of a build into a folder, which then holds these alone. Copies have the file of their original.
/// Returns the texts in the order of the modules. Files whose text is older stay as they are: neither are they compressed
/// again, nor is what embeds them compiled again.
pub(crate) fn pack<'a>(built: &'a Built, folder: &Path) -> Result<Vec<Packed<'a>>, BuildError> {
    let level = level();
    let packed = |module: &BuiltModule| {
        let copy = built.copy(module);
        let name = copy.map_or(module.path.file_name().unwrap_or_default(), |copy| {
            copy.of.as_ref()
        });
        Packed {
            file: folder.join(name).with_extension("zlib"),
            words: copy.map(|copy| &copy.words),
        }
    };
    let packed: Vec<Packed<'_>> = built.modules().iter().map(packed).collect();
    library::keep_only(folder, |path| packed.iter().any(|text| text.file == path))?;
    let originals = built.modules().iter().zip(&packed);
    let originals: Vec<_> = originals.filter(|(_, text)| text.words.is_none()).collect();
    at_once(&originals, |(module, Packed { file, .. })| {
        if is_newer(file, &module.path) {
            return Ok(());
        }
        let text = fs::read(&module.path).map_err(BuildError::io("reading", &module.path))?;
        // An interrupted write must not leave a file that looks newer than its text.
        let part = file.with_extension("part");
        fs::write(&part, compress_to_vec_zlib(&text, level))
            .map_err(BuildError::io("writing", &part))?;
        fs::rename(&part, file).map_err(BuildError::io("writing", file))
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
