//! Serialized as sequences, and back.

use std::collections::BTreeSet;

use koel::HashSet;
use serde::Deserialize;
use serde::de::value::{Error, SeqDeserializer};

/// Equal to any other that differs only in case.
struct AnyCase(String);

impl PartialEq for AnyCase {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for AnyCase {}

impl<'de> Deserialize<'de> for AnyCase {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(AnyCase)
    }
}

impl std::hash::Hash for AnyCase {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_ascii_lowercase().hash(state);
    }
}

#[test]
fn what_is_serialized_comes_back() {
    for values in [0, 1, 10, 5000, 20_000] {
        let set: HashSet<(u64, String)> = (0..values).map(|n| (n, format!("value {n}"))).collect();
        let text = serde_json::to_string(&set).unwrap();
        let back: HashSet<(u64, String)> = serde_json::from_str(&text).unwrap();
        assert!(back == set && back.len() as u64 == values);
    }
}

#[test]
fn the_format_is_that_of_any_set() {
    let set = HashSet::from(["a".to_owned(), "b".to_owned()]);
    let other: BTreeSet<String> = serde_json::from_value(serde_json::to_value(&set).unwrap()).unwrap();
    assert_eq!(other, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    let back: HashSet<String> = serde_json::from_value(serde_json::to_value(&other).unwrap()).unwrap();
    assert!(back == set);
    assert_eq!(serde_json::to_string(&HashSet::from([(1, 2)])).unwrap(), "[[1,2]]");
    assert_eq!(serde_json::from_str::<HashSet<u8>>("[1, 2, 1]").unwrap().len(), 2);
}

#[test]
fn of_equal_values_the_first_stays() {
    let texts: Vec<String> = ["ada", "ADA", "bob", "Ada"].map(String::from).into();
    let set = HashSet::<AnyCase>::deserialize(SeqDeserializer::<_, Error>::new(texts.into_iter())).unwrap();
    let mut names: Vec<String> = set.into_iter().map(|name| name.0).collect();
    names.sort_unstable();
    assert_eq!(names, ["ada", "bob"]);
}

#[test]
fn what_is_no_set_is_an_error() {
    for text in ["", "1", "{}", "[1, \"a\"]", "[1, 2", "[300]"] {
        assert!(serde_json::from_str::<HashSet<u8>>(text).is_err(), "{text}");
    }
}

/// A hint of billions of values in foreign data costs no memory.
#[test]
fn a_lying_length_is_not_believed() {
    struct Liar(u64);
    impl Iterator for Liar {
        type Item = u64;
        fn next(&mut self) -> Option<u64> {
            self.0 = self.0.checked_sub(1)?;
            Some(self.0)
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, Some(usize::MAX))
        }
    }
    let set = HashSet::<u64>::deserialize(SeqDeserializer::<_, Error>::new(Liar(3))).unwrap();
    assert!(set.len() == 3 && set.as_map().memory_usage() < 1_000_000);
}
