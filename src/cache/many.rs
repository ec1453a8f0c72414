//! Many look-ups at once: [`Cache::get_many`], [`CacheView::get_many`] and what they share.

use core::hash::{BuildHasher, Hash};

use equivalent::Equivalent;

use super::policy::Policy;
use super::{Cache, CacheView};
use crate::engine::each_batch;
use crate::entries::Entry;
use crate::reclaim::Guard;

impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// Looks up the key that `key` makes of each of `keys`, batch by batch; `out[i]` becomes the answer to `keys[i]`. Counts,
    /// and tells the policy, like [`Cache::hit`].
    #[inline(always)]
    fn hit_many<'g, T, Q: ?Sized + Hash + Equivalent<K>, A>(
        &'g self,
        keys: &[T],
        key: impl Fn(&T) -> &Q,
        out: &mut [A],
        _guard: &'g impl Guard,
        answer: impl Fn(Option<&'g Entry<K, V>>) -> A,
    ) {
        let counts = self.counters.here();
        let digest = |from: &T| self.digest(key(from));
        each_batch(keys, out, digest, |keys, digests, out| {
            self.table.directory.find_batch_and_mark(
                digests,
                // SAFETY: found after the guard was entered.
                |i, entry| key(&keys[i]).equivalent(unsafe { Entry::<K, V>::deref(entry) }.pair().0),
                Policy::touch,
                |i, found| {
                    let found = self.if_in_time(digests[i], found);
                    counts.looked_up(found.is_some());
                    // SAFETY: found after the guard was entered.
                    out[i] = answer(found.map(|entry| unsafe { Entry::<K, V>::deref(entry) }));
                },
            );
        });
    }

    /// Clones the values of many keys: `out[i]` becomes what `get(&keys[i])` would return, and counts as such.
    ///
    /// Keys are hashed, fetched and compared as a pipeline, so that their waits for memory overlap: in caches larger than the
    /// processor's, this is several times as fast as the same number of [`Cache::get`]s. Each look-up is independent; together
    /// they are no snapshot.
    ///
    /// # Panics
    ///
    /// If the slices differ in length. If the removal listener panics, as for [`Cache::get`], or if [`Clone`] does: then
    /// answers to the keys before are in `out`.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 10).unwrap();
    /// cache.insert(2, 20).unwrap();
    /// let mut values = [None; 3];
    /// cache.get_many(&[2, 3, 1], &mut values);
    /// assert_eq!(values, [Some(20), None, Some(10)]);
    /// assert_eq!((cache.stats().hits, cache.stats().misses), (2, 1));
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many<Q: Hash + Equivalent<K>>(&self, keys: &[Q], out: &mut [Option<V>])
    where
        V: Clone,
    {
        assert_eq!(keys.len(), out.len(), "get_many: as many places for values as keys");
        let guard = self.enter();
        self.hit_many(keys, |key| key, out, &guard, |entry| entry.map(|entry| entry.pair().1.clone()));
    }

    /// Clones the values of many keys, which are given by reference and may be unsized: see [`Cache::get_many`].
    ///
    /// # Panics
    ///
    /// As [`Cache::get_many`].
    ///
    /// ```
    /// let cache: koel::Cache<String, u32> = koel::Cache::new(10);
    /// cache.insert("one".to_string(), 1).unwrap();
    /// let mut values = [None; 2];
    /// cache.get_many_ref(&["one", "two"], &mut values);
    /// assert_eq!(values, [Some(1), None]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many_ref<Q: ?Sized + Hash + Equivalent<K>>(&self, keys: &[&Q], out: &mut [Option<V>])
    where
        V: Clone,
    {
        assert_eq!(keys.len(), out.len(), "get_many_ref: as many places for values as keys");
        let guard = self.enter();
        self.hit_many(keys, |key| *key, out, &guard, |entry| entry.map(|entry| entry.pair().1.clone()));
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, G: Guard> CacheView<'_, K, V, S, G> {
    /// Gets the values of many keys: `out[i]` becomes what `get_ref(&keys[i])` would return, and counts as such; costs as much
    /// as [`Cache::get_many`].
    ///
    /// # Panics
    ///
    /// If the slices differ in length. If the removal listener panics, as for [`CacheView::get_ref`]: then answers to the keys
    /// before are in `out`.
    ///
    /// ```
    /// let cache: koel::Cache<u32, String> = koel::Cache::new(10);
    /// cache.insert(1, "one".to_string()).unwrap();
    /// let view = cache.pin();
    /// let mut values = [None; 2];
    /// view.get_many(&[2, 1], &mut values);
    /// assert_eq!(values.map(|value| value.map(String::as_str)), [None, Some("one")]); // not cloned
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many<'v, Q: Hash + Equivalent<K>>(&'v self, keys: &[Q], out: &mut [Option<&'v V>]) {
        assert_eq!(keys.len(), out.len(), "get_many: as many places for values as keys");
        self.cache().hit_many(keys, |key| key, out, self.guard(), |entry| entry.map(|entry| entry.pair().1));
    }

    /// Gets the values of many keys, which are given by reference and may be unsized: see [`CacheView::get_many`].
    ///
    /// # Panics
    ///
    /// As [`CacheView::get_many`].
    ///
    /// ```
    /// let cache: koel::Cache<String, String> = koel::Cache::new(10);
    /// cache.insert("one".to_string(), "eins".to_string()).unwrap();
    /// let view = cache.pin();
    /// let mut values = [None; 2];
    /// view.get_many_ref(&["two", "one"], &mut values);
    /// assert_eq!(values.map(|value| value.map(String::as_str)), [None, Some("eins")]);
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_many_ref<'v, Q: ?Sized + Hash + Equivalent<K>>(
        &'v self,
        keys: &[&Q],
        out: &mut [Option<&'v V>],
    ) {
        assert_eq!(keys.len(), out.len(), "get_many_ref: as many places for values as keys");
        self.cache().hit_many(keys, |key| *key, out, self.guard(), |entry| entry.map(|entry| entry.pair().1));
    }
}
