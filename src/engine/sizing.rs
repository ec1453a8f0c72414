//! From what a user asks for to segments: how many, how large, with how many stripes.

use core::fmt;

use super::path::QUEUE;
use super::tags::SLOTS;

/// Version counters in a table, shared out among its segments (MemC3, section 3.3: 8,192 counters).
const STRIPES: u64 = 8192;
/// Fewest stripes in a segment that has at least as many buckets: so many share a cache line with the segment's head.
const MIN_STRIPES: u64 = 4;
/// Buckets for each stripe of a growing map's segment.
const BUCKETS_PER_STRIPE: u64 = 256;
/// The load to size a growing map for: its fullest segment, four deviations above, still finds paths.
const GROWING_LOAD: f64 = 0.90;
/// The load that `fixed_capacity` entries make: 1.06 slots for each.
const FIXED_LOAD: f64 = 0.944;
/// The load of a full cache: each miss puts an entry in, and at 0.94 two of three would have to displace others first; at 0.8,
/// one of six.
const CACHE_LOAD: f64 = 0.80;
/// Slots in a segment that splits instead of doubling: a split looks at all of their items and copies half of them, while one
/// writer waits. The segment's tags are one page.
const GROWING_SEGMENT_SLOTS: u64 = 4096;
/// Slots in a segment of a fixed map: large enough that no segment gets much more than its share.
const FIXED_SEGMENT_SLOTS: u64 = 1 << 16;
/// Slots of a table for which huge pages are requested by default: some megabytes.
const HUGE_SLOTS: u64 = 1 << 19;
/// Most segments to begin with. A directory of fewer entries than this may double, and so has fewer than twice as many.
pub(super) const MAX_SEGMENTS: u64 = 1 << 28;
/// Most buckets in one segment of a cache: the 24 bits of a hash's half that are not the tag distinguish so many.
const CACHE_BUCKETS: u32 = 1 << 24;
/// Most buckets in any segment: `mirror` is for fewer than 2^31 [I2].
pub(super) const MAX_BUCKETS: u64 = 1 << 28;
/// Buckets a growing map's search looks at before it grows instead: three levels below the roots.
const GROWING_BUDGET: usize = 2 * (1 + 4 + 16 + 64);
/// Buckets a fixed map's search looks at: all that a path of `MAX_HOPS` leads to.
const FIXED_BUDGET: usize = QUEUE;

/// Entries that a map can be made for: prefixes distinguish about 2^32 buckets.
#[cfg(target_pointer_width = "64")]
pub(crate) const MAX_CAPACITY: usize = 1 << 34;
/// Entries that a map can be made for.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) const MAX_CAPACITY: usize = 1 << 26;

/// The error of the `try_` constructors and of `try_reserve`: room for so many entries is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapacityError {
    /// How many entries were asked for; by a reservation, including those that were present.
    pub requested: usize,
    /// How many entries a map like this can be made for on this platform, given the memory; for a reservation, how many it can
    /// grow to.
    pub limit: usize,
    /// The request is within the limit, but the allocator did not have the memory.
    pub out_of_memory: bool,
}

impl CapacityError {
    /// The same error for another request, which had been rounded up.
    pub(crate) fn of(self, requested: usize) -> Self {
        CapacityError { requested, ..self }
    }
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CapacityError { requested, limit, out_of_memory } = self;
        if *out_of_memory {
            write!(f, "no memory for a capacity of {requested} entries (the limit is {limit})")
        } else {
            write!(f, "a capacity of {requested} entries was asked for, but the limit is {limit}")
        }
    }
}

impl core::error::Error for CapacityError {}

/// The options that a builder collects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) capacity: usize,
    pub(crate) fixed: bool,
    pub(crate) segment_slots: Option<usize>,
    /// `None`: if the table is large.
    pub(crate) huge_pages: Option<bool>,
    /// `None`: if there are to be many entries.
    pub(crate) home_cells: Option<bool>,
}

/// The shape of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Segments to begin with; a replica may begin with other numbers.
    pub(crate) segments: u32,
    /// Buckets in each of them; a replica's may have other numbers.
    pub(crate) buckets: u32,
    /// Most stripes in a segment; a power of two.
    pub(crate) stripes: u32,
    /// A segment of more than half as many buckets splits rather than doubling.
    pub(crate) split_buckets: u32,
    /// How many entries fit, whatever they are, if the map does not grow.
    pub(crate) fixed_capacity: Option<usize>,
    /// Buckets that a path search looks at.
    pub(crate) budget: usize,
    /// Ask for huge pages.
    pub(crate) huge_pages: bool,
    /// What the builder was told about huge pages.
    told_huge_pages: Option<bool>,
    /// Whether entries behind pointers have home cells; `None`: only if there are to be many.
    pub(crate) home_cells: Option<bool>,
}

/// How many entries a map can be made for whose segments have at most so many buckets, filled to this load.
fn most_entries(buckets: u64, load: f64) -> usize {
    MAX_CAPACITY.min(((MAX_SEGMENTS * buckets * u64::from(SLOTS)) as f64 * load) as usize)
}

/// How full a map is that was made for its entries, depending on whether it has a fixed capacity.
fn load(is_fixed: bool) -> f64 {
    if is_fixed { FIXED_LOAD } else { GROWING_LOAD }
}

impl Shape {
    /// How many entries a map like this can be made for, given the memory.
    pub(super) fn limit(&self) -> usize {
        most_entries(u64::from(self.split_buckets), load(self.fixed_capacity.is_some()))
    }

    /// Whether huge pages may be requested when many slots are added: unless the builder was told to do without.
    pub(super) fn may_grow_by_huge_pages(&self) -> bool {
        self.told_huge_pages != Some(false)
    }

    /// The shape that `options` ask for.
    pub(crate) fn new(options: Options) -> Result<Self, CapacityError> {
        let capacity = options.capacity;
        let default_slots = if options.fixed { FIXED_SEGMENT_SLOTS } else { GROWING_SEGMENT_SLOTS };
        let load = load(options.fixed);
        let most = options.segment_slots.map_or(default_slots, |n| n as u64);
        let most = most.div_ceil(u64::from(SLOTS)).clamp(1, MAX_BUCKETS);
        let limit = most_entries(most, load);
        if capacity > limit {
            return Err(CapacityError { requested: capacity, limit, out_of_memory: false });
        }
        let slots = (capacity as f64 / load).ceil() as u64;
        let buckets = slots.div_ceil(u64::from(SLOTS)).max(1);
        let segments = buckets.div_ceil(most);
        debug_assert!(segments <= MAX_SEGMENTS);
        let buckets = buckets.div_ceil(segments);
        let share = if options.fixed { STRIPES / segments } else { most / BUCKETS_PER_STRIPE };
        let stripes = share.clamp(MIN_STRIPES, STRIPES);
        Ok(Shape {
            segments: segments as u32,
            buckets: buckets as u32,
            stripes: 1 << stripes.ilog2(),
            split_buckets: most as u32,
            fixed_capacity: options.fixed.then_some(capacity),
            budget: if options.fixed { FIXED_BUDGET } else { GROWING_BUDGET },
            huge_pages: options.huge_pages.unwrap_or(slots >= HUGE_SLOTS),
            told_huge_pages: options.huge_pages,
            home_cells: options.home_cells,
        })
    }

    /// The shape of a cache: so many segments for `share` entries each, which double and never split.
    pub(crate) fn for_cache(segments: u32, share: usize) -> Result<Self, CapacityError> {
        let limit = CACHE_BUCKETS as usize * SLOTS as usize / 2;
        if share > limit {
            let (requested, limit) = (share.saturating_mul(segments as usize), limit * segments as usize);
            return Err(CapacityError { requested, limit, out_of_memory: false });
        }
        // Two buckets more than the load asks for, which matters for small caches: paths are short where buckets are few.
        let slots = (share as f64 / CACHE_LOAD).ceil() as u64 + 2 * u64::from(SLOTS);
        let stripes = (STRIPES / u64::from(segments)).clamp(MIN_STRIPES, STRIPES);
        Ok(Shape {
            segments,
            buckets: slots.div_ceil(u64::from(SLOTS)) as u32,
            stripes: 1 << stripes.ilog2(),
            split_buckets: CACHE_BUCKETS,
            fixed_capacity: None,
            budget: FIXED_BUDGET,
            huge_pages: slots * u64::from(segments) >= HUGE_SLOTS,
            told_huge_pages: None,
            home_cells: Some(false),
        })
    }

    /// The shape of a table with the same options for `len` entries; of fixed capacity, as [`Shape::of_replica`].
    pub(crate) fn for_items(&self, len: usize) -> Result<Self, CapacityError> {
        if self.fixed_capacity.is_some() {
            return Ok(self.of_replica(len));
        }
        Shape::new(Options {
            capacity: len,
            fixed: false,
            segment_slots: Some(self.split_buckets as usize * SLOTS as usize),
            huge_pages: self.told_huge_pages,
            home_cells: self.home_cells,
        })
    }

    /// The shape of a table of the same options and segments, with `len` entries. A table may hold more than its fixed
    /// capacity; then its copy's capacity is what it holds.
    pub(super) fn of_replica(&self, len: usize) -> Self {
        Shape { fixed_capacity: self.fixed_capacity.map(|capacity| capacity.max(len)), ..*self }
    }

    /// Stripes in a segment of `buckets`: no more than buckets.
    pub(crate) fn stripes_for(&self, buckets: u32) -> u32 {
        self.stripes.min(1 << buckets.ilog2())
    }

    /// Buckets for `len` entries at the load that growing maps are sized for.
    pub(crate) fn buckets_for(len: usize) -> u64 {
        let slots = (len as f64 / GROWING_LOAD).ceil() as u64;
        slots.div_ceil(u64::from(SLOTS)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(capacity: usize) -> Shape {
        Shape::new(Options { capacity, fixed: true, ..Options::default() }).unwrap()
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn fixed_shapes_hold_their_capacity_in_at_most_1_08_times_the_slots() {
        for capacity in [1_000, 10_000, 60_000, 1_000_000, 7_600_000, 100_000_000] {
            let shape = fixed(capacity);
            let slots = shape.segments as usize * shape.buckets as usize * 4;
            assert!(slots >= capacity && slots as f64 <= capacity as f64 * 1.08, "{capacity}: {slots} slots");
        }
    }

    #[test]
    fn segments_of_one_size_take_up_to_1_13_slots_for_each_entry_of_a_fixed_map() {
        let slots = |capacity, segment_slots| {
            let options = Options { capacity, fixed: true, segment_slots, ..Options::default() };
            let shape = Shape::new(options).unwrap();
            f64::from(shape.segments * shape.buckets * SLOTS) / capacity as f64
        };
        for capacity in (1000..3000).step_by(7) {
            assert!(slots(capacity, None) <= 1.08, "{capacity}");
            for of_each in (4..800).step_by(4) {
                assert!(slots(capacity, Some(of_each)) <= 1.13, "{capacity} in segments of {of_each}");
            }
        }
        assert!(slots(1028, Some(68)) > 1.12);
    }

    #[test]
    fn one_segment_alone_has_memc3s_stripes() {
        let options =
            Options { capacity: 1_000_000, fixed: true, segment_slots: Some(1 << 21), ..Options::default() };
        let shape = Shape::new(options).unwrap();
        assert_eq!((shape.segments, shape.stripes), (1, 8192));
        assert_eq!(fixed(7_600_000).stripes, 64);
        assert_eq!(fixed(10).stripes_for(3), 2);
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn too_many_segments_are_refused_with_the_limit_that_their_size_makes() {
        for fixed in [false, true] {
            let options = Options { segment_slots: Some(4), fixed, ..Options::default() };
            let asked = |capacity| Shape::new(Options { capacity, ..options });
            let limit = asked(1 << 34).unwrap_err().limit;
            for too_many in [limit + 1, MAX_CAPACITY + 1, usize::MAX] {
                let error = asked(too_many).unwrap_err();
                assert_eq!((error.requested, error.limit), (too_many, limit), "{fixed}");
            }
            assert_eq!(asked(limit).map(|shape| shape.limit()), Ok(limit), "{fixed}");
        }
    }

    #[test]
    fn too_much_is_refused_with_the_limit() {
        let error = Shape::new(Options { capacity: usize::MAX, ..Options::default() }).unwrap_err();
        assert_eq!((error.requested, error.limit), (usize::MAX, MAX_CAPACITY));
        let text = error.to_string();
        assert!(text.contains(&usize::MAX.to_string()) && text.contains(&MAX_CAPACITY.to_string()), "{text}");
    }

    #[test]
    fn a_cache_s_segments_have_slots_for_their_share_at_four_fifths_and_two_buckets_more() {
        let shape = |segments, share| Shape::for_cache(segments, share).unwrap();
        assert_eq!((shape(1, 0).buckets, shape(1, 0).stripes), (2, 8192));
        assert_eq!((shape(1, 100).buckets, shape(1, 100).stripes_for(34)), (34, 32));
        assert_eq!((shape(16, 800).buckets, shape(16, 800).stripes), (252, 512));
        assert_eq!(shape(1 << 20, 1).stripes, 4, "no fewer than share a line with the head");
        assert_eq!((shape(4, 10).segments, shape(4, 10).fixed_capacity, shape(4, 10).budget), (4, None, 682));
        // 2^19 slots in all, or slightly fewer.
        assert!(shape(16, 26_208).huge_pages && !shape(16, 26_200).huge_pages && !shape(1, 100).huge_pages);
    }

    #[test]
    fn a_cache_s_segments_double_up_to_2_to_the_24_buckets_and_no_share_is_larger_than_half_of_that() {
        let largest = Shape::for_cache(1, 1 << 25).unwrap();
        assert_eq!(largest.split_buckets, 1 << 24);
        assert!(largest.buckets <= largest.split_buckets);
        let error = Shape::for_cache(3, (1 << 25) + 1).unwrap_err();
        assert_eq!((error.requested, error.limit), (3 * ((1 << 25) + 1), 3 << 25));
        assert!(!error.out_of_memory);
    }

    #[test]
    fn a_copy_has_the_shape_that_its_entries_need() {
        let shape = fixed(10);
        assert_eq!(shape.for_items(5), Ok(shape));
        assert_eq!(
            shape.for_items(12),
            Ok(Shape { fixed_capacity: Some(12), ..shape }),
            "more than was promised"
        );
        let options = Options { capacity: 100, segment_slots: Some(64), ..Options::default() };
        let copy = Shape::new(options).unwrap().for_items(1000).unwrap();
        assert_eq!(Ok(copy), Shape::new(Options { capacity: 1000, ..options }));
        assert_eq!((copy.split_buckets, copy.segments), (16, 18));
    }

    #[test]
    fn segments_have_no_more_stripes_than_buckets_and_sizes_are_for_nine_tenths() {
        let shape = Shape { stripes: 8, ..fixed(10) };
        assert_eq!([1, 2, 3, 7, 8, 100].map(|buckets| shape.stripes_for(buckets)), [1, 2, 2, 4, 8, 8]);
        // 0, 1, 2, 5, 4,000 and 4,001 slots.
        assert_eq!([0, 1, 2, 4, 3600, 3601].map(Shape::buckets_for), [1, 1, 1, 2, 1000, 1001]);
    }

    #[test]
    fn segments_of_a_fixed_map_have_2_to_the_16_slots_at_most_and_large_maps_huge_pages() {
        assert_eq!((fixed(61_800).segments, fixed(62_000).segments), (1, 2));
        assert!(fixed(494_930).huge_pages && !fixed(494_900).huge_pages);
        let told = |yes| {
            let options = Options { capacity: 1 << 20, huge_pages: Some(yes), ..Options::default() };
            let shape = Shape::new(options).expect("a shape");
            (shape.huge_pages, shape.may_grow_by_huge_pages())
        };
        assert_eq!((told(false), told(true)), ((false, false), (true, true)));
        assert!(fixed(1).may_grow_by_huge_pages());
        let growing = Shape::new(Options::default()).unwrap();
        assert_eq!((growing.budget, fixed(1).budget), (170, 682));
        let whole = Options { segment_slots: Some(usize::MAX), ..Options::default() };
        assert_eq!(Shape::new(whole).unwrap().split_buckets, 1 << 28);
    }
}
