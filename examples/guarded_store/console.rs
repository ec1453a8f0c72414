//! Tables on standard output, progress on standard error, and whether to stop.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::atomic::AtomicBool;

use indicatif::{ProgressBar, ProgressStyle};

/// Ctrl-C was pressed.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// To standard output, which may be full.
pub(crate) fn print(text: &impl Display) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{text}") {
        // Nobody may be listening any more, as in `guarded_store | head`.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

/// A bar of so many steps on standard error; none, if nobody sees it.
pub(crate) fn bar(what: &'static str, steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:20} {bar:30} {human_pos}/{human_len} {elapsed}");
    let bar = ProgressBar::new(steps).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
