//! Tables on standard output, progress on standard error, and the flag to stop.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::atomic::AtomicBool;

use indicatif::{ProgressBar, ProgressStyle};

/// Ctrl-C was pressed.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// Prints to standard output, which may fail.
pub(crate) fn print(text: &impl Display) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{text}") {
        // The reader may have closed the pipe, as in `guarded_store | head`.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

/// A progress bar of so many steps on standard error; a hidden one if that is not a terminal.
pub(crate) fn bar(what: &'static str, steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:20} {bar:30} {human_pos}/{human_len} {elapsed}");
    let bar = ProgressBar::new(steps).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
