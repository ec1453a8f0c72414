//! A guard that is over gives its store back.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use koel::guard::{Guarded, HashMapStore, Phase, Store};

use crate::common::catch;
use crate::scripted::{filled, sure};

#[test]
fn it_comes_back_with_what_was_written() {
    let guarded = Guarded::open(HashMapStore::new()).unwrap();
    guarded.put(b"ada", b"1815").unwrap();
    let store = guarded.into_store();
    assert_eq!(sure(store.get(b"ada")).as_deref(), Some(&b"1815"[..]));
}

/// Which ends early, and leaves nothing that has the store.
#[test]
fn it_comes_back_in_the_midst_of_a_scan() {
    let (begun, has_begun) = channel();
    let (go, may_go) = channel::<()>();
    let told = Mutex::new((begun, may_go));
    let builder = Guarded::builder(filled(100_000)).on_progress(move |progress| {
        if progress.phase == Phase::Rebuilding {
            let (begun, may_go) = &*told.lock().unwrap();
            // Only the first time; then nobody listens any more.
            let _ = begun.send(());
            let _ = may_go.recv();
        }
    });
    let guarded = builder.open().unwrap();
    has_begun.recv().unwrap();
    drop((go, has_begun));
    let mut store = guarded.into_store();
    assert!(Arc::get_mut(&mut store).is_some(), "nobody else has it");
}

#[test]
fn a_scan_that_asks_for_it_is_told() {
    let (place, has_place) = channel::<Guarded<Arc<_>>>();
    let has_place = Mutex::new(has_place);
    let (tell, told) = channel();
    let builder = Guarded::builder(filled(10)).on_progress(move |_| {
        if let Ok(guarded) = has_place.lock().unwrap().recv() {
            tell.send(catch(|| drop(guarded.into_store()))).unwrap();
        }
    });
    place.send(builder.open().unwrap()).unwrap();
    let error = told.recv().unwrap().unwrap_err();
    assert!(error.contains("a scan that asks for the store has it itself"), "{error}");
}
