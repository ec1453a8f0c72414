//! `Serialize` and `Deserialize` of [`CacheDump`], and `Serialize` of [`CacheStats`] and [`Cause`]. Feature
//! `serde`.
//!
//! The version of a dump comes first, so that a reader that does not know it reads no further; entries are sequences, not maps,
//! as their order counts. The input is not trusted: numbers are checked here, and times saturate when they are used.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Expected, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeTuple, Serializer};

use super::dump::{Dumped, Standing};
use super::policy::{Heat, WindowShare};
use super::time::Nanos;
use super::{CacheDump, CacheStats, Cause};
use crate::fields::serialize_fields;

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// The most bytes that a length in foreign data makes us allocate; more is allocated as the entries themselves arrive.
const CAUTIOUS: usize = 1 << 16;

/// Needs the feature `serde`.
impl<K: Serialize, V: Serialize> Serialize for CacheDump<K, V> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let mut parts = serializer.serialize_tuple(3)?;
        parts.serialize_element(&VERSION)?;
        parts.serialize_element(&self.window.map(WindowShare::number))?;
        parts.serialize_element(&List(&self.entries))?;
        parts.end()
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
        deserializer.deserialize_tuple(3, Parts(PhantomData))
    }
}

/// Reads version, window and entries.
struct Parts<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Parts<K, V> {
    type Value = CacheDump<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a cache's dump: version {VERSION}, the window's share, entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let version = access.next_element::<u32>()?.ok_or_else(|| Error::invalid_length(0, &self))?;
        if version != VERSION {
            return Err(Error::custom(format_args!(
                "a cache's dump of version {version}: only {VERSION} can be read"
            )));
        }
        let number = access.next_element::<Option<u32>>()?.ok_or_else(|| Error::invalid_length(1, &self))?;
        let too_much = |number| invalid(number, &"the window's share in millionths: 0 to 1000000, or none");
        let share = |number| WindowShare::from_number(number).ok_or_else(|| too_much(number));
        let window = number.map(share).transpose()?;
        let Entries(entries) = access.next_element()?.ok_or_else(|| Error::invalid_length(2, &self))?;
        Ok(CacheDump { window, entries })
    }
}

fn invalid<E: Error>(number: u32, expected: &dyn Expected) -> E {
    E::invalid_value(Unexpected::Unsigned(number.into()), expected)
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
            let unknown = || invalid(number.into(), &"heat: 0 to 2, or 4 to 6");
            let heat = Heat::from_number(number).ok_or_else(unknown)?;
            entries.push(Dumped { key, value, standing: Standing { heat, lives, idle } });
        }
        Ok(Entries(entries))
    }
}

serialize_fields! {
    /// By the names of its fields; a time is seconds and nanoseconds, as serde has them. Needs the feature `serde`.
    ///
    /// ```
    /// let cache: koel::Cache<u32, u32> = koel::Cache::new(10);
    /// (cache.get(&1), cache.insert(1, 1).unwrap(), cache.get(&1));
    /// let stats = serde_json::to_value(cache.stats())?;
    /// assert_eq!((&stats["hits"], &stats["misses"], &stats["len"]), (&1.into(), &1.into(), &1.into()));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    CacheStats {
        load_time,
        hits,
        misses,
        loads,
        failed_loads,
        insertions,
        evictions,
        turned_away,
        expirations,
        evicted_weight,
        len,
        weight,
        capacity,
    }
}

/// By its name, in lower case. Needs the feature `serde`.
///
/// ```
/// assert_eq!(serde_json::to_string(&koel::Cause::Expired)?, r#""expired""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Cause {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_str(self.name())
    }
}
