//! Laws that hold for both maps, as tests.

use super::{AnyMap, Seeded};

/// A map from words to words.
pub(crate) trait Words: AnyMap<Key = u64, Value = u64, Hasher = Seeded> {}

impl<M: AnyMap<Key = u64, Value = u64, Hasher = Seeded>> Words for M {}

/// Makes two tests of each law, which is a generic function: one for each map. Maps are from words to words, unless other types
/// are given.
macro_rules! laws {
    (<$key:ty, $value:ty, $hasher:ty> $($law:ident => $hash_map:ident, $inline_map:ident;)*) => {$(
        #[test]
        fn $hash_map() {
            $law::<koel::HashMap<$key, $value, $hasher>>();
        }

        #[test]
        fn $inline_map() {
            $law::<koel::InlineMap<$key, $value, $hasher>>();
        }
    )*};
    ($($law:ident => $hash_map:ident, $inline_map:ident;)*) => {
        crate::common::laws! { <u64, u64, crate::common::Seeded> $($law => $hash_map, $inline_map;)* }
    };
}

pub(crate) use laws;

/// For results that do not matter.
pub(crate) fn ignore<T>(_: T) {}
