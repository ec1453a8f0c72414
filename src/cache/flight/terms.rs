//! The terms on which a key is loaded: how long its caller waits for others, and which callers get its loader's error.

use core::any::Any;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// A loader's error that followers get: an `Arc` of any type, because each caller's loader may have its own type of error.
pub(super) type Failure = Arc<dyn Any + Send + Sync>;

/// The terms of one caller.
pub(crate) struct Terms<E> {
    /// How long the caller waits for others' loaders; `None` is no limit. Threads only: a task is dropped by its runtime.
    patience: Option<Duration>,
    /// Turns its loader's error into one for its followers.
    pub(super) tell: fn(&E) -> Option<Failure>,
    /// Turns another caller's error into one for this caller.
    pub(super) hear: fn(Failure) -> Option<E>,
}

impl<E> Terms<E> {
    /// The caller keeps its error to itself, and gets no other's.
    pub(crate) fn alone() -> Self {
        Terms { patience: None, tell: |_| None, hear: |_| None }
    }

    /// The same terms, with a limit on how long the caller waits. No clock is read for that: most callers find what they ask
    /// for.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Terms { patience: Some(timeout), ..self }
    }

    /// When the caller stops waiting, if it begins now; `None`, a time beyond all clocks, is no limit.
    pub(super) fn until(&self) -> Option<Instant> {
        let patience = self.patience?;
        Instant::now().checked_add(patience)
    }
}

impl<E: Any + Send + Sync> Terms<Arc<E>> {
    /// The caller shares errors of this type with callers that wait for it, or that it waits for, on the same terms.
    pub(crate) fn shared() -> Self {
        Terms { patience: None, tell: |error| Some(error.clone()), hear: |failure| failure.downcast().ok() }
    }
}
