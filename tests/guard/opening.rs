//! A guard that cannot be opened hands its store back.

use std::process::Command;
use std::sync::Arc;

use koel::guard::{Error, Filter, Guarded, HashMapStore, Store};

use crate::common::finds;
use crate::scripted::{Act, Op, Scripted, filled, sure};

const CHILD: &str = "KOEL_GUARD_WITHOUT_THREADS";

#[test]
fn a_store_comes_back_with_the_error_and_may_be_guarded_then() {
    let store = filled(10);
    let (store, error) = Guarded::builder(store).false_positive_rate(2.0).try_open().unwrap_err();
    assert!(matches!(error, Error::Filter(_)), "{error}");
    store.next(Op::Generation, [Act::Fail]);
    let (mut store, error) = Guarded::builder(store).snapshot("no such file").try_open().unwrap_err();
    assert_eq!(error.into_store(), Some(Scripted));
    assert!(Arc::get_mut(&mut store).is_some(), "nobody else has it");
    let guarded = Guarded::builder(store).snapshot("no such file").try_open().unwrap();
    guarded.wait_until_ready().unwrap();
    assert!(finds(&guarded, b"key 7") && !finds(&guarded, b"key 10"));
}

/// The child, in which no new thread has memory for its stack. It runs on the test's own thread, as there is one test.
#[test]
fn the_child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let store = Arc::new(HashMapStore::new());
    assert!(!sure(store.put(b"a", b"1")));
    let builder = Guarded::builder(store).on_progress(|_| panic!("there is no scan"));
    let (mut store, error) = builder.try_open().unwrap_err();
    assert!(matches!(error, Error::Thread(_)), "{error}");
    assert!(Arc::get_mut(&mut store).is_some(), "nobody else has it");
    let guarded = Guarded::builder(store).filter(Filter::None).open().unwrap();
    assert!(finds(&guarded, b"a"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_comes_back_where_there_is_no_thread_to_scan_it() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "opening::the_child", "--test-threads=1"]);
    let stack = (1_u64 << 62).to_string();
    let output = command.env(CHILD, "yes").env("RUST_MIN_STACK", stack).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
