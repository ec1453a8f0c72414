//! `Serialize` and `Deserialize`, as maps. Feature `serde`.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use bytemuck::Pod;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{HashMap, InlineMap, Pinned};
use crate::reclaim::Guard;

/// The number of entries for which a hint in foreign data may make us allocate room, and that are inserted at a time: this
/// many, or a mebibyte of them.
const fn cautious<T>() -> usize {
    let (entries, bytes, each) = (1 << 12, 1 << 20, size_of::<T>());
    if each <= bytes / entries {
        entries
    } else if each < bytes {
        bytes / each
    } else {
        1
    }
}

/// Walks over the map: panics in a closure that runs under its lock. Needs the feature `serde`.
impl<K: Serialize, V: Serialize, S> Serialize for HashMap<K, V, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        self.pin().serialize(serializer)
    }
}

/// Walks over the map: panics in a closure that runs under its lock. Needs the feature `serde`.
///
/// ```
/// let map = koel::HashMap::from([("one", 1)]);
/// assert_eq!(serde_json::to_string(&map.pin())?, serde_json::to_string(&map)?);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<K: Serialize, V: Serialize, S, G: Guard> Serialize for Pinned<'_, K, V, S, G> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        // Collected first: formats that write the length in front need it to be exact, and others may be writing.
        serializer.collect_map(self.iter().collect::<Vec<_>>())
    }
}

/// Walks over the map: panics in a closure that runs under its lock. Needs the feature `serde`.
impl<K: Pod + Serialize, V: Pod + Serialize, S> Serialize for InlineMap<K, V, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_map(self.iter().collect::<Vec<_>>())
    }
}

/// Needs the feature `serde`.
///
/// ```
/// let map = koel::HashMap::from([("one".to_string(), 1)]);
/// let text = serde_json::to_string(&map)?;
/// assert_eq!(text, r#"{"one":1}"#);
/// let copy: koel::HashMap<String, u32> = serde_json::from_str(&text)?;
/// assert_eq!(copy, map);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de, K, V, S> Deserialize<'de> for HashMap<K, V, S>
where
    K: Deserialize<'de> + Hash + Eq,
    V: Deserialize<'de>,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries::<Self, K, V>(PhantomData, PhantomData))
    }
}

/// Needs the feature `serde`.
impl<'de, K, V, S> Deserialize<'de> for InlineMap<K, V, S>
where
    K: Deserialize<'de> + Pod + Hash + Eq,
    V: Deserialize<'de> + Pod,
    S: BuildHasher + Default,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries::<Self, K, V>(PhantomData, PhantomData))
    }
}

/// Reads the entries of any map; of equal keys the last one counts.
struct Entries<M, K, V>(PhantomData<M>, PhantomData<(K, V)>);

impl<'de, M, K, V> Visitor<'de> for Entries<M, K, V>
where
    M: Default + Extend<(K, V)>,
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<M, A::Error> {
        collect_cautiously(access.size_hint(), || access.next_entry())
    }
}

/// Collects the entries of foreign data, some at a time, whatever the hint says.
pub(crate) fn collect_cautiously<C: Default + Extend<T>, T, E>(
    hint: Option<usize>,
    mut next: impl FnMut() -> Result<Option<T>, E>,
) -> Result<C, E> {
    let mut all = C::default();
    let most = const { cautious::<T>() };
    let mut some = Vec::with_capacity(hint.unwrap_or(0).min(most));
    loop {
        let next = next()?;
        let done = next.is_none();
        some.extend(next);
        if done || some.len() >= most {
            all.extend(some.drain(..));
        }
        if done {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cautious;

    #[test]
    fn foreign_data_makes_us_allocate_a_mebibyte_or_one_entry() {
        assert_eq!((cautious::<()>(), cautious::<[u8; 256]>()), (4096, 4096));
        assert_eq!((cautious::<[u8; 257]>(), cautious::<[u8; 1 << 19]>()), (4080, 2));
        assert_eq!((cautious::<[u8; 1 << 20]>(), cautious::<[u8; 1 << 30]>()), (1, 1));
    }
}
