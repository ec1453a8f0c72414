//! Serialized as maps, and back.

use std::collections::BTreeMap;

use std::time::Duration;

use ::serde::Deserialize;
use ::serde::de::value::{BytesDeserializer, Error, SeqDeserializer};
use koel::guard::{Filter, Guarded, HashMapStore};
use koel::{CuckooFilter, FilterView, HashMap, InlineMap, ScalableCuckooFilter, Stats};
use serde_json::{Value, json, to_value};

#[test]
fn what_is_serialized_comes_back() {
    for entries in [0, 1, 10, 5000, 20_000] {
        let map: HashMap<u64, String> = (0..entries).map(|n| (n, format!("value {n}"))).collect();
        let text = serde_json::to_string(&map).unwrap();
        let back: HashMap<u64, String> = serde_json::from_str(&text).unwrap();
        assert!(back == map && back.len() as u64 == entries);
        let inline: InlineMap<u64, [u64; 2]> = (0..entries).map(|n| (n, [n, !n])).collect();
        let text = serde_json::to_string(&inline).unwrap();
        let back: InlineMap<u64, [u64; 2]> = serde_json::from_str(&text).unwrap();
        assert!(back == inline);
    }
}

#[test]
fn the_format_is_that_of_any_map() {
    let map = HashMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let other: BTreeMap<String, u64> = serde_json::from_value(serde_json::to_value(&map).unwrap()).unwrap();
    assert_eq!(other, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 2)]));
    let back: HashMap<String, u64> = serde_json::from_value(serde_json::to_value(&other).unwrap()).unwrap();
    assert!(back == map);
    assert_eq!(serde_json::to_string(&InlineMap::from([(1_u8, 2_u8)])).unwrap(), r#"{"1":2}"#);
}

#[test]
fn the_last_of_equal_keys_counts() {
    let map: HashMap<u8, u8> = serde_json::from_str(r#"{"1": 2, "1": 3}"#).unwrap();
    assert_eq!((map.len(), map.pin()[&1]), (1, 3));
}

#[test]
fn what_is_no_map_is_an_error() {
    for text in ["", "1", "[1, 2]", "{\"a\": 1}", "{\"1\": 1", "{\"1\": \"x\"}", "{\"300\": 1}"] {
        assert!(serde_json::from_str::<HashMap<u8, u8>>(text).is_err(), "{text}");
        assert!(serde_json::from_str::<InlineMap<u8, u8>>(text).is_err(), "{text}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let map: InlineMap<u64, u64> = (0..20).map(|n| (n, n)).collect();
    let text = serde_json::to_string(&map).unwrap();
    for len in 0..text.len() {
        assert!(serde_json::from_str::<InlineMap<u64, u64>>(&text[..len]).is_err(), "{}", &text[..len]);
    }
}

/// A hint of billions of entries in foreign data costs no memory.
#[test]
fn a_lying_length_is_not_believed() {
    use serde::de::value::{Error, MapDeserializer};
    use serde::de::{Deserialize, IntoDeserializer};

    struct Liar(u64);
    impl Iterator for Liar {
        type Item = (u64, u64);
        fn next(&mut self) -> Option<(u64, u64)> {
            self.0 = self.0.checked_sub(1)?;
            Some((self.0, self.0))
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, Some(usize::MAX))
        }
    }
    let _ = <u64 as IntoDeserializer<'_, Error>>::into_deserializer(1);
    let map = HashMap::<u64, u64>::deserialize(MapDeserializer::<_, Error>::new(Liar(3))).unwrap();
    assert!(map.len() == 3 && map.memory_usage() < 1_000_000);
}

/// The numbers in these fields.
fn numbers<const N: usize>(value: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| value[name].as_u64().unwrap_or_else(|| panic!("{name} of {value}")))
}

#[test]
fn what_a_map_says_of_itself_is_told_by_names() {
    let mut stats = Stats::default();
    (stats.displacements, stats.path_lengths, stats.failed_searches) = (1, [2, 3, 4, 5, 6, 7], 8);
    (stats.read_retries, stats.segments, stats.splits, stats.doublings) = (9, 10, 11, 12);
    (stats.overflow, stats.longest_write_pause, stats.waiting) = (13, Duration::new(14, 15), 16);
    (stats.len, stats.capacity, stats.memory_usage) = (17, 18, 19);
    let expected = json!({
        "len": 17, "capacity": 18, "memory_usage": 19, "displacements": 1, "path_lengths": [2, 3, 4, 5, 6, 7], "failed_searches": 8, "read_retries": 9,
        "segments": 10, "splits": 11, "doublings": 12, "overflow": 13,
        "longest_write_pause": { "secs": 14, "nanos": 15 }, "waiting": 16,
    });
    assert_eq!(to_value(stats).unwrap(), expected);
}

#[test]
fn what_filters_say_of_themselves_is_told_by_names() {
    let filter =
        CuckooFilter::builder().capacity(300).fingerprint_bits(12).semi_sorted(true).build().unwrap();
    (0..200).for_each(|key| filter.insert(&key).unwrap());
    let (info, value) = (filter.info(), to_value(filter.info()).unwrap());
    let names =
        ["capacity_keys", "slots", "len", "segments", "segment_buckets", "memory_usage", "displacements"];
    let sizes = [info.capacity_keys, info.slots, 200, info.segments, info.segment_buckets, info.memory_usage];
    let sizes: Vec<u64> = sizes.map(|size| size as u64).into_iter().chain([info.displacements]).collect();
    assert_eq!(numbers(&value, names)[..], sizes);
    assert_eq!(numbers(&value, ["fingerprint_bits", "bucket_slots"]), [12, 4]);
    assert!(value["semi_sorted"] == true && value["false_positive_rate"] == info.false_positive_rate);
    assert_eq!(value["false_positive_rate_when_full"], info.false_positive_rate_when_full);
    assert_eq!(value.as_object().unwrap().len(), 12);

    let growing = ScalableCuckooFilter::builder().capacity(100).build().unwrap();
    (0..1000).for_each(|key| growing.insert(&key).unwrap());
    let (info, value) = (growing.info(), to_value(growing.info()).unwrap());
    assert_eq!(numbers(&value, ["max_keys", "max_duplicates"]), [info.max_keys as u64, 8]);
    let bytes = growing.to_bytes();
    let view = to_value(FilterView::from_bytes(&bytes).unwrap().info()).unwrap();
    assert_eq!(view["scalable"], true);
    for tables in [&value["tables"], &view["tables"]] {
        let len: u64 = tables.as_array().unwrap().iter().map(|table| numbers(table, ["len"])[0]).sum();
        assert_eq!((tables.as_array().unwrap().len(), len), (info.tables.len(), 1000));
        assert!(tables[0].as_object().unwrap().len() == 9 && tables[0]["semi_sorted"] == false);
    }
}

/// In formats that have bytes, and in a sequence that claims to be longer than any memory.
#[test]
fn filters_are_read_from_bytes_and_from_sequences_that_exaggerate() {
    fn reads<'de, F: Deserialize<'de>>(bytes: &'de [u8]) -> [F; 2] {
        let of_bytes = F::deserialize(BytesDeserializer::<Error>::new(bytes)).unwrap();
        let all = bytes.iter().copied();
        let claims = Claims(all);
        [of_bytes, F::deserialize(SeqDeserializer::<_, Error>::new(claims)).unwrap()]
    }
    struct Claims<I>(I);
    impl<I: Iterator> Iterator for Claims<I> {
        type Item = I::Item;

        fn next(&mut self) -> Option<I::Item> {
            self.0.next()
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, Some(usize::MAX))
        }
    }
    let filter = CuckooFilter::from_keys(0..1000_u64, 0.01).unwrap();
    let bytes = filter.to_bytes();
    for copy in reads::<CuckooFilter>(&bytes) {
        assert_eq!(copy.to_bytes(), bytes);
    }
    let filter = ScalableCuckooFilter::builder().from_keys(0..10_000_u64).unwrap();
    let bytes = filter.to_bytes();
    for copy in reads::<ScalableCuckooFilter>(&bytes) {
        assert_eq!(copy.to_bytes(), bytes);
    }
    let broken = &bytes[1..];
    assert!(
        ScalableCuckooFilter::<koel::Xxh3>::deserialize(BytesDeserializer::<Error>::new(broken)).is_err()
    );
}

#[test]
fn what_a_guard_says_of_itself_is_told_by_names() {
    let guarded = Guarded::open(HashMapStore::new()).unwrap();
    guarded.put(b"ada", b"1815").unwrap();
    guarded.wait_until_ready().unwrap();
    let progress = to_value(guarded.progress()).unwrap();
    assert_eq!(progress["phase"], "ready");
    numbers(&progress, ["scanned", "expected"]);
    assert_eq!(to_value(guarded.verify(9).unwrap()).unwrap(), json!({ "checked": 1, "false_negatives": 0 }));
    let unfiltered = Guarded::builder(HashMapStore::new()).filter(Filter::None).open().unwrap();
    assert_eq!(to_value(unfiltered.progress().phase).unwrap(), "unfiltered");

    let mut stats = guarded.stats();
    (stats.blocked, stats.passed_found, stats.passed_absent, stats.unfiltered) = (1, 2, 3, 4);
    (stats.cache_hits, stats.remembered_absent, stats.puts, stats.deletes) = (5, 6, 7, 8);
    (stats.failed_writes, stats.filter_keys, stats.filter_bytes) = (9, 10, 11);
    (stats.crowded_stripes, stats.cache_bytes, stats.passed_beside_write) = (12, 13, 14);
    (stats.observed_false_positive_rate, stats.expected_false_positive_rate) = (0.5, 0.25);
    let expected = json!({
        "blocked": 1, "passed_found": 2, "passed_absent": 3, "unfiltered": 4, "cache_hits": 5, "remembered_absent": 6,
        "puts": 7, "deletes": 8, "failed_writes": 9, "observed_false_positive_rate": 0.5,
        "expected_false_positive_rate": 0.25, "filter_keys": 10, "filter_bytes": 11, "crowded_stripes": 12,
        "cache_bytes": 13, "passed_beside_write": 14,
    });
    assert_eq!(to_value(stats).unwrap(), expected);
}
