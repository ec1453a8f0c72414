//! What a cache keeps under the lock of each of its segments.

use super::policy::Evictor;
use super::room::Kept;
use crate::engine::Keep;
use crate::entries::{Reserve, Reserves};

/// A segment's part of the cache. In order, as the [`State`](crate::engine) it is in: what each insertion writes comes first.
#[repr(C)]
pub(super) struct Share<K, V> {
    /// Who is to leave next, how much the segment may hold (its quota) and how much it holds.
    pub(super) evictor: Evictor,
    /// Memory for entries, and entries that have left.
    pub(super) reserve: Reserve<K, V>,
    /// The quota of a segment that neither borrows nor lends: an equal part of the capacity.
    pub(super) fair: u64,
    /// The bucket that is looked through next for entries that have expired.
    pub(super) next_bucket: u32,
    /// Insertions since one came by something that had expired.
    pub(super) in_vain: u32,
    /// Insertions for which it could have asked other segments for quota.
    pub(super) insertions: u32,
    /// See [`Kept::patience`].
    pub(super) patience: usize,
}

impl<K, V> Default for Share<K, V> {
    fn default() -> Self {
        Share {
            reserve: Reserve::default(),
            evictor: Evictor::default(),
            fair: 0,
            next_bucket: 0,
            in_vain: 0,
            insertions: 0,
            patience: 0,
        }
    }
}

impl<K, V> Keep for Share<K, V> {
    const MARKED: bool = true;
}

impl<K, V> Kept for Share<K, V> {
    #[inline]
    fn evictor(&self) -> &Evictor {
        &self.evictor
    }

    #[inline]
    fn evictor_mut(&mut self) -> &mut Evictor {
        &mut self.evictor
    }

    fn patience(&mut self) -> &mut usize {
        &mut self.patience
    }
}

// SAFETY: the rest is numbers, and memory of its own.
unsafe impl<K, V> Reserves<K, V> for Share<K, V> {
    fn reserve(&mut self) -> &mut Reserve<K, V> {
        &mut self.reserve
    }
}
