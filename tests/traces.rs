//! Real traces, replayed and compared with std's map: those in the folder `KOEL_TRACES`, else in `../shared/traces`. Reports if
//! there are none.
//!
//! A trace is a file with one key per line: the number in a `.txt` file, the first column in a `.csv` file.

mod common;

use std::collections::HashMap as Model;
use std::path::{Path, PathBuf};

use common::{AnyMap, Config, Rng, Seeded, not_run, seeded};
use koel::{HashMap, InlineMap};

/// Name and keys of each trace.
fn traces() -> Vec<(String, Vec<u64>)> {
    let told = std::env::var_os("KOEL_TRACES").map(PathBuf::from);
    let folder = told.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces"));
    let Ok(files) = std::fs::read_dir(&folder) else {
        not_run(&format!("tests/traces.rs: there is no {} (KOEL_TRACES=FOLDER)", folder.display()));
        return Vec::new();
    };
    let mut traces = Vec::new();
    for path in files.map(|file| file.expect("a file of a folder that can be read").path()) {
        let csv = path.extension().is_some_and(|extension| extension == "csv");
        if csv || path.extension().is_some_and(|extension| extension == "txt") {
            let text = std::fs::read_to_string(&path).expect("a trace is text");
            let key = |line: &str| line.split(',').next().unwrap_or_default().trim().parse().ok();
            // A header is not a number.
            let keys: Vec<u64> = text.lines().filter_map(key).collect();
            println!("{}: {} keys", path.display(), keys.len());
            traces.push((path.display().to_string(), keys));
        }
    }
    if traces.is_empty() {
        not_run(&format!("tests/traces.rs: no traces in {}", folder.display()));
    }
    traces
}

/// Each request counts its key; now and then one is removed, as a cache would.
fn replay<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>>(name: &str, keys: &[u64], config: Config) {
    let map = M::build(config, seeded(1));
    let mut model: Model<u64, u64> = Model::new();
    let mut rng = Rng::new(1);
    for (i, &key) in keys.iter().enumerate() {
        assert_eq!(map.get(&key), model.get(&key).copied(), "{name}: {key} at {i}");
        let count = model.entry(key).and_modify(|count| *count += 1).or_insert(1);
        assert_eq!(map.update_or_insert(key, |count| count + 1, 1), *count, "{name}: {key} at {i}");
        if rng.one_in(10) {
            let old = keys[rng.below(i as u64 + 1) as usize];
            assert_eq!(map.remove(&old), model.remove(&old), "{name}: {old} at {i}");
        }
    }
    assert_eq!(map.len(), model.len());
    assert_eq!(map.entries().into_iter().collect::<Model<_, _>>(), model);
}

fn all_traces<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>>() {
    for (name, keys) in traces() {
        replay::<M>(&name, &keys, Config::GROWING);
        replay::<M>(&name, &keys, Config::GROWING.segments_of(64));
        // Room for as many entries as there can be at a time, and not one more.
        let distinct = keys.iter().collect::<std::collections::HashSet<_>>().len();
        replay::<M>(&name, &keys, Config::fixed(distinct));
    }
}

#[test]
fn a_hash_map_answers_traces_as_std_does() {
    all_traces::<HashMap<u64, u64, Seeded>>();
}

#[test]
fn an_inline_map_answers_traces_as_std_does() {
    all_traces::<InlineMap<u64, u64, Seeded>>();
}
