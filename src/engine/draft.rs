//! Segments that are being built [G1]: where they come from, and where they go if they are not published.

use core::ptr::NonNull;

use super::directory::Directory;
use super::locked::Locked;
use super::payload::Payload;
use super::segment::{Segment, SegmentRef};

/// Segments to make room for at a time when more splits are to come.
const SEGMENTS_AT_ONCE: usize = 16;
/// The same for a table that has at least this many segments: then their tags fill a few huge pages.
const MANY_SEGMENTS: usize = 1024;

/// There was no memory to grow, or the map has a fixed capacity and is full. Nothing has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom;

/// The purpose for which a segment is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// More segments will be wanted.
    Split,
    Doubling,
    /// To take less memory: no segment that was put away with its overflow, if [others](Pool::may_lack_overflow) are to be had.
    Shrinking,
}

/// A segment that is being built; goes to the pool unless it is published. Its lock is released before that.
pub(super) struct Draft<'a, P: Payload> {
    directory: &'a Directory<P>,
    segment: NonNull<Segment<P>>,
}

impl<'a, P: Payload> Draft<'a, P> {
    /// Locks it and empties it, to be what covers entry `index` of a directory of `base << level`.
    pub(super) fn lock(&self, index: u32, level: u32) -> Locked<'a, P> {
        // SAFETY: a draft is out of the pool and not retired, so nobody frees it until it is published [G1], [G2]; from then on
        // it is current, and its lock is held for good [W1]; it is freed by way of the pool [G3], [G5].
        let mut locked = Locked::lock(unsafe { SegmentRef::new(self.segment) });
        locked.clear();
        locked.grow_early(false);
        let state = locked.state();
        debug_assert!(state.ahead.is_none(), "what is put into the pool gives up its copy");
        state.covers(index, level, self.directory.shape.segments);
        // From its earlier life.
        state.tally = Default::default();
        state.parted_at = 0;
        locked
    }

    /// It has been published, or is kept elsewhere.
    pub(super) fn done(self) -> NonNull<Segment<P>> {
        core::mem::ManuallyDrop::new(self).segment
    }
}

impl<P: Payload> Drop for Draft<'_, P> {
    fn drop(&mut self) {
        self.directory.pool.lock().put(self.segment);
    }
}

impl<P: Payload> Directory<P> {
    /// A segment of so many buckets, from the pool if it has one.
    pub(super) fn draft(&self, buckets: u32, purpose: Purpose) -> Result<Draft<'_, P>, NoRoom> {
        let for_split = purpose == Purpose::Split;
        let stripes = self.shape.stripes_for(buckets);
        let mut pool = self.pool.lock();
        let takes_overflow = purpose != Purpose::Shrinking || !pool.may_lack_overflow(buckets);
        if let Some(segment) = pool.take(buckets, takes_overflow) {
            return Ok(Draft { directory: self, segment });
        }
        let plan = Segment::<P>::plan(buckets, stripes).ok_or(NoRoom)?;
        let (more, huge) = match pool.live {
            live if for_split && live >= MANY_SEGMENTS => {
                (MANY_SEGMENTS, self.shape.may_grow_by_huge_pages())
            }
            _ if for_split => (SEGMENTS_AT_ONCE, false),
            _ => (1, false),
        };
        let memory = pool.supply.take(&plan, more, 1, huge, &self.meter).ok_or(NoRoom)?;
        drop(pool);
        let segment = Segment::construct(memory, buckets, stripes);
        Ok(Draft { directory: self, segment })
    }
}
