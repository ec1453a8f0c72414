//! [`CacheDump`]: the contents of a cache, for another that is to go on from there (`restore`). Other threads may read and
//! write during both.

use core::fmt;
use core::iter::FusedIterator;
use core::time::Duration;

use super::Cache;
use super::policy::{Evictor, Heat, WindowShare};
use super::time::{NEVER, Nanos, nanos};
use crate::entries::{Entry, EntryPointer};

/// The entries of a [`Cache`], how each stood with the policy, and how long it has to live: from [`Cache::dump`], for
/// [`Cache::load`]. It contains nothing of the cache's clock or hash function.
///
/// # Format
///
/// With the feature `serde` a dump can be serialized and deserialized, as a sequence of three: the version of the format, which
/// is 1; how much of the capacity [`Policy::Adaptive`](super::Policy::Adaptive) gave its window, in millionths (none: it had
/// another policy); and the entries. Each entry is a sequence of key, value, heat, nanoseconds to live (none: forever) and
/// nanoseconds since it was used. Heat is 0 to 2 hits, and 4 more for an entry that is not in the window.
///
/// The input is not trusted: another version, a number that is none of these, or an end that comes too early is an error of the
/// deserializer's, and no more than 64 KiB are set aside for entries that are only announced.
///
#[cfg_attr(feature = "serde", doc = "```")]
#[cfg_attr(not(feature = "serde"), doc = "```ignore")]
/// use koel::{Cache, CacheDump};
///
/// let cache: Cache<String, u32> = Cache::new(100);
/// cache.insert("one".to_string(), 1).unwrap();
/// let text = serde_json::to_string(&cache.dump())?;
/// assert_eq!(text, r#"[1,10000,[["one",1,4,null,0]]]"#);
///
/// // In another process:
/// let dump: CacheDump<String, u32> = serde_json::from_str(&text)?;
/// let cache: Cache<String, u32> = Cache::new(100);
/// assert!(cache.load(dump).is_empty());
/// assert_eq!(cache.get("one"), Some(1));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct CacheDump<K, V> {
    /// What the policy had learned.
    pub(super) window: Option<WindowShare>,
    /// The entries; of each queue, the next to go come first.
    pub(super) entries: Vec<Dumped<K, V>>,
}

/// An entry of a dump.
#[derive(Clone)]
pub(super) struct Dumped<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    pub(super) standing: Standing,
}

impl<K, V> Dumped<K, V> {
    fn pair(&self) -> (&K, &V) {
        (&self.key, &self.value)
    }

    fn into_pair(self) -> (K, V) {
        (self.key, self.value)
    }
}

/// What a cache knows of an entry, in terms that another cache understands.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    pub(super) heat: Heat,
    /// How long it has to live, used or not; `None` is forever.
    pub(super) lives: Option<Nanos>,
    /// For how long it has not been used.
    pub(super) idle: Nanos,
}

impl<K, V> CacheDump<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an iterator over the entries. Of each queue of the policy, those that were to go next come first.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 2).unwrap();
    /// assert_eq!(cache.dump().iter().collect::<Vec<_>>(), [(&1, &2)]);
    /// ```
    pub fn iter(&self) -> DumpIter<'_, K, V> {
        DumpIter(self.entries.iter())
    }

    /// Keeps the entries for which `keep` holds and drops the others; `keep` sees them in the order of [`CacheDump::iter`].
    /// Entries that stay keep their hits, their place and what is left of their life.
    ///
    /// ```
    /// let cache: koel::Cache<String, u32> = koel::Cache::new(10);
    /// cache.insert("/a".to_string(), 1).unwrap();
    /// cache.insert("/private/b".to_string(), 2).unwrap();
    /// let mut dump = cache.dump();
    /// dump.retain(|path, _| !path.starts_with("/private/")); // not to be written to a disk
    /// assert_eq!(dump.iter().collect::<Vec<_>>(), [(&"/a".to_string(), &1)]);
    /// ```
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &V) -> bool) {
        self.entries.retain(|entry| keep(&entry.key, &entry.value));
    }

    /// Lets time pass: each entry has that much less to live, and has not been used for that much longer. Those whose time is
    /// over are dropped; the cache into which the dump is loaded decides whether an entry has been idle for too long. Without
    /// this the time between [`Cache::dump`] and [`Cache::load`] does not count. Looks at each entry once.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let hour = || koel::Cache::builder().max_entries(100).time_to_live(Duration::from_secs(3600)).build();
    /// let cache: koel::Cache<&str, u32> = hour();
    /// cache.insert("price", 7).unwrap();
    /// let mut dump = cache.dump();
    ///
    /// // When the program starts again, half an hour later by the system's clock, and an hour later:
    /// dump.age(Duration::from_secs(1800));
    /// assert_eq!(dump.len(), 1); // loaded now, the entry would live for half an hour
    /// dump.age(Duration::from_secs(1800));
    /// assert!(dump.is_empty());
    /// ```
    pub fn age(&mut self, by: Duration) {
        let by = nanos(by);
        self.entries.retain_mut(|entry| {
            let Standing { lives, idle, .. } = &mut entry.standing;
            *idle = idle.saturating_add(by);
            let Some(left) = lives else { return true };
            *left = left.saturating_sub(by);
            *left > 0
        });
    }
}

/// Moves the entries out, in the order of [`CacheDump::iter`]; for example to use those that [`Cache::load`] hands back.
///
/// ```
/// let small: koel::Cache<u32, String> = koel::Cache::new(1);
/// let old: koel::Cache<u32, String> = koel::Cache::new(2);
/// old.insert(1, "one".to_string()).unwrap();
/// old.insert(2, "two".to_string()).unwrap();
/// let others: Vec<(u32, String)> = small.load(old.dump()).into_iter().collect(); // moved, not cloned
/// assert_eq!((small.len(), others.len()), (1, 1));
/// ```
impl<K, V> IntoIterator for CacheDump<K, V> {
    type Item = (K, V);
    type IntoIter = DumpIntoIter<K, V>;

    fn into_iter(self) -> DumpIntoIter<K, V> {
        DumpIntoIter(self.entries.into_iter())
    }
}

/// An iterator over the entries of a dump, which it owns: from `CacheDump::into_iter`.
pub struct DumpIntoIter<K, V>(std::vec::IntoIter<Dumped<K, V>>);

impl<K, V> Iterator for DumpIntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.next().map(Dumped::into_pair)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for DumpIntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        self.0.next_back().map(Dumped::into_pair)
    }
}

impl<K, V> ExactSizeIterator for DumpIntoIter<K, V> {}
impl<K, V> FusedIterator for DumpIntoIter<K, V> {}

impl<'d, K, V> IntoIterator for &'d CacheDump<K, V> {
    type Item = (&'d K, &'d V);
    type IntoIter = DumpIter<'d, K, V>;

    fn into_iter(self) -> DumpIter<'d, K, V> {
        self.iter()
    }
}

/// An iterator over the entries of a dump: from [`CacheDump::iter`].
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct DumpIter<'d, K, V>(core::slice::Iter<'d, Dumped<K, V>>);

/// The clone goes on from the same place.
impl<K, V> Clone for DumpIter<'_, K, V> {
    fn clone(&self) -> Self {
        DumpIter(self.0.clone())
    }
}

impl<'d, K, V> Iterator for DumpIter<'d, K, V> {
    type Item = (&'d K, &'d V);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Dumped::pair)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for DumpIter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(Dumped::pair)
    }
}

impl<K, V> ExactSizeIterator for DumpIter<'_, K, V> {}
impl<K, V> FusedIterator for DumpIter<'_, K, V> {}

impl<K, V> fmt::Debug for DumpIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpIter").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for DumpIntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpIntoIter").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for CacheDump<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheDump").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// An entry that was in a segment while that was locked, and how far it was from the front of its queue, as a part of 2^32:
/// with this the queues of several segments can be merged.
struct Seen {
    entry: EntryPointer,
    standing: Standing,
    at: u64,
}

/// What windows are to have in total, and of how much capacity.
#[derive(Default)]
struct Windows {
    target: f64,
    capacity: f64,
}

impl Windows {
    fn add(&mut self, evictor: &Evictor) {
        if let Some(target) = evictor.window_target() {
            self.target += target;
            self.capacity += evictor.capacity() as f64;
        }
    }

    /// Their mean, if there is any.
    fn share(&self) -> Option<WindowShare> {
        (self.capacity > 0.0).then(|| WindowShare::of(self.target / self.capacity))
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// [L2] Copies what there is of the segment that begins at `cursor`, under its lock, except expired entries. The entries
    /// are alive as long as a guard that was entered before.
    fn look_over(&self, cursor: u64, windows: &mut Windows) -> Option<(Vec<Seen>, u64)> {
        let mut out = self.departures(self.enter());
        let (mut writing, next) = self.table.directory.visit(cursor)?;
        let locked = &mut writing.locked;
        windows.add(&locked.state_ref().keep.evictor);
        let now = self.now();
        let order = self.decide(locked, now, &mut out, |evictor, entries| evictor.order(entries));
        let main_len = order.iter().filter(|(_, heat)| heat.in_main()).count();
        let (mut in_window, mut in_main) = (0, 0);
        let mut seen = Vec::with_capacity(order.len());
        for &(slot, heat) in &order {
            let (before, of) = match heat.in_main() {
                true => (&mut in_main, main_len),
                false => (&mut in_window, order.len() - main_len),
            };
            let at = ((*before as u64) << 32) / of as u64;
            *before += 1;
            let entry = locked.item(slot);
            if !self.has_expired(entry, now) {
                seen.push(Seen { entry, standing: self.standing(entry, heat, now), at });
            }
        }
        Some((seen, next))
    }

    /// What is known of an entry of this cache.
    fn standing(&self, entry: EntryPointer, heat: Heat, now: Nanos) -> Standing {
        let meta = self.meta(entry);
        Standing {
            heat,
            lives: Some(meta.deadline()).filter(|&deadline| deadline != NEVER).map(|deadline| deadline - now),
            // A hit may be later than `now`. Where hits are not noted this is 0: else an entry that was used all the while
            // would seem idle to a cache that has a time to idle.
            idle: meta.last_use().map_or(0, |last_use| now.saturating_sub(last_use)),
        }
    }

    /// Clones the contents of the cache, for a warm restart: [`Cache::load`] puts them into another cache.
    ///
    /// Other threads may read and write meanwhile. Pointers are copied under the lock of one segment at a time, for which the
    /// segment's writers wait, and entries are cloned with no lock held. The dump has every entry that was in the cache all the
    /// while, none that was never there, and none that had expired. It leaves no trace, except that a hit at the same moment
    /// may not be noted.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// cache.insert(1, 2).unwrap();
    /// let larger: koel::Cache<u32, u32> = koel::Cache::new(100);
    /// assert!(larger.load(cache.dump()).is_empty());
    /// assert_eq!(larger.get(&1), Some(2));
    /// ```
    ///
    /// # Panics
    ///
    /// In a closure that runs [under this cache's lock](Cache#under-a-lock).
    pub fn dump(&self) -> CacheDump<K, V>
    where
        K: Clone,
        V: Clone,
    {
        let mut entries = Vec::new();
        let mut windows = Windows::default();
        let mut cursor = 0;
        loop {
            let _guard = self.enter();
            let Some((seen, next)) = self.look_over(cursor, &mut windows) else { break };
            cursor = next;
            entries.extend(seen.into_iter().map(|Seen { entry, standing, at }| {
                // SAFETY: it was in the table when its segment was locked, after the guard was entered.
                let (key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
                (at, Dumped { key: key.clone(), value: value.clone(), standing })
            }));
        }
        entries.sort_by_key(|(at, entry)| (entry.standing.heat.in_main(), *at));
        let entries = entries.into_iter().map(|(_, entry)| entry).collect();
        CacheDump { window: windows.share(), entries }
    }
}
