//! Ctrl-C: what is being measured is the last, and what was measured before is reported. A second one ends the program at once.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, STOPPED};
use crate::scratch;

/// Asked once. Nothing is ordered by it.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C is handled.
///
/// # Errors
///
/// If it cannot be.
pub fn watch() -> Result<(), Error> {
    static HANDLED: OnceLock<Result<(), String>> = OnceLock::new();
    let handled = HANDLED.get_or_init(|| ctrlc::set_handler(stop).map_err(|error| error.to_string()));
    handled.clone().map_err(|error| Error::Input(format!("Ctrl-C cannot be handled: {error}")))
}

/// Whether to go on.
///
/// # Errors
///
/// If Ctrl-C was pressed.
pub fn check() -> Result<(), Error> {
    if ASKED.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

fn stop() {
    if !ASKED.swap(true, Ordering::Relaxed) {
        tell("stops after this measurement; Ctrl-C once more stops it at once");
        return;
    }
    let left = scratch::remove();
    let left = left.map_or(String::new(), |folder| format!("; {} is left", folder.display()));
    tell(&format!("stopped{left}"));
    std::process::exit(i32::from(STOPPED));
}

fn tell(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nkoel-bench: {what}");
}
