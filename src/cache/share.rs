//! What a cache keeps under the lock of each of its segments.

use super::policy::Evictor;
use super::room::Kept;
use crate::engine::Keep;
use crate::entries::{Reserve, Reserves};

/// A segment's part of the cache. In order, as the [`State`](crate::engine) it is in: what each insertion writes comes first.
#[derive(Default)]
#[repr(C)]
pub(super) struct Share {
    /// Who is to leave next, how much the segment may hold (its quota) and how much it holds.
    pub(super) evictor: Evictor,
    /// Memory for entries, and entries that have left.
    pub(super) reserve: Reserve,
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

impl Keep for Share {
    const MARKED: bool = true;
}

impl Kept for Share {
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
unsafe impl Reserves for Share {
    fn reserve(&mut self) -> &mut Reserve {
        &mut self.reserve
    }
}
