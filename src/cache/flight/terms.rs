//! On which terms a key is loaded: for how long its caller waits for others, and who gets its loader's error.

use core::any::Any;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// A loader's error that followers get: an `Arc` of any type, as each caller's loader may have errors of its own.
pub(super) type Failure = Arc<dyn Any + Send + Sync>;

/// What one caller asks for.
pub(crate) struct Terms<E> {
    /// How long he waits for others' loaders; `None` is no limit. Threads only: a task is dropped by its runtime.
    patience: Option<Duration>,
    /// His loader's error, for who follows.
    pub(super) tell: fn(&E) -> Option<Failure>,
    /// What he makes of another's.
    pub(super) hear: fn(Failure) -> Option<E>,
}

impl<E> Terms<E> {
    /// His error is his own, and he gets no other's.
    pub(crate) fn alone() -> Self {
        Terms { patience: None, tell: |_| None, hear: |_| None }
    }

    /// And he waits for so long at most. No clock is read for that: most find what they ask for.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Terms { patience: Some(timeout), ..self }
    }

    /// When he stops waiting, if he begins now; `None`, a time beyond all clocks, is no limit.
    pub(super) fn until(&self) -> Option<Instant> {
        let patience = self.patience?;
        Instant::now().checked_add(patience)
    }
}

impl<E: Any + Send + Sync> Terms<Arc<E>> {
    /// He shares errors of this type with those who wait for him, or for whom he waits, on the same terms.
    pub(crate) fn shared() -> Self {
        Terms { patience: None, tell: |error| Some(error.clone()), hear: |failure| failure.downcast().ok() }
    }
}
