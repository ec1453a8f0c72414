//! `Serialize` and `Deserialize` of [`CacheDump`]. Feature `serde`.
//!
//! A pair of version and entries, so that who does not know the version reads no further; entries are sequences, not
//! maps, as their order counts.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};

use super::CacheDump;
use super::dump::{Dumped, Standing};
use super::policy::Heat;
use super::time::Nanos;

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Bytes that a length in foreign data may make us allocate; more comes with the entries themselves.
const CAUTIOUS: usize = 1 << 16;

/// Needs the feature `serde`.
impl<K: Serialize, V: Serialize> Serialize for CacheDump<K, V> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&VERSION)?;
        pair.serialize_element(&List(&self.entries))?;
        pair.end()
    }
}

struct List<'d, K, V>(&'d [Dumped<K, V>]);

impl<K: Serialize, V: Serialize> Serialize for List<'_, K, V> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_seq(self.0.iter().map(|Dumped { key, value, standing }| {
            (key, value, standing.heat.number(), standing.lives, standing.idle)
        }))
    }
}

/// Needs the feature `serde`. Another version is an error.
impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for CacheDump<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(2, Pair(PhantomData))
    }
}

/// Reads version and entries.
struct Pair<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Pair<K, V> {
    type Value = CacheDump<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a cache's dump: version {VERSION} and entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let version = access.next_element::<u32>()?.ok_or_else(|| Error::invalid_length(0, &self))?;
        if version != VERSION {
            return Err(Error::invalid_value(Unexpected::Unsigned(version.into()), &self));
        }
        let Entries(entries) = access.next_element()?.ok_or_else(|| Error::invalid_length(1, &self))?;
        Ok(CacheDump { entries })
    }
}

struct Entries<K, V>(Vec<Dumped<K, V>>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Entries<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListOf(PhantomData))
    }
}

/// Reads the entries.
struct ListOf<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for ListOf<K, V> {
    type Value = Entries<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of key, value, heat, nanoseconds to live or none, nanoseconds since it was used")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let hint = access.size_hint().unwrap_or(0).min(CAUTIOUS / size_of::<Dumped<K, V>>());
        let mut entries = Vec::with_capacity(hint);
        while let Some(entry) = access.next_element::<(K, V, u8, Option<Nanos>, Nanos)>()? {
            let (key, value, number, lives, idle) = entry;
            let unknown =
                || Error::invalid_value(Unexpected::Unsigned(number.into()), &"heat: 0 to 2, or 4 to 6");
            let heat = Heat::from_number(number).ok_or_else(unknown)?;
            entries.push(Dumped { key, value, standing: Standing { heat, lives, idle } });
        }
        Ok(Entries(entries))
    }
}
