//! Bytes that may be a cache's dump, loaded into caches of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use koel::{Cache, CacheDump, ManualClock, Policy};

use super::bounded;

type Dump = CacheDump<u64, u64>;

/// The time that passes for a dump.
const AGES: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_secs(1),
    Duration::from_secs(60),
    // More time than is behind a clock when it begins; as many nanoseconds as a number can hold, or nearly; and more.
    Duration::from_secs(40 * 365 * 24 * 3600),
    Duration::from_nanos(u64::MAX - 1),
    Duration::from_nanos(u64::MAX),
    Duration::MAX,
];

/// An empty cache of some kind, and a count of the entries that have left it.
fn build(kind: u8, clock: &ManualClock) -> (Cache<u64, u64>, Arc<AtomicUsize>) {
    let policy = [Policy::Adaptive, Policy::Clock, Policy::Local][usize::from(kind % 3)];
    let builder = Cache::builder().policy(policy);
    let builder = match kind / 3 % 4 {
        0 => builder.max_entries(10),
        1 => builder.max_entries(300),
        2 => builder.max_weight(1000).weigher(|_, value| *value),
        // Nearly the greatest weight there can be, in several segments.
        _ => builder.max_weight(u64::MAX / 2).estimated_entries(5000).weigher(|_, value| *value),
    };
    let builder = match kind / 12 % 3 {
        0 => builder,
        1 => builder.clock(clock.clone()).time_to_live(Duration::from_secs(60)),
        _ => builder.clock(clock.clone()).time_to_idle(Duration::MAX).expiry(|_, _| Some(Duration::MAX)),
    };
    let gone = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&gone);
    // Relaxed: one thread.
    let builder = builder.on_removal(move |_, _, _| _ = count.fetch_add(1, Ordering::Relaxed));
    (builder.build(), gone)
}

/// The first byte selects the kind of cache and how much later it loads; the others may be a dump: it is refused, or loaded
/// within the bound, and the entries that are not taken come back.
pub(crate) fn cache_dump(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let clock = ManualClock::new();
    let (cache, gone) = build(kind, &clock);
    let by = AGES[usize::from(kind / 36)];
    ages(text, by);
    bounded(data.len(), || {
        let Ok(mut dump) = serde_json::from_slice::<Dump>(text) else { return };
        if by > Duration::ZERO {
            dump.age(by);
        }
        let before = dump.len();
        let rest = cache.load(dump);
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
        assert_eq!(cache.len() + gone.load(Ordering::Relaxed) + rest.len(), before, "{cache:?}");
        goes_on(&cache, &clock);
        // The rest may be loaded again, and moved out.
        let again = rest.len();
        let rest = cache.load(rest);
        assert!(
            rest.len() <= again
                && rest.clone().into_iter().map(|(key, _)| key).eq(rest.iter().map(|of| *of.0))
        );
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
    });
    // Its own dump is a dump.
    let text = serde_json::to_string(&cache.dump()).expect("numbers");
    let dump: Dump = serde_json::from_str(&text).expect("its own dump");
    assert_eq!(serde_json::to_string(&dump).expect("numbers"), text);
}

/// A dump that has aged, and of which a part is kept, is what its text requires.
fn ages(text: &[u8], by: Duration) {
    let Ok(mut dump) = serde_json::from_slice::<Dump>(text) else { return };
    let mut expected = serde_json::to_value(&dump).expect("numbers");
    let by_nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    expected[2].as_array_mut().expect("the entries").retain_mut(|entry| {
        let number = |entry: &serde_json::Value| entry.as_u64().expect("nanoseconds");
        entry[4] = number(&entry[4]).saturating_add(by_nanos).into();
        if entry[3].is_null() {
            return true;
        }
        entry[3] = number(&entry[3]).saturating_sub(by_nanos).into();
        number(&entry[3]) > 0
    });
    dump.age(by);
    assert_eq!(serde_json::to_value(&dump).expect("numbers"), expected);
    expected[2].as_array_mut().expect("the entries").retain(|entry| entry[0].as_u64() < Some(3));
    dump.retain(|key, _| *key < 3);
    assert_eq!(serde_json::to_value(&dump).expect("numbers"), expected);
}

/// Whether the bytes after the first are a dump.
pub(crate) fn is_dump(data: &[u8]) -> bool {
    serde_json::from_slice::<Dump>(&data[1..]).is_ok_and(|dump| !dump.is_empty())
}

/// Uses the cache for a while.
fn goes_on(cache: &Cache<u64, u64>, clock: &ManualClock) {
    let keys: Vec<u64> = cache.iter().map(|(key, _)| key).take(20).chain(0..20).collect();
    for key in keys {
        if cache.get(&key).is_none() {
            cache.insert(key, key).expect("it weighs little");
        }
        clock.advance(Duration::from_secs(1));
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
    }
    cache.purge();
}
