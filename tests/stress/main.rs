//! Real threads, hard at work: keys that are held in a map are never missed, counters never lose a count, closures run
//! once, and threads come and go. Bounded by iterations, not by time.

#[path = "../common/mod.rs"]
mod common;
mod counting;
mod lookups;
mod pins;

/// A test for both maps.
macro_rules! laws {
    ($($law:ident => $hash_map:ident, $inline_map:ident;)*) => {$(
        #[test]
        fn $hash_map() {
            $law::<koel::HashMap<u64, u64, crate::common::Seeded>>();
        }

        #[test]
        fn $inline_map() {
            $law::<koel::InlineMap<u64, u64, crate::common::Seeded>>();
        }
    )*};
}

pub(crate) use laws;

use common::{AnyMap, Seeded};

/// Words to words.
pub(crate) trait Words: AnyMap<Key = u64, Value = u64, Hasher = Seeded> {}

impl<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>> Words for M {}
