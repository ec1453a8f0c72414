//! Panics that are caught and told: those of a rival are no reason to lose what was measured of others.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// How many calls of [`caught`] there are now: what panics then is told by them. Counts, and orders nothing.
static CATCHING: AtomicUsize = AtomicUsize::new(0);

/// Where the first panic was since the last call began.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// What `run` returns; or, if it panics or one of its threads does whose panic it passes on, what the panic said, and where.
///
/// # Errors
///
/// The panic in words.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| match CATCHING.load(Ordering::Relaxed) {
            0 => others(info),
            _ => {
                PLACE.lock().get_or_insert_with(|| info.location().map_or(String::new(), place_in_words));
            }
        }));
    });
    *PLACE.lock() = None;
    CATCHING.fetch_add(1, Ordering::Relaxed);
    // Whoever gives up what has panicked sees nothing of it that is half done.
    let ended = panic::catch_unwind(AssertUnwindSafe(run));
    CATCHING.fetch_sub(1, Ordering::Relaxed);
    ended.map_err(|payload| {
        let place = PLACE.lock().take().unwrap_or_default();
        format!("it panicked: {} {place}", message_of(&*payload)).trim_end().to_owned()
    })
}

/// In one line, whatever assertions have in theirs.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// File and line; of a crate's files, what stands behind the folder of all crates.
fn place_in_words(place: &Location<'_>) -> String {
    let file = place.file();
    let of_crate = file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    format!("({}:{})", of_crate.map_or(file, |(_, rest)| rest), place.line())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_said_is_told_in_one_line_with_its_place() {
        assert_eq!(caught(|| 7), Ok(7));
        let told = caught(|| assert_eq!(1, 2, "of two")).unwrap_err();
        assert!(told.starts_with("it panicked: assertion `left == right` failed: of two left: 1 right: 2 ("));
        assert!(told.contains("faults.rs:"), "{told}");
        let of_thread = caught(|| crate::race::race(2, |_| (), |n| assert!(n == 0, "thread {n}")));
        assert!(of_thread.unwrap_err().starts_with("it panicked: thread 1 ("));
    }
}
