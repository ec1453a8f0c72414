//! Serialized as maps, and back.

use std::collections::BTreeMap;

use koel::{HashMap, InlineMap};

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
