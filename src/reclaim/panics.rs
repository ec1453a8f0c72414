//! Panics that are not resumed at once: in destructors, and in calls each of which is to be made whatever the others do.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Drops the payload of a panic that goes no further. That drop may panic as well: what it throws is forgotten, or there would
/// be no end to it.
pub(crate) fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(another);
    }
}

/// Makes all of several calls, even if one panics: the first panic is resumed afterwards.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    /// Makes a call.
    pub(crate) fn call(&mut self, f: impl FnOnce()) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
            self.note(payload);
        }
    }

    /// Keeps the first panic.
    #[cold]
    fn note(&mut self, payload: Box<dyn Any + Send>) {
        match self.0 {
            None => self.0 = Some(payload),
            Some(_) => discard(payload),
        }
    }

    /// Resumes the first panic, if there was any, unless this thread is already panicking.
    pub(crate) fn go_on(self) {
        match self.0 {
            None => {}
            Some(payload) if std::thread::panicking() => discard(payload),
            Some(payload) => resume_unwind(payload),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    #[test]
    fn what_a_panic_threw_is_dropped_once_and_its_own_panic_ends_there() {
        struct Thrown(&'static AtomicUsize);

        impl Drop for Thrown {
            fn drop(&mut self) {
                // Relaxed: one thread.
                self.0.fetch_add(1, Ordering::Relaxed);
                panic!("in the drop of what a panic threw");
            }
        }

        static DROPS: AtomicUsize = AtomicUsize::new(0);
        discard(Box::new(Thrown(&DROPS)));
        assert_eq!(DROPS.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn all_calls_are_made_and_the_first_panic_goes_on() {
        let mut calls = 0;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut panic = FirstPanic::default();
            for number in 0..4 {
                panic.call(|| {
                    calls += 1;
                    assert!(number % 2 == 0, "{number}");
                });
            }
            panic.go_on();
        }));
        let payload = panicked.expect_err("two have panicked");
        assert_eq!((calls, payload.downcast_ref::<String>().map(String::as_str)), (4, Some("1")));
    }
}
