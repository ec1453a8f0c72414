//! A store that a guard's models write to.

use std::sync::Arc;

use koel::guard::{Generation, Scanned, Store, Value};
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::Failed;

/// The number of keys of [`Words`]. Each key is one byte, its number.
const KEYS: usize = 6;

/// A value whose put takes effect but returns an error; and no scan that runs meanwhile succeeds.
pub const FAILS: u8 = 99;
/// A key whose deletion fails.
pub const STAYS: u8 = 5;

/// A store of six keys, whose values are bytes; 0 for a key that is not there. Each has a word of its own, with the number of
/// its last write above the value: it orders no more than any store must.
///
/// A write is one exchange. If a thread loaded the word first, loom would remember only that load, and not see what else the
/// exchange conflicts with. A scan shows one moment if at most one key is written to meanwhile.
#[derive(Debug, Default)]
pub struct Words {
    keys: [AtomicU64; KEYS],
    /// Outside of what a model explores, like all that follows.
    writes: std::sync::atomic::AtomicU64,
    scans: std::sync::atomic::AtomicU64,
    most_scans: std::sync::atomic::AtomicU64,
}

/// A scan that is under way.
struct Scanning<'a>(&'a Words);

impl Drop for Scanning<'_> {
    fn drop(&mut self) {
        self.0.scans.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Words {
    /// Writes around a guard. Returns the previous value.
    pub fn put(&self, key: u8, value: u8) -> u8 {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        self.keys[usize::from(key)].swap(number << 8 | u64::from(value), Ordering::AcqRel) as u8
    }

    /// The most scans that were under way at a time.
    pub fn most_scans(&self) -> u64 {
        self.most_scans.load(Ordering::Relaxed)
    }

    /// A key's value.
    pub fn value(&self, key: u8) -> u8 {
        self.keys[usize::from(key)].load(Ordering::Acquire) as u8
    }
}

impl Store for Words {
    type Error = Failed;

    fn get(&self, key: &[u8]) -> Result<Option<Value>, Failed> {
        let value = self.value(key[0]);
        Ok((value != 0).then(|| Arc::from([value])))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Failed> {
        let before = Words::put(self, key[0], value[0]);
        if value[0] == FAILS { Err(Failed) } else { Ok(before != 0) }
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failed> {
        if key[0] == STAYS { Err(Failed) } else { Ok(Words::put(self, key[0], 0) != 0) }
    }

    fn scan_keys(&self) -> Result<impl Iterator<Item = Scanned<Failed>>, Failed> {
        self.most_scans.fetch_max(self.scans.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let scanning = Scanning(self);
        let values: Vec<_> = (0..KEYS as u8).map(|key| (key, self.value(key))).collect();
        let there = values.into_iter().filter(|&(_, value)| value != 0);
        Ok(there.map(move |(key, value)| {
            let _under_way = &scanning;
            if value == FAILS { Err(Failed) } else { Ok([key].into()) }
        }))
    }

    fn generation(&self) -> Result<Generation, Failed> {
        let last = self.keys.iter().map(|key| key.load(Ordering::Acquire) >> 8).max();
        Ok(Generation { lineage: 0, count: last.unwrap_or(0) })
    }

    fn len_hint(&self) -> Option<u64> {
        Some(1)
    }
}
