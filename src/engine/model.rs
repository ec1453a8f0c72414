//! What has been copied ahead of a split [G7], for a model: late readers on their own, without everything that makes them late.

use core::ptr::NonNull;

use super::directory::{Directory, Writing};
use super::payload::Inline;
use super::segment::{Probe, Segment, SegmentRef};
use super::sizing::{Options, Shape};
use super::stripes;
use crate::hash::{Digest, Place};

type Words = Inline<u64, [u64; 2]>;

/// A segment of one bucket that has begun to copy ahead, and readers that come to the copy late, because in an earlier life it
/// was the segment they were led to. Keys are their own hashes.
pub struct CopiedAhead {
    table: Directory<Words>,
    copy: NonNull<Segment<Words>>,
}

impl core::fmt::Debug for CopiedAhead {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CopiedAhead").field("copy", &self.copy).finish_non_exhaustive()
    }
}

// SAFETY: segments are for any thread; the copy lives as long as the table.
unsafe impl Send for CopiedAhead {}
// SAFETY: as above.
unsafe impl Sync for CopiedAhead {}

fn item(key: u64) -> (u64, [u64; 2]) {
    (key, [key, !key])
}

fn rehash((key, _): (u64, [u64; 2])) -> Digest {
    Digest::mixed(key)
}

impl CopiedAhead {
    /// A segment that has one key, and has copied it.
    pub fn new(key: u64) -> Self {
        let options = Options { segment_slots: Some(4), ..Options::default() };
        let table = Directory::new(Shape::new(options).expect("a shape"), 0).expect("memory");
        let spot = table.lock_and_find(Digest::mixed(key), |_| false);
        assert!(table.insert(spot, item(key), rehash).is_ok());
        let mut writing = table.lock(0);
        table.copy_ahead(&mut writing.locked, &rehash);
        let ahead = writing.locked.state_ref().ahead.as_ref().expect("it has begun");
        let copy = ahead.lock().segment_ref().pointer();
        drop(writing);
        CopiedAhead { table, copy }
    }

    fn lock(&self) -> Writing<'_, Words> {
        self.table.lock(0)
    }

    /// Puts another key in the place of the one that is there; then brings the copy up to date.
    pub fn exchange(&self, key: u64, other: u64) {
        let mut writing = self.lock();
        let locked = &mut writing.locked;
        let place = Place::new(Digest::mixed(key), 1);
        let found = locked.find(place, |(found, _)| found == key).expect("it is there");
        locked.remove(place, found);
        assert!(locked.put(Place::new(Digest::mixed(other), 1), item(other), 0, 0));
        self.table.copy_ahead(locked, &rehash);
    }

    /// What a late reader finds in the copy, unless it must read again.
    pub fn find_late(&self, key: u64) -> Option<[u64; 2]> {
        // SAFETY: constructed as every segment is, and alive as long as the table.
        let copy = unsafe { SegmentRef::new(self.copy) };
        let place = Place::new(Digest::mixed(key), 1);
        let stripe = copy.stripe(place);
        let version = stripes::begin(stripe);
        match copy.pass(place, stripe, version, || (), |(found, _)| found == key) {
            Probe::Hit(((_, value), _)) => Some(value),
            Probe::Miss | Probe::Changed => None,
        }
    }
}
