//! Bytes that may be a snapshot of a guard's filter, in the file that a guard is opened from.

use koel::guard::{Filter, Generation, Guarded, HashMapStore, Scanned, SnapshotError, Store, Value};

use super::bounded_beside;
use super::filter_bytes::{hash, sign};

/// The sizes of a snapshot's header, and of everything before its filter.
const HEADER: usize = 64;
const STRIPES: usize = 1024;
/// Memory of a guard without a filter: 1,024 stripes in cache lines of their own.
const GUARD: usize = 128 << 10;
/// How many keys the store begins with.
const KEYS: u64 = 20;

/// A store whose generation a snapshot can be made for beforehand.
struct Foretold(HashMapStore);

impl Store for Foretold {
    type Error = <HashMapStore as Store>::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Self::Error> {
        self.0.get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        self.0.put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Self::Error> {
        self.0.delete(key)
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Self::Error>>, Self::Error> {
        self.0.scan_keys()
    }

    fn generation(&self) -> Result<Generation, Self::Error> {
        Ok(Generation { lineage: 1, count: self.0.generation()?.count })
    }

    fn len_hint(&self) -> Option<u64> {
        self.0.len_hint()
    }
}

type Guard = Guarded<Foretold>;

/// Which filter a guard is to have, and its false-positive rate.
type Plan = (Filter, f64);

/// The first byte says whether the checksums are corrected, and the plan. The others are the file.
fn input(data: &[u8]) -> (Plan, Vec<u8>) {
    let (&mode, bytes) = data.split_first().unwrap_or((&0, &[]));
    let filter = [Filter::Cuckoo, Filter::Bloom][usize::from(mode / 2 % 2)];
    let rate = match (mode / 4 % 3, filter) {
        (1, Filter::Bloom) => 1.0 - 1e-12,
        (2, Filter::Bloom) => 1e-300,
        _ => 0.01,
    };
    let mut bytes = bytes.to_vec();
    if mode % 2 == 1 {
        sign_all(&mut bytes, rate);
    }
    ((filter, rate), bytes)
}

/// Writes the right rate, the right checksums of the snapshot and of the cuckoo filter in it, and its true length.
fn sign_all(bytes: &mut [u8], rate: f64) {
    if bytes.len() < HEADER + 8 {
        return;
    }
    let (content, checksum) = bytes.split_at_mut(bytes.len() - 8);
    let body_len = (content.len() - HEADER) as u64;
    content[HEADER - 16..HEADER - 8].copy_from_slice(&rate.to_bits().to_le_bytes());
    content[HEADER - 8..HEADER].copy_from_slice(&body_len.to_le_bytes());
    if let (1, Some(filter)) = (content[12], content.get_mut(HEADER + STRIPES..)) {
        sign(filter);
    }
    checksum.copy_from_slice(&hash(0, content).to_le_bytes());
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn open((filter, rate): Plan, bytes: &[u8]) -> Guard {
    let store = Foretold(HashMapStore::new());
    for number in 0..KEYS {
        store.put(&key(number), b"here").expect("memory does not fail");
    }
    let file = tempfile::NamedTempFile::new().expect("a place for files");
    std::fs::write(file.path(), bytes).expect("room on the disk");
    let builder = Guarded::builder(store)
        .filter(filter)
        .false_positive_rate(rate)
        .expected_keys(KEYS)
        .snapshot(file.path());
    bounded_beside(GUARD, bytes.len(), || builder.open()).expect("memory does not fail")
}

fn finds(guard: &Guard, number: u64) -> bool {
    guard.get(&key(number)).expect("memory does not fail").is_some()
}

/// Opens a guard from a snapshot. Either the snapshot is refused, and every key is found; or it becomes the guard's filter,
/// whatever it says, and what is written from then on is right. [`Guarded::verify`] repairs one that is not the store's.
pub(crate) fn guard_snapshot(data: &[u8]) {
    let (plan, bytes) = input(data);
    let guard = open(plan, &bytes);
    guard.wait_until_ready().expect("memory does not fail");
    match guard.rejected_snapshot() {
        Some(SnapshotError::Io(error)) => panic!("{error}"),
        Some(_) => (0..KEYS).for_each(|number| assert!(finds(&guard, number), "{number}")),
        None => write_and_mend(&guard),
    }
}

fn write_and_mend(guard: &Guard) {
    let new = KEYS..3 * KEYS;
    for number in new.clone() {
        assert!(!guard.put(&key(number), b"new").expect("memory does not fail"), "it was not there");
    }
    for number in new.clone() {
        assert!(finds(guard, number), "{number} was put");
    }
    for number in new.clone() {
        assert!(guard.delete(&key(number)).expect("memory does not fail"), "{number} was put");
        assert!(!finds(guard, number), "{number} was deleted");
    }
    let _ = guard.stats().to_string();
    guard.verify(usize::MAX).expect("memory does not fail");
    guard.wait_until_ready().expect("memory does not fail");
    (0..KEYS).for_each(|number| assert!(finds(guard, number), "{number} after the mending"));
    new.for_each(|number| assert!(!finds(guard, number), "{number} after the mending"));
}

/// Whether it is a snapshot that fits the store.
pub(crate) fn is_snapshot(data: &[u8]) -> bool {
    let (plan, bytes) = input(data);
    open(plan, &bytes).rejected_snapshot().is_none()
}
