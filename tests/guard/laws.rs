//! Laws that hold for every store, and for a guard before it.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel::guard::{FjallStore, Guarded, HashMapStore, RedbStore, Store, Write};

use crate::common::{Rng, key, seed};

/// Some writes in a batch, of few keys: mostly one occurs twice.
fn writes_several<S: Store>(guarded: &Guarded<S>, known: &mut BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut Rng) {
    let drawn: Vec<(Vec<u8>, bool)> =
        (0..rng.below(6)).map(|_| (key(rng.below(4)), rng.below(2) == 0)).collect();
    let write = |(key, puts)| if puts { Write::Put(key, b"several") } else { Write::Delete(key) };
    let writes: Vec<Write<'_>> = drawn.iter().map(|(key, puts)| write((key, *puts))).collect();
    let existed = drawn.iter().map(|(key, puts)| match puts {
        true => known.insert(key.clone(), b"several".to_vec()).is_some(),
        false => known.remove(key).is_some(),
    });
    assert_eq!(guarded.write_many(&writes).unwrap(), existed.collect::<Vec<_>>(), "{writes:?}");
}

/// Random writes and reads, compared with a map that knows the answers. The store itself is asked as well.
fn obeys<S: Store>(store: S, operations: u64) {
    let store = Arc::new(store);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    let mut known: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut rng = Rng::new(seed() + operations);
    for operation in 0..operations {
        let key = key(rng.below(200));
        let before = store.generation().unwrap();
        match rng.below(5) {
            4 => writes_several(&guarded, &mut known, &mut rng),
            0 => {
                let existed = known.insert(key.clone(), operation.to_le_bytes().to_vec()).is_some();
                assert_eq!(guarded.put(&key, &operation.to_le_bytes()).unwrap(), existed);
                assert_ne!(store.generation().unwrap(), before, "a write that changes something");
            }
            1 => {
                let existed = known.remove(&key).is_some();
                assert_eq!(guarded.delete(&key).unwrap(), existed);
                assert_eq!(store.generation().unwrap() != before && existed, existed);
            }
            2 => {
                let known = known.get(&key).map(Vec::as_slice);
                assert_eq!(guarded.get(&key).unwrap().as_deref(), known);
                assert_eq!(store.get(&key).unwrap().as_deref(), known);
                assert_eq!(guarded.contains_key(&key).unwrap(), known.is_some());
            }
            _ => {
                let keys = [key.clone(), b"nobody".to_vec(), key];
                let found = guarded.get_many(&keys).unwrap();
                assert_eq!(found[0].as_deref(), known.get(&keys[0]).map(Vec::as_slice));
                assert!(found[0] == found[2] && found[1].is_none());
            }
        }
    }
    guarded.wait_until_ready().unwrap();
    let scanned: Result<Vec<_>, _> = store.scan_keys().unwrap().collect();
    let mut scanned: Vec<Box<[u8]>> = scanned.unwrap();
    scanned.sort();
    assert!(scanned.iter().map(|key| &**key).eq(known.keys().map(Vec::as_slice)));
    assert_eq!(guarded.stats().filter_keys, known.len() as u64);
    assert_eq!(guarded.verify(1000).unwrap().false_negatives, 0);
}

/// A scan yields the keys of the moment at which it began.
fn scans_a_moment<S: Store>(store: S) {
    for number in 0..100 {
        store.put(&key(number), b"").unwrap();
    }
    let scan = store.scan_keys().unwrap();
    for number in 0..50 {
        store.delete(&key(number)).unwrap();
        store.put(&key(1000 + number), b"").unwrap();
    }
    let mut seen: Vec<Box<[u8]>> = scan.map(Result::unwrap).collect();
    let mut expected: Vec<Box<[u8]>> = (0..100).map(|number| key(number).into()).collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn maps_obey() {
    obeys(HashMapStore::new(), 20_000);
    scans_a_moment(HashMapStore::new());
}

#[test]
fn redb_obeys() {
    let folder = tempfile::tempdir().unwrap();
    obeys(RedbStore::open(folder.path().join("a")).unwrap().durable(false), 3000);
    scans_a_moment(RedbStore::open(folder.path().join("b")).unwrap().durable(false));
}

#[test]
fn fjall_obeys() {
    let folder = tempfile::tempdir().unwrap();
    obeys(FjallStore::open(folder.path().join("a")).unwrap().durable(false), 5000);
    scans_a_moment(FjallStore::open(folder.path().join("b")).unwrap().durable(false));
}

fn keeps<S: Store>(open: impl Fn() -> S, load: impl Fn(&S)) {
    let store = open();
    load(&store);
    store.put(b"last", b"2").unwrap();
    let generation = store.generation().unwrap();
    drop(store);
    let store = open();
    assert_eq!(store.generation().unwrap(), generation, "opening changes nothing");
    assert_eq!(store.scan_keys().unwrap().count(), 1001);
    assert_eq!(store.get(b"last").unwrap().as_deref(), Some(&b"2"[..]));
    store.put(b"last", b"3").unwrap();
    let next = store.generation().unwrap();
    assert!(next.lineage != generation.lineage && next.count == generation.count + 1);
}

#[test]
fn stores_on_disk_keep_their_data_and_begin_a_new_lineage_with_the_next_write() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let pairs = || (0..1000).map(|number| (key(number), b"1"));
    keeps(|| RedbStore::open(&a).unwrap(), |store| assert_eq!(store.load(pairs()).unwrap(), 1000));
    keeps(|| FjallStore::open(&b).unwrap(), |store| store.load(pairs()).unwrap());
}
