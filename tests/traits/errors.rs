//! Errors say which of their values was wrong, have their causes as sources, and require nothing of keys and values.

use std::error::Error;
use std::{fmt, io};

use koel::guard::{Error as GuardError, SnapshotError};
use koel::{Cache, CacheError, Cause, CuckooFilter, FilterError, InlineMap, LoadError, Why};

/// Neither `Debug` nor `Display`: an error may hand back such a value.
struct Opaque;

#[test]
fn a_refused_entry_says_its_weight_and_nothing_of_its_key() {
    let cache: Cache<&str, Opaque> =
        Cache::builder().max_weight(5).weigher(|key: &&str, _| key.len() as u64).build();
    let refused = cache.insert("a long key", Opaque).expect_err("too heavy");
    assert_eq!(refused.why, Why::TooHeavy { weight: 10, capacity: 5 });
    let text = refused.to_string();
    assert_eq!(text, "an entry of weight 10 does not fit a cache that may hold 5");
    assert_eq!(format!("{refused:?}"), format!("Refused({text})"));
    assert_eq!((&refused as &dyn Error).to_string(), text);
    assert_eq!(Why::OutOfMemory.to_string(), "no memory for another entry");
}

#[test]
fn a_full_map_says_so_of_any_key_and_value() {
    let map = InlineMap::builder().fixed_capacity(2).build();
    let full = (0..9_u64).find_map(|key| map.checked_insert(key, key).err()).expect("fixed");
    assert_eq!(format!("{full:?}"), format!("Full({full})"));
    assert!(!format!("{full:?}").contains(&full.key.to_string()), "{full:?}");
}

#[test]
fn a_failed_load_leads_to_its_loaders_error() {
    let failed = || LoadError::Loader(io::Error::other("disk on fire"));
    assert_eq!(failed().to_string(), "the key's loader failed");
    assert_eq!(failed().source().expect("the loader's").to_string(), "disk on fire");
    assert_eq!(failed().into_loader().expect("the loader's").to_string(), "disk on fire");
    for (error, says) in
        [(LoadError::Recursion, "wait for itself"), (LoadError::TimedOut, "did not finish in time")]
    {
        let error: LoadError<io::Error> = error;
        assert!(error.to_string().contains(says) && error.source().is_none(), "{error}");
        assert!(error.into_loader().is_none());
    }
}

/// An error with its cause.
#[derive(Debug)]
struct OnFire(io::Error);

impl fmt::Display for OnFire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("disk on fire")
    }
}

impl Error for OnFire {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn on_fire() -> OnFire {
    OnFire(io::Error::other("a spark"))
}

/// An error and its causes, as programs print them.
fn chain(error: &dyn Error) -> String {
    let cause = error.source().map(chain);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[test]
fn a_guards_error_says_whose_it_is_and_nothing_twice() {
    let filter =
        || -> FilterError { CuckooFilter::builder().false_positive_rate(2.0).build().expect_err("no rate") };
    let io = || io::Error::other(on_fire());
    let errors: [(GuardError<OnFire>, &str, &str); 5] = [
        (GuardError::Store(on_fire()), "the store: disk on fire", ": a spark"),
        (GuardError::from(filter()), &format!("the filter: {}", filter()), ""),
        (GuardError::Snapshot(SnapshotError::from(io())), "the snapshot: disk on fire", ": a spark"),
        (GuardError::Thread(io()), "no thread to scan the store with: disk on fire", ": a spark"),
        (GuardError::ScanPanicked, "the scan of the store panicked, or who is told of its progress", ""),
    ];
    for (error, says, because) in errors {
        assert_eq!(error.to_string(), says);
        assert_eq!(chain(&error), format!("{says}{because}"));
        // The store's error, or a description of the guard's.
        let is_stores = matches!(error, GuardError::Store(_));
        let told = |other: GuardError<_>| OnFire(io::Error::other(other.to_string()));
        let cause = error.into_store_or(told).0.to_string();
        assert_eq!(cause, if is_stores { "a spark" } else { says });
    }
    assert!(GuardError::Store(on_fire()).into_store().is_some());
    assert!(GuardError::<OnFire>::ScanPanicked.into_store().is_none());
    assert!(GuardError::<OnFire>::Thread(io()).into_store().is_none());
}

#[test]
fn a_snapshots_error_says_what_is_wrong_with_it() {
    assert_eq!(chain(&SnapshotError::Io(io::Error::other(on_fire()))), "disk on fire: a spark");
    for (error, says) in [
        (SnapshotError::NoFilter, "no filter"),
        (SnapshotError::Damaged("its end"), "damaged: its end"),
        (SnapshotError::OtherGeneration, "another store"),
        (SnapshotError::OtherFilter, "another kind of filter"),
    ] {
        assert!(error.to_string().contains(says) && error.source().is_none(), "{error}");
    }
}

#[test]
fn wrong_options_of_a_cache_are_named() {
    let builder = Cache::<u64, u64>::builder;
    let clock = koel::ManualClock::new();
    for (builder, error, says) in [
        (builder(), CacheError::NoBound, "say `max_entries`, or a `Cache`'s `max_weight`"),
        (builder().max_entries(1).max_weight(1), CacheError::TwoBounds, "two bounds"),
        (builder().max_entries(1).weigher(|_, _| 1), CacheError::WeigherUnused, "a weigher"),
        (builder().max_entries(1).clock(clock), CacheError::ClockUnused, "a clock"),
    ] {
        let found = builder.try_build().expect_err("wrong options");
        assert_eq!(found, error);
        assert!(error.to_string().contains(says) && error.source().is_none(), "{error}");
    }
    let causes = [Cause::Expired, Cause::Explicit, Cause::Replaced, Cause::Size];
    assert_eq!(causes.map(|cause| cause.to_string()), ["expired", "explicit", "replaced", "size"]);
    assert_eq!(causes.map(Cause::is_eviction), [true, false, false, true]);
}
