//! A guard that is over gives its store back. (That it ends its scan for that is tested beside the scan.)

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use koel::guard::{Guarded, HashMapStore, Store};

use crate::common::catch;
use crate::scripted::{filled, sure};

/// What no test waits for, unless it is to fail.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn it_comes_back_with_what_was_written() {
    let guarded = Guarded::open(HashMapStore::new()).unwrap();
    guarded.put(b"ada", b"1815").unwrap();
    let store = guarded.into_store();
    assert_eq!(sure(store.get(b"ada")).as_deref(), Some(&b"1815"[..]));
}

/// By its own panic, instead of waiting for itself for ever.
#[test]
fn a_scan_that_asks_for_it_or_waits_for_itself_is_told() {
    for asks in [true, false] {
        let (place, has_place) = channel();
        let has_place = Mutex::new(has_place);
        let (tell, told) = channel();
        let builder = Guarded::builder(filled(10)).on_progress(move |_| {
            // Only the first time: there is no other guard to come.
            if let Ok(guarded) = has_place.lock().unwrap().recv_timeout(LONG) {
                let guarded: Guarded<_> = guarded;
                let answer = match asks {
                    true => catch(|| drop(guarded.into_store())),
                    false => catch(|| guarded.wait_until_ready().unwrap()),
                };
                tell.send(answer).unwrap();
            }
        });
        place.send(builder.open().unwrap()).unwrap();
        drop(place);
        let error = told.recv_timeout(LONG).unwrap().unwrap_err();
        let why = ["waits for the scan", "has it itself"][usize::from(asks)];
        assert!(error.contains(why), "{error}");
    }
}
