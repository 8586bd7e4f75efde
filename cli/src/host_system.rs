//! The host's processor and operating system, as Linux names them.

use std::fs;

/// The processor's name.
pub fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = value(&info, "model name", ':');
    name.unwrap_or_else(|| "processor of unknown name".to_string())
}

/// The operating system, and the version of its kernel: `Debian GNU/Linux 13 (trixie), Linux 6.12.41`.
pub fn operating_system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = value(&release, "PRETTY_NAME", '=');
    let name = name.unwrap_or_else(|| std::env::consts::OS.to_string());
    match fs::read_to_string("/proc/sys/kernel/osrelease") {
        Ok(kernel) => format!("{name}, Linux {}", kernel.trim()),
        Err(_) => name,
    }
}

/// The value of the first line with this key.
fn value(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == key).then(|| value.trim().trim_matches('"').to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_without_quotes() {
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        let name = value(release, "PRETTY_NAME", '=');
        assert_eq!(name.as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        let info = "processor\t: 0\nmodel name\t: A chip: fast\n";
        let name = value(info, "model name", ':');
        assert_eq!(name.as_deref(), Some("A chip: fast"));
        assert_eq!(value(info, "cores", ':'), None);
    }
}
