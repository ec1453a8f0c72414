//! `koel-bench guard`: look-ups in stores, bare and guarded.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use koel::guard::{Filter, FjallStore, Guarded, RedbStore, Stats, Store};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{chosen, threads};
use crate::cli::{GuardArgs, Output, StoreId};
use crate::console::Console;
use crate::error::{CheckError, Error};
use crate::faults::{caught, watched};
use crate::report::{GuardCell, GuardRow, Report, guard_table};
use crate::rounds::interleaved;
use crate::scratch::Scratch;
use crate::stats::Spread;
use crate::stop;

/// Bytes of a value, which begins with its key.
const VALUE_BYTES: usize = 100;
/// The cache's bytes are those of all keys and values divided by this. Each entry counts 80 bytes more, so that it holds about
/// 3% of the keys.
const CACHED: u64 = 20;
/// One key in this many is hot: the cache holds the hot keys with room to spare.
const HOT: u64 = 100;
/// How many requests a thread has, which it repeats.
const REQUESTS: usize = 1 << 18;
/// How many requests a thread does before it checks whether time is up.
const CHUNK: usize = 256;
/// How many pairs are put into a store at once.
const BATCH: u64 = 50_000;

/// The keys that are looked up: a fraction of them are absent; the present ones are all keys or the hot ones, equally often.
#[derive(Clone, Copy)]
struct Workload {
    name: &'static str,
    about: &'static str,
    absent_percent: u32,
    hot: bool,
}

const WORKLOADS: [Workload; 4] = [
    Workload { name: "absent", about: "no key is there", absent_percent: 100, hot: false },
    Workload {
        name: "hot",
        about: "a hundredth of the keys, which the cache can hold",
        absent_percent: 0,
        hot: true,
    },
    Workload {
        name: "uniform",
        about: "all keys equally often: neither filter nor cache can spare much",
        absent_percent: 0,
        hot: false,
    },
    Workload { name: "half", about: "absent and hot keys in turn", absent_percent: 50, hot: true },
];

/// What is put before the store.
const ENTRANTS: [(&str, Option<(bool, bool)>); 4] = [
    ("bare store", None),
    ("filter", Some((true, false))),
    ("cache", Some((false, true))),
    ("filter and cache", Some((true, true))),
];

struct Request {
    key: Box<[u8]>,
    present: bool,
}

impl Request {
    #[inline]
    fn is_answered_by(&self, value: Option<&[u8]>) -> bool {
        match value {
            Some(value) => self.present && value.len() == VALUE_BYTES && value.starts_with(&self.key),
            None => !self.present,
        }
    }
}

/// Runs the command.
pub(super) fn run(
    args: &GuardArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    *output = args.output.create()?;
    let (threads, stores) = (threads(&args.threads), chosen(&args.stores, |_| true));
    let cells = stores.len() * args.keys.len() * threads.len() * WORKLOADS.len();
    console.expect(cells * args.rounds * ENTRANTS.len());
    for id in stores {
        for &keys in &args.keys {
            let folder = Scratch::new(args.folder.as_deref())?;
            match id {
                StoreId::Redb => {
                    let store = redb(folder.path(), keys, console)?;
                    measure("redb", store, keys, &threads, args, (console, &mut *report))?;
                }
                StoreId::Fjall => {
                    let store = fjall(folder.path(), keys, console)?;
                    measure("fjall", store, keys, &threads, args, (console, &mut *report))?;
                }
            }
        }
    }
    Ok(())
}

fn told(error: impl std::fmt::Display) -> Error {
    Error::Input(error.to_string())
}

fn key(number: u64) -> Box<[u8]> {
    format!("user:{number:012}").into_bytes().into()
}

fn value(key: &[u8]) -> [u8; VALUE_BYTES] {
    let mut value = [b'v'; VALUE_BYTES];
    value[..key.len()].copy_from_slice(key);
    value
}

fn pairs(from: u64, keys: u64) -> impl Iterator<Item = (Box<[u8]>, [u8; VALUE_BYTES])> {
    (from..keys.min(from + BATCH)).map(key).map(|key| {
        let value = value(&key);
        (key, value)
    })
}

fn redb(folder: &Path, keys: u64, console: &Console) -> Result<RedbStore, Error> {
    let store = RedbStore::open(folder.join("redb")).map_err(told)?;
    for from in (0..keys).step_by(BATCH as usize) {
        stop::check()?;
        console.check()?;
        console.begin("filling", "redb");
        store.load(pairs(from, keys)).map_err(told)?;
    }
    Ok(store)
}

/// Makes a fjall store in which everything is in tables on disk, with their Bloom filters, and nothing in memory tables.
fn fjall(folder: &Path, keys: u64, console: &Console) -> Result<FjallStore, Error> {
    let database = fjall::Database::builder(folder).open().map_err(told)?;
    let store = FjallStore::with_database(database.clone()).map_err(told)?;
    for from in (0..keys).step_by(BATCH as usize) {
        stop::check()?;
        console.check()?;
        console.begin("filling", "fjall");
        store.load(pairs(from, keys)).map_err(told)?;
    }
    let data = database.keyspace("koel.data", fjall::KeyspaceCreateOptions::default);
    data.and_then(|data| data.rotate_memtable_and_wait()).map_err(told)?;
    Ok(store)
}

/// A way to access the store.
struct Entrant<S: Store> {
    name: &'static str,
    store: Arc<S>,
    guarded: Option<Guarded<Arc<S>>>,
    /// For each thread, the next chunk of its requests.
    next: Vec<AtomicUsize>,
}

impl<S: Store> Entrant<S> {
    fn new(
        name: &'static str,
        with: Option<(bool, bool)>,
        store: &Arc<S>,
        keys: u64,
        threads: usize,
    ) -> Result<Self, Error> {
        let guarded = with.map(|(filter, cache)| {
            let entry = key(0).len() + VALUE_BYTES;
            let builder = Guarded::builder(Arc::clone(store))
                .filter(if filter { Filter::Cuckoo } else { Filter::None })
                .cache_bytes(if cache { keys * entry as u64 / CACHED } else { 0 });
            let guarded = builder.open()?;
            guarded.wait_until_ready()?;
            Ok(guarded)
        });
        let guarded = guarded.transpose().map_err(|error: koel::guard::Error<S::Error>| told(error))?;
        let next = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        Ok(Entrant { name, store: Arc::clone(store), guarded, next })
    }

    #[inline]
    fn is_right(&self, request: &Request) -> Result<bool, Error> {
        let value = match &self.guarded {
            None => self.store.get(&request.key).map_err(told)?,
            Some(guarded) => guarded.get(&request.key).map_err(told)?,
        };
        Ok(request.is_answered_by(value.as_deref()))
    }

    /// The results, compared with the bare store, since the counts were `before`.
    fn row(&self, mops: Spread, bare: &Spread, before: &Stats) -> GuardRow {
        let mut row = GuardRow {
            entrant: self.name,
            by_bare: mops.by(bare),
            mops,
            store_reads: 1.0,
            false_positive_rate: 0.0,
            bytes: 0,
        };
        if let Some(guarded) = &self.guarded {
            let stats = guarded.stats();
            let since = |count: fn(&Stats) -> u64| (count(&stats) - count(before)) as f64;
            row.store_reads = since(Stats::store_reads) / since(Stats::lookups).max(1.0);
            let wrong = since(false_positives);
            row.false_positive_rate = wrong / (wrong + since(|stats| stats.blocked)).max(1.0);
            row.bytes = stats.filter_bytes as u64 + stats.cache_bytes;
        }
        row
    }

    /// The counts so far; a bare store counts nothing.
    fn counted(&self) -> Stats {
        self.guarded.as_ref().map_or_else(Stats::default, Guarded::stats)
    }
}

/// Absent keys that the filter took for present. This includes those that are remembered as such; it excludes those during
/// whose look-up there was a write.
fn false_positives(stats: &Stats) -> u64 {
    stats.passed_absent - stats.passed_beside_write + stats.remembered_absent
}

fn measure<S: Store>(
    store_name: &'static str,
    store: S,
    keys: u64,
    threads: &[usize],
    args: &GuardArgs,
    (console, report): (&Console, &mut Report),
) -> Result<(), Error> {
    let store = Arc::new(store);
    for &threads in threads {
        for workload in WORKLOADS {
            let requests: Vec<Vec<Request>> =
                (0..threads).map(|thread| requests(workload, keys, thread as u64)).collect();
            let entrants =
                ENTRANTS.iter().map(|(name, with)| Entrant::new(name, *with, &store, keys, threads));
            let mut entrants = entrants.collect::<Result<Vec<_>, _>>()?;
            let title = format!("{store_name}, {}", workload.name);
            for entrant in &entrants {
                // The cache is warmed up: it contains what it can hold.
                race(entrant, &title, &requests, Duration::ZERO)?;
            }
            let before: Vec<_> = entrants.iter().map(Entrant::counted).collect();
            let mops = interleaved(&mut entrants, args.rounds, |_, entrant| {
                stop::check()?;
                console.check()?;
                console.begin(workload.name, entrant.name);
                let length = Duration::from_secs_f64(args.seconds);
                let mops = caught(|| race(entrant, &title, &requests, length));
                console.done();
                mops.unwrap_or_else(|panic| Err(CheckError::new(entrant.name, panic).during(&title).into()))
                    .map(Some)
            })?;
            let mops: Vec<Spread> = mops.into_iter().flatten().map(Spread::of).collect();
            let bare = mops[0].clone();
            let measured = entrants.iter().zip(mops).zip(before);
            let rows = measured.map(|((entrant, mops), before)| entrant.row(mops, &bare, &before));
            let Workload { name: workload, about, .. } = workload;
            let cell = GuardCell { store: store_name, workload, about, keys, threads, rows: rows.collect() };
            console.say(&guard_table(&cell));
            report.guard.push(cell);
        }
    }
    Ok(())
}

/// The requests of a thread.
fn requests(workload: Workload, keys: u64, thread: u64) -> Vec<Request> {
    let mut rng = SmallRng::seed_from_u64(thread + 1);
    let one = |number: usize| {
        let present = (number as u32 * 50) % 100 >= workload.absent_percent;
        if workload.absent_percent == 100 || !present {
            // Absent keys lie between the keys that are there.
            let number = rng.random_range(0..keys);
            let tail: u32 = rng.random();
            return Request {
                key: [&*key(number), format!("/{tail:x}").as_bytes()].concat().into(),
                present: false,
            };
        }
        let number = if workload.hot {
            // Hot keys are spread over all pages of the store.
            rng.random_range(0..(keys / HOT).max(1)) * HOT % keys
        } else {
            rng.random_range(0..keys)
        };
        Request { key: key(number), present: true }
    };
    (0..REQUESTS).map(one).collect()
}

/// Measures look-ups per microsecond; does each request once if `length` is zero. Every answer is checked; the message about a
/// wrong one names the `title`.
fn race<S: Store>(
    entrant: &Entrant<S>,
    title: &str,
    requests: &[Vec<Request>],
    length: Duration,
) -> Result<f64, Error> {
    let over = AtomicBool::new(false);
    let start = Instant::now();
    let reader = watched(|(requests, next): (&[Request], &AtomicUsize)| -> Result<u64, Error> {
        let mut done = 0;
        // Continues where it left off: if it began with the first requests each time, their keys would be in the cache.
        let begin = next.load(Ordering::Relaxed);
        for (number, some) in requests.chunks(CHUNK).cycle().enumerate().skip(begin) {
            for request in some {
                if !entrant.is_right(request)? {
                    let key = String::from_utf8_lossy(&request.key);
                    let truth =
                        if request.present { "present, with a value that begins so" } else { "absent" };
                    let detail = format!("`{key}` is {truth}, and it said otherwise");
                    return Err(CheckError::new(entrant.name, detail).during(title).into());
                }
            }
            done += some.len() as u64;
            if over.load(Ordering::Relaxed) || (length.is_zero() && done >= requests.len() as u64) {
                next.store((number + 1) % requests.len().div_ceil(CHUNK), Ordering::Relaxed);
                break;
            }
        }
        Ok(done)
    });
    let done = std::thread::scope(|scope| {
        let shares = requests.iter().map(Vec::as_slice).zip(&entrant.next);
        let reader = &reader;
        let readers: Vec<_> = shares.map(|share| scope.spawn(move || reader(share))).collect();
        if !length.is_zero() {
            std::thread::sleep(length);
            over.store(true, Ordering::Relaxed);
        }
        let ends =
            readers.into_iter().map(|reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ends.sum::<Result<u64, Error>>()
    })?;
    Ok(done as f64 / start.elapsed().as_secs_f64() / 1e6)
}

#[cfg(test)]
mod tests {
    use koel::guard::HashMapStore;

    use super::*;

    #[test]
    fn an_answer_is_right_if_the_value_is_the_key_s() {
        let (one, other) = (key(1), key(2));
        let request = Request { key: one.clone(), present: true };
        assert!(request.is_answered_by(Some(&value(&one))));
        assert!(!request.is_answered_by(Some(&value(&other))) && !request.is_answered_by(Some(&one)));
        assert!(!request.is_answered_by(None));
        let absent = Request { present: false, ..request };
        assert!(absent.is_answered_by(None) && !absent.is_answered_by(Some(&value(&one))));
    }

    /// Look-ups before the measurement include false positives; those that are measured do not.
    #[test]
    fn rates_are_of_what_is_measured_alone() {
        let store = Arc::new(HashMapStore::new());
        for (key, value) in pairs(0, 1_000) {
            store.put(&key, &value).unwrap();
        }
        let entrant = Entrant::new("filter", Some((true, false)), &store, 1_000, 1).unwrap();
        let look_up = |number: u64, present| {
            assert!(entrant.is_right(&Request { key: key(number), present }).unwrap());
        };
        let is_wrong = |number: &u64| {
            look_up(*number, false);
            entrant.counted().passed_absent > 0
        };
        let wrong = (1_000..100_000_000).find(is_wrong).expect("some absent key is taken for present");
        let mops = || Spread::of(vec![1.0]);
        let before = entrant.counted();
        (0..1_000).for_each(|number| look_up(number, true));
        let row = entrant.row(mops(), &mops(), &before);
        assert_eq!((row.store_reads, row.false_positive_rate), (1.0, 0.0));
        let before = entrant.counted();
        look_up(wrong, false);
        let row = entrant.row(mops(), &mops(), &before);
        assert_eq!(row.false_positive_rate, 1.0);
    }
}
