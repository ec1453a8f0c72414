//! Computing again the digests of items that move.

use super::buckets::Buckets;
use super::parting::Halves;
use super::payload::Payload;
use super::tags::taken_lanes;
use crate::hash::Digest;

/// A front end's hash function, as growth calls it: through a pointer, so that growth is not compiled for each; and once per
/// bucket when a segment splits.
pub(crate) trait Rehash<P: Payload> {
    /// The digest of an item.
    fn digest(&self, item: P::Item) -> Digest;

    /// Which items of a bucket go to the upper half: 1 in the byte of each such lane. They get the split bits of the halves.
    /// For the holder of the lock only.
    fn leaving(&self, buckets: &Buckets<P>, bucket: u32, halves: Halves) -> u32;
}

impl<P: Payload, F: Fn(P::Item) -> Digest> Rehash<P> for F {
    fn digest(&self, item: P::Item) -> Digest {
        self(item)
    }

    fn leaving(&self, buckets: &Buckets<P>, bucket: u32, halves: Halves) -> u32 {
        buckets.fetch_ahead(bucket);
        let mut leaving = 0;
        for lane in taken_lanes(buckets.tags(bucket)) {
            let item = buckets.item(bucket, lane).expect("a slot is filled while the lock is held");
            let prefix = self(item).prefix();
            buckets.set_split_bits(bucket, lane, halves.split_bits::<P>(prefix));
            leaving |= halves.is_upper(prefix) << (8 * lane);
        }
        leaving
    }
}
