//! A store that fails, panics or stalls on command.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use koel::guard::{Generation, Guarded, HashMapStore, Scanned, Store, Value};

use crate::common::key;

/// The operations of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Get,
    Put,
    Delete,
    /// Each key of a scan.
    Scan,
    Generation,
    Renewal,
}

/// What the store does in an operation.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// The operation, as usual.
    Do,
    /// Return an error and change nothing.
    Fail,
    /// Do it, and return an error.
    DoAndFail,
    /// Panic, and change nothing.
    Panic,
    /// Do it, and panic.
    DoAndPanic,
    /// Wait at a gate, then do it.
    Stall(Gate),
    /// Do it, then wait at a gate.
    DoAndStall(Gate),
}

/// A place where the store waits for the test.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    arrive: Arc<Barrier>,
    leave: Arc<Barrier>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Gate { arrive: Arc::new(Barrier::new(2)), leave: Arc::new(Barrier::new(2)) }
    }

    /// The test waits until the store is at the gate.
    pub(crate) fn wait(&self) -> AtGate {
        self.arrive.wait();
        AtGate(self.clone())
    }

    pub(crate) fn stall(&self) {
        self.arrive.wait();
        self.leave.wait();
    }
}

/// The store waits at the gate. It goes on when this is dropped, also if the test panics meanwhile: otherwise the test could
/// not end.
#[must_use]
pub(crate) struct AtGate(Gate);

impl AtGate {
    /// The test lets the store go on.
    pub(crate) fn open(self) {}
}

impl Drop for AtGate {
    fn drop(&mut self) {
        self.0.leave.wait();
    }
}

/// The store's error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scripted;

impl fmt::Display for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as the script says")
    }
}

impl std::error::Error for Scripted {}

/// A store in memory with a script.
#[derive(Debug, Default)]
pub(crate) struct ScriptedStore {
    pub(crate) inner: HashMapStore,
    script: Mutex<Vec<(Op, VecDeque<Act>)>>,
    pub(crate) reads: AtomicU64,
    scans: AtomicU64,
    renewals: AtomicU64,
    hides_length: AtomicBool,
    /// How many more keys it reports than it has.
    beyond: AtomicU64,
}

impl ScriptedStore {
    /// The next operations of this kind perform these acts, one after the other; later ones are done as usual.
    pub(crate) fn next(&self, op: Op, acts: impl IntoIterator<Item = Act>) {
        let mut script = self.script.lock().expect("no panic with the script");
        script.push((op, acts.into_iter().collect()));
    }

    /// From now on all operations are done as usual.
    pub(crate) fn forget_script(&self) {
        self.script.lock().expect("no panic with the script").clear();
    }

    /// From now on it does not report how many keys it has.
    pub(crate) fn hides_its_length(&self) {
        self.hides_length.store(true, Ordering::Relaxed);
    }

    /// From now on it reports this many more keys than it has.
    pub(crate) fn exaggerates_by(&self, keys: u64) {
        self.beyond.store(keys, Ordering::Relaxed);
    }

    /// How often `get` was called.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// How often `scan_keys` was called.
    pub(crate) fn scans(&self) -> u64 {
        self.scans.load(Ordering::Relaxed)
    }

    /// How often `renew_generation` has succeeded.
    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::Relaxed)
    }

    fn run<T>(&self, op: Op, mut action: impl FnMut() -> T) -> Result<T, Scripted> {
        let act = {
            let mut script = self.script.lock().expect("no panic with the script");
            let line = script.iter_mut().find(|(of, acts)| *of == op && !acts.is_empty());
            line.and_then(|(_, acts)| acts.pop_front()).unwrap_or(Act::Do)
        };
        match act {
            Act::Do => Ok(action()),
            Act::Fail => Err(Scripted),
            Act::DoAndFail => {
                action();
                Err(Scripted)
            }
            Act::Panic => panic!("as the script says"),
            Act::DoAndPanic => {
                action();
                panic!("as the script says")
            }
            Act::Stall(gate) => {
                gate.stall();
                Ok(action())
            }
            Act::DoAndStall(gate) => {
                let result = action();
                gate.stall();
                Ok(result)
            }
        }
    }
}

/// A store with the keys of the first numbers.
pub(crate) fn filled(keys: u64) -> Arc<ScriptedStore> {
    let store = Arc::new(ScriptedStore::default());
    (0..keys).for_each(|number| assert!(!sure(store.inner.put(&key(number), b""))));
    store
}

/// A store with the key of 0, and a guard whose scan of it has failed.
pub(crate) fn unscanned() -> (Arc<ScriptedStore>, Guarded<Arc<ScriptedStore>>) {
    let store = filled(1);
    store.next(Op::Scan, [Act::Fail]);
    let guarded = Guarded::open(Arc::clone(&store)).unwrap();
    guarded.wait_until_ready().unwrap_err();
    (store, guarded)
}

/// The result of a store that cannot fail.
pub(crate) fn sure<T>(result: Result<T, std::convert::Infallible>) -> T {
    result.unwrap_or_else(|never| match never {})
}

impl Store for ScriptedStore {
    type Error = Scripted;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Scripted> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.run(Op::Get, || sure(self.inner.get(key)))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Scripted> {
        self.run(Op::Put, || sure(self.inner.put(key, value)))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Scripted> {
        self.run(Op::Delete, || sure(self.inner.delete(key)))
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Scripted>>, Scripted> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        let keys = sure(self.inner.scan_keys());
        Ok(keys.map(|key| self.run(Op::Scan, || sure(key.clone()))))
    }

    fn generation(&self) -> Result<Generation, Scripted> {
        self.run(Op::Generation, || sure(self.inner.generation()))
    }

    fn renew_generation(&self) -> Result<(), Scripted> {
        self.run(Op::Renewal, || {
            self.renewals.fetch_add(1, Ordering::Relaxed);
            sure(self.inner.renew_generation());
        })
    }

    fn len_hint(&self) -> Option<u64> {
        let len = self.inner.len_hint().filter(|_| !self.hides_length.load(Ordering::Relaxed));
        len.map(|len| len + self.beyond.load(Ordering::Relaxed))
    }
}
