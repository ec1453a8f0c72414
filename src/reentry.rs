//! Detects a writer that runs under its own lock.
//!
//! `compute` and related methods call the user's closure with a segment locked, and `Eq` and `Hash` are called so as well. If
//! that code wrote to the same map, the thread would wait for itself, or two threads for each other. Each thread keeps a short
//! list of the maps it is writing to; entering one twice panics, before anything is locked [E1]. While the user's code runs
//! under a map's lock, or compares keys of a cache's flights, others' code, such as destructors and listeners, must not run: a
//! function that would run it asks [`holds_a_lock`].

use core::cell::Cell;
use core::marker::PhantomData;

#[cfg(not(loom))]
use crate::sync::{per_thread, with_mine};

/// Maps that one thread may be writing to at a time, each from a closure of the one before.
const MAX_DEPTH: usize = 16;

#[cfg_attr(loom, allow(dead_code, reason = "see `Entered::new`"))]
struct Held {
    depth: Cell<usize>,
    /// How many comparisons of keys run under a lock other than a map's.
    comparing: Cell<usize>,
    maps: [Cell<usize>; MAX_DEPTH],
}

#[cfg(not(loom))]
per_thread! {
    static HELD: Held =
        Held { depth: Cell::new(0), comparing: Cell::new(0), maps: [const { Cell::new(0) }; MAX_DEPTH] };
}

/// While this lives, the thread is writing to a map [E2]. Not `Send`: it is about this thread.
#[derive(Debug)]
pub(crate) struct Entered(PhantomData<*mut ()>);

impl Entered {
    /// Notes that this thread writes to the map at `map`.
    ///
    /// # Panics
    ///
    /// If the thread already does.
    #[inline]
    pub(crate) fn new<T>(map: *const T) -> Self {
        // loom runs its threads on one thread of the system.
        #[cfg(not(loom))]
        with_mine(&HELD, |held| held.enter(map.addr()));
        #[cfg(loom)]
        let _ = map;
        Entered(PhantomData)
    }
}

/// Whether this thread is writing to the map at `map`, in an outer frame. Models do not ask.
pub(crate) fn is_writing<T>(map: *const T) -> bool {
    #[cfg(not(loom))]
    return with_mine(&HELD, |held| {
        held.maps[..held.depth.get()].iter().any(|other| other.get() == map.addr())
    });
    #[cfg(loom)]
    {
        let _ = map;
        false
    }
}

/// Whether [`Entered::new`] would panic for the map at `map`.
pub(crate) fn may_not_write<T>(map: *const T) -> bool {
    #[cfg(not(loom))]
    return is_writing(map) || with_mine(&HELD, |held| held.depth.get() == MAX_DEPTH);
    #[cfg(loom)]
    {
        let _ = map;
        false
    }
}

/// Whether this thread is writing to any map, in an outer frame, or [compares keys](Comparing).
pub(crate) fn holds_a_lock() -> bool {
    #[cfg(not(loom))]
    return with_mine(&HELD, |held| held.depth.get() > 0 || held.comparing.get() > 0);
    #[cfg(loom)]
    false
}

/// While this lives, the thread compares keys, by the user's `Eq`, under a lock that is not a map's [E3]. Not `Send`, as above.
pub(crate) struct Comparing(PhantomData<*mut ()>);

impl Comparing {
    /// Notes that the thread compares keys from now on.
    pub(crate) fn new() -> Self {
        #[cfg(not(loom))]
        with_mine(&HELD, |held| held.comparing.set(held.comparing.get() + 1));
        Comparing(PhantomData)
    }
}

impl Drop for Comparing {
    fn drop(&mut self) {
        #[cfg(not(loom))]
        with_mine(&HELD, |held| held.comparing.set(held.comparing.get() - 1));
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        #[cfg(not(loom))]
        with_mine(&HELD, |held| held.depth.set(held.depth.get() - 1));
    }
}

#[cfg_attr(loom, allow(dead_code, reason = "see `Entered::new`"))]
impl Held {
    #[inline]
    fn enter(&self, map: usize) {
        let depth = self.depth.get();
        if depth > 0 {
            self.check(depth, map);
        }
        self.maps[depth].set(map);
        self.depth.set(depth + 1);
    }

    #[cold]
    fn check(&self, depth: usize, map: usize) {
        assert!(
            self.maps[..depth].iter().all(|other| other.get() != map),
            "a closure, Eq, Hash, Clone or ToKey that runs under the writer lock of a koel map or cache wrote to, loaded into, \
             walked over or took stock of the same map or cache"
        );
        assert!(
            depth < MAX_DEPTH,
            "closures under the writer locks of {MAX_DEPTH} koel maps or caches, one in the other"
        );
    }
}
