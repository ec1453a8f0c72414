//! Memory usage stays constant, however long everything is written to at once: as many keys go as come, on threads that come
//! and go. `KOEL_SOAK_SECONDS` sets the duration.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

use common::{Rng, Seeded, env_number, on_threads, seed, seeded};
use koel::{Cache, CuckooFilter, HashMap, InlineCache, InlineMap, ManualClock, ScalableCuckooFilter};

/// Counts the bytes of all threads.
struct Counting;

static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(base, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const THREADS: usize = 3;
/// How many keys of each thread are present at a time, and how many come, and go, in a round.
const PRESENT: u64 = 4000;
const FRESH: u64 = 1000;

/// One of everything.
struct All {
    numbers: HashMap<u64, u64, Seeded>,
    texts: HashMap<u64, String, Seeded>,
    inline: InlineMap<u64, u64, Seeded>,
    cache: Cache<u64, Vec<u8>, Seeded>,
    inline_cache: InlineCache<u64, u64, Seeded>,
    filter: CuckooFilter,
    growing: ScalableCuckooFilter,
    clock: ManualClock,
}

impl All {
    fn new(seed: u64) -> Self {
        let clock = ManualClock::new();
        let cache = Cache::builder()
            .max_weight(1 << 18)
            .weigher(|_, bytes: &Vec<u8>| bytes.len() as u64)
            .time_to_live(Duration::from_secs(100))
            .idle_expiry(|key: &u64, _| Some(Duration::from_secs(key % 64)))
            .clock(clock.clone())
            .hasher(seeded(seed));
        All {
            numbers: HashMap::with_hasher(seeded(seed)),
            texts: HashMap::with_hasher(seeded(seed)),
            inline: InlineMap::with_hasher(seeded(seed)),
            cache: cache.build(),
            inline_cache: InlineCache::builder().max_entries(3000).hasher(seeded(seed)).build(),
            filter: CuckooFilter::new(2 * THREADS * PRESENT as usize, 0.01).unwrap(),
            growing: ScalableCuckooFilter::builder().capacity(1000).build().unwrap(),
            clock,
        }
    }

    /// Inserts a key.
    fn insert(&self, key: u64, rng: &mut Rng) {
        let mut text = || rng.next().to_string().repeat(1 + rng.below(8) as usize);
        self.numbers.pin().insert(key, key);
        self.texts.pin().insert(key, text());
        self.inline.insert(key, key);
        let loaded = self.cache.get_or_insert_with(key, || text().into_bytes());
        assert!(loaded.len() <= 160);
        self.inline_cache.insert(key, key);
        self.filter.insert(&key).unwrap();
        self.growing.insert(&key).unwrap();
    }

    /// Looks up a present key, and writes to it.
    fn update(&self, key: u64, rng: &mut Rng) {
        let (numbers, texts) = (self.numbers.pin(), self.texts.pin_owned());
        let before = (numbers.insert(key, key + 1), texts.get(&key));
        assert!(before.0.is_some() && before.1.is_some(), "{key} is lost");
        texts.insert(key, rng.next().to_string());
        assert!(self.inline.update(key, |value| value + 1).is_some(), "{key} is lost");
        assert!(self.filter.contains(&key) && self.growing.contains(&key), "{key} is lost");
        self.cache.get(&key);
        self.inline_cache.get(&key);
    }

    /// Removes a key.
    fn remove(&self, key: u64) {
        let gone = [
            self.numbers.pin().remove(&key).is_some(),
            self.texts.pin().remove(&key).is_some(),
            self.inline.remove(&key).is_some(),
            self.filter.remove(&key),
            self.growing.remove(&key),
        ];
        assert_eq!(gone, [true; 5], "{key} is lost");
        self.cache.remove(&key);
    }

    /// One thread's part of a round: its keys are its own, and as many go as come.
    fn round(&self, round: u64, thread: usize, rng: &mut Rng) {
        let name = |n: u64| n * THREADS as u64 + thread as u64;
        for n in round * FRESH..(round + 1) * FRESH {
            self.insert(name(n + PRESENT), rng);
            self.update(name(n + 1 + rng.below(PRESENT)), rng);
            self.remove(name(n));
        }
    }

    /// The allocated bytes, when nothing waits to be freed any more.
    fn settled(&self) -> isize {
        self.growing.compact();
        self.numbers.flush();
        self.texts.flush();
        self.cache.flush();
        self.clock.advance(Duration::from_secs(1));
        BYTES.load(Ordering::Relaxed)
    }
}

/// In the last third of all rounds memory never exceeds that of the third before by more than 5%.
#[test]
fn what_comes_and_goes_takes_no_more_memory_in_the_end() {
    const ROUNDS: u64 = 45;
    let (seed, begun) = (seed(), Instant::now());
    let seconds = Duration::from_secs(env_number("KOEL_SOAK_SECONDS", 1) as u64);
    let mut bytes: Vec<isize> = Vec::new();
    let (all, mut rng) = (All::new(seed), Rng::new(seed));
    for key in 0..THREADS as u64 * PRESENT {
        all.insert(key, &mut rng);
    }
    for round in 0.. {
        on_threads(THREADS, |thread| {
            all.round(round, thread, &mut Rng::new(seed ^ (round << 8) ^ thread as u64));
        });
        let of_these = bytes.capacity() * size_of::<isize>();
        bytes.push(all.settled() - of_these as isize);
        if round + 1 >= ROUNDS && begun.elapsed() >= seconds {
            break;
        }
    }
    let third = bytes.len() / 3;
    let most = |rounds: &[isize]| rounds.iter().max().copied().expect("as many as three");
    let [first, before, last] = [&bytes[..third], &bytes[third..2 * third], &bytes[2 * third..]].map(most);
    println!("{} rounds, at most {first}, {before} and {last} bytes", bytes.len());
    assert!(last <= before + before / 20, "{before} bytes became {last}");
}
