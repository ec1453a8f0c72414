//! [`Turns`]: threads that insert a key unless it is present do so one at a time.
//!
//! A key may be put into any of the tables, and the list of tables may be replaced meanwhile: no lock of a table is held by all
//! threads that look for the key and then insert it. So they take turns, with a few locks for all keys. A thread that inserts
//! in any case needs no turn, nor does one that finds the key.

use crossbeam_utils::CachePadded;

use super::super::collect::try_collect;
use super::super::error::FilterError;
use crate::hash::{Digest, scale};
use crate::sync::{Mutex, MutexGuard};

/// Sets of keys. A few threads that insert different keys seldom meet at one; and 2 KB are little compared with the 13 of the
/// smallest table.
const SETS: usize = 16;

/// The order of threads, for each of some sets of keys.
pub(super) struct Turns(Box<[CachePadded<Mutex<()>>]>);

impl Turns {
    /// Returns an error if there is no memory for the locks.
    pub(super) fn new() -> Result<Self, FilterError> {
        let locks = (0..SETS).map(|_| CachePadded::new(Mutex::new(())));
        Ok(Turns(try_collect(locks)?.into_boxed_slice()))
    }

    /// Waits for threads that are inserting a key with this digest, unless they do so in any case: no other thread does before
    /// the guard is dropped.
    #[inline]
    pub(super) fn lock(&self, digest: Digest) -> MutexGuard<'_, ()> {
        self.0[scale(digest.locator(), SETS as u32) as usize].lock()
    }
}
