//! Writes `ptx.rs`, the static that embeds the compressed PTX into the package's library.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::built::Built;
use crate::error::BuildError;

/// The source of the static `PTX`, with a compressed file for each module.
///
/// `device_crate` is the path of cutlet-device in the package that includes it.
pub(crate) fn source(built: &Built, packed: &[PathBuf], device_crate: &str) -> String {
    let mut families: Vec<(&str, String)> = Vec::new();
    for (module, packed) in built.modules().iter().zip(packed) {
        if families
            .last()
            .is_none_or(|(name, _)| *name != module.family)
        {
            families.push((&module.family, String::new()));
        }
        if let Some((_, modules)) = families.last_mut() {
            // Writing to a `String` cannot fail.
            let _ = write!(
                modules,
                "{device_crate}::PtxModule {{ target: {:?}, ptx: \
                 {device_crate}::PtxText::Zlib(::core::include_bytes!({:?})) }}, ",
                module.target,
                packed.display().to_string()
            );
        }
    }
    let mut text = format!(
        "/// The kernels of this package, compiled for the GPU.\n\
         pub static PTX: {device_crate}::PtxLibrary = {device_crate}::PtxLibrary {{ families: &[\n"
    );
    for (name, modules) in families {
        let _ = writeln!(
            text,
            "    {device_crate}::PtxFamily {{ name: {name:?}, modules: &[{modules}] }},"
        );
    }
    text.push_str("] };\n");
    text
}

/// Writes the file unless it has this text already, so that nothing is rebuilt because of its date.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    fs::write(path, text).map_err(BuildError::io("writing", path))
}

/// Makes the folder if it is missing, and removes the files that are not kept.
pub(crate) fn keep_only(folder: &Path, kept: impl Fn(&Path) -> bool) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(BuildError::io("making the folder", folder))?;
    for entry in folder
        .read_dir()
        .map_err(BuildError::io("reading", folder))?
    {
        let path = entry.map_err(BuildError::io("reading", folder))?.path();
        if !kept(&path) {
            fs::remove_file(&path).map_err(BuildError::io("removing", &path))?;
        }
    }
    Ok(())
}

/// Makes the folder hold these PTX files and no others.
pub(crate) fn write_folder(folder: &Path, files: &[(String, String)]) -> Result<(), BuildError> {
    keep_only(folder, |path| {
        files.iter().any(|(name, _)| path.ends_with(name))
    })?;
    for (name, text) in files {
        write_if_changed(&folder.join(name), text)?;
    }
    Ok(())
}
