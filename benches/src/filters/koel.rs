//! koel::CuckooFilter and koel::ScalableCuckooFilter.

use ::koel::{CuckooFilter, FilterBuilder, ScalableCuckooFilter};

use super::{BUCKET_SLOTS, BuildShared, Expected, FIRST_KEYS, Filter, Full, Shared, Size};

/// Buckets of four fingerprints.
#[derive(Debug)]
pub struct KoelCuckoo(CuckooFilter<BuildShared>);

/// Semi-sorted buckets of four: fingerprints that are one bit longer in the same memory.
#[derive(Debug)]
pub struct KoelSemiSorted(CuckooFilter<BuildShared>);

/// The filter that grows, built for its keys.
#[derive(Debug)]
pub struct KoelScalable(ScalableCuckooFilter<BuildShared>);

/// The filter that grows, starting with room for [`FIRST_KEYS`].
#[derive(Debug)]
pub struct KoelGrown(ScalableCuckooFilter<BuildShared>);

/// The capacity to ask for: a hundredth less than there are keys, as a capacity is 94% of the slots, which are then filled to
/// 95%. If that fails, the capacity is that of the keys.
fn capacity(size: Size) -> usize {
    match size.attempt {
        0 => (size.keys as usize * 99 / 100).max(1),
        attempt => (size.keys as usize) << (attempt - 1),
    }
}

fn builder<S>(size: Size, semi_sorted: bool, hasher: S) -> FilterBuilder<S> {
    CuckooFilter::builder()
        .capacity(capacity(size))
        .fingerprint_bits(size.bits + u32::from(semi_sorted))
        .bucket_slots(BUCKET_SLOTS)
        .semi_sorted(semi_sorted)
        .hasher(hasher)
}

/// An empty filter of buckets of four.
pub(super) fn build<S>(size: Size, semi_sorted: bool, hasher: S) -> Result<CuckooFilter<S>, String> {
    builder(size, semi_sorted, hasher).build().map_err(|e| e.to_string())
}

/// A filter built from all the keys at once.
fn built_of(
    size: Size,
    semi_sorted: bool,
    keys: &[u64],
    parallel: bool,
) -> Result<CuckooFilter<BuildShared>, String> {
    let builder = builder(size, semi_sorted, BuildShared);
    let built = if parallel { builder.par_from_keys(keys) } else { builder.from_keys(keys) };
    built.map_err(|e| e.to_string())
}

/// The same calls for each filter.
macro_rules! contestant {
    ($filter:ident, $name:literal, $is_fixed:literal, $empty:expr, $built_of:expr) => {
        impl Filter for $filter {
            const NAME: &'static str = $name;
            const SHARED_WRITES: bool = true;
            const BATCHES: bool = true;
            const FIXED_SLOTS: bool = $is_fixed;
            const AT_ONCE: bool = $is_fixed;
            type Shared = Self;

            fn empty(size: Size) -> Result<Self, String> {
                $empty(size).map($filter)
            }

            fn at_once(size: Size, keys: &[u64], parallel: bool) -> Result<Self, String> {
                $built_of(size, keys, parallel).map($filter)
            }

            #[inline]
            fn insert(&mut self, key: u64) -> Result<(), Full> {
                Shared::insert(self, key)
            }

            #[inline]
            fn remove(&mut self, key: u64) -> bool {
                Shared::remove(self, key)
            }

            #[inline]
            fn contains(&self, key: u64) -> bool {
                self.0.contains(&key)
            }

            #[inline]
            fn contains_many(&self, keys: &[u64], found: &mut [bool]) {
                self.0.contains_many(keys, found);
            }

            fn entries(&self) -> Option<u64> {
                Some(self.0.len() as u64)
            }

            fn load(&self) -> Option<f64> {
                Some(self.0.load_factor())
            }

            fn expected(&self, _: u64) -> Expected {
                Expected::About(self.0.false_positive_rate())
            }

            fn share(self) -> Self {
                self
            }
        }

        impl Shared for $filter {
            type Filter = Self;

            #[inline]
            fn insert(&self, key: u64) -> Result<(), Full> {
                self.0.insert(&key).map_err(|_| Full)
            }

            #[inline]
            fn remove(&self, key: u64) -> bool {
                self.0.remove(&key)
            }

            #[inline]
            fn contains(&self, key: u64) -> bool {
                self.0.contains(&key)
            }

            fn into_inner(self) -> Self {
                self
            }
        }
    };
}

contestant!(KoelCuckoo, "koel", true, |size| build(size, false, BuildShared), |size, keys, parallel| {
    built_of(size, false, keys, parallel)
});
contestant!(
    KoelSemiSorted,
    "koel-semi-sorted",
    true,
    |size| build(size, true, BuildShared),
    |size, keys, parallel| built_of(size, true, keys, parallel)
);
contestant!(KoelScalable, "koel-scalable", false, |size: Size| scalable(size, size.doubled()), never_at_once);
contestant!(KoelGrown, "koel-grown", false, |size| scalable(size, FIRST_KEYS), never_at_once);

/// Never called: their [`Filter::AT_ONCE`] is false.
fn never_at_once<T>(_: Size, _: &[u64], _: bool) -> Result<T, String> {
    Err("it is not built of all keys at once here".to_owned())
}

fn scalable(size: Size, keys: usize) -> Result<ScalableCuckooFilter<BuildShared>, String> {
    ScalableCuckooFilter::builder()
        .capacity(keys)
        .false_positive_rate(size.rate().min(0.99))
        .hasher(BuildShared)
        .build()
        .map_err(|e| e.to_string())
}
