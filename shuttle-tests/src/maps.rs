//! Both maps, and a `HashMap` whose values' drops are counted, behind one set of operations.

use std::sync::Arc;

use koel::{HashMap, InlineMap, Stats};

use crate::{Identity, Ledger, Value, pause};

/// A map whose entries need no drop: they are retired in lists.
pub type Plain = HashMap<u64, [u64; 3], Identity>;

/// Its inline counterpart, with a value of three words.
pub type Inline = InlineMap<u64, [u64; 3], Identity>;

/// A map whose values know whether they have been dropped.
#[derive(Debug)]
pub struct Owned {
    map: HashMap<u64, Value, Identity>,
    ledger: Arc<Ledger>,
}

/// How a map is made.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// For at most so many entries.
    Fixed(usize),
    /// Empty, with segments of so many slots.
    Growing(usize),
}

/// What the tests need of each map. A value is its key and a version.
pub trait Map: Sized + Send + Sync + 'static {
    /// An empty map.
    fn new(shape: Shape) -> Self;
    /// Gives a key a value.
    fn put(&self, key: u64, version: u64);
    /// Takes a key out. Returns whether it was there.
    fn take(&self, key: u64) -> bool;
    /// The version that a key has. A value that is not whole, not the key's, or freed fails the test.
    fn look(&self, key: u64) -> Option<u64>;
    /// `look` for many keys at once.
    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>>;
    /// Keys and versions, as an iterator gives them.
    fn entries(&self) -> Vec<(u64, u64)>;
    /// Makes room for so many more entries.
    fn reserve(&self, additional: usize);
    /// Makes the map as small as it can be.
    fn shrink(&self);
    /// Counts of what has happened to the map.
    fn stats(&self) -> Stats;
    /// Drops the map: everything that was in it is dropped once.
    fn end(self) {}
}

/// An empty map of a shape.
macro_rules! build {
    ($map:ident, $shape:expr) => {{
        let builder = $map::builder().hasher(Identity::default());
        match $shape {
            Shape::Fixed(entries) => builder.fixed_capacity(entries).build(),
            Shape::Growing(slots) => builder.segment_slots(slots).build(),
        }
    }};
}

fn words(key: u64, version: u64) -> [u64; 3] {
    [key, version, !version]
}

/// The version in what was read.
fn version(key: u64, [of, version, not_version]: [u64; 3]) -> u64 {
    assert_eq!((of, not_version), (key, !version), "torn, or another key's");
    version
}

impl Map for Plain {
    fn new(shape: Shape) -> Self {
        build!(HashMap, shape)
    }

    fn put(&self, key: u64, version: u64) {
        self.pin().insert(key, words(key, version));
    }

    fn take(&self, key: u64) -> bool {
        self.pin().remove(&key).is_some()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.pin().get(&key).map(|value| version(key, *value))
    }

    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let (pin, mut out) = (self.pin(), vec![None; keys.len()]);
        pin.get_many(keys, &mut out);
        keys.iter().zip(out).map(|(key, value)| value.map(|value| version(*key, *value))).collect()
    }

    fn entries(&self) -> Vec<(u64, u64)> {
        self.pin().iter().map(|(key, value)| (*key, version(*key, *value))).collect()
    }

    fn reserve(&self, additional: usize) {
        HashMap::reserve(self, additional);
    }

    fn shrink(&self) {
        self.shrink_to_fit();
    }

    fn stats(&self) -> Stats {
        HashMap::stats(self)
    }
}

impl Map for Inline {
    fn new(shape: Shape) -> Self {
        build!(InlineMap, shape)
    }

    fn put(&self, key: u64, version: u64) {
        self.insert(key, words(key, version));
    }

    fn take(&self, key: u64) -> bool {
        self.remove(&key).is_some()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.get(&key).map(|value| version(key, value))
    }

    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let mut out = vec![None; keys.len()];
        self.get_many(keys, &mut out);
        keys.iter().zip(out).map(|(key, value)| value.map(|value| version(*key, value))).collect()
    }

    fn entries(&self) -> Vec<(u64, u64)> {
        self.iter().map(|(key, value)| (key, version(key, value))).collect()
    }

    fn reserve(&self, additional: usize) {
        InlineMap::reserve(self, additional);
    }

    fn shrink(&self) {
        self.shrink_to_fit();
    }

    fn stats(&self) -> Stats {
        InlineMap::stats(self)
    }
}

impl Owned {
    /// Checks that what was read stays as it is as long as the pin, whatever others do meanwhile.
    fn kept(&self, key: u64, value: &Value) -> u64 {
        self.ledger.check(key, value);
        pause();
        self.ledger.check(key, value);
        value.version
    }
}

impl Map for Owned {
    fn new(shape: Shape) -> Self {
        Owned { map: build!(HashMap, shape), ledger: Arc::default() }
    }

    fn put(&self, key: u64, version: u64) {
        let pin = self.map.pin();
        let old = pin.insert(key, self.ledger.value(key, version));
        old.inspect(|old| self.ledger.check(key, old));
    }

    fn take(&self, key: u64) -> bool {
        let pin = self.map.pin();
        let old = pin.remove(&key);
        old.inspect(|old| self.ledger.check(key, old)).is_some()
    }

    fn look(&self, key: u64) -> Option<u64> {
        self.map.pin().get(&key).map(|value| self.kept(key, value))
    }

    fn look_at_many(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let (pin, mut out) = (self.map.pin_owned(), vec![None; keys.len()]);
        pin.get_many(keys, &mut out);
        keys.iter().zip(out).map(|(key, value)| value.map(|value| self.kept(*key, value))).collect()
    }

    fn entries(&self) -> Vec<(u64, u64)> {
        self.map.pin().iter().map(|(key, value)| (*key, self.kept(*key, value))).collect()
    }

    fn reserve(&self, additional: usize) {
        self.map.reserve(additional);
    }

    fn shrink(&self) {
        self.map.shrink_to_fit();
    }

    fn stats(&self) -> Stats {
        self.map.stats()
    }

    fn end(self) {
        drop(self.map);
        self.ledger.all_are_dropped();
    }
}
