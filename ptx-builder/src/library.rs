//! Writes `ptx.rs`, the static that embeds the compressed PTX into the package's library.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::built::Built;
use crate::error::BuildError;
use crate::packed::Packed;
use crate::replacement::{Replacement, Word};

/// The source of the static `PTX`, which embeds each compressed file once.
///
/// `device_crate` is the path of cutlet-device in the package that includes it.
pub(crate) fn source(built: &Built, packed: &[Packed<'_>], device_crate: &str) -> String {
    let files: BTreeSet<&Path> = packed.iter().map(|text| text.file.as_path()).collect();
    // Writing to a `String` cannot fail.
    let mut source = format!(
        "/// The kernels of this package, compiled for the GPU.\n\
         pub static PTX: {device_crate}::PtxLibrary = {{\n    \
         static ZLIB: [&[u8]; {}] = [\n",
        files.len()
    );
    for file in &files {
        let file = file.display().to_string();
        let _ = writeln!(source, "        ::core::include_bytes!({file:?}),");
    }
    let _ = writeln!(
        source,
        "    ];\n    {device_crate}::PtxLibrary {{ families: &["
    );
    let modules: Vec<_> = built.modules().iter().zip(packed).collect();
    for family in modules.chunk_by(|(a, _), (b, _)| a.family == b.family) {
        let name = &family[0].0.family;
        let _ = write!(
            source,
            "        {device_crate}::PtxFamily {{ name: {name:?}, modules: &["
        );
        for (module, text) in family {
            let index = files.range(..text.file.as_path()).count();
            let text = text_source(index, text.words, device_crate);
            let _ = write!(
                source,
                "{device_crate}::PtxModule {{ target: {:?}, ptx: {device_crate}::PtxText::{text} }}, ",
                module.target
            );
        }
        source.push_str("] },\n");
    }
    source.push_str("    ] }\n};\n");
    source
}

/// The text of a module in the compressed file of this index.
fn text_source(index: usize, words: Option<&Replacement>, device_crate: &str) -> String {
    let Some(words) = words else {
        return format!("Zlib(ZLIB[{index}])");
    };
    let word = |Word { new, old }: &Word| {
        format!("{device_crate}::PtxWord {{ old: {old:?}, new: {new:?} }}")
    };
    let words: Vec<_> = words.words().iter().map(word).collect();
    format!(
        "Replaced {{ zlib: ZLIB[{index}], words: &[{}] }}",
        words.join(", ")
    )
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
