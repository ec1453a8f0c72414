//! Reading through the directory: look-ups, one at a time ([R1]..[R4]).
//!
//! `Directory::find` is the straight line, `Directory::attempt` the general form, for any state of the stripe. What a segment
//! shows in one pass is in `segment`; many look-ups at once are in `batch`.

use super::directory::Directory;
use super::overflow::Heading;
use super::payload::Payload;
use super::segment::{Probe, Segment, SegmentRef};
use super::stripes::{self, Version};
use crate::hash::{Digest, Place};
use crate::sync::{AtomicU64, spin_loop, step};

impl<P: Payload> Directory<P> {
    /// Finds the item that `eq` accepts. Takes no lock, writes nothing, waits for nobody.
    ///
    /// `eq` is `Copy` so that the common path keeps what it captures in registers: the other path gets a copy. `shown` is
    /// called on the common path as soon as a tag shows that the item may be there: to start loading what `eq` will read.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        digest: Digest,
        shown: impl Fn(),
        eq: impl Fn(P::Item) -> bool + Copy,
    ) -> Option<P::Item> {
        self.find_and(digest, shown, eq, |_, _, _| ())
    }

    /// Finds the item that `eq` accepts, as [`Directory::find`], and changes its mark to what `change` makes of it. Stores
    /// nothing if that is the same, if another thread changes a mark of the same bucket at that moment, or if a displacement is
    /// under way.
    #[inline(always)]
    pub(crate) fn find_and_mark(
        &self,
        digest: Digest,
        eq: impl Fn(P::Item) -> bool + Copy,
        change: impl FnOnce(u8) -> u8,
    ) -> Option<P::Item> {
        let mark = |segment: &Segment<P>, bucket, lane| segment.buckets().change_mark(bucket, lane, change);
        self.find_and(digest, || (), eq, mark)
    }

    /// `find`, which on its common path calls `found` with segment, bucket and lane of the item: it may have left meanwhile.
    #[inline(always)]
    pub(super) fn find_and(
        &self,
        digest: Digest,
        shown: impl Fn(),
        eq: impl Fn(P::Item) -> bool + Copy,
        found: impl FnOnce(&Segment<P>, u32, u32),
    ) -> Option<P::Item> {
        let segment = self.locate(digest.prefix());
        let place = Place::new(digest, segment.buckets().len());
        let stripe = segment.stripe(place);
        let version = stripes::begin(stripe);
        step();
        match segment.pass(place, stripe, version, shown, eq) {
            Probe::Hit((item, lane)) => {
                let (bucket, lane) = place.slot(lane);
                found(&segment, bucket, lane);
                Some(item)
            }
            Probe::Miss if self.is_settled(digest, &segment, stripe, version) => None,
            Probe::Miss | Probe::Changed => self.find_carefully(digest, segment, version, &{ eq }),
        }
    }

    /// [R4], on the common path: whether a pass that found nothing is a miss.
    #[inline(always)]
    pub(super) fn is_settled(
        &self,
        digest: Digest,
        segment: &Segment<P>,
        stripe: &AtomicU64,
        version: Version,
    ) -> bool {
        segment.has_no_overflow()
            && !version.is_odd()
            && self.is_current(digest.prefix(), segment)
            && stripes::unchanged(stripe, version)
    }

    /// `find`, when something has moved, is moving, or has overflowed. Every iteration of the loop but the last was made
    /// necessary by a writer that finished something meanwhile.
    ///
    /// `before` and `version` are what `find` started from: whether that has changed is checked here, off its common path. If
    /// not, the stripe was odd or there is overflow, and this is no retry to be counted.
    #[cold]
    #[inline(never)]
    fn find_carefully(
        &self,
        digest: Digest,
        before: SegmentRef<'_, P>,
        version: Version,
        eq: &dyn Fn(P::Item) -> bool,
    ) -> Option<P::Item> {
        let mut again = self.has_changed(digest, before, version);
        loop {
            let segment = self.locate(digest.prefix());
            if again {
                // Counted in the segment that is read again: the one before may have been replaced, and its count passed on.
                segment.count_retry();
            }
            match self.attempt(segment, digest, eq) {
                Probe::Hit(item) => return Some(item),
                Probe::Miss => return None,
                Probe::Changed => again = true,
            }
            spin_loop();
        }
    }

    /// Whether a look-up's segment has been replaced, or its stripe is not at the version that was read. A directory
    /// that has doubled and leads to the same segment has changed nothing.
    pub(super) fn has_changed(&self, digest: Digest, before: SegmentRef<'_, P>, version: Version) -> bool {
        let place = Place::new(digest, before.buckets().len());
        !core::ptr::eq(self.locate(digest.prefix()).segment(), before.segment())
            || !stripes::unchanged(before.stripe(place), version)
    }

    /// [R2]..[R4], once, for any state of the stripe.
    ///
    /// The second pass of [R4] counts only if the version is the same odd one after it: then the item in flight was so
    /// throughout, and one of the two passes met it [I3]. If the version has changed, it is thrown away with the first.
    fn attempt(
        &self,
        segment: SegmentRef<'_, P>,
        digest: Digest,
        eq: &dyn Fn(P::Item) -> bool,
    ) -> Probe<P::Item> {
        let (prefix, place) = (digest.prefix(), Place::new(digest, segment.buckets().len()));
        let stripe = segment.stripe(place);
        let version = stripes::begin(stripe);
        step();
        let mut seen = segment.pass(place, stripe, version, || (), eq).map(|(item, _)| item);
        if matches!(seen, Probe::Miss) && version.is_odd() {
            // One item is being moved, and its writer may never get to finish. A reader that has seen the source empty sees the
            // target filled: so look once more.
            step();
            seen = segment.pass(place, stripe, version, || (), eq).map(|(item, _)| item);
        }
        if matches!(seen, Probe::Miss) && !segment.has_no_overflow() {
            seen = segment.pass_overflow(place, eq);
        }
        match seen {
            Probe::Miss if !self.is_current(prefix, &segment) || !stripes::unchanged(stripe, version) => {
                Probe::Changed
            }
            seen => seen,
        }
    }

    /// Whether some tag says that the item may be here; reads tags only. False is certain.
    #[inline]
    pub(crate) fn may_contain(&self, digest: Digest) -> bool {
        loop {
            let segment = self.locate(digest.prefix());
            let place = Place::new(digest, segment.buckets().len());
            let stripe = segment.stripe(place);
            let version = stripes::begin(stripe);
            let mut found = !segment.buckets().matches(place).is_empty();
            if !found && version.is_odd() {
                found = !segment.buckets().matches(place).is_empty();
            }
            if found || !segment.has_no_overflow() && segment.overflow().may_contain(Heading::of(place)) {
                return true;
            }
            if self.is_current(digest.prefix(), &segment) && stripes::unchanged(stripe, version) {
                return false;
            }
            segment.count_retry();
            spin_loop();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::cell::{Cell, RefCell};
    use core::ptr::NonNull;

    use super::super::payload::Pointer;
    use super::super::sizing::{Options, Shape};
    use super::super::stripes::Moving;
    use super::super::tags::tag_at;
    use super::*;

    /// Two items of one digest, one in each of its buckets; the second moves to and fro.
    struct Scene {
        table: Directory<Pointer<u64, ()>>,
        digest: Digest,
        items: Box<[u64; 2]>,
    }

    impl Scene {
        fn new() -> Self {
            let options = Options { capacity: 100, fixed: true, ..Options::default() };
            let table = Directory::new(Shape::new(options).expect("a shape"), 100).expect("memory");
            let buckets = table.shape.buckets;
            let apart = |digest: &Digest| {
                let place = Place::new(*digest, buckets);
                place.first != place.second
            };
            let digest = (0..).map(Digest::new).find(apart).expect("one of them");
            let scene = Scene { table, digest, items: Box::new([1, 2]) };
            let (segment, place) = scene.segment();
            segment.buckets().fill(place.first, 0, place.tag, NonNull::from(&scene.items[0]), 0);
            segment.buckets().fill(place.second, 1, place.tag, scene.moved(), 0);
            scene
        }

        fn segment(&self) -> (SegmentRef<'_, Pointer<u64, ()>>, Place) {
            let segment = self.table.locate(self.digest.prefix());
            (segment, Place::new(self.digest, segment.buckets().len()))
        }

        fn moved(&self) -> NonNull<u64> {
            NonNull::from(&self.items[1])
        }

        /// Keeps the stripe odd as long as the result lives [W5].
        fn start(&self) -> Moving<'_> {
            let (segment, place) = self.segment();
            Moving::start(segment.stripe(place))
        }

        /// Moves the second item to its other bucket. The stripe is odd.
        fn shift(&self) {
            let (segment, place) = self.segment();
            let buckets = segment.buckets();
            let is_in_second = tag_at(buckets.tags(place.second), 1) != 0;
            let (from, to) =
                if is_in_second { (place.second, place.first) } else { (place.first, place.second) };
            buckets.fill(to, 1, place.tag, self.moved(), 0);
            buckets.clear(from, 1);
        }

        /// Does both.
        fn displace(&self) -> Moving<'_> {
            let moving = self.start();
            self.shift();
            moving
        }

        /// Looks the second item up; `meanwhile(n)` happens in the n-th comparison.
        fn find(&self, meanwhile: impl Fn(u32)) -> Option<NonNull<u64>> {
            let comparisons = Cell::new(0);
            self.table.find(
                self.digest,
                || (),
                |item| {
                    comparisons.set(comparisons.get() + 1);
                    meanwhile(comparisons.get());
                    item == self.moved()
                },
            )
        }
    }

    #[test]
    fn an_item_that_moves_behind_a_reader_is_found() {
        let scene = Scene::new();
        for overflow in [false, false, true, true] {
            if overflow {
                scene.segment().0.note_overflow();
            }
            // The item's tag was seen where the item no longer is.
            let meanwhile = |comparison| {
                if comparison == 1 {
                    drop(scene.displace());
                }
            };
            assert_eq!(scene.find(meanwhile), Some(scene.moved()));
        }
    }

    #[test]
    fn an_item_is_found_in_the_version_in_which_it_moves() {
        let scene = Scene::new();
        let moving = scene.start();
        for shifts in [1, 2] {
            let meanwhile = |comparison| {
                if comparison <= shifts {
                    scene.shift();
                }
            };
            assert_eq!(scene.find(meanwhile), Some(scene.moved()), "{shifts}");
        }
        drop(moving);
    }

    /// Once an item is found in an odd version, it is not looked for again: it may be moved at that very moment.
    #[test]
    fn an_item_that_moves_after_it_was_found_is_found() {
        let scene = Scene::new();
        let moving = RefCell::new(None);
        let meanwhile = |comparison| match comparison {
            1 => {
                drop(scene.displace());
                moving.replace(Some(scene.start()));
            }
            // Comparisons 2 and 3 are those of the pass that finds it.
            4 => scene.shift(),
            _ => {}
        };
        assert_eq!(scene.find(meanwhile), Some(scene.moved()));
    }

    #[test]
    fn an_item_is_found_while_its_writer_is_stopped_and_however_often_it_moves() {
        let scene = Scene::new();
        let moving = RefCell::new(None);
        for moves in 1..8 {
            let meanwhile = |comparison| {
                if comparison <= moves {
                    // The previous displacement ends first.
                    moving.take();
                    moving.replace(Some(scene.displace()));
                }
            };
            assert_eq!(scene.find(meanwhile), Some(scene.moved()), "{moves} moves");
        }
        let other = scene.table.find(scene.digest, || (), |_| false);
        assert_eq!(other, None, "what is not there is not waited for");
    }

    /// Tags say "maybe" for only a few absent keys, even where there is overflow and while a writer is stopped.
    #[test]
    fn most_absent_keys_are_known_to_be_absent() {
        let scene = Scene::new();
        let (segment, place) = scene.segment();
        let told = || (1000..2000).filter(|key| scene.table.may_contain(Digest::new(*key))).count();
        assert!(scene.table.may_contain(scene.digest) && told() < 50);
        let another = NonNull::from(&scene.items[0]);
        assert!(segment.overflow().put(
            segment.buckets().len(),
            Heading::of(place),
            another,
            0,
            &scene.table.meter
        ));
        segment.note_overflow();
        assert!(told() < 60);
        let absent =
            (0..).map(Digest::new).find(|digest| !scene.table.may_contain(*digest)).expect("most are");
        let place = Place::new(absent, segment.buckets().len());
        let moving = Moving::start(segment.stripe(place));
        assert!(!scene.table.may_contain(absent) && scene.table.may_contain(scene.digest));
        drop(moving);
    }
}
