//! [`Guarded::write_many`]: several writes at once.

use super::error::Error;
use super::guarded::Guarded;
use super::section::Section;
use super::stats::Event;
use super::store::{Store, Value, Write};
use super::stripes::stripe_of;

impl<S: Store> Guarded<S> {
    /// Writes several keys, in the order given; of each write whether its key was there just before. A key may come more than
    /// once.
    ///
    /// `RedbStore`, `FjallStore` and [`HashMapStore`](super::HashMapStore) do all of it in one transaction: it is there as a
    /// whole or not at all, and waits for the disk once. (`get_many` asks the cache for some keys and the store for others, and
    /// so may see some of it.) Writes of other keys wait meanwhile: about one in a thousand for each key of these.
    ///
    /// # Errors
    ///
    /// The store's. Whether each of them was done is then as the store leaves it; the guard is right either way.
    ///
    /// # Panics
    ///
    /// If the store has another number of answers than there are writes.
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
        let shared = &*self.shared;
        let hashes: Vec<u64> = writes.iter().map(|write| shared.plan.hash(write.key())).collect();
        let writing = shared.stripes.write_all(&hashes.iter().map(|&hash| stripe_of(hash)).collect());
        let begin = |(write, &hash): (&Write<'_>, &u64)| {
            Section::within(shared, hash, write.key(), &writing[&stripe_of(hash)])
        };
        let mut sections: Vec<Section<'_>> = writes.iter().zip(&hashes).map(begin).collect();
        for (section, write) in sections.iter_mut().zip(writes) {
            if let Write::Put(..) = write {
                section.announce_beside_others();
            }
        }
        let existed = match shared.store.write_many(writes) {
            Ok(existed) => existed,
            Err(error) => {
                let _now = self.revoke_what_is_not_there(writes, sections);
                // Before an error of the user's type is dropped.
                drop(writing);
                return Err(Error::Store(error));
            }
        };
        assert_eq!(existed.len(), writes.len(), "the store answers for each write");
        let mut known = true;
        for ((section, write), existed) in sections.into_iter().zip(writes).zip(&existed) {
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
        self.count_writes(writes, known);
        Ok(existed)
    }

    /// After an error. Only the store knows what became of each write; if it cannot say, fingerprints stay [D2].
    fn revoke_what_is_not_there(
        &self,
        writes: &[Write<'_>],
        sections: Vec<Section<'_>>,
    ) -> Result<Vec<Option<Value>>, S::Error> {
        // First: the store may panic.
        let counters = self.shared.counters.mine();
        writes.iter().for_each(|_| counters.count(Event::Failed));
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
