//! Ctrl-C: the current measurement is the last, and earlier measurements are reported. A second Ctrl-C ends the program at
//! once. `SIGTERM` and `SIGHUP`, which `kill`, `timeout` and a closed terminal send, have the same effect.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, STOPPED, name_of};
use crate::scratch;

/// Whether Ctrl-C was pressed. Nothing is ordered by it.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C from now on.
///
/// # Errors
///
/// If it cannot be handled.
pub fn watch() -> Result<(), Error> {
    static HANDLED: OnceLock<Result<(), String>> = OnceLock::new();
    let handled = HANDLED.get_or_init(|| {
        ctrlc::set_handler(stop).map_err(|error| error.to_string())?;
        take_for_ctrl_c();
        Ok(())
    });
    handled.clone().map_err(|error| Error::Input(format!("Ctrl-C cannot be handled: {error}")))
}

/// Treats other signals that ask the program to end as Ctrl-C, unless they are ignored, as by `nohup`.
#[cfg(unix)]
fn take_for_ctrl_c() {
    extern "C" fn interrupt(_: libc::c_int) {
        // SAFETY: a signal's handler may raise another one.
        unsafe { libc::raise(libc::SIGINT) };
    }
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does only what a handler may do.
        unsafe {
            let before = libc::signal(signal, interrupt as *const () as libc::sighandler_t);
            if before == libc::SIG_IGN {
                libc::signal(signal, before);
            }
        }
    }
}

/// There are no such signals here.
#[cfg(not(unix))]
fn take_for_ctrl_c() {}

/// Checks whether to go on.
///
/// # Errors
///
/// If Ctrl-C was pressed, or came as a signal.
pub fn check() -> Result<(), Error> {
    if ASKED.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
}

fn stop() {
    if !ASKED.swap(true, Ordering::Relaxed) {
        tell("stops after this measurement; Ctrl-C once more stops it at once");
        return;
    }
    let left = scratch::remove();
    let left = left.map_or(String::new(), |folder| format!("; {} is left", name_of(&folder)));
    tell(&format!("stopped{left}"));
    std::process::exit(i32::from(STOPPED));
}

fn tell(what: &str) {
    let _ = writeln!(std::io::stderr(), "\nkoel-bench: {what}");
}
