//! Filling a set: as a map is filled, but of equal values the present one stays.

use core::hash::{BuildHasher, Hash};

use super::{HashSet, PinnedSet};
use crate::engine::{CapacityError, Directory, Shape};
use crate::hash::Digest;
use crate::map::{Fill, HashMap, Ours, SharedMap, Target};
use crate::reclaim::Guard;

// SAFETY: the set has no other directory than its map.
unsafe impl<T: Hash + Eq, S: BuildHasher> Fill<T, ()> for HashSet<T, S> {
    type Payload = <HashMap<T, (), S> as Fill<T, ()>>::Payload;

    #[inline]
    fn directory(&self) -> &Directory<Self::Payload> {
        self.map.directory()
    }

    fn directory_mut(&mut self) -> &mut Directory<Self::Payload> {
        self.map.directory_mut()
    }

    #[inline]
    fn digest_of(&self, value: &T) -> Digest {
        self.map.digest_of(value)
    }

    fn remake(&mut self, shape: Shape, values: usize) {
        self.map.remake(shape, values);
    }

    #[inline]
    fn prepare(&self, digest: Digest) {
        self.map.prepare(digest);
    }

    #[inline]
    unsafe fn insert_alone(&self, ours: Ours, digest: Digest, value: T, (): ()) -> bool {
        // SAFETY: the caller's.
        unsafe { self.map.put_alone::<true>(ours, digest, value, ()) }
    }

    #[cfg(feature = "rayon")]
    #[inline]
    fn insert_locked(&self, digest: Digest, value: T, (): ()) -> bool {
        self.map.pin().put_locked::<true>(digest, value, ())
    }
}

impl<T: Hash + Eq, S: BuildHasher, G: Guard> Target<T, ()> for &PinnedSet<'_, T, S, G> {
    #[inline]
    fn prepare(&self, digest: Digest) {
        Target::prepare(&&self.0, digest);
    }

    #[inline]
    fn insert(&mut self, digest: Digest, value: T, (): ()) -> bool {
        self.0.put_locked::<true>(digest, value, ())
    }
}

impl<T: Hash + Eq, S: BuildHasher, G: Guard> SharedMap<T, ()> for &PinnedSet<'_, T, S, G> {
    fn digest(self, value: &T) -> Digest {
        self.0.digest(value)
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    fn try_reserve(self, additional: usize) -> Result<(), CapacityError> {
        self.0.try_reserve(additional)
    }
}
