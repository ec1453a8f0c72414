//! What decides with an entry in hand: under the lock of its segment.

use core::hash::{BuildHasher, Hash};
use core::ptr::NonNull;

use super::Cache;
use super::refused::{Refused, Why};
use super::removal::Cause;
use crate::entries::Entry;
use crate::outcome::{Compute, Operation};

/// A value to insert, and the entry it was decided for.
type Decided<K, V> = (V, Option<NonNull<Entry<K, V>>>);

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Cache<K, V, S> {
    /// Decides what becomes of a key's entry: `decide` sees it, if there is one that has not expired, and says whether to
    /// insert, remove or leave it. The answer has clones of values. To replace an entry is to use it, to look at it here is
    /// not.
    ///
    /// `decide` runs under the lock of the key's segment, so that nobody else writes to the entry meanwhile; once, unless its
    /// value is heavier than the segment's share of the bound *and* somebody else has changed the entry while more was made
    /// available: then it is asked again. The weigher and `expiry` run under the lock, too.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the value does not fit: the entry is as it was.
    ///
    /// # Panics
    ///
    /// If `decide` panics, writes to this cache, or says `Remove` where there is nothing: the cache is as it was.
    ///
    /// ```
    /// use koel::{Cache, Operation};
    ///
    /// let cache: Cache<&str, u32> = Cache::new(10);
    /// for _ in 0..3 {
    ///     cache.compute("hits", |n| Operation::<_, ()>::Insert(n.map_or(1, |n| n + 1)))?;
    /// }
    /// assert_eq!(cache.get("hits"), Some(3));
    /// # Ok::<(), koel::Refused<&str, u32>>(())
    /// ```
    #[track_caller]
    pub fn compute<T>(
        &self,
        key: K,
        mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
    ) -> Result<Compute<K, V, T>, Refused<K, V>>
    where
        K: Clone,
    {
        let digest = self.digest(&key);
        self.flights.invalidate(digest, &key);
        let guard = self.enter();
        let mut out = self.departures(&guard);
        // A value that was too heavy for the segment's share, and the entry that it was decided for.
        let mut decided = None::<Decided<K, V>>;
        loop {
            // Whatever is the user's is made before the lock is taken, or declared: it is dropped after that is released.
            let value;
            let (old_key, old_value, new_key, new_value);
            let updated;
            let mut at = self.at(digest, &key);
            let current = at.found.map(|found| (found, at.writing.locked.item(found)));
            let alive = current.filter(|&(_, entry)| self.is_alive(entry));
            let seen = alive.map(|(_, entry)| entry);
            // SAFETY: in the table, under the lock, after the guard was entered.
            let old = seen.map(|entry| unsafe { Entry::deref(entry) }.pair());
            if decided.as_ref().is_some_and(|&(_, before)| before != seen) {
                drop(at);
                decided = None;
                continue;
            }
            value = match decided.take() {
                Some((value, _)) => value,
                None => match decide(old.map(|(_, value)| value)) {
                    Operation::Abort(answer) => return Ok(Compute::Aborted(answer)),
                    Operation::Remove => {
                        let (Some((found, _)), Some((key, value))) = (alive, old) else {
                            panic!("compute: Operation::Remove for a key that is absent");
                        };
                        old_key = key.clone();
                        old_value = value.clone();
                        self.take_out(&mut at.writing.locked, found, Cause::Explicit, &mut out);
                        self.settle(&mut at.writing.locked, &mut out);
                        drop(at);
                        // Before there is an answer: one that is returned leaks if the listener panics.
                        drop(out);
                        return Ok(Compute::Removed(old_key, old_value));
                    }
                    Operation::Insert(value) => value,
                },
            };
            let draft = self.draft(&key, &value);
            if !self.has_quota(&mut at.writing.locked, draft.weight, &mut out) {
                drop(at);
                if !self.gather(digest, draft.weight, draft.now, &mut out) {
                    let why = Why::TooHeavy { weight: draft.weight, capacity: self.capacity() };
                    // As above.
                    drop(out);
                    return Err(Refused { key, value, why });
                }
                decided = Some((value, seen));
                continue;
            }
            updated = match old {
                Some((key, value)) => {
                    old_key = key.clone();
                    old_value = value.clone();
                    Some((old_key, old_value))
                }
                None => None,
            };
            new_key = key.clone();
            new_value = value.clone();
            let put = self.put(at, draft, key, value, &mut out);
            // As above.
            drop(out);
            put?;
            return Ok(match updated {
                Some(old) => Compute::Updated { old, new: (new_key, new_value) },
                None => Compute::Inserted(new_key, new_value),
            });
        }
    }
}
