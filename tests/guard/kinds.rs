//! Stores behind pointers, and stores whose type is chosen at run time.

use std::error::Error as _;

use koel::guard::{
    DynStore, DynStoreError, Error, FjallStore, Guarded, HashMapStore, RedbError, RedbStore, Store, Write,
};

use crate::common::{finds, key, ready};
use crate::scripted::{Act, Op, Scripted, filled};

#[test]
fn stores_of_several_kinds_are_of_one_type_and_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let stores = vec![
        DynStore::new(HashMapStore::new()),
        DynStore::new(Box::new(HashMapStore::new())),
        DynStore::new(RedbStore::open(folder.path().join("a")).unwrap()),
        DynStore::new(FjallStore::open(folder.path().join("b")).unwrap()),
        DynStore::new(DynStore::new(HashMapStore::new())),
    ];
    let guards: Vec<Guarded<DynStore>> = stores.into_iter().map(ready).collect();
    for guarded in &guards {
        let keys: Vec<Vec<u8>> = (0..3).map(key).collect();
        let before = guarded.store().generation().unwrap();
        assert!(!guarded.put(&keys[0], b"0").unwrap() && guarded.put(&keys[0], b"1").unwrap());
        let writes = [Write::Put(&keys[1], b"2"), Write::Delete(&keys[0]), Write::Delete(&keys[2])];
        assert_eq!(guarded.write_many(&writes).unwrap(), [false, true, false]);
        assert!(
            finds(guarded, &keys[1]) && !finds(guarded, &keys[0]) && guarded.contains_key(&keys[1]).unwrap()
        );
        assert!(guarded.delete(&keys[1]).unwrap() && !guarded.delete(&keys[1]).unwrap());
        guarded.put(&keys[2], b"3").unwrap();
        let store = guarded.store();
        let refs: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let values = store.get_many(&refs).unwrap();
        assert_eq!(
            values.iter().map(|value| value.as_deref()).collect::<Vec<_>>(),
            [None, None, Some(&b"3"[..])]
        );
        assert_eq!(
            store.scan_keys().unwrap().map(Result::unwrap).collect::<Vec<_>>(),
            [keys[2].clone().into()]
        );
        assert!(store.generation().unwrap().count > before.count && store.len_hint().is_some());
        guarded.rebuild().unwrap();
        guarded.wait_until_ready().unwrap();
        assert!(finds(guarded, &keys[2]) && !finds(guarded, &keys[0]));
    }
}

/// Not by the trait's defaults, but by its own `contains_key` and `get_many`, which do not ask for values one by one.
#[test]
fn a_store_behind_a_pointer_is_asked_as_it_is() {
    let store = filled(10);
    let behind = [DynStore::new(store.clone()), DynStore::new(Box::new(store.clone()))];
    store.next(Op::Get, [Act::Fail, Act::Fail]);
    for store in &behind {
        let error = store.get(&key(0)).unwrap_err();
        assert!(error.0.is::<Scripted>());
        assert_eq!(
            (error.to_string(), format!("{error:?}")),
            (Scripted.to_string(), format!("{Scripted:?}"))
        );
        assert!(error.source().is_none());
    }
    store.next(Op::Scan, [Act::Do, Act::Fail]);
    let keys: Vec<bool> = behind[0].scan_keys().unwrap().map(|key| key.is_ok()).collect();
    assert_eq!((keys.len(), keys.iter().filter(|is_ok| **is_ok).count()), (10, 9));
    store.exaggerates_by(5);
    assert!(behind.iter().all(|store| store.len_hint() == Some(15)));
    store.next(Op::Generation, [Act::Fail]);
    assert!(behind[1].generation().is_err() && behind[1].generation().is_ok());
}

#[test]
fn an_error_of_a_store_of_any_kind_says_which_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = ready(DynStore::new(RedbStore::open(folder.path().join("a")).unwrap()));
    let error = guarded.put(&[0; 70_000], b"").unwrap_err();
    assert!(error.to_string().contains("a key of 70000 bytes"), "{error}");
    let Error::Store(DynStoreError(error)) = error else { panic!("{error}") };
    assert!(matches!(*error.downcast().unwrap(), RedbError::KeyTooLong { len: 70_000 }));
}
