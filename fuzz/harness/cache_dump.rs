//! Bytes that may be a cache's dump, into caches of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use koel::{Cache, CacheDump, ManualClock, Policy};

use super::bounded;

type Dump = CacheDump<u64, u64>;

/// An empty cache of some kind. How many entries have left it is counted.
fn build(kind: u8, clock: &ManualClock) -> (Cache<u64, u64>, Arc<AtomicUsize>) {
    let policy = [Policy::Adaptive, Policy::Clock, Policy::Local][usize::from(kind % 3)];
    let builder = Cache::builder().policy(policy);
    let builder = match kind / 3 % 4 {
        0 => builder.max_entries(10),
        1 => builder.max_entries(300),
        2 => builder.max_weight(1000).weigher(|_, value| *value),
        // Nearly all there can be, in several segments.
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

/// The first byte says into which kind of cache, the others may be a dump: it is refused, or loads within the bound, and
/// what is not taken comes back.
pub(crate) fn cache_dump(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let clock = ManualClock::new();
    let (cache, gone) = build(kind, &clock);
    bounded(data.len(), || {
        let Ok(dump) = serde_json::from_slice::<Dump>(text) else { return };
        let before = dump.len();
        let rest = cache.load(dump);
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
        assert_eq!(cache.len() + gone.load(Ordering::Relaxed) + rest.len(), before, "{cache:?}");
        goes_on(&cache, &clock);
        // What is left may be loaded again.
        let again = rest.len();
        assert!(cache.load(rest).len() <= again);
        assert!(cache.weight() <= cache.capacity(), "{cache:?}");
    });
    // Its own dump is one.
    let text = serde_json::to_string(&cache.dump()).expect("numbers");
    let dump: Dump = serde_json::from_str(&text).expect("its own dump");
    assert_eq!(serde_json::to_string(&dump).expect("numbers"), text);
}

/// Whether what follows the first byte is a dump.
pub(crate) fn is_dump(data: &[u8]) -> bool {
    serde_json::from_slice::<Dump>(&data[1..]).is_ok_and(|dump| !dump.is_empty())
}

/// Uses a cache for a while.
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
