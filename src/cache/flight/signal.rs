//! What a blocked thread sleeps on: a waker that ends its sleep.
//!
//! Not the thread's own parking: that has only one token, which the caller may be using.

use std::sync::Arc;
use std::task::Wake;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};

/// A signal that one thread waits for, and any thread may give.
#[derive(Debug, Default)]
pub(super) struct Signal {
    given: Mutex<bool>,
    change: Condvar,
}

impl Signal {
    /// Waits for the signal and takes it; returns `false` if it has not come by the time `until`.
    pub(super) fn wait(&self, until: Option<Instant>) -> bool {
        let mut given = self.given.lock();
        while !*given {
            given = match until {
                Some(until) if until <= Instant::now() => return false,
                Some(until) => self.change.wait_until(given, until),
                None => self.change.wait(given),
            };
        }
        *given = false;
        true
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.given.lock() = true;
        self.change.notify_one();
    }
}
