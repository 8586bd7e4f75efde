//! Asks cargo where the build scripts of packages wrote their PTX.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The variable in which `cutlet-ptx-builder` names the folder.
const FOLDER: &str = "CUTLET_PTX_FOLDER";

/// The cargo that runs this program, else the one on the `PATH`.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // cargo describes the package that it runs in these variables. They do not concern another cargo.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// A package whose build script compiled kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageWithPtx {
    /// What cargo calls it: `path+file:///home/me/my-kernels#0.1.0`.
    pub id: String,
    /// The folder of its PTX.
    pub folder: PathBuf,
}

/// The packages that cargo names in the messages of a build with `--message-format json`. It does so for those as well
/// that it did not have to build.
pub fn packages_with_ptx(messages: &str) -> Vec<PackageWithPtx> {
    messages.lines().filter_map(package_with_ptx).collect()
}

fn package_with_ptx(message: &str) -> Option<PackageWithPtx> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "build-script-executed" {
        return None;
    }
    let mut variables = message["env"].as_array()?.iter();
    let folder = variables.find(|variable| variable[0] == FOLDER)?;
    Some(PackageWithPtx {
        id: message["package_id"].as_str()?.to_owned(),
        folder: folder[1].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_from_cargos_messages() {
        let script = |id: &str, variables: &str| {
            format!(
                "{{\"reason\":\"build-script-executed\",\"package_id\":\"{id}\",\"env\":[{variables}],\
                 \"out_dir\":\"/out\"}}\n"
            )
        };
        let messages = script("a#0.1.0", "")
            + "not json\n"
            + "{\"reason\":\"compiler-artifact\",\"package_id\":\"b#0.1.0\"}\n"
            + &script(
                "b#0.1.0",
                "[\"OTHER\",\"1\"],[\"CUTLET_PTX_FOLDER\",\"/out/ptx\"]",
            );
        let expected = PackageWithPtx {
            id: "b#0.1.0".to_owned(),
            folder: "/out/ptx".into(),
        };
        assert_eq!(packages_with_ptx(&messages), [expected]);
    }
}
