//! What a PTX text says about its kernels.

/// A kernel in a PTX text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its entry.
    pub name: String,
    /// Threads of a block, if the text bounds them.
    pub threads: Option<u32>,
    /// Bytes of shared memory that each launch gives a block, if the text says so: `cutlet-ptx-builder` writes them
    /// into a comment.
    pub launch_shared: Option<u32>,
}

/// The kernels of a PTX text.
///
/// ```
/// use cutlet_machine_code::ptx;
///
/// let kernels = ptx::kernels(".visible .entry scale(\n)\n.maxntid 256, 1, 1\n{\n\tret;\n}\n");
/// assert_eq!((&*kernels[0].name, kernels[0].threads), ("scale", Some(256)));
/// ```
pub fn kernels(ptx: &str) -> Vec<Kernel> {
    let entries = ptx.split(".entry ").skip(1);
    entries.map(kernel).collect()
}

fn kernel(entry: &str) -> Kernel {
    let head = entry.split('{').next().unwrap_or_default();
    let number_after = |word: &str| {
        let mut lines = head.lines();
        let rest = lines.find_map(|line| line.trim_start().strip_prefix(word))?;
        let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit());
        digits.into_iter().next()?.parse().ok()
    };
    Kernel {
        name: head.split('(').next().unwrap_or_default().trim().to_owned(),
        threads: number_after(".maxntid"),
        launch_shared: number_after("// cutlet-shared"),
    }
}

/// The target of a PTX text, as in `sm_80`.
pub fn target(ptx: &str) -> Option<&str> {
    let line = ptx.lines().find_map(|line| line.strip_prefix(".target "))?;
    line.split(',').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_threads_and_shared_memory_are_read() {
        let ptx = "// a comment\n.version 7.0\n.target sm_80, debug\n.address_size 64\n\
                   .visible .entry one(\n\t.param .u32 one_param_0\n)\n.maxntid 256, 1, 1\n// cutlet-shared 1024\n\
                   {\n\tret;\n}\n.visible .entry two()\n{\n// cutlet-shared 8\n}\n";
        let kernel = |name: &str, threads, launch_shared| Kernel {
            name: name.to_owned(),
            threads,
            launch_shared,
        };
        assert_eq!(
            kernels(ptx),
            [
                kernel("one", Some(256), Some(1024)),
                kernel("two", None, None)
            ]
        );
        assert_eq!(target(ptx), Some("sm_80"));
        assert_eq!(target("no PTX"), None);
    }
}
