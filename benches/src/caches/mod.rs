//! The caches that are compared: one small file for each, behind one trait.
//!
//! As with the maps, the timed loops are generic over the trait and compiled for each cache, and all caches hash with the
//! same function and seeds: that of [`crate::contestants::hasher`].

mod koel;
mod mini_moka;
mod moka;
mod quick_cache;
mod scc_hash_cache;

use clap::ValueEnum;

pub use self::koel::{Adaptive, Clock, Koel, KoelInline, Local};
pub use self::mini_moka::MiniMoka;
pub use self::moka::Moka;
pub use self::quick_cache::{BySize, QuickCache};
pub use self::scc_hash_cache::SccHashCache;

/// A cache from numbers to numbers, shared by threads.
pub trait Cache: Send + Sync + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Whether it promises that a reader never sees it hold more than its bound; then that is checked.
    const STRICT: bool = false;

    /// The same cache with a bound on bytes; the same type, if one type has both bounds.
    type Weighted: Cache;

    /// A cache that holds this many entries.
    fn of_entries(entries: usize) -> Self;

    /// A cache that holds this many bytes, which may be about this many entries: an entry takes as many bytes as the low 32
    /// bits of its value say. `None` if the cache has no such bound.
    fn of_bytes(bytes: u64, entries: usize) -> Option<Self::Weighted>;

    /// The value of `key`; if there is one, this is a hit.
    fn get(&self, key: u64) -> Option<u64>;

    /// Looks up at most [`BATCH`](crate::contestants::BATCH) keys and passes the answers to `each`; by default one by one.
    #[inline]
    fn get_many(&self, keys: &[u64], mut each: impl FnMut(u64, Option<u64>)) {
        for &key in keys {
            each(key, self.get(key));
        }
    }

    /// Inserts an entry, unless the cache decides otherwise.
    fn insert(&self, key: u64, value: u64);

    /// The value of `key`; if there is none, inserts and returns what `load` returns: loaded once for all callers that miss it
    /// meanwhile. By default, for caches that have no such call, looks the key up and inserts it.
    #[inline]
    fn get_or_load(&self, key: u64, load: impl FnOnce() -> u64) -> u64 {
        self.get(key).unwrap_or_else(|| {
            let value = load();
            self.insert(key, value);
            value
        })
    }

    /// Does the work that the cache has put off: some caches note hits and evict only now and then.
    fn settle(&self) {}

    /// How much it holds, while nobody writes, in the unit of its bound.
    fn held(&self) -> u64;

    /// The bytes that the cache reports it takes, if it does.
    fn own_memory_usage(&self) -> Option<usize> {
        None
    }
}

/// The caches by name, in the order in which tables list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Id {
    /// koel::Cache with its default policy
    Koel,
    /// koel::Cache with Policy::Clock
    #[value(alias = "clock")]
    KoelClock,
    /// koel::Cache with Policy::Local
    #[value(alias = "local")]
    KoelLocal,
    /// koel::InlineCache with its default policy
    #[value(alias = "inline")]
    KoelInline,
    /// koel::InlineCache with Policy::Local
    #[value(alias = "inline-local")]
    KoelInlineLocal,
    /// quick_cache::sync::Cache
    #[value(alias = "quick")]
    QuickCache,
    /// moka::sync::Cache
    Moka,
    /// mini_moka::sync::Cache
    MiniMoka,
    /// scc::HashCache
    #[value(alias = "scc")]
    SccHashCache,
}

impl Id {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Id::Koel => Koel::<Adaptive>::NAME,
            Id::KoelClock => Koel::<Clock>::NAME,
            Id::KoelLocal => Koel::<Local>::NAME,
            Id::KoelInline => KoelInline::<Adaptive>::NAME,
            Id::KoelInlineLocal => KoelInline::<Local>::NAME,
            Id::QuickCache => <QuickCache>::NAME,
            Id::Moka => Moka::NAME,
            Id::MiniMoka => MiniMoka::NAME,
            Id::SccHashCache => SccHashCache::NAME,
        }
    }

    /// Whether it is koel.
    pub fn is_koel(self) -> bool {
        matches!(self, Id::Koel | Id::KoelClock | Id::KoelLocal | Id::KoelInline | Id::KoelInlineLocal)
    }
}
