//! `Serialize` and `Deserialize`, as the bytes of `to_bytes`; `Serialize` of the reports of filters about themselves. Feature
//! `serde`.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::collect::{push, with_room};
use super::cuckoo::CuckooFilter;
use super::error::FilterError;
use super::hasher::FilterHasher;
use super::info::{FilterInfo, TableInfo, ViewInfo};
use super::scalable::{ScalableCuckooFilter, ScalableInfo};
use crate::fields::serialize_fields;

/// The room that a hint in foreign data may make us allocate; more is allocated as the bytes themselves come.
const CAUTIOUS: usize = 1 << 12;

/// Needs the feature `serde`.
impl<S: FilterHasher> Serialize for CuckooFilter<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

/// Needs the feature `serde`.
///
/// ```
/// use koel::CuckooFilter;
///
/// let filter = CuckooFilter::from_keys(["ada", "grace"], 0.001).unwrap();
/// let text = serde_json::to_string(&filter)?;
/// let copy: CuckooFilter = serde_json::from_str(&text)?;
/// assert!(copy.contains("ada") && copy.contains("grace"));
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de, S: FilterHasher> Deserialize<'de> for CuckooFilter<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Foreign(Self::from_bytes_as))
    }
}

/// Needs the feature `serde`.
impl<S: FilterHasher> Serialize for ScalableCuckooFilter<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

/// Needs the feature `serde`.
impl<'de, S: FilterHasher> Deserialize<'de> for ScalableCuckooFilter<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Foreign(Self::from_bytes_as))
    }
}

/// Reads bytes, or a sequence of numbers, from which this function makes a filter.
struct Foreign<T>(fn(&[u8]) -> Result<T, FilterError>);

impl<'de, T> Visitor<'de> for Foreign<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a koel filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        self.0(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<T, A::Error> {
        let announced = access.size_hint().unwrap_or(0).min(CAUTIOUS);
        let mut bytes = with_room(announced).map_err(A::Error::custom)?;
        while let Some(byte) = access.next_element()? {
            push(&mut bytes, byte).map_err(A::Error::custom)?;
        }
        self.0(&bytes).map_err(A::Error::custom)
    }
}

serialize_fields! {
    /// By the names of its fields. Needs the feature `serde`.
    ///
    /// ```
    /// let filter = koel::CuckooFilter::builder().capacity(1000).fingerprint_bits(12).build().unwrap();
    /// let info = serde_json::to_value(filter.info())?;
    /// assert_eq!((&info["fingerprint_bits"], &info["len"]), (&12.into(), &0.into()));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    FilterInfo {
        capacity_keys,
        slots,
        len,
        fingerprint_bits,
        bucket_slots,
        semi_sorted,
        segments,
        segment_buckets,
        memory_usage,
        false_positive_rate,
        false_positive_rate_when_full,
        displacements,
    }
}

serialize_fields! {
    /// By the names of its fields. Needs the feature `serde`.
    TableInfo {
        capacity_keys,
        slots,
        len,
        fingerprint_bits,
        bucket_slots,
        semi_sorted,
        memory_usage,
        false_positive_rate,
        displacements,
    }
}

serialize_fields! {
    /// By the names of its fields. Needs the feature `serde`.
    ///
    /// ```
    /// let filter = koel::ScalableCuckooFilter::from_keys(0..1000, 0.01).unwrap();
    /// let info = serde_json::to_value(filter.info())?;
    /// assert_eq!(info["tables"][0]["len"], 1000);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ScalableInfo { tables, max_keys, max_duplicates }
}

serialize_fields! {
    /// By the names of its fields. Needs the feature `serde`.
    ViewInfo { scalable, tables }
}
