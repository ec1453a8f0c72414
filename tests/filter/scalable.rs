//! The filter that grows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel::{FilterError, ScalableCuckooFilter};

use crate::common::{Rng, SetAtEnd, env_number, on_threads, seed};
use crate::layouts;

pub(crate) fn new(capacity: usize, rate: f64) -> ScalableCuckooFilter {
    ScalableCuckooFilter::builder().capacity(capacity).false_positive_rate(rate).seed(seed()).build().unwrap()
}

#[test]
fn a_growing_filter_knows_all_its_keys_and_keeps_its_rate() {
    for rate in [0.1, 0.01, 0.0001] {
        let filter = new(1000, rate);
        let n = 200_000_u64;
        for key in 0..n {
            assert_eq!(filter.insert(&key), Ok(()), "{}", filter.info());
        }
        assert_eq!(filter.len() as u64, n);
        assert!(filter.info().tables.len() >= 5, "{}", filter.info());
        assert!((0..n).all(|key| filter.contains(&key)), "{}", filter.info());
        assert!(filter.false_positive_rate() <= rate, "{}", filter.info());
        let wrong = (n..2 * n).filter(|key| filter.contains(key)).count() as f64 / n as f64;
        assert!(wrong <= rate * 1.1, "{wrong} of {rate}: {}", filter.info());
        assert!(filter.load_factor() > 0.4, "{}", filter.info());
        (0..n).for_each(|key| assert!(filter.remove(&key)));
        assert!(filter.is_empty() && !filter.contains(&1));
    }
}

#[test]
fn one_key_does_not_make_a_filter_grow() {
    let filter = ScalableCuckooFilter::builder().max_duplicates(5).seed(seed()).build().unwrap();
    for _ in 0..5 {
        filter.insert("ada").unwrap();
    }
    assert!((0..10_000).all(|_| filter.insert("ada").is_err()));
    assert_eq!((filter.count("ada"), filter.len(), filter.info().tables.len()), (5, 5, 1));
    assert_eq!(filter.insert_unique("ada"), Ok(false));
    assert_eq!(filter.insert_unique("grace"), Ok(true));
    assert!(filter.remove("ada") && filter.insert("ada").is_ok());
}

#[test]
fn compaction_empties_tables_and_loses_nothing() {
    let filter = new(1000, 0.001);
    let n = 100_000_u64;
    (0..n).for_each(|key| filter.insert(&key).unwrap());
    let tables = filter.info().tables.len();
    assert_eq!(filter.compact(), 0, "no room for any");
    // A tenth of the keys stays.
    (0..n).filter(|key| key % 10 != 0).for_each(|key| assert!(filter.remove(&key)));
    let memory = filter.memory_usage();
    let given_back = filter.compact();
    assert!(given_back > 0 && filter.info().tables.len() == tables - given_back, "{}", filter.info());
    assert!(filter.memory_usage() < memory / 2);
    assert_eq!(filter.len() as u64, n / 10);
    assert!((0..n).step_by(10).all(|key| filter.contains(&key)), "{}", filter.info());
    // It grows again, and all can be removed.
    (n..2 * n).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..n).step_by(10).chain(n..2 * n).all(|key| filter.contains(&key)));
    assert!(filter.false_positive_rate() <= 0.001);
    (0..n).step_by(10).chain(n..2 * n).for_each(|key| assert!(filter.remove(&key)));
    assert!(filter.is_empty());
    filter.compact();
    assert_eq!(filter.info().tables.len(), 1);
}

/// A filter of two tables, which can have no third, because fingerprints of 32 bits are the widest.
#[test]
fn what_is_removed_from_an_old_table_makes_room_in_a_filter_that_cannot_grow() {
    let filter = ScalableCuckooFilter::builder().fingerprint_bits(31).seed(seed()).build().unwrap();
    // Nearly all of the last keys are refused.
    let (mut keys, mut refused) = (Vec::new(), 0);
    for key in 0_u64.. {
        if filter.insert(&key).is_ok() {
            keys.push(key);
            refused = 0;
        } else {
            refused += 1;
        }
        if refused == 1000 {
            break;
        }
    }
    let (old, len) = (filter.info().tables[0].len, filter.len());
    assert_eq!((filter.info().tables.len(), keys.len()), (2, len));
    let gone = 500;
    // The first keys came when there was one table.
    assert!(keys.drain(..gone).all(|key| filter.remove(&key)));
    assert_eq!(filter.info().tables[0].len, old - gone);
    let more = (1_u64 << 40..).take(50_000).filter(|key| filter.insert(key).is_ok());
    keys.extend(more);
    assert!(
        filter.len() >= len - gone / 20 && filter.info().tables[0].len >= old - gone / 20,
        "{}",
        filter.info()
    );
    assert!(keys.iter().all(|key| filter.contains(key)));
    assert!(keys.iter().all(|key| filter.remove(key)) && filter.is_empty());
}

/// Tables in the middle are given back: those that are left are not each twice as large as the next.
#[test]
fn look_ups_find_their_way_where_tables_in_the_middle_were_given_back() {
    let filter = new(1000, 0.01);
    // Keys grouped by how many tables there were when they were inserted.
    let mut keys = vec![Vec::new(); 6];
    let mut next = 0_u64..;
    while keys[5].len() < 20_000 {
        let key = next.next().expect("there is no end");
        filter.insert(&key).unwrap();
        keys[filter.info().tables.len() - 1].push(key);
    }
    let mut held = Vec::new();
    for (tables, keys) in keys.into_iter().enumerate() {
        let stays = |i: usize| match tables {
            0 | 1 => i % 2 == 1,
            2 | 3 => i % 40 == 0,
            _ => true,
        };
        for (i, key) in keys.into_iter().enumerate() {
            if stays(i) {
                held.push(key);
            } else {
                assert!(filter.remove(&key));
            }
        }
    }
    assert!(filter.compact() > 0);
    let bits: Vec<u32> = filter.info().tables.iter().map(|table| table.fingerprint_bits).collect();
    assert!(bits.windows(2).any(|pair| pair[1] > pair[0] + 1), "a gap: {}", filter.info());
    let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
    for filter in [filter, copy] {
        let mut held = held.clone();
        held.extend(1 << 40..(1 << 40) + 30_000);
        held[held.len() - 30_000..].iter().for_each(|key| filter.insert(key).unwrap());
        let mut found = vec![false; held.len()];
        filter.contains_many(&held, &mut found);
        assert!(
            found.iter().all(|found| *found) && held.iter().all(|key| filter.contains(key)),
            "{}",
            filter.info()
        );
        filter.compact();
        assert!(held.iter().all(|key| filter.contains(key)), "{}", filter.info());
        assert!(held.iter().all(|key| filter.remove(key)) && filter.is_empty());
    }
}

/// Old tables are filled to the last slots, more than compaction would fill them.
#[test]
fn a_table_of_which_nothing_is_left_is_given_back_however_full_the_others_are() {
    let filter = new(1000, 0.001);
    let mut next = 0_u64..;
    let mut insert = || {
        let key = next.next().expect("there is no end");
        filter.insert(&key).unwrap();
        key
    };
    let mut later = Vec::new();
    while later.len() < 7000 {
        let key = insert();
        if filter.info().tables.len() > 1 {
            later.push(key);
        }
    }
    while filter.info().tables[1].len > 0 {
        let key = later.pop().expect("none that came before is in the second table");
        assert!(filter.remove(&key));
    }
    assert_eq!((filter.compact(), filter.info().tables.len()), (1, 1), "{}", filter.info());
}

/// Copies of two keys that are equal in some tables and not in others: whatever is removed, the other stays.
#[test]
fn removing_one_key_never_loses_another() {
    let mut rng = Rng::new(seed());
    // Six bits in the first table: many keys are equal there.
    let filter = new(1000, 0.5);
    let mut present: Vec<u64> = Vec::new();
    for round in 0..60_000_u64 {
        if present.is_empty() || rng.below(100) < 52 + 20 * u64::from(round < 10_000) {
            let key = rng.next();
            if filter.insert(&key).is_ok() {
                present.push(key);
            }
        } else {
            let key = present.swap_remove(rng.below(present.len() as u64) as usize);
            assert!(filter.remove(&key));
        }
        if round % 5000 == 0 {
            filter.compact();
            assert!(present.iter().all(|key| filter.contains(key)), "{}", filter.info());
        }
    }
    assert_eq!(filter.len(), present.len());
}

/// Readers look up keys that stay, while others come and go, and the filter grows and is compacted.
#[test]
fn reader_never_misses_a_key_that_is_held_while_tables_come_and_go() {
    let filter = new(1000, 0.01);
    let held = 3000_u64;
    // So that they are in tables of all ages.
    let (mut rng, compactions) = (Rng::new(seed()), AtomicU64::new(0));
    for key in 0..held {
        filter.insert(&key).unwrap();
        (0..10).for_each(|i| filter.insert(&(1_000_000 + 10 * key + i)).unwrap());
    }
    (0..10 * held).for_each(|key| assert!(filter.remove(&(1_000_000 + key))));
    let done = AtomicBool::new(false);
    let keys: Vec<u64> = (0..10_000).map(|_| rng.below(held)).collect();
    on_threads(3, |thread| match thread {
        0 => {
            let _end = SetAtEnd(&done);
            for key in keys.iter().cycle().take(env_number("KOEL_FILTER_LOOKUPS", 1_000_000)) {
                assert!(filter.contains(key), "missed {key}: {}", filter.info());
            }
        }
        1 => {
            while !done.load(Ordering::Relaxed) {
                compactions.fetch_add(filter.compact() as u64, Ordering::Relaxed);
                std::thread::yield_now();
            }
        }
        _ => {
            let mut next = 1_u64 << 32;
            while !done.load(Ordering::Relaxed) {
                let batch = next..next + 20_000;
                batch.clone().for_each(|key| filter.insert(&key).unwrap());
                assert!(batch.clone().all(|key| filter.contains(&key)));
                batch.clone().for_each(|key| assert!(filter.remove(&key), "gone: {key}"));
                next = batch.end;
            }
        }
    });
    assert!(compactions.load(Ordering::Relaxed) > 0, "{}", filter.info());
    assert_eq!(filter.len() as u64, held);
    (0..held).for_each(|key| assert!(filter.remove(&key)));
    assert!(filter.is_empty());
}

#[test]
fn a_growing_filter_comes_back_from_its_bytes() {
    let filter = new(1000, 0.001);
    (0..50_000_u64).for_each(|key| filter.insert(&key).unwrap());
    let bytes = filter.to_bytes();
    let copy = ScalableCuckooFilter::from_bytes(&bytes).unwrap();
    assert_eq!((copy.to_bytes(), copy.len()), (bytes.clone(), filter.len()));
    assert!((0..50_000_u64).all(|key| copy.contains(&key)));
    (50_000..200_000_u64).for_each(|key| copy.insert(&key).unwrap());
    assert!(copy.false_positive_rate() <= 0.001);
    (0..200_000_u64).for_each(|key| assert!(copy.remove(&key)));
    // Truncations and flips, here and there.
    for at in (0..bytes.len()).step_by(bytes.len() / 200).chain(0..200) {
        assert!(ScalableCuckooFilter::from_bytes(&bytes[..at]).is_err());
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(ScalableCuckooFilter::from_bytes(&damaged).is_err(), "byte {at}");
    }
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(&filter).unwrap();
        assert_eq!(serde_json::from_str::<ScalableCuckooFilter>(&json).unwrap().to_bytes(), bytes);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for rate in [0.0, 1.0, f64::NAN, -1.0] {
        assert!(matches!(ScalableCuckooFilter::new(rate), Err(FilterError::Rate { .. })));
    }
    assert!(matches!(ScalableCuckooFilter::new(1e-12), Err(FilterError::RateTooLow { .. })));
    for capacity in [0, usize::MAX] {
        let error = ScalableCuckooFilter::builder().capacity(capacity).build().unwrap_err();
        assert!(matches!(error, FilterError::Capacity { .. }), "{error}");
    }
}

#[test]
fn many_at_once_are_as_many_one_by_one() {
    let (filter, other) = (new(1000, 0.01), new(1000, 0.01));
    let keys: Vec<u64> = (0..30_000).collect();
    assert_eq!(filter.insert_many(&keys), keys.len());
    keys.iter().for_each(|key| other.insert(key).unwrap());
    assert_eq!(filter.to_bytes(), other.to_bytes());
    let asked: Vec<u64> = (0..70_001).collect();
    let mut found = vec![true; asked.len()];
    filter.contains_many(&asked, &mut found);
    assert!(asked.iter().zip(&found).all(|(key, found)| *found == filter.contains(key)));
    let hashes: Vec<u64> = asked.iter().map(|key| filter.hash(key)).collect();
    let mut by_hash = vec![true; asked.len()];
    filter.contains_many_hash(&hashes, &mut by_hash);
    assert_eq!(by_hash, found);
    assert_eq!((filter.insert_many_hash(&[7; 9]), filter.count_hash(7)), (8, 8));
}

#[test]
fn growing_filters_are_built_of_keys() {
    for n in [0_u64, 1, 1000, 100_000] {
        let filter = ScalableCuckooFilter::from_keys(0..n, 0.001).unwrap();
        assert_eq!((filter.len() as u64, filter.info().tables.len()), (n, 1));
        assert!((0..n).all(|key| filter.contains(&key)) && filter.false_positive_rate() <= 0.001);
        (n..3 * n).for_each(|key| filter.insert(&key).unwrap());
        assert!((0..3 * n).all(|key| filter.contains(&key)) && filter.false_positive_rate() <= 0.001);
    }
    let builder = || ScalableCuckooFilter::builder().seed(seed());
    let copies = |n, most: usize| builder().max_duplicates(most).from_keys((0..50).chain(vec![7; n]));
    for most in [1, 3, 8, 20] {
        let filter = copies(most - 1, most).unwrap();
        assert_eq!((filter.count(&7), filter.len()), (most, 49 + most));
        let inserted = 50 + most - 1;
        let error = copies(most + 5, most).unwrap_err();
        assert!(matches!(error, FilterError::Full { inserted: n } if n == inserted), "{most}: {error}");
    }
    // Filled segment by segment, with more copies of a key than two buckets hold.
    let n = 2_200_000_u64;
    let filter = builder().fingerprint_bits(31).max_duplicates(20).from_keys((0..n).chain([7; 12])).unwrap();
    let tables: Vec<_> = filter.info().tables.iter().map(|table| table.len).collect();
    assert!(filter.memory_usage() > 8 << 20 && tables.len() == 2 && tables[1] < 20, "{}", filter.info());
    assert!((0..n).all(|key| filter.contains(&key)));
    assert_eq!(filter.count(&7_u64), 13);
    #[cfg(feature = "rayon")]
    for n in [0_u64, 1, 1000, 1_000_000] {
        let filter = builder().false_positive_rate(0.001).par_from_keys(0..n).unwrap();
        assert_eq!((filter.len() as u64, filter.info().tables.len()), (n, 1));
        assert!((0..n).all(|key| filter.contains(&key)));
        assert!(builder().max_duplicates(3).par_from_keys(vec![1; 4]).is_err());
        assert_eq!(builder().max_duplicates(20).par_from_keys(vec![1; 20]).unwrap().count(&1), 20);
    }
}

#[test]
fn growing_filters_have_every_layout() {
    for (bits, slots, semi_sorted) in layouts().filter(|(bits, ..)| (6..=20).contains(bits)) {
        let builder = ScalableCuckooFilter::builder().capacity(1000).fingerprint_bits(bits).seed(seed());
        let builder = builder.bucket_slots(slots).semi_sorted(semi_sorted);
        let filter = builder.build().unwrap();
        let n = 20_000_u64;
        (0..n).for_each(|key| assert!(filter.insert(&key).is_ok(), "{key}: {}", filter.info()));
        assert!((0..n).all(|key| filter.contains(&key)) && filter.len() as u64 == n);
        let table = filter.info().tables[0].clone();
        assert_eq!(table.fingerprint_bits, bits);
        let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert_eq!(copy.to_bytes(), filter.to_bytes());
        (n..3 * n).for_each(|key| assert!(copy.insert(&key).is_ok(), "{key}: {}", copy.info()));
        (n..3 * n).for_each(|key| assert!(copy.remove(&key)));
        copy.compact();
        assert!((0..n).all(|key| copy.contains(&key)) && copy.len() as u64 == n, "{}", copy.info());
        let measured = filter.measure_false_positive_rate(20_000);
        let expected = filter.false_positive_rate();
        assert!((measured - expected).abs() < 0.1 * expected + 0.01, "{measured} {expected}");
    }
}

#[test]
fn options_of_a_growing_filter_are_checked() {
    let builder = ScalableCuckooFilter::builder;
    for bits in [0, 1, 33] {
        let error = builder().fingerprint_bits(bits).build().unwrap_err();
        assert!(matches!(error, FilterError::FingerprintBits { requested, least: 2 } if requested == bits));
    }
    assert!(builder().fingerprint_bits(4).semi_sorted(true).build().is_err());
    for slots in [0, 3, 16] {
        let error = builder().bucket_slots(slots).build().unwrap_err();
        assert!(matches!(error, FilterError::BucketSlots { requested, .. } if requested == slots));
    }
    assert!(builder().bucket_slots(8).semi_sorted(true).build().is_err());
    let narrow = builder().fingerprint_bits(8).false_positive_rate(0.001).build().unwrap_err();
    assert!(matches!(narrow, FilterError::RateTooLow { .. }), "{narrow}");
    assert!(builder().fingerprint_bits(14).false_positive_rate(0.001).build().is_ok());
    for (bits, slots, enough) in [(2, 4, 4), (3, 4, 4), (4, 8, 5)] {
        let none = builder().fingerprint_bits(bits).bucket_slots(slots).false_positive_rate(0.99);
        let error = none.build().unwrap_err();
        assert!(matches!(error, FilterError::FingerprintBits { least, .. } if least == enough), "{error}");
    }
    // The suggested number of bits works.
    let of_rate = |bits, rate| builder().fingerprint_bits(bits).false_positive_rate(rate);
    for rate in [0.9, 0.5, 0.1, 1e-3, 1e-6] {
        let error = of_rate(3, rate).build().unwrap_err();
        let FilterError::FingerprintBits { requested: 3, least } = error else { panic!("{error}") };
        assert!(of_rate(least, rate).build().is_ok() && of_rate(least - 1, rate).build().is_err(), "{rate}");
    }
    let error = of_rate(3, 1e-12).build().unwrap_err();
    assert!(matches!(error, FilterError::RateTooLow { limit, .. } if limit < 1e-8), "{error}");
}
