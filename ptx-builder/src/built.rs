//! The PTX files that a build wrote.

use std::path::{Path, PathBuf};

use crate::copies::{self, Copy};
use crate::error::BuildError;
use crate::metadata::capability;

/// One PTX file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltModule {
    /// The family of its kernels: `gemm`, `gather::by_rows`.
    pub family: String,
    /// Its target: `sm_90a`.
    pub target: String,
    /// The file.
    pub path: PathBuf,
}

/// The PTX files of a build, sorted by family and compute capability.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    modules: Vec<BuiltModule>,
    copies: Vec<Copy>,
}

impl Built {
    /// The PTX files.
    pub fn modules(&self) -> &[BuiltModule] {
        &self.modules
    }

    /// The files that a published package carries in its folder `ptx/`. A build makes of them what is missing: PTX in
    /// which words are replaced (`also` of `#[kernel]`).
    pub fn shipped(&self) -> impl Iterator<Item = PathBuf> {
        let compiled = |module: &&BuiltModule| self.copy(module).is_none();
        let files = self.modules.iter().filter(compiled);
        let list = self.copies.first().and(self.modules.first());
        let list = list.map(|module| module.path.with_file_name(copies::LIST));
        files.map(|module| module.path.clone()).chain(list)
    }

    /// How the module is made of another one, if it is.
    pub(crate) fn copy(&self, module: &BuiltModule) -> Option<&Copy> {
        let mut copies = self.copies.iter();
        copies.find(|copy| module.path.ends_with(&copy.file))
    }

    /// Finds the PTX files in the folder `ptx/` of a package's `OUT_DIR`.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn read(folder: &Path) -> Result<Built, BuildError> {
        let mut modules = Vec::new();
        for entry in folder
            .read_dir()
            .map_err(BuildError::io("reading", folder))?
        {
            let path = entry.map_err(BuildError::io("reading", folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some((family, target)) = family_and_target(&name) {
                modules.push(BuiltModule {
                    family,
                    target,
                    path,
                });
            }
        }
        Ok(Built {
            copies: copies::read(folder)?,
            ..Built::from_iter(modules)
        })
    }
}

impl FromIterator<BuiltModule> for Built {
    fn from_iter<I: IntoIterator<Item = BuiltModule>>(modules: I) -> Built {
        let mut modules: Vec<BuiltModule> = modules.into_iter().collect();
        modules.sort_by_key(|module| {
            (
                module.family.clone(),
                capability(&module.target),
                module.target.clone(),
            )
        });
        Built {
            modules,
            copies: Vec::new(),
        }
    }
}

/// Name of the file that holds a family for a target: `gather-by_rows.sm_90a.ptx`.
pub(crate) fn file_name(family: &str, target: &str) -> String {
    format!("{}.{target}.ptx", family.replace("::", "-"))
}

/// The family and the target in a name that [`file_name`] made.
fn family_and_target(file_name: &str) -> Option<(String, String)> {
    let (family, target) = file_name.strip_suffix(".ptx")?.split_once('.')?;
    target
        .starts_with("sm_")
        .then(|| (family.replace('-', "::"), target.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_family_and_target() {
        let name = file_name("gather::by_rows", "sm_90a");
        assert_eq!(name, "gather-by_rows.sm_90a.ptx");
        assert_eq!(
            family_and_target(&name),
            Some(("gather::by_rows".to_owned(), "sm_90a".to_owned()))
        );
        assert_eq!(family_and_target("README.md"), None);
    }
}
