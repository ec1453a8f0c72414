//! [`Guarded::write_many`] and [`Guarded::write_many_with`]: several writes at once.

use std::collections::{HashMap, HashSet};

use ahash::RandomState;

use super::error::Error;
use super::guarded::Guarded;
use super::section::Section;
use super::stats::Event;
use super::store::{Store, Value, Write};
use super::stripes::stripe_of;

impl<S: Store> Guarded<S> {
    /// Writes several keys. Returns, for each write, whether its key was there just before. If a key occurs more than once, its
    /// last write counts, and the store sees no other.
    ///
    /// `RedbStore`, `FjallStore` and [`HashMapStore`](super::HashMapStore) do all of it in one transaction: it takes effect as
    /// a whole or not at all, and waits for the disk once. It becomes visible as a whole, too, with two exceptions: fjall shows
    /// one key after the other; and `get_many` has some answers from the cache and the filter, and others, later, from the
    /// store (from `HashMapStore` one by one). Some writes of other keys wait meanwhile: about one in a thousand for each key
    /// written here.
    ///
    /// # Errors
    ///
    /// The store's error. It depends on the store which of the writes were then done; the guard is right either way.
    ///
    /// # Panics
    ///
    /// If the store returns another number of answers than there are writes.
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Write};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// guarded.put(b"ada", b"1815")?;
    /// let existed = guarded.write_many(&[Write::Delete(b"ada"), Write::Put(b"grace", b"1906")])?;
    /// assert_eq!(existed, [true, false]);
    /// assert_eq!(guarded.get(b"ada")?, None);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn write_many(&self, writes: &[Write<'_>]) -> Result<Vec<bool>, Error<S::Error>> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        self.write_many_with(writes, |store, writes| store.write_many(writes))
    }

    /// Writes several keys, as [`write_many`](Self::write_many), by a function of yours, which is given the store and the
    /// writes that count. It is for writes that belong in one transaction with other data of the program:
    /// `RedbStore::write_many_and` and `FjallStore::write_many_and` perform such a transaction.
    ///
    /// The function is called once, and answers as [`Store::write_many`] does: for each key, whether it was there before. A
    /// wrong answer about a key may make the guard miss that key, and others that share its fingerprint. The function puts and
    /// deletes the keys that it is given, all or none of them, and no others; the values may differ. While it runs nobody else
    /// writes these keys through this guard, so that what it reads of them from the store stays valid. It must not write
    /// through the guard, ask it for a snapshot, or wait for a scan that begins meanwhile: these would wait for locks that are
    /// held while it runs.
    ///
    /// # Errors
    ///
    /// The function's error. Any or none of the writes may have happened then: the guard asks the store. A function that
    /// decides to write nothing should rather return which keys are there. After an error the filter keeps one extra
    /// fingerprint of each key that was to be put and is there, and many of these make it worse, until it is rebuilt. After
    /// such an answer it keeps one of each key that is not there.
    ///
    /// # Panics
    ///
    /// If the function returns another number of answers than there are writes.
    ///
    /// ```
    /// use koel::guard::{Guarded, RedbStore, Write};
    /// use koel::redb::{Database, ReadableDatabase, TableDefinition};
    ///
    /// const EVENTS: TableDefinition<u64, &str> = TableDefinition::new("events");
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let database = Database::create(folder.path().join("site.redb"))?;
    /// let users = Guarded::open(RedbStore::with_table(database, "users")?)?;
    /// // Both or neither.
    /// users.write_many_with(&[Write::Put(b"ada", b"1815")], |store, writes| {
    ///     store.write_many_and(writes, |transaction| {
    ///         transaction.open_table(EVENTS)?.insert(1, "ada has come")?;
    ///         Ok(())
    ///     })
    /// })?;
    /// let events = users.store().database().begin_read()?.open_table(EVENTS)?;
    /// assert_eq!(events.get(1)?.unwrap().value(), "ada has come");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A transfer from one account to another, if both exist and the first has enough:
    ///
    /// ```
    /// use koel::guard::{Guarded, HashMapStore, Store, Write};
    ///
    /// let accounts = Guarded::open(HashMapStore::new())?;
    /// accounts.write_many(&[Write::Put(b"ada", &[50]), Write::Put(b"bob", &[10])])?;
    /// let transfer = |from: &[u8], to: &[u8], sum: u8| {
    ///     let mut is_done = false;
    ///     accounts.write_many_with(&[Write::Put(from, b""), Write::Put(to, b"")], |store, _| {
    ///         let [Some(giver), Some(taker)] = &store.get_many(&[from, to])?[..] else {
    ///             return Ok(vec![store.contains_key(from)?, store.contains_key(to)?]);
    ///         };
    ///         let (Some(less), more) = (giver[0].checked_sub(sum), taker[0] + sum) else { return Ok(vec![true; 2]) };
    ///         is_done = true;
    ///         store.write_many(&[Write::Put(from, &[less]), Write::Put(to, &[more])])
    ///     })?;
    ///     Ok::<bool, koel::guard::Error<std::convert::Infallible>>(is_done)
    /// };
    /// assert!(transfer(b"ada", b"bob", 20)?);
    /// assert!(!transfer(b"bob", b"ada", 31)? && !transfer(b"carol", b"ada", 1)?);
    /// assert_eq!(accounts.get(b"bob")?.as_deref(), Some(&[30][..]));
    /// assert!(!accounts.contains_key(b"carol")?);
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    pub fn write_many_with(
        &self,
        writes: &[Write<'_>],
        f: impl FnOnce(&S, &[Write<'_>]) -> Result<Vec<bool>, S::Error>,
    ) -> Result<Vec<bool>, Error<S::Error>> {
        let shared = &*self.shared;
        let last = last_of_each(writes);
        let hashes: Vec<u64> = last.iter().map(|write| shared.plan.hash(write.key())).collect();
        let writing = shared.stripes.write_all(hashes.iter().map(|&hash| stripe_of(hash)).collect());
        let begin = |(write, &hash): (&Write<'_>, &u64)| {
            Section::within(shared, hash, write.key(), writing.of(stripe_of(hash)))
        };
        let mut sections: Vec<Section<'_>> = last.iter().zip(&hashes).map(begin).collect();
        for (section, write) in sections.iter_mut().zip(&last) {
            if let Write::Put(..) = write {
                section.announce_beside_others();
            }
        }
        let existed = match f(&shared.store, &last) {
            Ok(existed) => existed,
            Err(error) => {
                // Released before an error of the user's type is dropped, also if the store panics.
                let writing = writing;
                // First: the store may panic.
                let counters = shared.counters.mine();
                last.iter().for_each(|_| counters.count(Event::Failed));
                let _now = self.revoke_what_is_not_there(&last, sections);
                drop(writing);
                return Err(Error::Store(error));
            }
        };
        assert_eq!(existed.len(), last.len(), "the store answers for each write");
        let mut known = true;
        for ((section, write), existed) in sections.into_iter().zip(&last).zip(&existed) {
            known &= match (write, existed) {
                (Write::Put(..), true) => section.stayed(),
                (Write::Put(..), false) => {
                    section.came();
                    true
                }
                (Write::Delete(_), true) => section.left(),
                (Write::Delete(_), false) => true,
            };
        }
        drop(writing);
        self.count_writes(&last, known);
        // The usual case: no key occurs twice.
        Ok(if last.len() == writes.len() { existed } else { answer_each(writes, &last, &existed) })
    }

    /// After an error. Only the store knows the outcome of each write; if it cannot say, fingerprints stay [D2].
    fn revoke_what_is_not_there(
        &self,
        writes: &[Write<'_>],
        sections: Vec<Section<'_>>,
    ) -> Result<Vec<Option<Value>>, S::Error> {
        let keys: Vec<&[u8]> = writes.iter().map(|write| write.key()).collect();
        let now = self.shared.store.get_many(&keys);
        for (section, value) in sections.into_iter().zip(now.iter().flatten()) {
            if value.is_none() {
                section.revoke();
            }
        }
        now
    }

    fn count_writes(&self, writes: &[Write<'_>], mut known: bool) {
        let counters = self.shared.counters.mine();
        for write in writes {
            counters.count(match write {
                Write::Put(..) => Event::Put,
                Write::Delete(_) => Event::Delete,
            });
            self.look_after(core::mem::replace(&mut known, true));
        }
    }
}

/// The last write of each key: nobody sees those before it.
fn last_of_each<'k>(writes: &[Write<'k>]) -> Vec<Write<'k>> {
    let mut seen = HashSet::with_capacity_and_hasher(writes.len(), RandomState::new());
    let mut last: Vec<Write<'k>> =
        writes.iter().rev().copied().filter(|write| seen.insert(write.key())).collect();
    last.reverse();
    last
}

/// For each write, whether its key was there just before, according to the store's answers for the `last` ones.
fn answer_each(writes: &[Write<'_>], last: &[Write<'_>], existed: &[bool]) -> Vec<bool> {
    let before = last.iter().map(|write| write.key()).zip(existed.iter().copied());
    let mut is_there: HashMap<&[u8], bool, RandomState> = before.collect();
    let was_there = writes.iter().map(|write| is_there.insert(write.key(), matches!(write, Write::Put(..))));
    was_there.map(|was_there| was_there.expect("each key has a last write")).collect()
}
