//! The fuzzer's harness without the fuzzer: every committed input, every truncation of it and every flip of a byte; and some
//! random ones, more of them with `KOEL_FUZZ_ROUNDS`. An input that `fuzz/run` finds becomes one of these.

#[path = "../../fuzz/harness/mod.rs"]
mod harness;
mod mutate;

use std::path::Path;

use harness::common::{Rng, env_number, seed};
use mutate::mutated;

/// The inputs of a target, by name.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut seeds: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .expect("a target has a folder of seeds")
        .map(|file| file.expect("a file of this package").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("a file of this package")))
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{target} has no seeds");
    seeds
}

/// Runs a target on its seeds, on their truncations and on `flips` of each byte; and on random mutations of them.
fn smoke(target: &str, flips: &[u8], run: impl Fn(&[u8])) {
    let seeds = seeds(target);
    for (name, seed) in &seeds {
        // Printed if it fails.
        println!("{name}");
        run(seed);
        for at in 0..seed.len() {
            println!("up to byte {at}");
            run(&seed[..at]);
            let mut damaged = seed.clone();
            for flip in flips {
                println!("byte {at} ^ {flip:#x}");
                damaged[at] = seed[at] ^ flip;
                run(&damaged);
            }
        }
    }
    let mut rng = Rng::new(seed());
    for round in 0..env_number("KOEL_FUZZ_ROUNDS", 200) {
        println!("round {round}");
        run(&mutated(&seeds, &mut rng));
    }
}

#[test]
fn bytes_of_enemies_do_no_harm() {
    smoke("filter_bytes", &[1, 0x80, 0xFF], harness::filter_bytes);
}

#[test]
fn chunks_of_enemies_do_no_harm() {
    smoke("chunk_loader", &[1, 0x80, 0xFF], harness::chunk_loader);
}

#[test]
fn filters_answer_as_the_oracle_does() {
    smoke("filter_ops", &[1, 0x10], harness::filter_ops);
}

#[test]
fn hash_maps_agree_with_the_model() {
    smoke("map_ops", &[1, 0x10], harness::map_ops);
}

#[test]
fn inline_maps_agree_with_the_model() {
    smoke("inline_map_ops", &[1, 0x10], harness::inline_map_ops);
}

#[test]
fn caches_answer_as_the_oracle_does() {
    smoke("cache_ops", &[1, 0x10], harness::cache_ops);
}

#[test]
fn inline_caches_answer_as_caches_do() {
    smoke("inline_cache_ops", &[1, 0x10], harness::inline_cache_ops);
}

#[test]
#[cfg(feature = "serde")]
fn dumps_of_enemies_do_no_harm() {
    smoke("cache_dump", &[1, 0x10, 0x80], harness::cache_dump);
}

#[test]
#[cfg(feature = "serde")]
fn seeds_of_dumps_are_dumps() {
    for (name, seed) in seeds("cache_dump") {
        assert!(harness::is_dump(&seed), "{name}");
    }
}

#[test]
fn snapshots_of_enemies_do_no_harm() {
    smoke("guard_snapshot", &[1, 0x80], harness::guard_snapshot);
}

#[test]
fn traces_of_enemies_do_no_harm() {
    smoke("trace", &[1, 0x10, 0x80], harness::trace);
}

/// The inputs are not all refused for a common flaw.
#[test]
fn seeds_of_filters_are_filters() {
    for (name, seed) in seeds("filter_bytes") {
        assert!(harness::is_filter(&seed), "{name}");
    }
}

#[test]
fn seeds_of_snapshots_are_snapshots() {
    for (name, seed) in seeds("guard_snapshot") {
        assert!(harness::is_snapshot(&seed), "{name}");
    }
}

#[test]
fn seeds_of_traces_are_traces() {
    for (name, seed) in seeds("trace") {
        assert!(harness::is_trace(&seed), "{name}");
    }
}
