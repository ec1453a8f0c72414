//! What is serialized of a cache apart from its dump: its policy, by name, and its statistics.

use koel::{Cache, Policy};
use serde_json::{Value, json};

use crate::POLICIES;

#[test]
fn a_policy_is_its_name() {
    for (policy, name) in POLICIES.into_iter().zip(["adaptive", "clock", "local"]) {
        assert_eq!((policy.to_string(), format!("{policy:>9}")), (name.to_owned(), format!("{name:>9}")));
        assert_eq!(serde_json::to_value(policy).unwrap(), json!(name));
        assert_eq!(serde_json::from_value::<Policy>(json!(name)).unwrap(), policy);
        // From a reader, which has no text to borrow.
        assert_eq!(serde_json::from_reader::<_, Policy>(format!("\"{name}\"").as_bytes()).unwrap(), policy);
    }
    let expected = "expected a cache's policy: `adaptive`, `clock` or `local`";
    for bad in [json!("Clock"), json!(""), json!("lru"), json!(1), json!(null), json!(["clock"])] {
        let error = serde_json::from_value::<Policy>(bad.clone()).unwrap_err().to_string();
        assert!(error.contains(expected), "{bad}: {error}");
    }
}

/// Each field is there under its own name: as many as the text for debugging has, with the same values.
#[test]
fn what_a_cache_has_counted_is_written_down_whole() {
    let cache: Cache<u64, u64> = Cache::builder().max_weight(9).weigher(|_, value| *value).build();
    for key in 0..9 {
        cache.get_or_insert_with(key % 4, || key + 1);
        let _ = cache.try_get_or_insert_with(key + 10, || Err::<u64, _>("failed"));
    }
    let stats = cache.stats();
    let Value::Object(fields) = serde_json::to_value(stats).unwrap() else { panic!("no object") };
    let debug = format!("{stats:?}");
    for (name, value) in &fields {
        let value = match name.as_str() {
            "load_time" => format!("{:?}", stats.load_time),
            _ => value.to_string(),
        };
        assert!(debug.contains(&format!(" {name}: {value}")), "{name}: {value} in {debug}");
    }
    assert_eq!(fields.len(), debug.matches(": ").count(), "{debug}");
    let time: std::time::Duration = serde_json::from_value(fields["load_time"].clone()).unwrap();
    assert!(time == stats.load_time && stats.hits > 0 && stats.evictions > 0);
}
