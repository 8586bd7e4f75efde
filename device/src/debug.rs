//! Printing and asserting in a kernel, with block and thread: `debug::print!` and `debug::assert!`.
//!
//! Both are for debugging only: on a GPU they take registers and call the driver.

#[doc(inline)]
pub use crate::{__assert as assert, __print as print};
use crate::{BlockCoord, ClusterRank, LaneIdx, ThreadIdx, WarpIdx};

/// Prints one line from the running thread: its block, its thread, and the text.
///
/// `{}` stands for the next argument, and `{:x}` for the next integer in hexadecimal. `{{` and `}}` are braces. Up to
/// eight arguments can follow: integers, floats, and indices such as [`ThreadIdx`] ([`PrintArg`]). Lines of different
/// threads come in no particular order. On a GPU they appear when the host next waits for the device.
///
/// ```no_run
/// use cutlet_device::debug;
///
/// # let (row, sum) = (1u32, 2.5f32);
/// debug::print!("row {} has the sum {}", row, sum);
/// // block (0, 0, 0), thread 17: row 1 has the sum 2.5
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! __print {
    ($text:literal $(, $argument:expr)* $(,)?) => {{
        struct Line;
        impl $crate::debug::PrintText for Line {
            const TEXT: &'static str = $text;
        }
        $crate::debug::__print_line::<Line, _>(($($argument,)*))
    }};
}

/// Ends the kernel with an error if the condition does not hold.
///
/// A text with arguments may follow, as for [`print!`]. On the CPU the launch returns the error. On a GPU the thread
/// prints it and traps. The process can then only destroy the device's context.
///
/// ```no_run
/// use cutlet_device::debug;
///
/// # let (row, rows) = (1u32, 2u32);
/// debug::assert!(row < rows, "row {} of {}", row, rows);
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! __assert {
    ($condition:expr $(,)?) => {
        if !$condition {
            struct Line;
            impl $crate::debug::PrintText for Line {
                const TEXT: &'static str = concat!("assertion failed: ", stringify!($condition));
                const PLACE: &'static str = concat!(file!(), ":", line!());
                const VERBATIM: bool = true;
            }
            $crate::debug::__fail::<Line, _>(())
        }
    };
    ($condition:expr, $text:literal $(, $argument:expr)* $(,)?) => {
        if !$condition {
            struct Line;
            impl $crate::debug::PrintText for Line {
                const TEXT: &'static str = $text;
                const PLACE: &'static str = concat!(file!(), ":", line!());
            }
            $crate::debug::__fail::<Line, _>(($($argument,)*))
        }
    };
}

/// The text of a [`print!`], as a type, so that it is known at compile time.
#[doc(hidden)]
pub trait PrintText {
    const TEXT: &'static str;
    /// `file:line` of an assertion.
    const PLACE: &'static str = "";
    /// Whether braces stand for themselves.
    const VERBATIM: bool = false;
}

/// The type as which an argument's 64 bits are printed.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PrintKind {
    Signed,
    Unsigned,
    /// The bits of an `f64`.
    Float,
    /// The bits of an `f64` that came from an `f32`.
    Single,
}

/// A type that [`print!`] can print: integers, floats, and the indices of this crate.
pub trait PrintArg: Copy {
    #[doc(hidden)]
    const KIND: PrintKind;
    #[doc(hidden)]
    fn bits(self) -> u64;
}

macro_rules! print_arg {
    ($($kind:ident: $($type:ty)*, |$value:ident| $bits:expr;)*) => {$($(
        impl PrintArg for $type {
            const KIND: PrintKind = PrintKind::$kind;

            #[inline(always)]
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
        }
    )*)*};
}

print_arg! {
    Signed: i8 i16 i32 i64 isize, |value| value as i64 as u64;
    Unsigned: u8 u16 u32 u64 usize, |value| value as u64;
    Float: f64, |value| value.to_bits();
    Single: f32, |value| f64::from(value).to_bits();
    Unsigned: LaneIdx WarpIdx BlockCoord ClusterRank, |value| u64::from(value.get());
}

impl<G> PrintArg for ThreadIdx<G> {
    const KIND: PrintKind = PrintKind::Unsigned;

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.get())
    }
}

/// The most arguments of a line.
const MAX_ARGS: usize = 8;

/// The arguments of a line: a tuple of at most eight.
#[doc(hidden)]
pub trait PrintArgs {
    const KINDS: &'static [PrintKind];
    fn all_bits(self) -> [u64; MAX_ARGS];
}

macro_rules! print_args {
    ($($argument:ident)*) => {
        impl<$($argument: PrintArg),*> PrintArgs for ($($argument,)*) {
            const KINDS: &'static [PrintKind] = &[$($argument::KIND),*];

            #[inline(always)]
            #[allow(non_snake_case)]
            fn all_bits(self) -> [u64; MAX_ARGS] {
                let ($($argument,)*) = self;
                let given = [$($argument.bits()),*];
                let mut all = [0; MAX_ARGS];
                let (first, _) = all.split_at_mut(given.len());
                first.copy_from_slice(&given);
                all
            }
        }
    };
}
print_args!();
print_args!(A);
print_args!(A B);
print_args!(A B C);
print_args!(A B C D);
print_args!(A B C D E);
print_args!(A B C D E F);
print_args!(A B C D E F G);
print_args!(A B C D E F G H);

/// A piece of a text.
#[derive(Clone, Copy)]
enum Piece {
    /// A byte that stands for itself.
    Byte(u8),
    /// A placeholder for the next argument.
    Argument { hex: bool },
}

/// The piece of `text` that starts at `at`, and where the next one starts.
///
/// # Panics
/// If a brace does not belong to one of `{}`, `{:x}`, `{{`, `}}`.
const fn piece(text: &[u8], at: usize, verbatim: bool) -> (Piece, usize) {
    let next = if at + 1 < text.len() { text[at + 1] } else { 0 };
    match text[at] {
        _ if verbatim => (Piece::Byte(text[at]), at + 1),
        b'{' | b'}' if next == text[at] => (Piece::Byte(text[at]), at + 2),
        b'{' if next == b'}' => (Piece::Argument { hex: false }, at + 2),
        b'{' if at + 3 < text.len()
            && next == b':'
            && text[at + 2] == b'x'
            && text[at + 3] == b'}' =>
        {
            (Piece::Argument { hex: true }, at + 4)
        }
        b'{' | b'}' => {
            panic!("a text's placeholders are {{}} and {{:x}}: write braces as {{{{ and }}}}")
        }
        byte => (Piece::Byte(byte), at + 1),
    }
}

/// Checks that a text fits its arguments.
const fn check(text: &str, verbatim: bool, kinds: &[PrintKind]) {
    // The driver reads as many values as the text has placeholders.
    core::assert!(
        kinds.len() <= MAX_ARGS,
        "a line has at most eight arguments: print several lines"
    );
    let text = text.as_bytes();
    let (mut at, mut arguments) = (0, 0);
    while at < text.len() {
        let (piece, next) = piece(text, at, verbatim);
        if let Piece::Argument { hex } = piece {
            core::assert!(
                arguments < kinds.len(),
                "the text has more placeholders than arguments"
            );
            core::assert!(
                !hex || matches!(kinds[arguments], PrintKind::Signed | PrintKind::Unsigned),
                "only integers can be printed with {{:x}}"
            );
            arguments += 1;
        }
        at = next;
    }
    core::assert!(
        arguments == kinds.len(),
        "there are more arguments than placeholders in the text"
    );
}

/// Prints a line; see [`print!`].
#[doc(hidden)]
#[inline(always)]
pub fn __print_line<L: PrintText, A: PrintArgs>(arguments: A) {
    const { check(L::TEXT, L::VERBATIM, A::KINDS) };
    imp::print::<L, A>(arguments);
}

/// Ends the kernel; see [`assert!`].
#[doc(hidden)]
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn __fail<L: PrintText, A: PrintArgs>(arguments: A) -> ! {
    const { check(L::TEXT, L::VERBATIM, A::KINDS) };
    imp::fail::<L, A>(arguments)
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::nvptx;
    use core::marker::PhantomData;

    use super::{MAX_ARGS, Piece, PrintArgs, PrintKind, PrintText, piece};
    use crate::{block_idx, thread_idx};

    /// The most bytes of a format, with the zero at its end.
    const CAPACITY: usize = 1024;

    /// A line's format for `printf`.
    struct Format<L, A>(PhantomData<(L, A)>);

    struct Writer {
        bytes: [u8; CAPACITY],
        len: usize,
    }

    impl Writer {
        const fn push(&mut self, byte: u8) {
            // The last byte stays zero: it ends the C string.
            core::assert!(
                self.len + 1 < CAPACITY,
                "the text of a line is longer than 1023 bytes"
            );
            self.bytes[self.len] = byte;
            self.len += 1;
        }

        const fn text(&mut self, text: &str) {
            let mut at = 0;
            while at < text.len() {
                self.push(text.as_bytes()[at]);
                at += 1;
            }
        }

        const fn literal(&mut self, byte: u8) {
            self.push(byte);
            if byte == b'%' {
                self.push(byte);
            }
        }
    }

    impl<L: PrintText, A: PrintArgs> Format<L, A> {
        const PRINTF: [u8; CAPACITY] = {
            let mut format = Writer {
                bytes: [0; CAPACITY],
                len: 0,
            };
            format.text("block (%llu, %llu, %llu), thread %llu: ");
            let text = L::TEXT.as_bytes();
            let (mut at, mut argument) = (0, 0);
            while at < text.len() {
                let (piece, next) = piece(text, at, L::VERBATIM);
                match piece {
                    Piece::Byte(byte) => format.literal(byte),
                    Piece::Argument { hex: true } => format.text("%llx"),
                    Piece::Argument { hex: false } => format.text(match A::KINDS[argument] {
                        PrintKind::Signed => "%lld",
                        PrintKind::Unsigned => "%llu",
                        PrintKind::Float | PrintKind::Single => "%g",
                    }),
                }
                if let Piece::Argument { .. } = piece {
                    argument += 1;
                }
                at = next;
            }
            if !L::PLACE.is_empty() {
                format.text(" (at ");
                let mut at = 0;
                while at < L::PLACE.len() {
                    format.literal(L::PLACE.as_bytes()[at]);
                    at += 1;
                }
                format.text(")");
            }
            format.push(b'\n');
            format.bytes
        };
    }

    #[inline(always)]
    pub fn print<L: PrintText, A: PrintArgs>(arguments: A) {
        let block = block_idx();
        let who = [block.x, block.y, block.z].map(|index| u64::from(index.get()));
        let mut values = [0; 4 + MAX_ARGS];
        let (first, rest) = values.split_at_mut(4);
        first[..3].copy_from_slice(&who);
        first[3] = u64::from(thread_idx().get());
        rest.copy_from_slice(&arguments.all_bits());
        // SAFETY: the format ends with a zero, and takes 64 bits for each value. There are as many values as it takes.
        unsafe {
            nvptx::vprintf(
                (&raw const *const { &Format::<L, A>::PRINTF }).cast(),
                values.as_ptr().cast(),
            );
        }
    }

    #[inline(always)]
    pub fn fail<L: PrintText, A: PrintArgs>(arguments: A) -> ! {
        print::<L, A>(arguments);
        // SAFETY: ends the kernel.
        unsafe { nvptx::trap() }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use std::format;
    use std::string::String;

    use super::{Piece, PrintArgs, PrintKind, PrintText, piece};

    fn text<L: PrintText, A: PrintArgs>(arguments: A) -> String {
        let mut kinds = A::KINDS.iter();
        let mut values = arguments.all_bits().into_iter();
        let text = L::TEXT.as_bytes();
        let mut bytes = std::vec::Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (piece, next) = piece(text, at, L::VERBATIM);
            match piece {
                Piece::Byte(byte) => bytes.push(byte),
                Piece::Argument { hex } => {
                    let bits = values.next().unwrap_or_default();
                    let value = match kinds.next() {
                        _ if hex => format!("{bits:x}"),
                        Some(PrintKind::Signed) => format!("{}", bits as i64),
                        Some(PrintKind::Float) => format!("{}", f64::from_bits(bits)),
                        Some(PrintKind::Single) => format!("{}", f64::from_bits(bits) as f32),
                        Some(PrintKind::Unsigned) | None => format!("{bits}"),
                    };
                    bytes.extend(value.into_bytes());
                }
            }
            at = next;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn print<L: PrintText, A: PrintArgs>(arguments: A) {
        let [x, y, z] = cutlet_simt::block_idx();
        let thread = cutlet_simt::linear_thread_idx();
        std::println!(
            "block ({x}, {y}, {z}), thread {thread}: {}",
            text::<L, A>(arguments)
        );
    }

    #[track_caller]
    pub fn fail<L: PrintText, A: PrintArgs>(arguments: A) -> ! {
        panic!("{}", text::<L, A>(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_ARGS, PrintKind, check};

    #[test]
    #[should_panic(expected = "a line has at most eight arguments: print several lines")]
    fn a_line_has_as_many_arguments_as_the_driver_gets() {
        check(
            "{}{}{}{}{}{}{}{}{}",
            false,
            &[PrintKind::Unsigned; MAX_ARGS + 1],
        );
    }
}
