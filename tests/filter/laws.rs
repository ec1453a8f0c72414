//! Laws that hold in every layout.

use koel::{CuckooFilter, ScalableCuckooFilter};

use crate::common::{Rng, seed};
use crate::{builder, layouts};

/// As many keys as are certain to fit, but few if that takes much memory.
fn capacity((bits, slots, _): (u32, u32, bool)) -> usize {
    match (bits, slots) {
        (2..=4, 1) => 20,
        (2..=4, _) | (_, 1) => 150,
        _ => 700,
    }
}

#[test]
fn every_layout_knows_all_its_keys_and_forgets_them_when_they_are_removed() {
    let seed = seed();
    for layout in layouts() {
        let n = capacity(layout);
        let filter = builder(layout).capacity(n).seed(seed).build().unwrap();
        let keys: Vec<u64> = (0..n as u64).collect();
        for (i, key) in keys.iter().enumerate() {
            assert!(filter.insert(key).is_ok(), "{layout:?}: no room after {i} of {n}");
        }
        assert_eq!(filter.len(), n);
        assert!(keys.iter().all(|key| filter.contains(key) && filter.count(key) >= 1), "{layout:?}");
        let mut found = vec![false; n];
        filter.contains_many(&keys, &mut found);
        assert!(found.iter().all(|found| *found), "{layout:?}");
        // While keys are removed one by one, the others stay.
        for (i, key) in keys.iter().enumerate() {
            assert!(filter.remove(key), "{layout:?}");
            if i % 16 == 0 {
                assert!(keys[i + 1..].iter().all(|key| filter.contains(key)), "{layout:?}");
            }
        }
        assert_eq!((filter.len(), filter.load_factor()), (0, 0.0));
        assert!(!keys.iter().any(|key| filter.contains(key) || filter.remove(key)), "{layout:?}");
        // Empty to the last bit, like one that was never used.
        let new = builder(layout).capacity(n).seed(seed).build().unwrap();
        assert_eq!(filter.to_bytes(), new.to_bytes(), "{layout:?}");
        assert_eq!(filter.insert_many(&keys), n);
        filter.clear();
        assert_eq!(filter.to_bytes(), new.to_bytes(), "{layout:?}");
    }
}

#[test]
fn every_layout_takes_as_many_copies_as_two_buckets_have_slots() {
    for layout in layouts() {
        let filter = builder(layout).capacity(100.min(capacity(layout))).seed(1).build().unwrap();
        let slots = 2 * layout.1 as usize;
        for copy in 1..=slots {
            assert_eq!(filter.insert(&"key"), Ok(()), "{layout:?}: copy {copy}");
            assert_eq!(filter.count(&"key"), copy);
        }
        let before = filter.to_bytes();
        assert!(filter.insert(&"key").is_err(), "{layout:?}");
        assert_eq!(filter.to_bytes(), before, "{layout:?}: Full changes nothing");
        assert_eq!(filter.insert_unique(&"key"), Ok(false));
        for left in (0..slots).rev() {
            assert!(filter.contains(&"key") && filter.remove(&"key"));
            assert_eq!(filter.count(&"key"), left);
        }
        assert!(filter.is_empty() && !filter.remove(&"key"));
    }
}

/// A full filter loses nothing when it refuses a key, and its contents are the multiset of the keys that were inserted and not
/// removed.
#[test]
fn a_churned_filter_keeps_every_key_that_it_took() {
    for layout in layouts().filter(|(bits, ..)| *bits >= 6) {
        let filter = builder(layout).capacity(400).seed(3).build().unwrap();
        let mut rng = Rng::new(seed());
        let mut present: Vec<u64> = Vec::new();
        let mut refused = 0;
        for _ in 0..1000 {
            if present.is_empty() || rng.below(10) < 9 {
                let key = rng.next();
                match filter.insert(&key) {
                    Ok(()) => present.push(key),
                    Err(_) => refused += 1,
                }
            } else {
                let key = present.swap_remove(rng.below(present.len() as u64) as usize);
                assert!(filter.remove(&key), "{layout:?}");
            }
        }
        assert!(refused > 0 || layout.1 <= 2, "{layout:?}: never full");
        assert_eq!(filter.len(), present.len());
        assert!(present.iter().all(|key| filter.contains(key)), "{layout:?}");
        present.iter().for_each(|key| assert!(filter.remove(key)));
        assert!(filter.is_empty());
    }
}

#[test]
fn false_positives_are_as_rare_as_expected() {
    for bits in 2..=20 {
        for (slots, semi_sorted) in [(2, false), (4, false), (4, true), (8, false)] {
            if semi_sorted && bits < 5 {
                continue;
            }
            let filter = builder((bits, slots, semi_sorted)).capacity(20_000).seed(seed()).build().unwrap();
            assert_eq!(filter.insert_many(&(0..20_000_u64).collect::<Vec<_>>()), 20_000);
            let before = filter.to_bytes();
            let probes = 200_000;
            let (expected, measured) =
                (filter.false_positive_rate(), filter.measure_false_positive_rate(probes));
            assert_eq!(filter.to_bytes(), before, "measuring changes nothing");
            // The formula of the paper, section 5.1.
            let paper = 2.0 * f64::from(slots) * filter.load_factor() / f64::from(1 << bits);
            assert!(bits < 8 || (expected / paper - 1.0).abs() < 0.1, "{expected} {paper}");
            let deviation = (expected * probes as f64).sqrt() / probes as f64;
            assert!(
                (measured - expected).abs() < 5.0 * deviation + 0.03 * expected,
                "{bits} bits, {slots} slots: {measured} instead of {expected}"
            );
        }
    }
}

/// The smallest tables: for one key, for fewer keys than two buckets have slots, and for a few more.
#[test]
fn false_positives_are_no_more_than_promised_where_there_are_few_keys() {
    for (capacity, rates) in [(1, [0.32, 0.146, 0.05]), (2, [0.27, 0.222, 0.05]), (9, [0.4, 0.2, 0.05])] {
        for rate in rates {
            let (mut expected, mut measured) = (0.0, 0.0);
            const FILTERS: u64 = 4000;
            for seed in 0..FILTERS {
                let builder = CuckooFilter::builder().capacity(capacity).false_positive_rate(rate);
                let filter = builder.seed(seed).build().unwrap();
                (0..capacity as u64).for_each(|key| filter.insert(&key).unwrap());
                expected += filter.false_positive_rate() / FILTERS as f64;
                measured += filter.measure_false_positive_rate(400) / FILTERS as f64;
            }
            let what = format!("{capacity} keys, {rate}: {measured}, {expected} expected");
            // A single filter's rate typically deviates by half of it.
            let chance = 5.0 * 0.5 * expected / (FILTERS as f64).sqrt();
            assert!(expected <= rate && (measured - expected).abs() < chance, "{what}");
        }
    }
}

/// Between one and two times 2^16 buckets are the best match of a segment's buckets and the digest's bits, the worst, and all
/// in between.
#[test]
fn false_positives_are_as_rare_as_expected_in_segments_of_every_size() {
    // Five standard deviations are 1.9% of 2.95%.
    let probes = 2_400_000;
    for n in [160_000, 200_000, 248_900, 373_550, 498_000] {
        let filter = builder((8, 4, false)).capacity(n).seed(1).build().unwrap();
        let hashes: Vec<u64> = (0..n as u64).map(|key| filter.hash(&key)).collect();
        assert_eq!(filter.insert_many_hash(&hashes), n);
        let (expected, measured) = (filter.false_positive_rate(), filter.measure_false_positive_rate(probes));
        let buckets = filter.info().segment_buckets;
        println!("{n} keys, {buckets} buckets in a segment: {measured}, {expected} expected");
        assert!(
            (measured / expected - 1.0).abs() < 0.02,
            "{n} keys, {buckets} buckets in a segment: {measured} instead of {expected}"
        );
    }
}

#[test]
fn the_forms_of_a_key_are_what_they_say() {
    let filter = CuckooFilter::builder().capacity(100).fingerprint_bits(32).seed(7).build().unwrap();
    filter.insert(&42_u64).unwrap();
    assert!(filter.contains_hash(filter.hash(&42_u64)));
    assert!(filter.contains_bytes(&42_u64.to_le_bytes()), "an integer is its bytes");
    filter.insert_bytes(b"ada").unwrap();
    assert!(filter.contains_bytes(b"ada") && filter.contains_hash(filter.hash_bytes(b"ada")));
    assert!(!filter.contains_bytes(b"grace"));
    assert!(filter.remove_bytes(b"ada") && filter.remove_hash(filter.hash(&42_u64)));
    assert!(filter.is_empty());
    assert_eq!(filter.insert_unique_hash(1), Ok(true));
    assert_eq!(filter.insert_unique_hash(1), Ok(false));
    assert_eq!((filter.insert_many_hash(&[2, 3]), filter.count_hash(1)), (2, 1));
    let mut found = [false; 4];
    filter.contains_many_hash(&[1, 2, 3, 4], &mut found);
    assert_eq!(found, [true, true, true, false]);
}

#[test]
fn a_union_has_the_keys_of_both_or_changes_nothing() {
    for layout in layouts().filter(|(bits, slots, _)| *bits >= 6 && *slots > 1).step_by(7) {
        let build = |seed| builder(layout).capacity(1000).seed(seed).build().unwrap();
        let (one, other) = (build(1), build(1));
        assert_eq!(one.insert_many(&(0..500_u64).collect::<Vec<_>>()), 500);
        assert_eq!(other.insert_many(&(500..1000_u64).collect::<Vec<_>>()), 500);
        one.try_union(&other).unwrap();
        assert_eq!((one.len(), other.len()), (1000, 500));
        assert!((0..1000_u64).all(|key| one.contains(&key)), "{layout:?}");
        assert!(one.try_union(&build(2)).is_err(), "another seed");
        // A union with itself soon does not fit.
        let refused = (0..3).any(|_| {
            let before = one.len();
            one.try_union(&one).is_err() && one.len() == before
        });
        assert!(refused, "{} where a thousand are sure to fit: {layout:?}", one.len());
        assert!((0..1000_u64).all(|key| one.contains(&key)), "{layout:?}");
    }
}

#[test]
fn filters_are_shared_between_threads() {
    fn both<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    both::<CuckooFilter>();
    both::<koel::FilterView<'static>>();
    both::<koel::ChunkLoader>();
}

#[test]
fn info_tells_what_was_built() {
    let filter = CuckooFilter::from_keys(0..1000, 0.01).unwrap();
    let info = filter.info();
    assert_eq!((info.capacity_keys, info.len, info.slots), (1000, 1000, filter.capacity()));
    assert!(info.false_positive_rate_when_full <= 0.01 && info.false_positive_rate <= 0.01);
    assert_eq!(info.memory_usage, filter.memory_usage());
    let text = info.to_string();
    assert!(info.segments == 1 && text.contains(" 1 segment of "), "{text}");
    let growing = ScalableCuckooFilter::new(0.01).unwrap().info().to_string();
    assert!(growing.starts_with("growing cuckoo filter: 1 table\n"), "{growing}");
    let bits = format!("{}-bit fingerprints", info.fingerprint_bits);
    assert!(text.contains(&bits) && text.contains("1000 of 1000"), "{text}");
    assert!(format!("{filter:?}").contains("CuckooFilter"));
}
