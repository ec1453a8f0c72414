//! `Serialize` and `Deserialize`, as sequences. Feature `serde`.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{HashSet, PinnedSet};
use crate::map::collect_cautiously;
use crate::reclaim::Guard;

/// Walks over the set: panics in a closure that runs under its lock. Needs the feature `serde`.
impl<T: Serialize, S> Serialize for HashSet<T, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.pin().serialize(serializer)
    }
}

/// Walks over the set: panics in a closure that runs under its lock. Needs the feature `serde`.
///
/// ```
/// let set = koel::HashSet::from(["one"]);
/// assert_eq!(serde_json::to_string(&set.pin())?, r#"["one"]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<T: Serialize, S, G: Guard> Serialize for PinnedSet<'_, T, S, G> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        // Collected first, as a map's entries.
        serializer.collect_seq(self.iter().collect::<Vec<_>>())
    }
}

/// Of equal values the first stays. Needs the feature `serde`.
///
/// ```
/// let set = koel::HashSet::from([("elm street".to_string(), 5)]);
/// let text = serde_json::to_string(&set)?;
/// assert_eq!(text, r#"[["elm street",5]]"#);
/// let copy: koel::HashSet<(String, u32)> = serde_json::from_str(&text)?;
/// assert_eq!(copy, set);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de, T, S> Deserialize<'de> for HashSet<T, S>
where
    T: Deserialize<'de> + Hash + Eq,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Values(PhantomData, PhantomData))
    }
}

/// Reads the values of a set.
struct Values<T, S>(PhantomData<T>, PhantomData<S>);

impl<'de, T, S> Visitor<'de> for Values<T, S>
where
    T: Deserialize<'de> + Hash + Eq,
    S: BuildHasher + Default,
{
    type Value = HashSet<T, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<HashSet<T, S>, A::Error> {
        collect_cautiously(access.size_hint(), || access.next_element())
    }
}
