//! Keys and requests.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use koel::guard::{RedbError, RedbStore, Store};

use crate::Failure;
use crate::console::{self, STOP};

/// How many keys are made if none are given.
const KEYS: u64 = 1_000_000;
/// How many keys are put into the database in one transaction.
const BATCH: usize = 50_000;
/// Bytes of a value.
const VALUE: [u8; 100] = [b'v'; 100];
/// How many requests each reader has, which it repeats.
const REQUESTS: usize = 1 << 19;

pub(crate) type Key = Box<[u8]>;

/// Reads the lines of a file that are not empty.
pub(crate) fn read_lines(file: &Path) -> Result<Vec<Key>, Failure> {
    let text = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let text = std::str::from_utf8(&text).map_err(|error| {
        let line = text[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("{}: line {line} is not UTF-8", file.display())
    })?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err(format!("{}: no keys in it", file.display()).into());
    }
    let too_long = lines.iter().find(|line| line.len() > RedbStore::MAX_KEY_LEN);
    if let Some(line) = too_long {
        let (start, len) = (line.chars().take(20).collect::<String>(), line.len());
        let most = RedbStore::MAX_KEY_LEN;
        let message =
            format!("{}: the key `{start}...` has {len} bytes; {most} are the most", file.display());
        return Err(message.into());
    }
    Ok(lines.into_iter().map(|line| line.as_bytes().into()).collect())
}

/// Puts the given keys into the database, or generated ones into a new database, and returns the keys that are in it then.
pub(crate) fn fill(store: &RedbStore, given: Option<Vec<Key>>, is_new: bool) -> Result<Vec<Key>, RedbError> {
    let new: Vec<Key> = match given {
        Some(keys) => keys,
        None if !is_new => Vec::new(),
        None => (0..KEYS).map(|number| format!("user:{number:012}").into_bytes().into()).collect(),
    };
    let bar = console::bar("loading keys", new.len() as u64);
    for batch in new.chunks(BATCH) {
        store.load(batch.iter().map(|key| (key, VALUE)))?;
        bar.inc(batch.len() as u64);
        if STOP.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    store.scan_keys()?.collect()
}

/// A look-up, and whether it must find something.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) key: Key,
    pub(crate) present: bool,
}

/// What the readers look up.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) readers: Vec<Vec<Request>>,
    /// The prefix of the writer's keys, and of no other key.
    pub(crate) writer: String,
}

/// The given requests, divided among the readers; or present keys, some much more often than others, and as many absent ones.
pub(crate) fn plan(keys: &[Key], given: Option<Vec<Key>>, threads: usize) -> Plan {
    let known: HashSet<&Key> = keys.iter().collect();
    let request = |key: Key| Request { present: known.contains(&key), key };
    let mut random = Random(0x6B6F_656C);
    let readers = (0..threads).map(|thread| match &given {
        Some(given) => {
            let whole = given.iter().cycle().skip(thread).step_by(threads);
            whole.take(given.len().div_ceil(threads)).map(|key| request(key.clone())).collect()
        }
        None => (0..REQUESTS).map(|number| request(random.key(keys, number % 2 == 0))).collect(),
    });
    let mut writer = "writer:".to_owned();
    while keys.iter().chain(given.iter().flatten()).any(|key| key.starts_with(writer.as_bytes())) {
        writer.push(':');
    }
    Plan { readers: readers.collect(), writer }
}

/// `xorshift64*`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A present key, by Zipf's law with exponent 1: the logarithm of its rank is uniform. Or an absent one.
    fn key(&mut self, keys: &[Key], present: bool) -> Key {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (keys.len() as f64).powf(uniform) as usize - 1;
        // Ranks are spread over the keys, so that neighbours are not equally hot.
        let key = &keys[rank.wrapping_mul(0x9E37_79B9) % keys.len()];
        if present {
            return key.clone();
        }
        [&**key, format!("/{:x}", self.next()).as_bytes()].concat().into()
    }
}
