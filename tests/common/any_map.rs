//! One interface for both maps, so that a law is written once.
//!
//! It copies what it returns, and pins a `HashMap` for each operation: tests of references and of pins that are held
//! are written against `HashMap` itself, or take an [`AnyMap::hold`] first.

use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use koel::{CapacityError, Compute, Full, Occupied, Operation, Stats};

use super::Config;

/// The operations on a map.
pub(crate) trait AnyMap: Send + Sync + Sized {
    type Key: Clone + Eq + Hash + Debug + Send + Sync;
    type Value: Clone + Debug + Send + Sync;
    type Hasher: BuildHasher + Clone + Send + Sync;
    /// A value that keeps a map's entries from being freed.
    type Hold<'m>
    where
        Self: 'm;

    const NAME: &'static str;

    fn try_build(config: Config, hasher: Self::Hasher) -> Result<Self, CapacityError>;
    fn build(config: Config, hasher: Self::Hasher) -> Self {
        Self::try_build(config, hasher).unwrap_or_else(|error| panic!("{error}"))
    }
    fn hold(&self) -> Self::Hold<'_>;

    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn capacity(&self) -> usize;
    fn memory_usage(&self) -> usize;
    fn stats(&self) -> Stats;

    fn get(&self, key: &Self::Key) -> Option<Self::Value>;
    fn get_key_value(&self, key: &Self::Key) -> Option<(Self::Key, Self::Value)>;
    fn contains_key(&self, key: &Self::Key) -> bool;
    fn may_contain(&self, key: &Self::Key) -> bool;
    fn get_many(&self, keys: &[Self::Key]) -> Vec<Option<Self::Value>>;
    fn contains_many(&self, keys: &[Self::Key]) -> Vec<bool>;
    /// The same by references to keys, if the map has that.
    fn get_many_ref(&self, keys: &[&Self::Key]) -> Option<Vec<Option<Self::Value>>>;
    fn contains_many_ref(&self, keys: &[&Self::Key]) -> Option<Vec<bool>>;

    fn insert(&self, key: Self::Key, value: Self::Value) -> Option<Self::Value>;
    #[expect(clippy::type_complexity, reason = "it is the method's type")]
    fn checked_insert(
        &self,
        key: Self::Key,
        value: Self::Value,
    ) -> Result<Option<Self::Value>, Full<Self::Key, Self::Value>>;
    #[expect(clippy::type_complexity, reason = "it is the method's type")]
    fn checked_try_insert(
        &self,
        key: Self::Key,
        value: Self::Value,
    ) -> Result<Result<Self::Value, Occupied<Self::Value, Self::Value>>, Full<Self::Key, Self::Value>>;
    fn checked_get_or_insert_with(
        &self,
        key: Self::Key,
        make: impl FnOnce() -> Self::Value,
    ) -> Result<Self::Value, Full<Self::Key, Self::Value>>;
    fn checked_update_or_insert(
        &self,
        key: Self::Key,
        update: impl FnOnce(Self::Value) -> Self::Value,
        value: Self::Value,
    ) -> Result<Self::Value, Full<Self::Key, Self::Value>>;
    #[expect(clippy::type_complexity, reason = "it is the method's type")]
    fn checked_compute<T>(
        &self,
        key: Self::Key,
        f: impl FnOnce(Option<Self::Value>) -> Operation<Self::Value, T>,
    ) -> Result<Compute<Self::Key, Self::Value, T>, Full<Self::Key, Self::Value>>;
    fn try_insert(
        &self,
        key: Self::Key,
        value: Self::Value,
    ) -> Result<Self::Value, Occupied<Self::Value, Self::Value>>;
    fn try_insert_with(
        &self,
        key: Self::Key,
        make: impl FnOnce() -> Self::Value,
    ) -> Result<Self::Value, Self::Value>;
    fn remove(&self, key: &Self::Key) -> Option<Self::Value>;
    fn remove_entry(&self, key: &Self::Key) -> Option<(Self::Key, Self::Value)>;
    #[expect(clippy::type_complexity, reason = "it is the method's type")]
    fn remove_if(
        &self,
        key: &Self::Key,
        condition: impl FnOnce(&Self::Key, &Self::Value) -> bool,
    ) -> Result<Option<(Self::Key, Self::Value)>, (Self::Key, Self::Value)>;

    fn get_or_insert(&self, key: Self::Key, value: Self::Value) -> Self::Value;
    fn get_or_insert_default(&self, key: Self::Key) -> Self::Value
    where
        Self::Value: Default;
    fn get_or_insert_with(&self, key: Self::Key, make: impl FnOnce() -> Self::Value) -> Self::Value;
    /// By a reference to the key, if the map has that.
    fn get_or_insert_with_ref(&self, key: &Self::Key, make: impl FnOnce() -> Self::Value) -> Self::Value;
    fn try_get_or_insert_with<E>(
        &self,
        key: Self::Key,
        make: impl FnOnce() -> Result<Self::Value, E>,
    ) -> Result<Self::Value, E>;
    fn update(&self, key: Self::Key, update: impl FnOnce(Self::Value) -> Self::Value) -> Option<Self::Value>;
    fn update_or_insert(
        &self,
        key: Self::Key,
        update: impl FnOnce(Self::Value) -> Self::Value,
        value: Self::Value,
    ) -> Self::Value;
    fn update_or_insert_with(
        &self,
        key: Self::Key,
        update: impl FnOnce(Self::Value) -> Self::Value,
        make: impl FnOnce() -> Self::Value,
    ) -> Self::Value;
    fn compute<T>(
        &self,
        key: Self::Key,
        f: impl FnOnce(Option<Self::Value>) -> Operation<Self::Value, T>,
    ) -> Compute<Self::Key, Self::Value, T>;

    fn retain(&self, keep: impl FnMut(&Self::Key, &Self::Value) -> bool);
    fn clear(&self);
    /// Takes this many entries from a drain and drops it.
    fn drain(&self, entries: usize) -> Vec<(Self::Key, Self::Value)>;
    /// Looks at this many entries of a walk and drops it. No lock is held in `f`.
    fn walk(&self, entries: usize, f: impl FnMut(Self::Key, Self::Value));
    fn keys(&self) -> Vec<Self::Key>;
    fn values(&self) -> Vec<Self::Value>;
    fn into_entries(self) -> Vec<(Self::Key, Self::Value)>;
    fn reserve(&self, additional: usize);
    fn try_reserve(&self, additional: usize) -> Result<(), CapacityError>;
    fn shrink_to_fit(&self);
    /// Frees removed entries.
    fn flush(&self);
    fn extend(&self, pairs: Vec<(Self::Key, Self::Value)>);
    /// The same, with exclusive access to the map.
    fn extend_alone(&mut self, pairs: impl IntoIterator<Item = (Self::Key, Self::Value)>);
    fn duplicate(&self) -> Self;

    fn entries(&self) -> Vec<(Self::Key, Self::Value)> {
        let mut entries = Vec::new();
        self.walk(usize::MAX, |key, value| entries.push((key, value)));
        entries
    }
}

/// Methods that the map itself has under the same names.
macro_rules! own {
    ($(fn $name:ident(&self $(, $argument:ident: $of:ty)*) $(-> $to:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $of)*) $(-> $to)? {
            self.$name($($argument),*)
        })*
    };
}

pub(crate) use own;
