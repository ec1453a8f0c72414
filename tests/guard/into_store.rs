//! A guard that is ended gives its store back. (That it ends its scan for that is tested along with the scan.)

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use koel::guard::{Guarded, HashMapStore, Phase, Store};

use crate::common::catch;
use crate::scripted::{Act, Gate, Op, ScriptedStore, filled, sure};

/// No test waits this long, unless it fails.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn it_comes_back_with_what_was_written() {
    let guarded = Guarded::open(HashMapStore::new()).unwrap();
    guarded.put(b"ada", b"1815").unwrap();
    let store = guarded.into_store();
    assert_eq!(sure(store.get(b"ada")).as_deref(), Some(&b"1815"[..]));
}

/// By its own panic, instead of waiting for itself forever.
#[test]
fn a_scan_that_asks_for_it_or_waits_for_itself_is_told() {
    for asks in [true, false] {
        let (place, has_place) = channel();
        let has_place = Mutex::new(has_place);
        let (tell, told) = channel();
        let builder = Guarded::builder(filled(10)).on_progress(move |_| {
            // Only the first time: no other guard follows.
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

/// On the thread of a scan that is over, while another thread waits, too.
#[test]
fn who_is_told_that_a_scan_is_over_may_wait_for_the_next() {
    let store = Arc::new(ScriptedStore::default());
    let (place, has_place) = channel::<Weak<Guarded<Arc<ScriptedStore>>>>();
    let (tell, told) = channel();
    let (has_place, tell) = (Mutex::new(has_place), Mutex::new(tell));
    let builder = Guarded::builder(Arc::clone(&store)).on_progress(move |progress| {
        if progress.phase == Phase::Ready {
            if let Ok(guarded) = has_place.lock().unwrap().recv_timeout(LONG) {
                let guarded = guarded.upgrade().unwrap();
                let _ = tell.lock().unwrap().send(catch(|| guarded.wait_until_ready().unwrap()));
            }
        }
    });
    let guarded = Arc::new(builder.open().unwrap());
    while guarded.progress().phase != Phase::Ready {
        std::thread::yield_now();
    }
    let gate = Gate::new();
    store.next(Op::Scan, [Act::Stall(gate.clone())]);
    store.inner.put(b"ada", b"1815").unwrap();
    guarded.rebuild().unwrap();
    let waiting = gate.wait();
    std::thread::scope(|scope| {
        scope.spawn(|| guarded.wait_until_ready().unwrap());
        // Long enough for it to wait for the second scan. If not, this test proves less than it could.
        std::thread::sleep(Duration::from_millis(30));
        place.send(Arc::downgrade(&guarded)).unwrap();
        drop(place);
        std::thread::sleep(Duration::from_millis(30));
        waiting.open();
    });
    assert_eq!(told.recv_timeout(LONG), Ok(Ok(())));
}
