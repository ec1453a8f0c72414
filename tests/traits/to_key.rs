//! Keys that are made from a reference on a miss.

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use koel::{ByToOwned, Cache, Compute, Equivalent, HashMap, Operation, ToKey};

use crate::common::catch;

/// A map and a cache make a key from the missed reference, once, and find it by that reference.
#[track_caller]
fn is_made_once<K, Q>(borrowed: &Q)
where
    K: Hash + Eq + Clone + Debug,
    Q: ?Sized + Hash + Equivalent<K> + ToKey<K>,
{
    let map: HashMap<K, u8> = HashMap::new();
    let cache: Cache<K, u8> = Cache::new(10);
    for _ in 0..2 {
        assert_eq!(*map.pin().get_or_insert_with_ref(borrowed, || 1), 1);
        assert_eq!(map.pin().checked_get_or_insert_with_ref(borrowed, || 2), Ok(&1));
        assert_eq!(cache.get_or_insert_with_ref(borrowed, || 3), 3);
    }
    let key: K = borrowed.to_key();
    assert!(borrowed.equivalent(&key));
    assert_eq!((map.len(), cache.len()), (1, 1));
    assert_eq!((map.pin().get(borrowed), cache.get(borrowed)), (Some(&1), Some(3)));
    assert_eq!(
        (map.pin().get(&key), cache.get(&key)),
        (Some(&1), Some(3)),
        "{key:?} hashes as what it is made of"
    );
}

#[test]
fn a_key_is_made_of_what_the_standard_library_borrows_it_as() {
    is_made_once::<String, _>("text");
    is_made_once::<Box<str>, _>("text");
    is_made_once::<Arc<str>, _>("text");
    is_made_once::<Rc<str>, _>("text");
    is_made_once::<Cow<str>, _>("text");
    is_made_once::<Vec<u8>, _>(&b"bytes"[..]);
    is_made_once::<Box<[u8]>, _>(&b"bytes"[..]);
    is_made_once::<Arc<[String]>, _>(&["a".to_string(), "b".to_string()][..]);
    is_made_once::<Rc<[u8]>, _>(&b"bytes"[..]);
    is_made_once::<PathBuf, _>(Path::new("a/b"));
    is_made_once::<Arc<Path>, _>(Path::new("a/b"));
    is_made_once::<OsString, _>(OsStr::new("name"));
    is_made_once::<Arc<OsStr>, _>(OsStr::new("name"));
    is_made_once::<CString, _>(c"name");
    is_made_once::<Arc<CStr>, _>(c"name");
    is_made_once::<u64, _>(&7);
    is_made_once::<(u64, String), _>(&(7, "seven".to_string()));
}

/// A number that counts how often a key is made from it.
struct Counting(u64, Cell<u32>);

impl Hash for Counting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<u64> for Counting {
    fn equivalent(&self, key: &u64) -> bool {
        self.0 == *key
    }
}

impl ToKey<u64> for Counting {
    fn to_key(&self) -> u64 {
        self.1.set(self.1.get() + 1);
        self.0
    }
}

#[test]
fn no_key_is_made_of_what_is_there_or_goes() {
    let key = Counting(1, Cell::new(0));
    let (map, cache): (HashMap<u64, u8>, Cache<u64, u8>) = (HashMap::new(), Cache::new(10));
    let pin = map.pin();
    assert!(matches!(pin.compute_ref(&key, |_| Operation::<u8, _>::Abort(())), Compute::Aborted(())));
    assert!(pin.update_ref(&key, |n| *n).is_none() && cache.update_ref(&key, |n| *n).unwrap().is_none());
    assert_eq!(key.1.get(), 0);
    assert_eq!(*pin.get_or_insert_with_ref(&key, || 1), 1);
    assert_eq!((cache.get_or_insert_with_ref(&key, || 1), key.1.get()), (1, 2));
    for _ in 0..3 {
        pin.get_or_insert_with_ref(&key, || 2);
        pin.update_or_insert_ref(&key, |n| *n, 2);
        let _ = pin.compute_ref(&key, |_| Operation::<_, ()>::Insert(3));
        cache.get_or_insert_with_ref(&key, || 2);
        cache.update_or_insert_ref(&key, |n| *n, 2).unwrap();
    }
    assert!(matches!(pin.compute_ref(&key, |_| Operation::<_, ()>::Remove), Compute::Removed(..)));
    assert_eq!(key.1.get(), 2, "each was missed once");
}

/// A key's parts.
#[derive(Hash)]
struct Parts<'a>(u32, &'a str);

impl Equivalent<(u32, Arc<str>)> for Parts<'_> {
    fn equivalent(&self, key: &(u32, Arc<str>)) -> bool {
        self.0 == key.0 && *self.1 == *key.1
    }
}

impl ToKey<(u32, Arc<str>)> for Parts<'_> {
    fn to_key(&self) -> (u32, Arc<str>) {
        assert_ne!(self.1, "", "a key without a name");
        (self.0, Arc::from(self.1))
    }
}

#[test]
fn a_key_is_made_of_a_type_of_the_callers() {
    is_made_once::<(u32, Arc<str>), _>(&Parts(1, "one"));
    is_made_once::<String, _>(&ByToOwned("one"));
}

#[test]
fn where_no_key_can_be_made_all_is_as_it_was() {
    let map: HashMap<(u32, Arc<str>), u8> = HashMap::new();
    let cache: Cache<(u32, Arc<str>), u8> = Cache::new(10);
    for _ in 0..2 {
        assert!(catch(|| *map.pin().get_or_insert_with_ref(&Parts(1, ""), || 1)).is_err());
        assert!(catch(|| cache.get_or_insert_with_ref(&Parts(1, ""), || 1)).is_err());
        assert_eq!((map.len(), cache.len()), (0, 0));
    }
    assert_eq!(cache.get_or_insert_with_ref(&Parts(1, "one"), || 1), 1);
}

#[test]
fn what_changes_an_entry_by_reference_makes_a_key_only_for_a_new_one() {
    let key: Arc<str> = Arc::from("a");
    let map: HashMap<Arc<str>, u8> = HashMap::from([(Arc::clone(&key), 1)]);
    let pin = map.pin();
    assert_eq!(pin.update_ref("a", |n| n + 1), Some(&2));
    assert_eq!(*pin.update_or_insert_ref("a", |n| n + 1, 9), 3);
    assert_eq!(*pin.update_or_insert_with_ref("a", |n| n + 1, || 9), 4);
    let added = pin.compute_ref("a", |entry| Operation::<_, ()>::Insert(entry.unwrap().1 + 1));
    assert!(matches!(added, Compute::Updated { old: (_, 4), new: (_, 5) }));
    assert!(Arc::ptr_eq(pin.get_key_value("a").unwrap().0, &key), "clones of the key that was there");
    assert_eq!(pin.compute_ref("a", |_| Operation::<_, ()>::Remove), Compute::Removed(&key, &5));
    assert_eq!(pin.update_ref("a", |n| n + 1), None);
    assert_eq!(pin.compute_ref("a", |entry| Operation::Abort(entry.is_none())), Compute::Aborted(true));
    assert_eq!(*pin.update_or_insert_ref("a", |n| n + 1, 9), 9);
    assert_eq!(
        pin.compute_ref("b", |_| Operation::<_, ()>::Insert(7)),
        Compute::Inserted(&Arc::from("b"), &7)
    );

    let cache: Cache<Arc<str>, u8> = Cache::new(10);
    cache.insert(Arc::clone(&key), 1).unwrap();
    assert_eq!(cache.update_ref("a", |n| n + 1).unwrap(), Some(2));
    assert_eq!(cache.update_or_insert_ref("a", |n| n + 1, 9).unwrap(), 3);
    assert_eq!(cache.update_or_insert_with_ref("a", |n| n + 1, || 9).unwrap(), 4);
    let added = cache.compute_ref("a", |old| Operation::<_, ()>::Insert(old.unwrap() + 1)).unwrap();
    let Compute::Updated { old: (_, 4), new: (new_key, 5) } = added else { panic!("{added:?}") };
    assert!(Arc::ptr_eq(&new_key, &key), "a clone of the key that was there");
    assert!(matches!(cache.compute_ref("a", |_| Operation::<_, ()>::Remove), Ok(Compute::Removed(_, 5))));
    assert_eq!(cache.update_ref("a", |n| n + 1).unwrap(), None);
    assert_eq!(cache.update_or_insert_ref("a", |n| n + 1, 9).unwrap(), 9);
}

type Written = HashMap<(u32, Arc<str>), Option<Writes>>;

static WRITTEN: LazyLock<Written> = LazyLock::new(HashMap::new);

/// A value that writes to its map when it is dropped.
struct Writes;

impl Drop for Writes {
    fn drop(&mut self) {
        WRITTEN.pin().insert((2, Arc::from("dropped")), None);
    }
}

/// Otherwise its destructor would run under the lock, and panic during unwinding.
#[test]
fn what_was_to_be_inserted_is_dropped_after_the_lock_if_no_key_can_be_made() {
    let compute = || {
        let pin = WRITTEN.pin();
        let _ = pin.compute_ref(&Parts(1, ""), |_| Operation::<_, ()>::Insert(Some(Writes)));
    };
    assert!(catch(compute).unwrap_err().contains("a key without a name"));
    assert_eq!(WRITTEN.pin().keys().collect::<Vec<_>>(), [&(2, Arc::from("dropped"))]);
}
