//! The properties that the tables of a growing filter have in common, and which tables those can be.

use super::error::BytesError;
use super::geometry::{Geometry, MAX_SEGMENTS};
use super::layout::Format;
use super::sizing::{Shape, load_limit};

/// The properties that all tables of a chain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Segments of table 0.
    pub(crate) segments: u32,
    /// Buckets in every segment.
    pub(crate) buckets: u32,
    /// The format of table 0; the others have wider fingerprints.
    pub(crate) format: Format,
}

impl Plan {
    /// The shape of table `index`: with `2^index` times the slots of table 0, and one more bit for each doubling; `None` if
    /// there is none, because fingerprints or segments would be too large or too many, or slots could not be counted.
    pub(crate) fn shape(self, index: u32) -> Option<Shape> {
        let (bits, oldest) = (self.format.fingerprint_bits + index, self.format.fingerprint_bits);
        let segments = u64::from(self.segments) << index.min(32);
        if bits > 32 || segments > u64::from(MAX_SEGMENTS) {
            return None;
        }
        let format = Format { fingerprint_bits: bits, ..self.format };
        let geometry = Geometry::new(segments as u32, self.buckets, bits, oldest);
        let slots = usize::try_from(geometry.all_buckets() * u64::from(format.bucket_slots)).ok()? as f64;
        // As far as one of its segments is filled: the segments of all tables are as small as those of the first. Tables of a
        // few slots come only from bytes, and a header names at least one key.
        let load = load_limit(format.bucket_slots, slots / f64::from(geometry.segments));
        let capacity = (slots * load).max(1.0);
        Some(Shape { format, geometry, capacity: capacity as usize })
    }

    /// The number of keys that fit in all possible tables together; as many as can be counted, if they are more.
    pub(crate) fn max_keys(self) -> usize {
        let tables = (0..).map_while(|index| self.shape(index));
        tables.map(|shape| shape.capacity).fold(0, usize::saturating_add)
    }

    /// The plan that a table follows, and its index.
    pub(crate) fn of(shape: &Shape) -> Option<(Self, u32)> {
        let geometry = &shape.geometry;
        let index = geometry.fingerprint_bits - geometry.alternate_bits;
        let segments = geometry.segments >> index.min(31);
        if segments == 0 {
            return None;
        }
        let format = Format { fingerprint_bits: geometry.alternate_bits, ..shape.format };
        let plan = Plan { segments, buckets: geometry.buckets, format };
        let planned = format.is_valid().then(|| plan.shape(index)).flatten()?;
        (planned.format == shape.format && planned.geometry == *geometry).then_some((plan, index))
    }
}

/// Checks tables as they are met, newest first: whether they make a chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lineage {
    /// The plan, and the index of the last table.
    met: Option<(Plan, u32)>,
}

impl Lineage {
    /// Meets one table, with this many still to come: it must be of the same plan and older than the one before, and the last
    /// must be table 0, without which there is no chain.
    ///
    /// So a transfer that is resumed when tables were added or given back results in a whole chain, or in none. New tables are
    /// newer than all others, and keys move only to older ones: a key that nobody touches, and that was not in the tables met
    /// before, is in one of the oldest, of which there are as many as are still to come.
    pub(crate) fn meet(&mut self, shape: &Shape, to_come: usize) -> Result<(), BytesError> {
        let (plan, index) = Plan::of(shape).ok_or(BytesError::Layout)?;
        if (index as usize) < to_come || to_come == 0 && index != 0 {
            return Err(BytesError::Layout);
        }
        if self.met.is_some_and(|(other, newer)| other != plan || index >= newer) {
            return Err(BytesError::Layout);
        }
        self.met = Some((plan, index));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::MAX_BUCKETS;
    use super::*;

    #[test]
    fn no_table_of_a_chain_has_more_slots_than_can_be_counted() {
        let format = Format { fingerprint_bits: 2, bucket_slots: 1, semi_sorted: false };
        let plan = Plan { segments: MAX_SEGMENTS / 2, buckets: MAX_BUCKETS, format };
        // 2^31 slots of 2 bits, and 2^32 of 3.
        assert_eq!((plan.shape(0).is_some(), plan.shape(1).is_some()), (true, usize::BITS > 32));
    }
}
