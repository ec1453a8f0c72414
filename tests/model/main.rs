//! Both maps compared with `std::collections::HashMap`: any sequence of operations, in any shape of map, with keys and values
//! of many sizes.
//!
//! `KOEL_CASES` sets the number of sequences for each type (500), `KOEL_SEED` selects them.

#[path = "../common/mod.rs"]
mod common;
mod driver;
mod ops;
mod strategy;

use std::hash::{Hash, Hasher};

use common::{Config, Seeded, env_number, fixed_configs, growing_configs, seed};
use driver::{Driver, Subject};
use koel::{HashMap, InlineMap};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// Runs sequences of operations on `M`, and `at_the_end` after each.
fn agrees_with_the_model<M: Subject<Hasher = Seeded>>(at_the_end: impl Fn(&mut Driver<M>)) {
    let seed = seed();
    let config = ProptestConfig {
        cases: u32::try_from(env_number("KOEL_CASES", 500)).expect("fewer than 2^32 cases"),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..ProptestConfig::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let configs: Vec<Config> = [growing_configs(), fixed_configs(100), fixed_configs(7)]
        .concat()
        .into_iter()
        .chain([Config::room_for(300)])
        .collect();
    let input = (prop::sample::select(configs), any::<u64>(), strategy::sequences());
    let result = runner.run(&input, |(config, hasher, ops)| {
        let mut driver = Driver::<M>::new(config, common::seeded(hasher));
        for op in &ops {
            driver.apply(op);
        }
        driver.check_everything();
        at_the_end(&mut driver);
        driver.finish();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{} with KOEL_SEED={seed}: {error}", M::NAME);
    }
}

macro_rules! models {
    ($($name:ident: $map:ty;)*) => {$(
        #[test]
        fn $name() {
            agrees_with_the_model::<$map>(|_| ());
        }
    )*};
}

models! {
    inline_map_of_bytes_agrees_with_the_model: InlineMap<u8, u8, Seeded>;
    inline_map_of_half_words_agrees_with_the_model: InlineMap<u32, u32, Seeded>;
    inline_map_of_words_agrees_with_the_model: InlineMap<u64, u64, Seeded>;
    inline_map_of_long_values_agrees_with_the_model: InlineMap<u64, [u64; 3], Seeded>;
    inline_map_of_odd_sizes_agrees_with_the_model: InlineMap<[u8; 3], [u8; 5], Seeded>;
    inline_map_of_values_across_words_agrees_with_the_model: InlineMap<u32, [u32; 3], Seeded>;
    inline_set_agrees_with_the_model: InlineMap<u64, (), Seeded>;
    hash_map_of_words_agrees_with_the_model: HashMap<u64, u64, Seeded>;
    hash_set_agrees_with_the_model: HashMap<u64, (), Seeded>;
    hash_map_of_one_key_agrees_with_the_model: HashMap<(), u64, Seeded>;
}

/// A look-up key that is neither a `String` nor borrowed from one.
struct Name<'a>(&'a str);

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl equivalent::Equivalent<String> for Name<'_> {
    fn equivalent(&self, key: &String) -> bool {
        self.0 == key
    }
}

#[test]
fn equivalent_keys_find_what_the_keys_find() {
    agrees_with_the_model::<HashMap<String, String, Seeded>>(|driver| {
        for n in 0..40 {
            let key: String = <String as ops::Datum>::of(n);
            let expected = driver.model.remove(&key);
            let pin = driver.map.pin();
            assert_eq!(pin.get(key.as_str()), expected.as_ref());
            assert_eq!(pin.get(&Name(&key)), expected.as_ref());
            assert_eq!(pin.contains_key(key.as_str()), expected.is_some());
            assert_eq!(pin.get_key_value(key.as_str()), expected.as_ref().map(|value| (&key, value)));
            assert!(pin.may_contain(key.as_str()) || expected.is_none());
            let mut found = [None; 3];
            pin.get_many(&[Name("?"), Name(&key), Name("")], &mut found);
            assert_eq!(found, [None, expected.as_ref(), None]);
            let mut is_there = [true; 2];
            pin.contains_many(&[Name(&key), Name("?")], &mut is_there);
            assert_eq!(is_there, [expected.is_some(), false]);
            let refused = pin.remove_if(key.as_str(), |_, _| false).err();
            assert_eq!(refused.map(|(_, value)| value), expected.as_ref());
            assert_eq!(pin.remove(key.as_str()), expected.as_ref());
            assert_eq!(pin.remove_entry(key.as_str()), None);
            drop(pin);
            if let Some(value) = expected {
                // The insertion may be refused: the map may hold more than is certain to fit.
                driver.checked_insert(key, value);
            }
        }
    });
}
