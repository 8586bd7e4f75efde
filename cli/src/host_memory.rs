//! Host memory for the data of a problem: reserved, or refused with an error.

/// The host has too little memory.
#[derive(Debug, thiserror::Error)]
#[error("{bytes} bytes were asked for on the host, where {found}; take a smaller problem")]
pub struct TooLittle {
    bytes: u128,
    found: String,
}

/// Refuses a problem of this many bytes if the host has less memory available. Linux hands out memory that it does not
/// have, and ends a program that uses it.
pub fn expect(bytes: u128) -> Result<(), TooLittle> {
    match available() {
        Some(available) => expect_of(available, bytes),
        None => Ok(()),
    }
}

fn expect_of(available: u128, bytes: u128) -> Result<(), TooLittle> {
    if bytes <= available {
        return Ok(());
    }
    Err(TooLittle {
        bytes,
        found: format!("{available} are available"),
    })
}

/// Bytes that are available without swapping, as Linux reports them.
fn available() -> Option<u128> {
    available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in(meminfo: &str) -> Option<u128> {
    let mut lines = meminfo.lines();
    let available = lines.find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u128 = available.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// An empty vector with room for `len` elements.
pub fn room<T>(len: usize) -> Result<Vec<T>, TooLittle> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(len) {
        Ok(()) => Ok(vector),
        Err(_) => Err(TooLittle {
            bytes: len as u128 * size_of::<T>() as u128,
            found: "there is not that much memory".to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_is_the_limit() {
        let meminfo =
            "MemTotal:       24689764 kB\nMemFree:        18054436 kB\nMemAvailable:        2 kB\n";
        assert_eq!(available_in(meminfo), Some(2048));
        assert_eq!(available_in("MemTotal:       24689764 kB\n"), None);
        assert!(expect_of(2048, 2048).is_ok());
        let refused = expect_of(2048, 2049).unwrap_err().to_string();
        assert!(
            refused.contains("2049 bytes were asked for on the host, where 2048 are available"),
            "{refused}"
        );
    }
}
