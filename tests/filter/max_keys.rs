//! How many keys a growing filter takes, as fingerprints cannot be longer than 32 bits.

use koel::{FilterError, ScalableCuckooFilter};

use crate::common::seed;

/// The list in the documentation of `ScalableCuckooFilter::new`.
#[test]
fn as_many_keys_have_room_as_the_documentation_says() {
    let list = [
        (0.5, 504_900_000),
        (0.01, 504_900_000),
        (1e-3, 504_900_000),
        (1e-4, 126_200_000),
        (1e-5, 15_770_000),
        (1e-6, 1_968_000),
        (1e-7, 119_400),
        (1e-8, 11_550),
    ];
    for (rate, keys) in list {
        let most = ScalableCuckooFilter::new(rate).unwrap().max_keys();
        assert!((keys..keys + keys / 1000).contains(&most), "{rate}: {most}");
    }
}

#[test]
fn a_larger_first_table_has_room_for_more_keys_in_all() {
    let most = |capacity, rate| {
        let builder = ScalableCuckooFilter::builder().capacity(capacity).false_positive_rate(rate);
        builder.build().unwrap().max_keys()
    };
    // Tables have at least 1,024 buckets.
    assert_eq!(most(1, 1e-7), most(3500, 1e-7));
    for (capacity, keys) in [(10_000, 310_000), (100_000, 3_100_000), (1_000_000, 31_000_000)] {
        assert!((keys..keys + keys / 500).contains(&most(capacity, 1e-7)), "{capacity}");
    }
    // As many segments as there can be.
    #[cfg(target_pointer_width = "64")]
    assert_eq!(most(1_000_000, 0.1), most(1_000_000, 1e-3));
}

/// It is full when it has this many keys, and not many more.
#[test]
fn a_filter_of_a_low_rate_takes_as_many_keys_as_it_says() {
    for (rate, tables) in [(4e-9, 1), (1e-8, 2), (1e-7, 5)] {
        for (slots, beyond) in [(1, 2.1), (2, 1.15), (4, 1.06), (8, 1.04)] {
            let builder = ScalableCuckooFilter::builder().false_positive_rate(rate).bucket_slots(slots);
            let filter = match builder.seed(seed()).build() {
                Ok(filter) => filter,
                // With larger buckets, the lowest rates are impossible.
                Err(FilterError::RateTooLow { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let most = filter.max_keys();
            let inserted = (0_u64..).take_while(|key| filter.insert(key).is_ok()).count();
            let info = filter.info();
            // If it has only one table, three keys may share both buckets of one slot.
            let least = if slots == 1 && info.tables.len() == 1 { most / 10 } else { most };
            assert!(inserted >= least, "{rate}, {slots}: {inserted} of {most} keys\n{info}");
            assert!(inserted as f64 <= beyond * most as f64, "{rate}, {slots}: {inserted} of {most}\n{info}");
            assert!(slots != 4 || info.tables.len() == tables, "{info}");
            assert_eq!(filter.max_keys(), most, "it stays");
        }
    }
}

/// Even if segments are too small to be filled as far as large ones.
#[test]
fn the_first_table_is_made_for_as_many_keys_as_were_asked_for() {
    for slots in [1, 2, 4, 8] {
        for capacity in (1..30_000).step_by(97).chain([100_000, 262_145, 1_000_000]) {
            let plan = ScalableCuckooFilter::builder().capacity(capacity).bucket_slots(slots).plan().unwrap();
            let table = &plan.tables[0];
            assert!(table.capacity_keys >= capacity, "{capacity} in {table:?}");
            // And no larger than it need be: by a pair of buckets, or the minimum.
            let spare =
                table.slots as f64 - capacity as f64 / (table.capacity_keys as f64 / table.slots as f64);
            let pair = 2.0 * f64::from(slots) + 0.001 * table.slots as f64;
            assert!(spare <= pair || table.slots == 1024 * slots as usize, "{capacity} in {table:?}");
        }
    }
}

/// One small segment runs out of room before the others are as full as a table of that size could be on the whole: of all seeds
/// up to 40, these reach less than 98% of the slots.
#[test]
fn what_it_says_goes_by_the_size_of_segments_not_of_tables() {
    for seed in [16, 24] {
        let builder = ScalableCuckooFilter::builder().false_positive_rate(5e-7).bucket_slots(8);
        let filter = builder.seed(seed).build().unwrap();
        let inserted = (0_u64..).take_while(|key| filter.insert(key).is_ok()).count();
        assert!(inserted >= filter.max_keys() && inserted * 100 < filter.capacity() * 98, "{inserted}");
    }
}
