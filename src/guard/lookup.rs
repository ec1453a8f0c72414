//! [`Guarded`]: look-ups. They ask, in this order, the cache, the filter, the memory of false positives, and the store [D5].

use super::error::Error;
use super::guarded::Guarded;
use super::shared::Shared;
use super::stats::{Counts, Event};
use super::store::{Store, Value};
use super::stripes::{Seen, stripe_of};

/// What a guard knows about a key without its store: the result of [`Guarded::get_if_known`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// The key has this value: it was in the cache.
    Present(Value),
    /// The store does not hold the key: the filter says so, or the store is remembered to have said so.
    Absent,
    /// Only the store knows.
    Unknown,
}

/// A look-up that the cache has not answered.
#[derive(Clone, Copy)]
struct Lookup<'k> {
    key: &'k [u8],
    hash: u64,
    /// The key's stripe, before the store is asked [D5].
    seen: Seen,
}

/// The judgement of the filter and the memory of false positives about a key.
enum Judgement {
    /// Certainly absent.
    Absent,
    /// Perhaps present.
    Perhaps(Asked),
}

/// Whether the filter has said "perhaps".
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Yes,
    /// The filter was not asked: it has not been of use for long.
    Idle,
    /// There is no filter.
    None,
}

/// What the store's answer counts as. A key that is there would have passed the filter.
#[inline]
fn answered(found: bool, asked: Asked) -> Event {
    match (found, asked) {
        (true, Asked::Yes | Asked::Idle) => Event::PassedFound,
        (false, Asked::Yes) => Event::PassedAbsent,
        (true, Asked::None) => Event::UnfilteredFound,
        (false, Asked::None | Asked::Idle) => Event::UnfilteredAbsent,
    }
}

impl<S: Store> Guarded<S> {
    /// Returns the value of a key.
    ///
    /// It takes no lock unless the store is asked or the key is a repeated false positive, and writes no shared memory either,
    /// except the mark of a cached value that has not been hit often yet. A thread whose last 4,096 look-ups were all of keys
    /// that the store holds does not ask the filter, until a key is not there; look-ups of a thread that has ended count for a
    /// thread that comes after it.
    ///
    /// # Errors
    ///
    /// The store's error.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// assert_eq!(guarded.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// assert_eq!(guarded.get(b"bob")?, None);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>, Error<S::Error>> {
        let shared = &*self.shared;
        let (hash, counters) = (shared.plan.hash(key), shared.counters.mine());
        if let Some(value) = shared.hot.get(key) {
            counters.count(Event::Hit);
            return Ok(Some(value));
        }
        let lookup = self.begin(key, hash);
        let Judgement::Perhaps(asked) = self.judge_unless_idle(lookup, counters) else { return Ok(None) };
        let value = shared.store.get(key).map_err(Error::Store)?;
        self.learn(lookup, value.as_ref(), asked, counters);
        Ok(value)
    }

    /// Returns what is known about a key without the store, for which this never waits. Unless the result is
    /// [`Known::Unknown`], [`Guarded::get`] would have answered the same. So an asynchronous task can call this first, and hand
    /// only unknown keys to a thread that may block.
    ///
    /// It is counted as a look-up if it answers; if not, the `get` that follows is. A thread that does only such `get`s finds
    /// nearly every key, so that after a few thousand its `get` does not ask the filter: the first false positive then counts
    /// as [unfiltered](super::Stats::unfiltered).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use koel::guard::{Error, Guarded, Known, Store, Value};
    /// use tokio::task;
    ///
    /// async fn get<S>(users: &Arc<Guarded<S>>, key: &[u8]) -> Result<Option<Value>, Error<S::Error>>
    /// where
    ///     S: Store,
    /// {
    ///     match users.get_if_known(key) {
    ///         Known::Present(value) => Ok(Some(value)),
    ///         Known::Absent => Ok(None),
    ///         Known::Unknown => {
    ///             let (users, key) = (Arc::clone(users), key.to_vec());
    ///             task::spawn_blocking(move || users.get(&key)).await.expect("a look-up does not panic")
    ///         }
    ///     }
    /// }
    ///
    /// # use koel::guard::HashMapStore;
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let users = Arc::new(Guarded::open(HashMapStore::new())?);
    /// users.put(b"ada", b"1815")?;
    /// assert_eq!(get(&users, b"ada").await?.as_deref(), Some(&b"1815"[..]));
    /// assert_eq!(get(&users, b"bob").await?, None);
    /// # Ok::<(), Error<std::convert::Infallible>>(())
    /// # }).unwrap();
    /// ```
    pub fn get_if_known(&self, key: &[u8]) -> Known {
        let shared = &*self.shared;
        let counters = shared.counters.mine();
        if let Some(value) = shared.hot.get(key) {
            counters.count(Event::Hit);
            return Known::Present(value);
        }
        match self.judge(self.begin(key, shared.plan.hash(key)), counters) {
            Judgement::Absent => Known::Absent,
            Judgement::Perhaps(_) => Known::Unknown,
        }
    }

    /// Returns whether the store holds a key. This is a look-up as [`Guarded::get`], and counted as one, but the store need not
    /// read the value ([`Store::contains_key`]), and the cache stays as it is: a value that was read for this is not cached,
    /// and a cached value does not count as used.
    ///
    /// # Errors
    ///
    /// The store's error.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// assert!(guarded.contains_key(b"ada")?);
    /// assert!(!guarded.contains_key(b"bob")?); // most such look-ups never reach the store
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn contains_key(&self, key: &[u8]) -> Result<bool, Error<S::Error>> {
        let shared = &*self.shared;
        let (hash, counters) = (shared.plan.hash(key), shared.counters.mine());
        if shared.hot.contains_key(key) {
            counters.count(Event::Hit);
            return Ok(true);
        }
        let lookup = self.begin(key, hash);
        let Judgement::Perhaps(asked) = self.judge_unless_idle(lookup, counters) else { return Ok(false) };
        let found = shared.store.contains_key(key).map_err(Error::Store)?;
        self.note(lookup, found, asked, counters);
        Ok(found)
    }

    /// Returns the values of many keys, in their order. The store is asked once, for the keys that pass the filter.
    ///
    /// # Errors
    ///
    /// The store's error.
    ///
    /// # Panics
    ///
    /// If the store returns another number of answers than it was asked for.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// let years = guarded.get_many(&["grace", "ada"])?;
    /// assert_eq!(years[0], None);
    /// assert_eq!(years[1].as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>, Error<S::Error>> {
        let shared = &*self.shared;
        let counters = shared.counters.mine();
        let mut values: Vec<Option<Value>> = Vec::with_capacity(keys.len());
        let mut passed: Vec<(usize, Lookup<'_>, Asked)> = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            let value = shared.hot.get(key);
            if value.is_some() {
                counters.count(Event::Hit);
            } else {
                let lookup = self.begin(key, shared.plan.hash(key));
                if let Judgement::Perhaps(asked) = self.judge(lookup, counters) {
                    passed.push((number, lookup, asked));
                }
            }
            values.push(value);
        }
        if passed.is_empty() {
            return Ok(values);
        }
        let asked: Vec<&[u8]> = passed.iter().map(|(_, lookup, _)| lookup.key).collect();
        let found = shared.store.get_many(&asked).map_err(Error::Store)?;
        assert_eq!(found.len(), asked.len(), "the store answers for each key");
        for (&(number, lookup, asked), value) in passed.iter().zip(found) {
            self.learn(lookup, value.as_ref(), asked, counters);
            values[number] = value;
        }
        // This includes the keys before them in the batch.
        if values.contains(&None) {
            counters.filter_is_of_use();
        }
        Ok(values)
    }

    #[inline]
    fn begin<'k>(&self, key: &'k [u8], hash: u64) -> Lookup<'k> {
        Lookup { key, hash, seen: self.shared.stripes.look(stripe_of(hash)) }
    }

    /// As [`Guarded::judge`], except that a filter that has not been of use for long is not asked.
    #[inline]
    fn judge_unless_idle(&self, lookup: Lookup<'_>, counters: &Counts) -> Judgement {
        if counters.filter_is_idle() {
            // Until the store is known to have the key [D8]: it may fail, or panic.
            counters.filter_is_of_use();
            return Judgement::Perhaps(Asked::Idle);
        }
        self.judge(lookup, counters)
    }

    #[inline]
    fn judge(&self, Lookup { key, hash, seen }: Lookup<'_>, counters: &Counts) -> Judgement {
        let (shared, stripe) = (&*self.shared, stripe_of(hash));
        let Some(active) = shared.active.pin() else { return Judgement::Perhaps(Asked::None) };
        let event = if !active.may_contain(hash, stripe) {
            Event::Blocked
        } else if seen.knows_absent() && shared.stripes.is_known_absent(stripe, hash, key) {
            Event::RememberedAbsent
        } else {
            return Judgement::Perhaps(Asked::Yes);
        };
        counters.count(event);
        counters.filter_is_of_use();
        Judgement::Absent
    }

    /// Counts the store's answer, and keeps it in the cache or the memory of absent keys, unless a write came between.
    #[inline]
    fn learn(&self, lookup: Lookup<'_>, value: Option<&Value>, asked: Asked, counters: &Counts) {
        self.note(lookup, value.is_some(), asked, counters);
        match value {
            Some(value) if self.shared.hot.wants(lookup.hash) => self.keep(lookup, value),
            _ => {}
        }
    }

    /// Counts whether the store has the key, and remembers a key that it does not have, as values are cached.
    #[inline]
    fn note(&self, lookup: Lookup<'_>, found: bool, asked: Asked, counters: &Counts) {
        counters.count(answered(found, asked));
        if found {
            if asked == Asked::Idle {
                counters.filter_stays_idle();
            }
            return;
        }
        counters.filter_is_of_use();
        if asked == Asked::Yes {
            let Lookup { key, hash, seen } = lookup;
            if !self.shared.stripes.note_absent(stripe_of(hash), seen, hash, key) {
                // This key may be the one that was announced, or deleted: then the filter was not wrong.
                counters.count(Event::PassedBesideWrite);
            }
        }
    }

    #[inline(never)]
    fn keep(&self, Lookup { key, hash, seen }: Lookup<'_>, value: &Value) {
        let Shared { stripes, hot, .. } = &*self.shared;
        stripes.if_unchanged(stripe_of(hash), seen, || hot.put(key, value));
    }
}
