//! Filters for blocks of sorted tables.

use std::sync::Arc;

use koel::guard::{BloomPolicy, CuckooPolicy, FilterPolicy};
use koel::{CuckooFilter, Xxh3};

use crate::common::key;

fn build(policy: &dyn FilterPolicy, keys: &[Vec<u8>]) -> Vec<u8> {
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    policy.build(&keys, &mut bytes);
    bytes
}

fn rate(policy: &dyn FilterPolicy, bytes: &[u8]) -> f64 {
    (0..10_000).filter(|number| policy.may_match(&key(1_000_000 + number), bytes)).count() as f64 / 10_000.0
}

#[test]
fn every_key_of_a_block_matches_and_few_others_do() {
    let policies: [(&dyn FilterPolicy, f64); 4] = [
        (&BloomPolicy::new(10), 0.02),
        // All probes come from one hash of 32 bits.
        (&BloomPolicy::new(16), 0.01),
        (&CuckooPolicy::new(0.01), 0.02),
        (&CuckooPolicy::new(0.0005), 0.002),
    ];
    for (policy, most) in policies {
        for len in [1, 2, 10, 100, 1000, 10_000] {
            let keys: Vec<Vec<u8>> = (0..len).map(key).collect();
            let bytes = build(policy, &keys);
            assert!(keys.iter().all(|key| policy.may_match(key, &bytes)), "{} {len}", policy.name());
            let rate = rate(policy, &bytes);
            // Bloom's 64 bits are few for one key's many probes.
            let most = if len < 10 { 0.02 } else { most };
            assert!(rate <= most, "{} {len}: {rate}", policy.name());
        }
    }
}

/// As the documentation says: how many bits per key Bloom's takes for a rate, and whether the cuckoo filter takes fewer.
#[test]
fn of_ten_thousand_keys_a_cuckoo_filter_is_smaller_from_a_rate_of_1_3_percent_downward() {
    let bits_and_rate = |bits: usize| {
        let probes = (bits as f64 * 0.69).floor();
        (bits, (1.0 - (-probes / bits as f64).exp()).powf(probes))
    };
    for len in [10_000, 20_000] {
        let keys: Vec<Vec<u8>> = (0..len).map(key).collect();
        let is_smaller = |rate: f64| {
            let (bits, _) = (1..).map(bits_and_rate).find(|(_, of_bits)| *of_bits <= rate).unwrap();
            build(&CuckooPolicy::new(rate), &keys).len() < build(&BloomPolicy::new(bits), &keys).len()
        };
        for rate in [0.013, 0.009, 0.008, 0.006, 0.0052, 0.004, 0.0032, 0.002, 0.001, 0.00075, 0.0001] {
            assert!(is_smaller(rate), "{len} keys, {rate}");
        }
        assert!(!is_smaller(0.014) && !is_smaller(0.025), "{len} keys");
    }
}

#[test]
fn a_block_without_keys_matches_none_and_keys_may_repeat() {
    for policy in [&BloomPolicy::new(10) as &dyn FilterPolicy, &CuckooPolicy::new(0.01)] {
        let bytes = build(policy, &[]);
        assert!(!policy.may_match(b"a", &bytes), "{}", policy.name());
        let bytes = build(policy, &vec![b"a".to_vec(); 1000]);
        assert!(policy.may_match(b"a", &bytes) && !policy.may_match(b"b", &bytes), "{}", policy.name());
        let empty = build(policy, &[Vec::new()]);
        assert!(policy.may_match(b"", &empty));
    }
}

/// Twenty keys were chosen that share two buckets of four with the first seed.
#[test]
fn keys_that_were_chosen_not_to_fit_have_a_filter_all_the_same() {
    let (rate, keys) = (0.001, 20);
    let empty = || {
        let builder = CuckooFilter::builder().capacity(keys).false_positive_rate(rate);
        builder.hasher(Xxh3::with_seed(0)).build().unwrap()
    };
    let full_of_one = empty();
    let hash = |number| full_of_one.hash_bytes(&key(number));
    while full_of_one.insert_hash(hash(0)).is_ok() {}
    let shares = |number: &u64| {
        let has_room = full_of_one.insert_hash(hash(*number)).is_ok();
        !(has_room && full_of_one.remove_hash(hash(*number)))
    };
    let chosen: Vec<Vec<u8>> = (0..).filter(shares).take(keys).map(key).collect();
    let filter = empty();
    let fits = |key: &Vec<u8>| filter.insert_unique_hash(filter.hash_bytes(key)).is_ok();
    assert!(!chosen.iter().all(fits));
    let policy = CuckooPolicy::new(rate);
    let bytes = build(&policy, &chosen);
    assert!(chosen.iter().all(|key| policy.may_match(key, &bytes)) && self::rate(&policy, &bytes) < 0.01);
}

#[test]
fn what_leads_to_a_policy_is_a_policy() {
    fn is_alike(behind: impl FilterPolicy) {
        let (bytes, own) = (build(&behind, &[key(1)]), build(&BloomPolicy::new(10), &[key(1)]));
        assert!(bytes == own && behind.name() == BloomPolicy::new(10).name());
        assert!(behind.may_match(&key(1), &bytes) && !behind.may_match(b"other", &bytes));
    }
    let policy = BloomPolicy::new(10);
    let borrowed = &policy;
    is_alike(borrowed);
    is_alike(&policy as &dyn FilterPolicy);
    is_alike(Box::new(policy) as Box<dyn FilterPolicy>);
    is_alike(Arc::new(policy) as Arc<dyn FilterPolicy>);
}

#[test]
fn filters_are_appended() {
    for policy in [&BloomPolicy::new(10) as &dyn FilterPolicy, &CuckooPolicy::new(0.01)] {
        let mut bytes = b"before".to_vec();
        policy.build(&[b"a"], &mut bytes);
        assert!(bytes.starts_with(b"before") && policy.may_match(b"a", &bytes[6..]));
        assert!(!policy.may_match(b"b", &bytes[6..]));
    }
}

#[test]
fn blooms_probes_are_in_the_last_byte() {
    let probes = |bits| *build(&BloomPolicy::new(bits), &[key(1)]).last().unwrap();
    let expected = [(0, 1), (1, 1), (2, 1), (3, 2), (10, 6), (16, 11), (43, 29), (44, 30), (1000, 30)];
    for (bits, k) in expected {
        assert_eq!(probes(bits), k, "{bits} bits a key");
    }
}

#[test]
fn bloom_takes_64_bits_a_key_at_the_most() {
    let keys: Vec<Vec<u8>> = (0..100).map(key).collect();
    let len = |bits| build(&BloomPolicy::new(bits), &keys).len();
    assert_eq!([63, 64, 65, 1000].map(len), [100 * 63 / 8 + 2, 801, 801, 801]);
}

#[test]
fn blooms_array_has_64_bits_at_least_and_whole_bytes() {
    let len = |bits, keys: u64| build(&BloomPolicy::new(bits), &(0..keys).map(key).collect::<Vec<_>>()).len();
    assert_eq!(len(10, 0), 8 + 1);
    assert_eq!(len(10, 6), 8 + 1);
    assert_eq!(len(10, 7), 9 + 1);
    assert_eq!(len(10, 1000), 1250 + 1);
}

#[test]
fn what_is_not_a_filter_matches_every_key() {
    let bloom = BloomPolicy::new(10);
    let mut bytes = build(&bloom, &[key(1)]);
    assert!(!bloom.may_match(b"other", &bytes));
    *bytes.last_mut().unwrap() = 31;
    assert!(bloom.may_match(b"other", &bytes), "reserved");
    assert!(bloom.may_match(b"other", &[]) && bloom.may_match(b"other", &[6]));

    let cuckoo = CuckooPolicy::new(0.01);
    let whole = build(&cuckoo, &[key(1)]);
    assert!(!cuckoo.may_match(b"other", &whole));
    for at in 0..whole.len() {
        assert!(cuckoo.may_match(b"other", &whole[..at]));
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        assert!(cuckoo.may_match(b"other", &bytes) && cuckoo.may_match(&key(1), &bytes));
    }
}

#[test]
fn bloom_has_leveldbs_name() {
    let bloom = BloomPolicy::new(10);
    let bytes = build(&bloom, &[b"hello".to_vec(), b"world".to_vec()]);
    assert!(bloom.may_match(b"hello", &bytes) && bloom.may_match(b"world", &bytes));
    assert!(!bloom.may_match(b"x", &bytes) && !bloom.may_match(b"foo", &bytes));
    assert_eq!(bloom.name(), "leveldb.BuiltinBloomFilter2");
}

/// Nearly as few as by Bloom's formula (0.9%, 0.05%): the effect of a hash of only 32 bits shows beyond a million keys.
#[test]
fn of_a_hundred_thousand_keys_bloom_lets_few_others_pass() {
    let keys: Vec<Vec<u8>> = (0..100_000).map(key).collect();
    for (bits, least, most) in [(10, 0.008, 0.016), (16, 0.0003, 0.001), (24, 0.0, 0.0001)] {
        let policy = BloomPolicy::new(bits);
        let bytes = build(&policy, &keys);
        let others = (0..300_000).map(|number| key(1_000_000 + number));
        let passed = others.filter(|key| policy.may_match(key, &bytes)).count();
        let rate = passed as f64 / 300_000.0;
        assert!((least..most).contains(&rate), "{bits} bits a key: {rate}");
    }
}
