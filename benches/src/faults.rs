//! Panics that are caught and reported: those of a rival are no reason to lose the measurements of others.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::{Arc, Once};

use parking_lot::Mutex;

thread_local! {
    /// The watch to which a panic of this thread is reported.
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// A call of [`caught`], which reports panics that nobody else prints.
#[derive(Clone, Default)]
struct Watch {
    /// Where the first panic was.
    place: Arc<Mutex<Option<String>>>,
}

impl Watch {
    /// The watch that this thread is under; `None` if the thread is ending.
    fn of_thread() -> Option<Watch> {
        WATCH.try_with(|watch| watch.borrow().clone()).ok().flatten()
    }

    /// Runs `run` under this watch, and afterwards restores the one that this thread was under before.
    fn over<T>(self, run: impl FnOnce() -> T) -> std::thread::Result<T> {
        let before = WATCH.replace(Some(self));
        // Callers give up the value whose code panicked, and so see nothing of it that is half done.
        let ended = panic::catch_unwind(AssertUnwindSafe(run));
        WATCH.set(before);
        ended
    }
}

/// Returns what `run` returns. If it panics, or passes on the panic of one of its threads, returns the message of that panic;
/// and its place, if that thread runs a [`watched`] function.
///
/// # Errors
///
/// The panic's message.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| match Watch::of_thread() {
            None => others(info),
            Some(watch) => {
                let mut place = watch.place.lock();
                place.get_or_insert_with(|| info.location().map_or(String::new(), place_in_words));
            }
        }));
    });
    let watch = Watch::default();
    watch.clone().over(run).map_err(|payload| {
        let place = watch.place.lock().take().unwrap_or_default();
        format!("it panicked: {} {place}", message_of(&*payload)).trim_end().to_owned()
    })
}

/// Wraps `run` for another thread, so that its panic is reported by the call of [`caught`] that this thread is in, if any.
pub fn watched<A, R>(run: impl Fn(A) -> R) -> impl Fn(A) -> R {
    let watch = Watch::of_thread();
    move |argument| match watch.clone() {
        None => run(argument),
        Some(watch) => watch.over(|| run(argument)).unwrap_or_else(|panic| panic::resume_unwind(panic)),
    }
}

/// The message in one line, even if it is of an assertion with several.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// File and line; for a file of a dependency, its path within the folder of all crates.
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

    #[test]
    fn calls_at_a_time_are_told_their_own_panics() {
        let told = |line: u32| {
            let told = caught(|| match line {
                0 => panic!("the even one"),
                _ => panic!("the odd one"),
            });
            let told = told.unwrap_err();
            told.rsplit_once(':').unwrap().1.to_owned()
        };
        let (even, odd) = (told(0), told(1));
        assert_ne!(even, odd, "lines");
        crate::race::race(
            2,
            |_| (),
            |n| {
                for _ in 0..1000 {
                    assert_eq!(told(n as u32), if n == 0 { even.as_str() } else { odd.as_str() });
                }
            },
        );
    }

    #[test]
    fn a_call_within_another_leaves_the_outer_one_its_own() {
        let outer = caught(|| {
            let inner = caught(|| panic!("within"));
            panic!("without, after {}", inner.unwrap_err());
        });
        let outer = outer.unwrap_err();
        assert!(outer.starts_with("it panicked: without, after it panicked: within ("), "{outer}");
        assert_eq!(outer.matches("faults.rs:").count(), 2, "{outer}");
    }
}
