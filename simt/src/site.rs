//! Lines of a kernel, in 32 bits.

use std::fmt::{self, Display};
use std::panic::Location;

/// The distance of a line's location from [`base`], in bytes. 0 is an unknown line.
///
/// Locations are static data of the program. Those of a library that is loaded at run time may be too far away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site(i32);

/// A location in this crate, from which the distances count.
fn base() -> usize {
    static BASE: &Location<'static> = Location::caller();
    std::ptr::from_ref(BASE).addr()
}

impl Site {
    /// The line at a location.
    #[inline]
    pub(crate) fn of(location: &'static Location<'static>) -> Self {
        let address = std::ptr::from_ref(location).expose_provenance();
        let distance = address.wrapping_sub(base()) as isize;
        Self(i32::try_from(distance).unwrap_or(0))
    }

    /// The line as a number.
    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// The line with a number that [`number`](Self::number) returned.
    pub(crate) fn numbered(number: i32) -> Self {
        Self(number)
    }

    /// The location; `None` if it is unknown.
    pub(crate) fn location(self) -> Option<&'static Location<'static>> {
        if self.0 == 0 {
            return None;
        }
        let address = base().wrapping_add_signed(self.0 as isize);
        // SAFETY: `of` computed the distance of a static location, which exposed its provenance.
        Some(unsafe { &*std::ptr::with_exposed_provenance(address) })
    }
}

impl Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location() {
            Some(location) => write!(f, "{location}"),
            None => f.write_str("an unknown line"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_names_its_line() {
        let (site, line) = (Site::of(Location::caller()), line!());
        let text = site.to_string();
        assert!(text.contains(&format!("site.rs:{line}:")), "{text}");
        assert_eq!(Site::default().to_string(), "an unknown line");
    }
}
