//! Filters that are loaded or united, without memory.

use koel::{ChunkLoader, CuckooFilter, FilterError, FilterView, ScalableCuckooFilter};

use crate::allocator::Plan;
use crate::operations::failed;

/// The result of an operation under the plan; `None` if its error says that there was no memory.
fn done<T>(plan: &mut Plan, operation: impl FnOnce() -> Result<T, FilterError>) -> Option<T> {
    match plan.run(operation) {
        Ok(filter) => Some(filter),
        Err(error) => {
            assert!(matches!(error, FilterError::OutOfMemory { .. }) && plan.is_over(), "{error}");
            failed();
            None
        }
    }
}

/// A filter of one segment of about 50 KB.
fn filter(keys: u64) -> CuckooFilter {
    let filter = CuckooFilter::builder().capacity(30_000).fingerprint_bits(12).seed(1).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

pub(crate) fn read(plan: &mut Plan) {
    let bytes = filter(1000).to_bytes();
    let read = || CuckooFilter::read_from(&bytes[..]);
    if let Some(copy) = done(plan, read) {
        assert_eq!(copy.to_bytes(), bytes);
    }
    assert!(read().is_ok(), "there is memory again");
}

/// A chunk for which there was no memory was not taken, and is taken the next time.
pub(crate) fn load(plan: &mut Plan) {
    let (filter, mut loader) = (filter(1000), ChunkLoader::new());
    for (number, chunk) in (0..).zip(filter.chunks()) {
        assert_eq!(loader.next(), number);
        if done(plan, || loader.load(&chunk)).is_none() {
            assert_eq!(loader.next(), number);
            loader.load(&chunk).unwrap();
        }
    }
    // And a loader that could not finish, finishes the next time.
    let copy = finished(plan, loader, ChunkLoader::try_finish);
    assert_eq!(copy.to_bytes(), filter.to_bytes());
}

/// The filter that a loader has loaded, at once or when there is memory again.
fn finished<T>(
    plan: &mut Plan,
    loader: ChunkLoader,
    finish: fn(ChunkLoader) -> Result<T, (ChunkLoader, FilterError)>,
) -> T {
    match plan.run(|| finish(loader)) {
        Ok(filter) => filter,
        Err((loader, error)) => {
            assert!(matches!(error, FilterError::OutOfMemory { .. }) && plan.is_over(), "{error}");
            assert!(loader.is_complete());
            failed();
            finish(loader).map_err(|(_, error)| error).expect("there is memory again")
        }
    }
}

pub(crate) fn load_growing(plan: &mut Plan) {
    let growing = ScalableCuckooFilter::builder().capacity(30_000).seed(1).build().unwrap();
    (0..40_000_u64).for_each(|key| growing.insert(&key).unwrap());
    let mut loader = ChunkLoader::new();
    growing.chunks().for_each(|chunk| loader.load(&chunk).unwrap());
    let copy = finished(plan, loader, ChunkLoader::try_finish_scalable);
    assert_eq!(copy.to_bytes(), growing.to_bytes());
}

pub(crate) fn growing_from_bytes(plan: &mut Plan) {
    let growing = ScalableCuckooFilter::builder().capacity(30_000).seed(1).build().unwrap();
    (0..40_000_u64).for_each(|key| growing.insert(&key).unwrap());
    assert_eq!(growing.info().tables.len(), 2);
    let bytes = growing.to_bytes();
    let from_bytes = || ScalableCuckooFilter::from_bytes(&bytes);
    if let Some(copy) = done(plan, from_bytes) {
        assert_eq!(copy.to_bytes(), bytes);
    }
    assert!(from_bytes().is_ok(), "there is memory again");
}

pub(crate) fn view(plan: &mut Plan) {
    let growing = ScalableCuckooFilter::builder().capacity(100).seed(1).build().unwrap();
    (0..6000_u64).for_each(|key| growing.insert(&key).unwrap());
    for bytes in [filter(1000).to_bytes(), growing.to_bytes()] {
        let view = done(plan, || FilterView::from_bytes(&bytes));
        assert!(view.is_none_or(|view| (0..1000_u64).all(|key| view.contains(&key))));
    }
}

/// Adds all keys of the other filter, or none.
pub(crate) fn unite(plan: &mut Plan) {
    let (one, other) = (filter(1000), filter(0));
    (1000..2000_u64).for_each(|key| other.insert(&key).unwrap());
    let united = done(plan, || one.try_union(&other)).is_some();
    assert_eq!(one.len(), if united { 2000 } else { 1000 });
    assert!((0..one.len() as u64).all(|key| one.contains(&key)), "a key is lost");
    assert!(united || one.try_union(&other).is_ok(), "there is memory again");
}
