//! [`Turns`]: of the threads that insert a key unless it is there, one at a time.
//!
//! A key may be put into any of the tables, and a list of them may be replaced meanwhile: no lock of a table is one that all
//! who look for the key and then insert it hold. So they take turns, a few locks for all keys. Who inserts in any case
//! needs no turn, nor does who finds the key.

use crossbeam_utils::CachePadded;

use super::super::collect::try_collect;
use super::super::error::FilterError;
use crate::hash::{Digest, scale};
use crate::sync::{Mutex, MutexGuard};

/// Sets of keys. A few threads that insert different keys seldom meet at one; and 2 KB are few beside the 13 of the smallest
/// table.
const SETS: usize = 16;

/// Who comes next, for each of some sets of keys.
pub(super) struct Turns(Box<[CachePadded<Mutex<()>>]>);

impl Turns {
    /// An error, if there is no memory for the locks.
    pub(super) fn new() -> Result<Self, FilterError> {
        let locks = (0..SETS).map(|_| CachePadded::new(Mutex::new(())));
        Ok(Turns(try_collect(locks)?.into_boxed_slice()))
    }

    /// Waits for those who are inserting a key with this digest, unless in any case: nobody else does before this is dropped.
    #[inline]
    pub(super) fn lock(&self, digest: Digest) -> MutexGuard<'_, ()> {
        self.0[scale(digest.locator(), SETS as u32) as usize].lock()
    }
}
