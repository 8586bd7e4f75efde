//! A byte buffer into which `const` code writes a message.

/// The most bytes that a message has. A longer one is cut off and ends in `…`.
const LIMIT: usize = 320;
const ELLIPSIS: &[u8] = "…".as_bytes();

/// A message of bounded length, written without a heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text {
    bytes: [u8; LIMIT],
    len: usize,
    full: bool,
}

impl Text {
    pub(crate) const fn new() -> Text {
        Text {
            bytes: [0; LIMIT],
            len: 0,
            full: false,
        }
    }

    pub(crate) const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "a message that is not text",
        }
    }

    const fn push(&mut self, bytes: &[u8]) {
        if self.full {
            return;
        }
        if self.len + bytes.len() + ELLIPSIS.len() > LIMIT {
            self.full = true;
            self.copy(ELLIPSIS);
        } else {
            self.copy(bytes);
        }
    }

    const fn copy(&mut self, bytes: &[u8]) {
        let mut i = 0;
        while i < bytes.len() {
            self.bytes[self.len] = bytes[i];
            self.len += 1;
            i += 1;
        }
    }

    pub(crate) const fn str(&mut self, text: &str) -> &mut Text {
        self.push(text.as_bytes());
        self
    }

    /// A decimal number.
    pub(crate) const fn number(&mut self, value: i64) -> &mut Text {
        let mut digits = [0u8; 20];
        let mut start = digits.len();
        let mut rest = value.unsigned_abs();
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            start -= 1;
            digits[start] = b'-';
        }
        self.push(digits.split_at(start).1);
        self
    }
}
