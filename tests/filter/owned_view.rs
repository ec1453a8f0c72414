//! Views that own their bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use koel::{BytesError, CuckooFilter, FilterError, FilterView, FilterViewOwned, ScalableCuckooFilter};

use crate::common::{catch, seed};
use crate::{builder, layouts};

/// An owned and a borrowed view of the same bytes answer alike, wherever the bytes have been moved meanwhile.
fn assert_as_a_view(bytes: &[u8]) {
    let view = FilterView::from_bytes(bytes).unwrap();
    let owned = FilterViewOwned::from_bytes(bytes.to_vec()).unwrap();
    let owned = Box::new(owned.clone());
    assert_eq!((owned.len(), owned.is_empty()), (view.len(), view.is_empty()));
    let again = owned.view();
    assert_eq!((again.len(), again.capacity()), (view.len(), view.capacity()));
    for key in 0..2000_u64 {
        let text = key.to_string();
        assert_eq!(owned.contains(&key), view.contains(&key));
        assert_eq!((again.contains(&key), again.count(&key)), (view.contains(&key), view.count(&key)));
        assert_eq!(owned.contains_bytes(text.as_bytes()), view.contains_bytes(text.as_bytes()));
        assert!(owned.hash(&key) == view.hash(&key) && owned.hash_bytes(b"ada") == view.hash_bytes(b"ada"));
    }
    assert!(owned.bytes() == bytes && owned.into_bytes() == bytes);
}

#[test]
fn an_owned_view_answers_as_a_view_does() {
    for layout in layouts().step_by(7) {
        let filter = builder(layout).capacity(50).seed(seed()).build().unwrap();
        (0..50_u64).for_each(|key| filter.insert(&key).unwrap());
        assert_as_a_view(&filter.to_bytes());
    }
    assert_as_a_view(&CuckooFilter::from_keys([0_u64; 0], 0.01).unwrap().to_bytes());
    // Several segments, and several tables of different lengths.
    assert_as_a_view(&CuckooFilter::from_keys(0..300_000_u64, 0.001).unwrap().to_bytes());
    let growing = ScalableCuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build().unwrap();
    (0..50_000_u64).for_each(|key| growing.insert(&key).unwrap());
    assert!(growing.info().tables.len() >= 3);
    assert_as_a_view(&growing.to_bytes());
}

#[test]
fn an_owned_view_refuses_what_a_view_refuses() {
    let bytes = CuckooFilter::from_keys(0..100_u64, 0.01).unwrap().to_bytes();
    for len in 0..bytes.len() {
        assert!(FilterViewOwned::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
    }
    let longer = [&bytes[..], b"x"].concat();
    let error = FilterViewOwned::from_bytes(longer.clone()).unwrap_err();
    assert!(matches!(error, FilterError::Bytes(BytesError::Length { .. })), "{error}");
    // The caller can have the bytes back, and not a copy of them.
    let at = longer.as_ptr();
    let (mut longer, error) = FilterViewOwned::try_from_bytes(longer).unwrap_err();
    assert!(
        matches!(error, FilterError::Bytes(BytesError::Length { .. })) && longer.as_ptr() == at,
        "{error}"
    );
    assert_eq!(longer.pop(), Some(b'x'));
    assert!(FilterViewOwned::try_from_bytes(longer).unwrap().contains(&7_u64));
    let shared: Arc<[u8]> = bytes.into();
    let kept = FilterViewOwned::from_bytes(Arc::clone(&shared)).unwrap();
    drop(shared);
    assert!((0..100_u64).all(|key| kept.contains(&key)));
}

/// A buffer that changes after it has been read.
struct Shrinking(Vec<u8>, AtomicBool);

impl AsRef<[u8]> for Shrinking {
    fn as_ref(&self) -> &[u8] {
        if self.1.load(Ordering::Relaxed) { &[] } else { &self.0 }
    }
}

#[test]
fn bytes_that_go_are_a_panic() {
    let bytes = CuckooFilter::from_keys(0..100_u64, 0.01).unwrap().to_bytes();
    let owned = FilterViewOwned::from_bytes(Shrinking(bytes, AtomicBool::new(false))).unwrap();
    assert!(owned.contains(&7_u64));
    owned.bytes().1.store(true, Ordering::Relaxed);
    assert!(catch(|| owned.contains(&7_u64)).is_err() && catch(|| owned.view().len()).is_err());
}
