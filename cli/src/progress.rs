//! Progress of long work, drawn on standard error: a bar where the amount of work is known, else a spinner.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use clap::Args;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Time between two drawings while nothing advances.
const TICK: Duration = Duration::from_millis(200);
/// Work of more parts is shown in percent.
const MOST_COUNTED: usize = 99_999;
/// Elements that are made between two advances.
const CHUNK: usize = 1 << 18;

use crate::output::Output;

/// Options of a command that works for long.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ProgressArgs {
    /// Show no progress.
    ///
    /// There is none either with --json, where NO_COLOR is set, and where standard error is no terminal.
    #[arg(long, short, display_order = 901)]
    quiet: bool,
}

impl ProgressArgs {
    /// The progress of a command that prints in this way.
    pub fn beside(&self, output: &Output) -> Progress {
        let is_unset = |value: Option<OsString>| value.is_none_or(|value| value.is_empty());
        match self.quiet || output.json || !is_unset(env::var_os("NO_COLOR")) {
            true => Progress::hidden(),
            // Nothing is drawn where this is no terminal, or a dumb one.
            false => Progress::on(ProgressDrawTarget::stderr()),
        }
    }
}

/// The progress of a command. Clones show the same one. It disappears with the last of them.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress that nobody sees.
    pub fn hidden() -> Progress {
        Progress {
            bar: ProgressBar::hidden(),
        }
    }

    fn on(target: ProgressDrawTarget) -> Progress {
        let bar = ProgressBar::with_draw_target(None, target);
        Progress { bar }
    }

    /// Work of a number of parts begins.
    pub fn begin(&self, what: &str, parts: usize) {
        let count = match parts {
            ..=MOST_COUNTED => "{pos}/{len}",
            _ => "{percent}%",
        };
        self.now(what);
        self.bar.set_length(parts as u64);
        self.restart(&format!(
            "{{bar:24}} {count}, {{elapsed}}{{left}}  {{wide_msg}}"
        ));
    }

    /// Work begins whose parts are not counted.
    pub fn wait(&self, what: &str) {
        self.now(what);
        self.restart("{spinner} {elapsed}  {wide_msg}");
    }

    fn restart(&self, template: &str) {
        if self.bar.is_hidden() {
            return;
        }
        let style = ProgressStyle::with_template(template);
        // The templates are constants, and right.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.reset();
        self.bar.set_style(style.with_key("left", time_left));
        self.bar.enable_steady_tick(TICK);
    }

    /// The part that is done now.
    pub fn now(&self, part: &str) {
        self.bar.set_prefix(part.to_string());
        self.bar.set_message(part.to_string());
    }

    /// The step of the present part that is done now.
    pub fn step(&self, step: &str) {
        // The prefix is not drawn: it keeps the part.
        self.bar
            .set_message(format!("{}: {step}", self.bar.prefix()));
    }

    /// So many parts were done.
    pub fn advance(&self, parts: usize) {
        self.bar.inc(parts as u64);
    }

    /// Prints above the progress.
    pub fn above<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// All work is done: the progress disappears.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Appends elements to a vector. Each is a part of the work.
    pub fn extend<T>(&self, vector: &mut Vec<T>, mut elements: impl Iterator<Item = T>) {
        loop {
            let before = vector.len();
            vector.extend(elements.by_ref().take(CHUNK));
            match vector.len() - before {
                0 => break,
                added => self.advance(added),
            }
        }
    }
}

/// How long the other parts will take, if they take as long as those that were done.
fn time_left(state: &ProgressState, text: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        // A text in memory takes all that is written.
        let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps all that was ever written to it.
    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<String>>);

    impl TermLike for Kept {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is drawn of some work, at every step.
    fn drawn(work: impl FnOnce(&Progress)) -> String {
        let kept = Kept::default();
        let every_time = ProgressDrawTarget::term_like_with_hz(Box::new(kept.clone()), 255);
        let progress = Progress::on(every_time);
        work(&progress);
        progress.bar.force_draw();
        progress.end();
        let all = kept.0.lock().unwrap();
        all.clone()
    }

    #[test]
    fn few_parts_are_counted_and_many_are_percents() {
        let few = drawn(|progress| {
            progress.begin("rows", 4);
            progress.advance(1);
            progress.now("gather");
            progress.step("round 2 of 7");
        });
        assert!(few.contains(" 1/4, 0s, "), "{few}");
        assert!(few.contains(" left  gather: round 2 of 7"), "{few}");
        let many = drawn(|progress| {
            progress.begin("random numbers", 3 << 20);
            let mut numbers = Vec::new();
            progress.extend(&mut numbers, (0..3 << 19).map(|it| it as u8));
            assert_eq!(numbers.len(), 3 << 19);
        });
        assert!(many.contains(" 50%, "), "{many}");
    }

    #[test]
    fn work_of_unknown_length_has_no_bar() {
        let drawn = drawn(|progress| {
            progress.begin("rows", 4);
            progress.wait("cuBLASLt");
        });
        assert!(drawn.contains(" 0s  cuBLASLt"), "{drawn}");
    }
}
