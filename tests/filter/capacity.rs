//! As many keys fit as were asked for.

use koel::{CuckooFilter, FilterBuilder, FilterError, ScalableCuckooFilter};

use crate::common::{env_number, seed};

/// Inserts `n` random keys and fails if one does not fit.
fn fill(filter: &CuckooFilter, n: usize, salt: u64) {
    let hashes: Vec<u64> = (0..n as u64).map(|key| filter.hash(&(key, salt))).collect();
    let inserted = filter.insert_many_hash(&hashes);
    assert_eq!(inserted, n, "{}", filter.info());
}

#[test]
fn a_million_keys_fit_at_every_rate() {
    let n = env_number("KOEL_FILTER_KEYS", 1_000_000);
    for (i, rate) in [0.1, 0.03, 0.01, 0.001, 1e-4, 1e-6].into_iter().enumerate() {
        for round in 0..3 {
            let seed = seed() + 10 * i as u64 + round;
            let builder = CuckooFilter::builder().capacity(n).false_positive_rate(rate).seed(seed);
            let filter = builder.build().unwrap();
            fill(&filter, n, round);
            let info = filter.info();
            assert!(info.false_positive_rate <= rate);
            assert!(info.bucket_slots != 4 || info.slots as f64 <= n as f64 / 0.94, "{info}");
        }
    }
}

#[test]
fn a_million_keys_fit_in_buckets_of_every_size() {
    let narrow = [(2, 8), (3, 8), (4, 8), (5, 8), (4, 4), (5, 4), (6, 4)];
    let wide = [(16, 1), (24, 1), (8, 2), (12, 2), (8, 4), (12, 4), (8, 8), (20, 8)];
    for (bits, slots) in narrow.into_iter().chain(wide) {
        let builder = CuckooFilter::builder().capacity(1_000_000).fingerprint_bits(bits).bucket_slots(slots);
        match builder.seed(seed()).build() {
            Ok(filter) => fill(&filter, 1_000_000, 1),
            Err(error) => assert_eq!(slots, 1, "{error}"),
        }
    }
}

/// The expected number of groups of keys that are too many for the two buckets they share: each group leaves a key out, so that
/// sets of keys that do not fit are at least as probable.
fn expected_misfits(n: usize, filter: &CuckooFilter) -> f64 {
    let info = filter.info();
    let (group, values) = (2 * info.bucket_slots as i32 + 1, f64::powi(2.0, info.fingerprint_bits as i32));
    let buckets = (info.segments * info.segment_buckets) as f64;
    let groups: f64 = (0..group).map(|i| (n as f64 - f64::from(i)).max(0.0) / f64::from(i + 1)).product();
    // One fingerprint stands for two.
    let of_one_fingerprint = (f64::powi(2.0, group) + values - 2.0) / values.powi(group);
    groups * of_one_fingerprint * (2.0 / buckets).powi(group - 1)
}

#[test]
fn one_random_set_of_keys_in_a_million_may_not_fit() {
    for n in [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 30_000_000] {
        for (bits, slots) in (2..=9).flat_map(|bits| [1, 2, 4, 8].map(|slots| (bits, slots))) {
            let builder = CuckooFilter::builder().capacity(n).fingerprint_bits(bits).bucket_slots(slots);
            if let Ok(filter) = builder.build() {
                let expected = expected_misfits(n, &filter);
                assert!(expected < 1e-6, "{n} keys: {expected:e}: {}", filter.info());
            }
        }
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn as_many_keys_as_are_said_to_be_possible_are() {
    let limit = |builder: FilterBuilder| match builder.build().unwrap_err() {
        FilterError::Capacity { limit, .. } => limit,
        other => panic!("{other}"),
    };
    let builder = CuckooFilter::builder;
    assert!(limit(builder().capacity(40_000_000_000)) > 33_000_000_000, "in buckets of eight");
    assert!(limit(builder()) == limit(builder().capacity(usize::MAX)), "none given");
    let narrow = builder().fingerprint_bits(2).false_positive_rate(0.9);
    assert!(limit(narrow.capacity(8_000_000_000)) > 1_000_000, "in buckets of eight");
    let growing = |slots| ScalableCuckooFilter::builder().bucket_slots(slots).capacity(9_000_000_000).build();
    for (slots, most) in [(1, 1_717_986_918), (2, 7_215_545_057), (4, 1 << 33), (8, 1 << 33)] {
        assert!(
            matches!(growing(slots), Err(FilterError::Capacity { limit, .. }) if limit == most),
            "{slots}"
        );
    }
}

#[test]
fn small_filters_hold_what_they_promise() {
    for n in (1..=64).chain([100, 150, 250, 400, 700, 1000, 2000, 5000, 10_000]) {
        for (bits, slots) in [(4, 4), (8, 1), (8, 2), (8, 4), (8, 8), (16, 1), (16, 4), (12, 8)] {
            for round in 0..if n < 1000 { 20 } else { 3 } {
                let builder = CuckooFilter::builder().capacity(n).fingerprint_bits(bits).bucket_slots(slots);
                match builder.seed(seed() + round).build() {
                    Ok(filter) => fill(&filter, n, round),
                    Err(error) => assert!((bits, slots) == (8, 1) && n > 3210, "{error}"),
                }
            }
        }
    }
}

#[test]
fn filters_of_keys_are_built_for_their_number() {
    for n in [1, 10, 1000, 100_000] {
        let filter = CuckooFilter::from_keys(0..n, 0.001).unwrap();
        assert_eq!((filter.len(), filter.info().capacity_keys), (n, n));
        assert!((0..n).all(|key| filter.contains(&key)));
    }
    let none = CuckooFilter::from_keys(0..0, 0.001).unwrap();
    assert!(none.is_empty() && (0..1000).all(|key| !none.contains(&key)));
    assert!(CuckooFilter::from_keys([1; 100], 0.001).is_err(), "a hundred copies");
}

/// Keys `0..n`, each so many times.
fn repeated(n: u64, copies: usize) -> impl Iterator<Item = u64> + Clone {
    (0..copies).flat_map(move |_| 0..n)
}

#[test]
fn keys_that_all_come_several_times_have_room_as_often() -> Result<(), FilterError> {
    for copies in [2, 3, 4, 8] {
        for n in [1, 2, 10, 1000, 30_000] {
            for rate in [0.03, 1e-6] {
                let filter = CuckooFilter::builder().false_positive_rate(rate).seed(seed());
                let filter = filter.from_keys(repeated(n, copies))?;
                assert_eq!(filter.len(), copies * n as usize);
                assert!((0..n).all(|key| filter.count(&key) >= copies), "{}", filter.info());
                assert!(filter.false_positive_rate() <= rate, "{}", filter.info());
            }
        }
    }
    // With a chosen number of slots per bucket, and keys that occur at most as often as one bucket has slots.
    for (slots, copies) in [(2, 2), (4, 2), (4, 4), (8, 8)] {
        let builder = || CuckooFilter::builder().bucket_slots(slots).fingerprint_bits(20).seed(seed());
        assert_eq!(builder().from_keys(repeated(30_000, copies))?.len(), 30_000 * copies);
        #[cfg(feature = "rayon")]
        assert_eq!(
            builder().par_from_keys(repeated(30_000, copies).collect::<Vec<_>>())?.len(),
            30_000 * copies
        );
    }
    // A quarter are second copies, and a few keys occur as often as two buckets have slots.
    let some = (0..150_000).chain(0..50_000).chain(repeated(3, 6));
    let builder = CuckooFilter::builder().bucket_slots(4).fingerprint_bits(16).seed(seed());
    assert_eq!(builder.from_keys(some)?.len(), 200_018);
    Ok(())
}

#[test]
fn key_that_comes_too_often_is_told_without_a_search_for_larger_filters() {
    for n in [0, 1000, 300_000] {
        let builder = || CuckooFilter::builder().bucket_slots(4).fingerprint_bits(16).seed(seed());
        let error = builder().from_keys((0..n).chain([u64::MAX; 9])).unwrap_err();
        assert!(matches!(error, FilterError::Full { inserted } if inserted as u64 == n + 8), "{error}");
    }
    // Eight slots for sixteen copies, and no more.
    assert_eq!(CuckooFilter::from_keys([1; 16], 0.01).unwrap().len(), 16);
    assert!(matches!(CuckooFilter::from_keys([1; 17], 0.01), Err(FilterError::Full { .. })));
}

/// Not as large as a table in which three keys of eight copies each never share two buckets; nor, with short fingerprints, as
/// one in which they seldom do.
#[test]
fn keys_that_come_several_times_take_some_times_as_much_memory() -> Result<(), FilterError> {
    let check = |builder: fn() -> FilterBuilder, n, cases: [(usize, f64); 3]| -> Result<(), FilterError> {
        let bytes = |n, copies| -> Result<f64, FilterError> {
            Ok(builder().seed(seed()).from_keys(repeated(n, copies))?.memory_usage() as f64)
        };
        let different = bytes(n, 1)?;
        for (copies, most) in cases {
            let times = bytes(n / copies as u64, copies)? / different;
            assert!(times <= most, "{n} keys, each {copies} times: {times} times as large");
        }
        Ok(())
    };
    for n in [20_000, 200_000] {
        check(|| CuckooFilter::builder().false_positive_rate(0.01), n, [(2, 1.5), (4, 3.0), (8, 6.0)])?;
        let eight = || CuckooFilter::builder().fingerprint_bits(8).bucket_slots(8);
        check(eight, n, [(2, 1.5), (4, 3.0), (8, 6.0)])?;
    }
    Ok(())
}

/// Buckets of one slot have no room for many pairs, and a growing filter has a limit of its own.
#[test]
fn errors_do_not_tell_of_a_limit_that_was_not_met() {
    let pairs = CuckooFilter::builder().bucket_slots(1).fingerprint_bits(16).from_keys(repeated(1000, 2));
    let once = ScalableCuckooFilter::builder().max_duplicates(1).from_keys([7, 7]);
    for text in [pairs.unwrap_err().to_string(), once.unwrap_err().to_string()] {
        assert!(text.contains("more often than it has room for") && !text.contains("two buckets"), "{text}");
    }
    let twice = ScalableCuckooFilter::builder().max_duplicates(1).build().unwrap();
    let full = twice.insert(&7).and_then(|()| twice.insert(&7)).unwrap_err();
    assert!(FilterError::from(full).to_string().ends_with("as often as it may be"));
}

/// All functions by bytes agree, and none of them agrees with `Hash`.
#[test]
fn filters_of_bytes_are_built_of_bytes_and_asked_by_them() -> Result<(), FilterError> {
    let names: Vec<String> = (0..500).map(|n| format!("name {n}")).collect();
    let filter = CuckooFilter::from_keys_bytes(&names, 1e-8)?;
    let growing = ScalableCuckooFilter::from_keys_bytes(&names, 1e-8)?;
    for name in names.iter().map(String::as_bytes) {
        assert!(filter.contains_bytes(name) && growing.contains_bytes(name));
        assert!(!filter.insert_unique_bytes(name)? && !growing.insert_unique_bytes(name)?);
    }
    // In one of a hundred thousand runs one key is taken for another.
    let is_mistaken = |name: &&String| {
        let name = name.as_bytes();
        filter.contains(name)
            || growing.contains(name)
            || (filter.count_bytes(name), growing.count_bytes(name)) != (1, 1)
    };
    assert!(names.iter().filter(is_mistaken).count() < 4);
    assert_eq!((filter.len(), growing.len()), (500, 500));
    assert!(filter.insert_unique_bytes(b"another")? && growing.insert_unique_bytes(b"another")?);
    growing.insert_bytes(b"another")?;
    assert_eq!((filter.count_bytes(b"another"), growing.count_bytes(b"another")), (1, 2));
    let full = (0..).find_map(|_| filter.insert_bytes(b"another").err()).expect("two buckets are full of it");
    assert!(matches!(full.into(), FilterError::Full { inserted: 0 }));
    Ok(())
}

/// Filled segment by segment, not in the order of the keys.
#[test]
fn every_key_is_in_a_filter_that_is_filled_segment_by_segment() {
    let n = 2_100_000_u64;
    let build =
        |keys: &mut dyn Iterator<Item = u64>| CuckooFilter::builder().fingerprint_bits(32).from_keys(keys);
    let filter = build(&mut (0..n)).unwrap();
    assert!(filter.memory_usage() > 8 << 20 && filter.info().segments > 1, "{}", filter.info());
    // An iterator of unknown length.
    let other = build(&mut (0..n).filter(|_| true)).unwrap();
    for filter in [filter, other] {
        assert_eq!(filter.len() as u64, n);
        assert!((0..n).all(|key| filter.contains(&key)));
        assert!((n..2 * n).filter(|key| filter.contains(key)).count() < 10);
    }
    let error = build(&mut (0..n).chain([7; 8])).unwrap_err();
    assert!(matches!(error, FilterError::Full { inserted } if inserted as u64 == n + 7), "{error}");
}

#[cfg(feature = "rayon")]
#[test]
fn filters_are_built_on_all_threads() {
    use rayon::prelude::*;

    for n in [1_u64, 1000, 1_000_000] {
        let builder = || CuckooFilter::builder().false_positive_rate(0.001).seed(1);
        let (filter, other) = (builder().par_from_keys(0..n).unwrap(), builder().from_keys(0..n).unwrap());
        // An iterator of unknown length.
        let unknown = builder().par_from_keys((0..n).into_par_iter().filter(|_| true)).unwrap();
        for filter in [filter, unknown] {
            assert_eq!((filter.len(), filter.capacity()), (other.len(), other.capacity()));
            assert!((0..n).all(|key| filter.contains(&key)));
        }
    }
    assert!(CuckooFilter::builder().par_from_keys(vec![1; 100]).is_err(), "a hundred copies");
    assert!(CuckooFilter::builder().par_from_keys(0..0).unwrap().is_empty());
}

/// All functions that make a filter make the same one.
#[cfg(feature = "rayon")]
#[test]
fn filters_are_built_on_all_threads_without_a_builder_and_of_bytes() -> Result<(), FilterError> {
    let names: Vec<String> = (0..500).map(|n| format!("name {n}")).collect();
    let by_hash =
        (CuckooFilter::par_from_keys(&names, 1e-7)?, ScalableCuckooFilter::par_from_keys(&names, 1e-7)?);
    let by_bytes = (
        CuckooFilter::par_from_keys_bytes(&names, 1e-8)?,
        ScalableCuckooFilter::par_from_keys_bytes(&names, 1e-8)?,
    );
    for name in &names {
        assert!(by_hash.0.contains(name) && by_hash.1.contains(name));
        assert!(by_bytes.0.contains_bytes(name.as_bytes()) && by_bytes.1.contains_bytes(name.as_bytes()));
    }
    // As above.
    let is_mistaken = |name: &&String| by_bytes.0.contains(*name) || by_bytes.1.contains(*name);
    assert!(names.iter().filter(is_mistaken).count() < 4);
    assert_eq!((by_hash.0.len(), by_hash.1.len(), by_bytes.0.len(), by_bytes.1.len()), (500, 500, 500, 500));
    assert!(by_bytes.0.false_positive_rate() <= 1e-8 && by_bytes.1.false_positive_rate() <= 1e-8);
    Ok(())
}

#[test]
fn growing_filters_of_no_keys_are_built_whatever_capacity_is_asked_for() {
    for capacity in [0, 1, 10_000] {
        let builder = || ScalableCuckooFilter::builder().capacity(capacity);
        assert!(builder().from_keys([0_u64; 0]).unwrap().is_empty());
        #[cfg(feature = "rayon")]
        assert!(builder().par_from_keys(Vec::<u64>::new()).unwrap().is_empty());
    }
}

/// Except in buckets of one slot.
#[test]
fn the_first_table_of_a_growing_filter_has_room_for_its_capacity() {
    for (bits, slots) in [(8, 2), (16, 2), (8, 4), (16, 4), (8, 8), (16, 8)] {
        for capacity in [1, 2000, 3851, 8100, 50_000, 300_000] {
            let builder = ScalableCuckooFilter::builder().capacity(capacity).fingerprint_bits(bits);
            let filter = builder.bucket_slots(slots).seed(seed()).build().unwrap();
            (0..capacity as u64).for_each(|key| filter.insert(&key).unwrap());
            assert_eq!(filter.info().tables.len(), 1, "{}", filter.info());
        }
    }
}
