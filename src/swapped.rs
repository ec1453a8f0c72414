//! [`Swapped`]: a value that is read without a lock, and replaced as a whole.

use core::fmt;
use core::ptr::NonNull;

use crate::engine::try_box;
use crate::reclaim::{Collector, Guard, LocalGuard, PROTECTED, Retire};
use crate::sync::{AtomicPtr, Ordering, Watch};

/// A value, or nothing, that any thread may replace while others read it. The old value is dropped when no reader is left that
/// may look at it [I6]: in [`Swapped::flush`], or by the last of the readers.
pub(crate) struct Swapped<T> {
    current: AtomicPtr<Held<T>>,
    collector: Collector,
}

/// A value in a box of its own.
struct Held<T> {
    value: T,
    watch: Watch,
}

impl<T> Held<T> {
    fn new(value: T) -> Self {
        Held { value, watch: Watch::default() }
    }
}

// SAFETY: values are shared and sent as a whole; any thread may drop one.
unsafe impl<T: Send + Sync> Send for Swapped<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Swapped<T> {}

/// A value that is not dropped as long as this lives.
pub(crate) struct Current<'a, T> {
    held: NonNull<Held<T>>,
    _guard: LocalGuard<'a>,
}

impl<T> core::ops::Deref for Current<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: loaded under the guard, which keeps it alive [I6].
        let held = unsafe { self.held.as_ref() };
        held.watch.read();
        &held.value
    }
}

impl<T> Swapped<T> {
    pub(crate) fn new(value: Option<T>) -> Self {
        let value = value.map(|value| Box::into_raw(Box::new(Held::new(value))));
        let current = AtomicPtr::new(value.unwrap_or(core::ptr::null_mut()));
        Swapped { current, collector: Collector::new(true, None) }
    }

    /// The current value. Writes no shared memory.
    #[inline]
    pub(crate) fn pin(&self) -> Option<Current<'_, T>> {
        let guard = self.collector.enter();
        // Acquire, or as strong as the reclaimer requires: pairs with the exchange in `put`.
        let held = NonNull::new(self.current.load(PROTECTED))?;
        Some(Current { held, _guard: guard })
    }

    /// Whether there is no value.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Acquire, as in `pin`: a thread that sees that a value was taken away sees what was done before.
        self.current.load(PROTECTED).is_null()
    }

    /// Puts a value in the place of the current one; hands it back if there is no memory for it.
    pub(crate) fn replace(&self, value: T) -> Result<(), T> {
        let new = try_box(Held::new(value)).map_err(|held| held.value)?;
        self.put(Box::into_raw(new));
        Ok(())
    }

    /// Takes the current value away.
    pub(crate) fn clear(&self) {
        self.put(core::ptr::null_mut());
    }

    fn put(&self, new: *mut Held<T>) {
        let guard = self.collector.enter();
        // Release: pairs with the load in `pin`. Acquire: pairs with the Release of an earlier exchange, for dropping the old
        // value.
        let old = self.current.swap(new, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: from `Box::into_raw`, unlinked just now, and retired once: by the thread that got it from the exchange.
            unsafe { guard.retire(old) };
        }
    }

    /// Drops replaced values as soon as nobody looks at them. To be called after each replacement, because values may be large,
    /// by a caller that holds no [`Current`]: a value that it may see is dropped later.
    pub(crate) fn flush(&self) {
        self.collector.flush();
    }
}

impl<T> Drop for Swapped<T> {
    fn drop(&mut self) {
        // Relaxed: `&mut self`.
        let current = self.current.load(Ordering::Relaxed);
        if !current.is_null() {
            // SAFETY: from `Box::into_raw`, current and so not retired, and nobody uses it any more.
            drop(unsafe { Box::from_raw(current) });
        }
    }
}

impl<T> Retire for Held<T> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from `Box::into_raw`.
        drop(unsafe { Box::from_raw(this) });
    }

    #[cfg(loom)]
    fn condemn(&self) {
        self.watch.free();
    }
}

impl<T> fmt::Debug for Swapped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Swapped")
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn a_value_is_dropped_once_when_nobody_looks_at_it() {
        let [one, two] = [Arc::new(1), Arc::new(2)];
        let swapped = Swapped::new(Some(Arc::clone(&one)));
        let pinned = swapped.pin().expect("one");
        assert!(swapped.replace(Arc::clone(&two)).is_ok());
        assert_eq!((**pinned, Arc::strong_count(&one)), (1, 2), "it is being looked at");
        assert_eq!(swapped.pin().map(|now| **now), Some(2));
        swapped.flush();
        assert_eq!(Arc::strong_count(&one), 2, "it still is");
        drop(pinned);
        assert_eq!(Arc::strong_count(&one), 1, "whoever looked last drops it");
        swapped.clear();
        swapped.flush();
        assert!(swapped.pin().is_none());
        assert_eq!(Arc::strong_count(&two), 1);
        assert!(swapped.replace(Arc::clone(&one)).is_ok());
        drop(swapped);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    /// Each look is at a live value, and in the end each value was dropped once.
    #[test]
    fn values_are_replaced_by_many_while_others_look() {
        struct Counted<'a>(u64, &'a AtomicU64);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0 = u64::MAX;
                // Relaxed: a count.
                self.1.fetch_add(1, Ordering::Relaxed);
            }
        }
        let dropped = AtomicU64::new(0);
        let swapped = Swapped::new(Some(Counted(0, &dropped)));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (swapped, dropped) = (&swapped, &dropped);
                scope.spawn(move || {
                    for n in 0..2000 {
                        assert!(swapped.replace(Counted(n * 2 + thread, dropped)).is_ok());
                        swapped.flush();
                    }
                });
                scope.spawn(move || {
                    for _ in 0..20_000 {
                        assert!(swapped.pin().is_some_and(|value| value.0 < 4000));
                    }
                });
            }
        });
        drop(swapped);
        assert_eq!(dropped.into_inner(), 4001);
    }
}
