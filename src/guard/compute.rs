//! [`Guarded::compute`]: a write that depends on the current value.

use super::error::Error;
use super::guarded::Guarded;
use super::section::Section;
use super::store::{Store, Value};
use super::stripes::stripe_of;
use crate::outcome::{NOTHING_TO_REMOVE, Operation};

/// What [`Guarded::compute`] has done: as [`Compute`](crate::Compute) of the maps, in the terms of a store; values are owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Computed<T> {
    /// A value was put; this was the key's value before, if it had one.
    Put(Option<Value>),
    /// The key was deleted; this was its value.
    Deleted(Value),
    /// Nothing was written.
    Aborted(T),
}

impl<S: Store> Guarded<S> {
    /// Reads a key's value and puts, deletes or leaves it, as `decide` says, which is given the value, if there is one. When
    /// the decision is carried out, the store still has the value that `decide` saw. So a key can be put only if it is absent,
    /// or a value replaced only if it is the expected one.
    ///
    /// `decide` runs with nothing locked, and is called again if a key of the same stripe, which is one in a thousand, was
    /// written to meanwhile, or a [rebuild](Guarded::rebuild) has begun. So it must not write through this guard itself, nor
    /// ask for a rebuild and wait for it: the call might never end. `decide` sees what [`Guarded::get`] returns, and each such
    /// look-up is counted: a key that is not there mostly costs no access to the store.
    ///
    /// # Errors
    ///
    /// The store's error. It depends on the store whether the decision was then carried out; the guard is right either way.
    ///
    /// # Panics
    ///
    /// If `decide` panics, or returns `Remove` where there is no value: nothing was done.
    ///
    /// ```
    /// use koel::Operation;
    /// use koel::guard::{Computed, Guarded, HashMapStore};
    ///
    /// let guarded = Guarded::open(HashMapStore::new())?;
    /// for _ in 0..3 {
    ///     guarded.compute(b"visits", |visits| Operation::<_, ()>::Insert([visits.map_or(1, |n| n[0] + 1)]))?;
    /// }
    /// assert_eq!(guarded.get(b"visits")?.as_deref(), Some(&[3][..]));
    ///
    /// // Only if the key is absent.
    /// let put = guarded.compute(b"visits", |visits| match visits {
    ///     None => Operation::Insert([1]),
    ///     Some(visits) => Operation::Abort(visits[0]),
    /// })?;
    /// assert_eq!(put, Computed::Aborted(3));
    /// # Ok::<(), koel::guard::Error<std::convert::Infallible>>(())
    /// ```
    #[doc(alias = "compare_and_swap")]
    #[doc(alias = "fetch_and_update")]
    #[track_caller]
    pub fn compute<V: AsRef<[u8]>, T>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> Operation<V, T>,
    ) -> Result<Computed<T>, Error<S::Error>> {
        let shared = &*self.shared;
        let hash = shared.plan.hash(key);
        loop {
            // Before the value is read: any later write is noticed [D9].
            let seen = shared.stripes.look(stripe_of(hash));
            let old = self.get(key)?;
            let begin = || Section::begin_unless_changed(shared, hash, key, seen);
            // In each case the caller's values are dropped before there is an answer: a returned one would leak if a drop
            // panics.
            match (decide(old.as_deref()), old) {
                (Operation::Abort(answer), _) => {
                    drop(decide);
                    return Ok(Computed::Aborted(answer));
                }
                (Operation::Insert(value), old) => {
                    // The caller's code: not to be run under the lock.
                    let bytes = value.as_ref();
                    if let Some(section) = begin() {
                        let done = self.put_in(section, key, bytes);
                        drop((value, decide));
                        return done.map(|_| Computed::Put(old));
                    }
                }
                (Operation::Remove, None) => panic!("{NOTHING_TO_REMOVE}"),
                (Operation::Remove, Some(old)) => {
                    if let Some(section) = begin() {
                        let done = self.delete_in(section, key);
                        drop(decide);
                        return done.map(|_| Computed::Deleted(old));
                    }
                }
            }
        }
    }
}
