//! What a cache keeps under the lock of each of its segments.

use super::policy::Evictor;
use super::room::Kept;
use crate::engine::Keep;
use crate::entries::{Reserve, Reserves};

/// A segment's part of the cache. In order, like the [`State`](crate::engine) that it is in: the fields that each insertion
/// writes come first.
#[derive(Default)]
#[repr(C)]
pub(super) struct Share {
    /// The entries to evict next, how much the segment may hold (its quota) and how much it holds.
    pub(super) evictor: Evictor,
    /// Memory for entries, and entries that have left.
    pub(super) reserve: Reserve,
    /// The quota of a segment that neither borrows nor lends: an equal part of the capacity.
    pub(super) fair: u64,
    /// The bucket where the next search for expired entries begins.
    pub(super) next_bucket: u32,
    /// Insertions since one that came upon an expired entry.
    pub(super) in_vain: u32,
    /// Insertions for which the segment could have asked others for quota.
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
