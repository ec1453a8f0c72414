//! From a user's request to a layout and a geometry: the least memory in which all keys fit.
//!
//! There are two reasons why a key may not fit. A table as a whole fills up to a load that depends on the slots of a bucket;
//! the fullest of its segments must stay below that. And a few keys may happen to share both their buckets, more than these
//! have slots for: seldom, unless fingerprints are short, buckets small or the table is tiny.

use super::error::FilterError;
use super::geometry::{Geometry, MAX_BUCKETS, MAX_SEGMENTS};
use super::layout::{BUCKET_SLOTS, FINGERPRINT_BITS, Format, SEMI_SORTED_BITS};
use super::table::Table;

/// The rate if neither a rate nor a width is requested.
pub(super) const DEFAULT_RATE: f64 = 0.01;
/// The accepted probability that keys share their buckets so that they do not fit.
pub(super) const MISFIT: f64 = 1e-6;
/// The number of slots for each key that may reasonably be requested, and for few keys: a user that would need more of them
/// should use other buckets.
const MOST_SLOTS: (u64, u64) = (256, 1 << 20);

/// No format has room for more.
const MOST_KEYS: u64 = 1 << 36;

/// The factor by which a table may be larger than the smallest with fingerprints of that width, to err less often.
const EMPTIEST: usize = 4;
/// In bytes: any table may be this large.
const SMALL: usize = 4096;

/// The options that a builder collects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) capacity: usize,
    pub(crate) rate: Option<f64>,
    pub(crate) fingerprint_bits: Option<u32>,
    pub(crate) bucket_slots: Option<u32>,
    pub(crate) semi_sorted: Option<bool>,
    pub(crate) huge_pages: Option<bool>,
}

/// A format in a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) format: Format,
    pub(crate) geometry: Geometry,
    /// Keys that fit for sure.
    pub(crate) capacity: usize,
}

/// How far tables with buckets of this many slots are filled: in tables of any size, and less as they get small. Measured with
/// random keys: 44, 87, 97 and 99% without the margin that a segment with more than its share needs.
pub(crate) fn load_limit(bucket_slots: u32, slots: f64) -> f64 {
    let (most, limit, spread) = match bucket_slots {
        1 => (0.40, 0.44, 2.0),
        2 => (0.84, 0.88, 2.5),
        4 => (0.9405, 0.97, 1.6),
        _ => (0.98, 0.99, 1.6),
    };
    f64::min(most, limit - spread / slots.sqrt())
}

/// The probability that this many random keys all have the same fingerprint of this many bits: one value stands for two.
fn collision(bits: u32, keys: u32) -> f64 {
    let values = f64::powi(2.0, bits as i32);
    (f64::powi(2.0, keys as i32) + values - 2.0) / values.powi(keys as i32)
}

/// The false-positive rate of this many different keys in this many slots, 0 to 1 (Fan et al., section 5.1, but there all slots
/// are taken). In two buckets, each slot that is taken has the key's fingerprint with the probability 2^-bits; with twice that
/// if the fingerprint is 1, which stands for 0 as well. No more slots are taken than there are keys.
pub(crate) fn rate_at(format: Format, keys: f64, slots: f64) -> f64 {
    let both = 2.0 * f64::from(format.bucket_slots);
    let value = f64::powi(2.0, -(format.fingerprint_bits as i32));
    let (most, taken) = (both.min(keys).max(1.0), both * keys / slots);
    // 1 - (1 - taken / most * same)^most, without losing small values.
    let rate = |same: f64| -f64::exp_m1(most * f64::ln_1p(-taken / most * same));
    2.0 * value * rate(2.0 * value) + (1.0 - 2.0 * value) * rate(value)
}

/// The same where no slot is free.
pub(crate) fn full_rate(format: Format) -> f64 {
    let both = 2.0 * f64::from(format.bucket_slots);
    rate_at(format, both, both)
}

/// The false-positive rate of several tables, each of which may say yes.
pub(crate) fn rate_of_any(rates: impl Iterator<Item = f64>) -> f64 {
    // 1 - the product of 1 - rate, without losing small values.
    -f64::exp_m1(rates.map(|rate| f64::ln_1p(-rate)).sum())
}

/// The geometry of this many buckets.
fn geometry(format: Format, buckets: u64) -> Geometry {
    let segments = buckets.div_ceil(u64::from(MAX_BUCKETS)).max(1);
    let in_each = buckets.div_ceil(segments).next_multiple_of(2).max(2);
    Geometry::new(segments as u32, in_each as u32, format.fingerprint_bits, format.fingerprint_bits)
}

/// The largest number of buckets with this many slots: if these are no more than `slots` in all, as many as can be counted.
/// They make whole segments, so that no number is rounded up beyond.
fn most_buckets(bucket_slots: u32, slots: u64) -> u64 {
    let segments = slots / u64::from(bucket_slots) / u64::from(MAX_BUCKETS);
    segments.min(u64::from(MAX_SEGMENTS)) * u64::from(MAX_BUCKETS)
}

/// Whether this many different keys fit, in buckets of this many slots, except with the given probability of a misfit.
struct Fit {
    keys: f64,
    format: Format,
    bucket_slots: u32,
    misfit: f64,
    /// The part of the expected number of groups that are too large that does not depend on the number of buckets.
    groups: f64,
    /// The smallest part of another key's chance to have the same sum.
    collision: f64,
}

impl Fit {
    /// For this many keys, each of which comes `copies` times: its copies share its two buckets, so that for the different keys
    /// these have that many times fewer slots. `None` if they have none.
    fn new(capacity: usize, (copies, misfit): (u32, f64), format: Format) -> Option<Self> {
        let bucket_slots = format.bucket_slots / copies;
        if bucket_slots == 0 {
            return None;
        }
        let keys = capacity.div_ceil(copies as usize) as f64;
        // More keys than two buckets have slots, all with the same two buckets: how many such groups are expected? Larger
        // groups of buckets are overfull less often, but there are more of them: hence the factors, found by trial.
        let group = 2 * bucket_slots + 1;
        let (others, factorial) = (f64::from(group - 1), (1..=group).map(f64::from).product::<f64>());
        let factor = if bucket_slots == 1 { 10.0 } else { 3.0 };
        let groups = factor * keys.powf(f64::from(group)) / factorial;
        let collision = collision(format.fingerprint_bits, group).powf(1.0 / others);
        Some(Fit { keys, format, bucket_slots, misfit, groups, collision })
    }

    /// Whether they fit in this many buckets.
    fn is_in(&self, buckets: u64) -> bool {
        let geometry = geometry(self.format, buckets);
        if self.keys <= f64::from(2 * self.bucket_slots) && geometry.all_buckets() == 2 {
            // All have the same two buckets.
            return true;
        }
        let slots = geometry.all_buckets() as f64 * f64::from(self.bucket_slots);
        if self.keys > slots * load_limit(self.bucket_slots, slots) {
            return false;
        }
        // The other keys have the first key's sum if they have its fingerprint, or a different one that gives the same sum by
        // chance. In wide groups nearly all have the fingerprint that stands for two. The bound on both together is
        // Minkowski's.
        let same_sum = self.collision + 2.0 / f64::from(geometry.buckets);
        let same_pair = 2.0 / geometry.all_buckets() as f64 * same_sum;
        self.groups * same_pair.powi(2 * self.bucket_slots as i32) <= self.misfit
    }
}

/// The smallest number of buckets in which this many different keys fit, and as many of which each comes this many times,
/// except with the given probability of a misfit.
fn smallest(capacity: usize, copies: (u32, f64), format: Format) -> Option<Geometry> {
    let different = Fit::new(capacity, (1, MISFIT), format)?;
    let repeated = if copies == (1, MISFIT) { None } else { Some(Fit::new(capacity, copies, format)?) };
    let fits = |buckets| different.is_in(buckets) && repeated.as_ref().is_none_or(|fit| fit.is_in(buckets));
    let slots = (capacity as u64).saturating_mul(MOST_SLOTS.0).saturating_add(MOST_SLOTS.1);
    let countable = most_buckets(format.bucket_slots, usize::MAX as u64);
    let most = (slots / u64::from(format.bucket_slots)).min(countable);
    if !fits(most) {
        return None;
    }
    let (mut too_few, mut enough) = (0, most);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        match fits(middle) {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Some(geometry(format, enough))
}

/// The number of slots of a table of this many bytes, or more.
fn slots_within(format: Format, bytes: usize) -> f64 {
    // Its words begin and end with cache lines.
    let [beside, with_words] = [0, 1].map(|bucket_bits| Table::bytes(geometry(format, 2), bucket_bits));
    let line = with_words - beside;
    let words = bytes.saturating_sub(beside) / line * line;
    words as f64 * 8.0 / f64::from(format.bucket_bits()) * f64::from(format.bucket_slots)
}

/// The largest number of keys that fit in a format at all.
fn largest_capacity(format: Format) -> usize {
    let (mut fit, mut too_many) = (1, MOST_KEYS.min(usize::MAX as u64) as usize);
    while too_many - fit > 1 {
        let middle = fit + (too_many - fit) / 2;
        match smallest(middle, (1, MISFIT), format) {
            Some(_) => fit = middle,
            None => too_many = middle,
        }
    }
    fit
}

/// Checks whether each requested value is in its range.
pub(super) fn check(
    rate: Option<f64>,
    fingerprint_bits: Option<u32>,
    bucket_slots: Option<u32>,
    semi_sorted: bool,
) -> Result<(), FilterError> {
    if let Some(requested) = rate.filter(|rate| !(*rate > 0.0 && *rate < 1.0)) {
        return Err(FilterError::Rate { requested });
    }
    let widths = if semi_sorted { SEMI_SORTED_BITS } else { FINGERPRINT_BITS };
    if let Some(requested) = fingerprint_bits.filter(|bits| !widths.contains(bits)) {
        return Err(FilterError::FingerprintBits { requested, least: *widths.start() });
    }
    let known = |slots: &u32| if semi_sorted { *slots == 4 } else { BUCKET_SLOTS.contains(slots) };
    if let Some(requested) = bucket_slots.filter(|slots| !known(slots)) {
        return Err(FilterError::BucketSlots { requested, semi_sorted });
    }
    Ok(())
}

impl Options {
    /// The requested shape, in the least memory.
    pub(crate) fn shape(&self) -> Result<Shape, FilterError> {
        self.check()?;
        self.best(1, MISFIT).map_err(|least| match least {
            Some(limit) => FilterError::RateTooLow { requested: self.rate_to_keep(), limit },
            None => self.too_many(),
        })
    }

    /// The same, for keys that all come this many times, 2, 4 or 8, except with the given probability of a misfit; `None` if
    /// there is none.
    pub(super) fn shape_of_copies(&self, copies: u32, misfit: f64) -> Option<Shape> {
        if self.capacity as u64 > MOST_KEYS {
            return None;
        }
        self.best(copies, misfit).ok()
    }

    /// The rate that is to be guaranteed.
    fn rate_to_keep(&self) -> f64 {
        self.rate.unwrap_or(if self.has_width_only() { 1.0 } else { DEFAULT_RATE })
    }

    /// Of the shapes that keep the rate, the one in the least memory; otherwise the lowest rate of those that do not, if there
    /// are any.
    fn best(&self, copies: u32, misfit: f64) -> Result<Shape, Option<f64>> {
        let made = |format| {
            let geometry = smallest(self.capacity, (copies, misfit), format)?;
            Some(Shape { format, geometry, capacity: self.capacity })
        };
        let rate = self.rate_to_keep();
        // Of one width, emptier shapes err less often, but not at any price.
        let least = self
            .fingerprint_bits
            .and_then(|_| self.formats().filter_map(made).map(|shape| shape.bytes()).min());
        let most = least.map_or(usize::MAX, |least| least.saturating_mul(EMPTIEST).max(SMALL));
        // The first format that errs no more often when it is full to the last slot suffices, in this many bytes.
        let sure = self.formats().find(|format| full_rate(*format) <= rate).and_then(made);
        let (mut best, mut bytes) = (None, sure.map_or(most, |shape| shape.bytes().min(most)));
        for format in self.formats() {
            // Most others could not, even with all these bytes: not worth the search for a size, which takes a hundred times as
            // long.
            let slots = slots_within(format, bytes);
            if self.capacity as f64 > slots || rate_at(format, self.capacity as f64, slots) > rate {
                continue;
            }
            let will_do = |shape: &Shape| shape.bytes() <= bytes && shape.rate_when_full() <= rate;
            if let Some(shape) = made(format).filter(will_do) {
                // The first of equal shapes.
                (best, bytes) = (Some(shape), shape.bytes() - 1);
            }
        }
        let within = || self.formats().filter_map(made).filter(|shape| shape.bytes() <= most);
        best.ok_or_else(|| within().map(|shape| shape.rate_when_full()).reduce(f64::min))
    }

    /// Whether a width is requested, and no rate.
    fn has_width_only(&self) -> bool {
        self.fingerprint_bits.is_some() && self.rate.is_none()
    }

    /// The formats that suffice; an earlier one is preferred among equals, because it is faster.
    fn formats(&self) -> impl Iterator<Item = Format> + '_ {
        let slots: &[u32] = match self.bucket_slots {
            Some(ref slots) => core::slice::from_ref(slots),
            None if self.has_width_only() => &[4],
            None => &[4, 2, 8, 1],
        };
        let sorted: &[bool] = match self.semi_sorted {
            Some(true) => &[true],
            None if !self.has_width_only() => &[false, true],
            Some(false) | None => &[false],
        };
        let bits = self.fingerprint_bits.map_or(FINGERPRINT_BITS, |bits| bits..=bits);
        let kinds = slots.iter().flat_map(|&slots| sorted.iter().map(move |&sorted| (slots, sorted)));
        let of_kind = move |(bucket_slots, semi_sorted)| {
            let format = move |fingerprint_bits| Format { fingerprint_bits, bucket_slots, semi_sorted };
            bits.clone().map(format).filter(|format| format.is_valid())
        };
        kinds.flat_map(of_kind)
    }

    /// The error for a capacity that no format has.
    fn too_many(&self) -> FilterError {
        let limit = self.formats().map(largest_capacity).max().unwrap_or(0);
        FilterError::Capacity { requested: self.capacity, limit }
    }

    /// Whether each value is in its range.
    fn check(&self) -> Result<(), FilterError> {
        check(self.rate, self.fingerprint_bits, self.bucket_slots, self.semi_sorted == Some(true))?;
        if self.capacity == 0 || self.capacity as u64 > MOST_KEYS {
            return Err(self.too_many());
        }
        Ok(())
    }
}

impl Shape {
    /// Slots of all buckets.
    pub(crate) fn slots(&self) -> u64 {
        self.geometry.all_buckets() * u64::from(self.format.bucket_slots)
    }

    /// The expected false-positive rate with as many keys as the capacity.
    pub(crate) fn rate_when_full(&self) -> f64 {
        rate_at(self.format, self.capacity as f64, self.slots() as f64)
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        Table::bytes(self.geometry, self.format.bucket_bits())
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::formats;
    use super::*;

    fn shape(capacity: usize, rate: f64) -> Shape {
        Options { capacity, rate: Some(rate), ..Options::default() }.shape().unwrap()
    }

    #[test]
    fn large_tables_of_four_have_at_most_a_094th_of_slots() {
        for bits in 6..=32 {
            for capacity in [100_001, 123_456, 1_000_000, 7_600_000, 1 << 30] {
                let options = Options {
                    capacity,
                    fingerprint_bits: Some(bits),
                    bucket_slots: Some(4),
                    ..Options::default()
                };
                let shape = options.shape().unwrap();
                let most = capacity as f64 / 0.94;
                assert!(
                    bits < 8 || shape.slots() as f64 <= most,
                    "{bits} bits, {capacity}: {}",
                    shape.slots()
                );
            }
        }
    }

    #[test]
    fn every_rate_is_met_with_the_least_memory() {
        for capacity in [1, 10, 1000, 1_000_000, 50_000_000] {
            for rate in [0.9, 0.5, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6, 1e-8] {
                let best = shape(capacity, rate);
                assert!(best.rate_when_full() <= rate, "{capacity} {rate}: {best:?}");
                for format in formats() {
                    let options = Options {
                        capacity,
                        rate: Some(rate),
                        fingerprint_bits: Some(format.fingerprint_bits),
                        bucket_slots: Some(format.bucket_slots),
                        semi_sorted: Some(format.semi_sorted),
                        huge_pages: None,
                    };
                    if let Ok(other) = options.shape() {
                        assert!(best.bytes() <= other.bytes(), "{capacity} {rate}: {best:?} {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_table_has_more_slots_than_can_be_counted() {
        for format in formats().filter(|format| format.fingerprint_bits < 4) {
            let slots = |buckets| geometry(format, buckets).all_buckets() * u64::from(format.bucket_slots);
            let most = most_buckets(format.bucket_slots, u32::MAX.into());
            let largest = (most - 70_000..=most).step_by(997).map(slots).chain([slots(most)]).max();
            assert!(largest.is_some_and(|largest| u32::try_from(largest).is_ok()), "{format:?}: {largest:?}");
            assert!(slots(most) > u64::from(u32::MAX / 1000 * 999), "{format:?}: {}", slots(most));
            assert_eq!(slots(most_buckets(format.bucket_slots, 1 << 40)) >> 32, format.bucket_slots.into());
        }
        // These would be a table of about 4.5 billion slots, in less than 2 GiB: beyond what 32 bits can count.
        for (fingerprint_bits, bucket_slots, capacity) in [(2, 4, 100_000_000), (3, 8, 1 << 30)] {
            let (fingerprint_bits, bucket_slots) = (Some(fingerprint_bits), Some(bucket_slots));
            let shape = Options { capacity, fingerprint_bits, bucket_slots, ..Options::default() }.shape();
            assert!(shape.is_ok_and(|shape| shape.slots() > 1 << 32) == (usize::BITS > 32));
        }
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn slots_go_beyond_two_to_the_32() {
        let shape = shape(1 << 33, 1e-3);
        assert!(shape.slots() > 1 << 33 && shape.slots() as f64 <= 2_f64.powi(33) / 0.94, "{shape:?}");
        assert!(shape.bytes() as u64 > 1 << 33);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn what_is_refused_is_refused_with_what_is_possible() {
        let ask = |options: Options| options.shape().unwrap_err();
        let base = Options { capacity: 1000, ..Options::default() };
        for rate in [0.0, -0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = ask(Options { rate: Some(rate), ..base });
            assert!(error.to_string().contains("above 0 and below 1"), "{error}");
        }
        for bits in [0, 1, 33, u32::MAX] {
            let error = ask(Options { fingerprint_bits: Some(bits), ..base });
            assert!(error.to_string().contains("2 to 32"), "{error}");
        }
        let error = ask(Options { fingerprint_bits: Some(4), semi_sorted: Some(true), ..base });
        assert!(error.to_string().contains("5 to 32"), "{error}");
        for slots in [0, 3, 5, 16] {
            let error = ask(Options { bucket_slots: Some(slots), ..base });
            assert!(error.to_string().contains("1, 2, 4 or 8"), "{error}");
        }
        let error = ask(Options { bucket_slots: Some(8), semi_sorted: Some(true), ..base });
        assert!(error.to_string().contains("only 4"), "{error}");
        for capacity in [0, usize::MAX] {
            let FilterError::Capacity { limit, .. } = ask(Options { capacity, ..base }) else { panic!() };
            assert!(Options { capacity: limit, rate: Some(0.5), ..base }.shape().is_ok(), "{limit}");
        }
        // Fewer false positives by much emptier buckets: no, unless they are requested.
        for (bits, capacity) in [(4, base.capacity), (8, 1000), (8, 10_000)] {
            let narrow = Options { fingerprint_bits: Some(bits), rate: Some(0.001), capacity, ..base };
            let FilterError::RateTooLow { limit, .. } = ask(narrow) else { panic!("{bits}") };
            let shape = Options { rate: Some(limit), ..narrow }.shape().unwrap();
            assert!(shape.slots() < 16 * capacity as u64, "{bits}");
        }
        let sparse = Options { fingerprint_bits: Some(8), rate: Some(0.001), capacity: 1000, ..base };
        assert!(Options { bucket_slots: Some(1), ..sparse }.shape().is_ok());
        let few = Options { fingerprint_bits: Some(8), bucket_slots: Some(1), capacity: 1_000_000, ..base };
        let FilterError::Capacity { limit, .. } = ask(few) else { panic!() };
        assert!(Options { capacity: limit, ..few }.shape().is_ok());
        assert!(Options { capacity: limit + 1, ..few }.shape().is_err());
        let FilterError::RateTooLow { limit, .. } = ask(Options { rate: Some(1e-12), ..base }) else {
            panic!()
        };
        assert!(limit < 1e-8);
        assert!(Options { rate: Some(limit), ..base }.shape().is_ok());
    }
}
