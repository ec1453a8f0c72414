//! The filter that grows as bytes: whole, in chunks, and in place.

use std::io::Write;
use std::sync::mpsc;
use std::time::Duration;

use koel::{BytesError, ChunkLoader, CuckooFilter, FilterError, FilterView, ScalableCuckooFilter};

use crate::common::{on_threads, seed};

/// A filter of several tables.
fn grown(keys: u64) -> ScalableCuckooFilter {
    let builder = ScalableCuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    let filter = builder.seed(seed()).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    assert!(filter.info().tables.len() >= 3);
    filter
}

/// A writer that in each call uses the filter that is being written to it.
struct Using<'f> {
    filter: &'f ScalableCuckooFilter,
    fresh: u64,
    calls: usize,
}

impl Write for Using<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for _ in 0..3000 {
            self.filter.insert(&self.fresh).unwrap();
            assert!(self.filter.contains(&self.fresh));
            self.fresh += 1;
        }
        assert!(self.filter.remove(&(self.fresh - 1)) && self.filter.insert_unique(&u64::MAX).is_ok());
        assert!(!self.filter.is_empty() && self.filter.chunks().next().is_some());
        self.calls += 1;
        // After it has grown meanwhile.
        if self.calls % 10 == 0 {
            self.filter.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// However long the writer takes: no lock is held while it is written to.
#[test]
fn what_a_filter_is_written_to_may_use_it() {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let filter = ScalableCuckooFilter::builder().capacity(100).seed(seed()).build().unwrap();
        (0..20_000_u64).for_each(|key| filter.insert(&key).unwrap());
        let tables = filter.info().tables.len();
        let mut using = Using { filter: &filter, fresh: 1 << 40, calls: 0 };
        filter.write_to(&mut using).unwrap();
        tell.send((using.calls, filter.info().tables.len() - tables))
    });
    let (calls, added) = told.recv_timeout(Duration::from_secs(60)).expect("no lock is held");
    assert!(calls > 10 && added > 0, "{calls} calls, {added} tables were added");
}

#[test]
fn a_view_answers_as_the_growing_filter_does() {
    let filter = grown(50_000);
    let bytes = filter.to_bytes();
    let copy = filter.clone();
    assert_eq!(copy.to_bytes(), bytes);
    copy.insert(&1_000_000_u64).unwrap();
    assert_eq!(filter.to_bytes(), bytes);
    let view = FilterView::from_bytes(&bytes).unwrap();
    for key in 0..60_000_u64 {
        assert_eq!((view.contains(&key), view.count(&key)), (filter.contains(&key), filter.count(&key)));
    }
    assert_eq!((view.len(), view.capacity()), (filter.len(), filter.capacity()));
    let (rate, expected) = (view.false_positive_rate(), filter.false_positive_rate());
    assert!((rate / expected - 1.0).abs() < 1e-9, "{rate} {expected}");
    assert!(view.contains_hash(filter.hash(&1_u64)) && view.hash_bytes(b"ada") == filter.hash_bytes(b"ada"));
    for at in (0..bytes.len()).step_by(bytes.len() / 200).chain(0..200) {
        assert!(FilterView::from_bytes(&bytes[..at]).is_err());
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(FilterView::from_bytes(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn a_transfer_of_a_growing_filter_is_resumed_where_it_broke_off() {
    let filter = grown(50_000);
    let whole: Vec<u8> = filter.chunks().flatten().collect();
    assert_eq!(whole, filter.to_bytes());
    let mut loader = ChunkLoader::new();
    let mut chunks = filter.chunks().len();
    while let Some(len) = loader.next_len() {
        let mut rest = filter.chunks_from(loader.next());
        assert_eq!(rest.len(), chunks);
        let chunk = rest.next().unwrap();
        assert_eq!(chunk.len(), len);
        let mut damaged = chunk.clone();
        damaged[len / 2] ^= 1;
        assert!(loader.load(&damaged).is_err() && loader.load(&chunk[1..]).is_err());
        // Neither the next one nor the first is this one.
        let others = [filter.chunks_from(loader.next() + 1).next(), filter.chunks().next()];
        let others = others.into_iter().flatten().filter(|other| *other != chunk);
        others.for_each(|other| assert!(loader.load(&other).is_err(), "chunk {}", loader.next()));
        loader.load(&chunk).unwrap();
        chunks -= 1;
    }
    assert!(chunks == 0 && loader.load(&[0; 64]).is_err(), "one too many");
    assert!(loader.is_scalable());
    assert_eq!(loader.finish_scalable().unwrap().to_bytes(), whole);
}

#[test]
fn a_loader_of_a_growing_filter_that_cannot_finish_is_handed_back_and_goes_on() {
    let filter = grown(20_000);
    let mut loader = ChunkLoader::new();
    for (number, chunk) in (0..).zip(filter.chunks()) {
        let (same, error) = loader.try_finish_scalable().unwrap_err();
        let missing = BytesError::Incomplete { next: number };
        assert!(matches!(error, FilterError::Bytes(error) if error == missing) && !same.is_complete());
        loader = same;
        loader.load(&chunk).unwrap();
    }
    assert!(loader.is_complete());
    let (loader, error) = loader.try_finish().unwrap_err();
    assert!(matches!(error, FilterError::Bytes(BytesError::Kind { scalable: true })), "{error}");
    assert_eq!(loader.try_finish_scalable().unwrap().to_bytes(), filter.to_bytes());
}

/// Loads these chunks, and then those of `later` from where they end, as far as they fit.
fn resumed(chunks: &[Vec<u8>], later: &ScalableCuckooFilter) -> ChunkLoader {
    let mut loader = ChunkLoader::new();
    chunks.iter().for_each(|chunk| loader.load(chunk).unwrap());
    for chunk in later.chunks_from(loader.next()) {
        if loader.load(&chunk).is_err() {
            break;
        }
    }
    loader
}

#[test]
fn a_transfer_that_growth_interrupts_does_not_end_in_a_filter() {
    let filter = grown(20_000);
    let chunks: Vec<Vec<u8>> = filter.chunks().collect();
    let tables = filter.info().tables.len();
    let bigger = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
    (1 << 40..(1 << 40) + 100_000_u64).for_each(|key| bigger.insert(&key).unwrap());
    assert!(bigger.info().tables.len() > tables);
    for taken in 1..chunks.len() {
        let loader = resumed(&chunks[..taken], &bigger);
        assert!(loader.finish_scalable().is_err(), "{taken} chunks of the one, and then of the other");
    }
}

#[test]
fn one_kind_is_not_taken_for_the_other() {
    let (grown, fixed) =
        (grown(20_000).to_bytes(), CuckooFilter::from_keys(0..100, 0.01).unwrap().to_bytes());
    /// Whether the error is that the bytes are of this kind, which was not asked for.
    fn is_kind<T>(result: Result<T, FilterError>, grows: bool) -> bool {
        matches!(result, Err(FilterError::Bytes(BytesError::Kind { scalable })) if scalable == grows)
    }
    assert!(
        is_kind(CuckooFilter::from_bytes(&grown), true)
            && is_kind(ScalableCuckooFilter::from_bytes(&fixed), false)
    );
    let mut reader = &grown[..];
    assert!(is_kind(CuckooFilter::read_from(&mut reader), true) && reader.len() == grown.len() - 64);
    assert!(is_kind(ScalableCuckooFilter::read_from(&fixed[..]), false));
    let load = |mut bytes: &[u8]| {
        let mut loader = ChunkLoader::new();
        while let Some(len) = loader.next_len() {
            loader.load(&bytes[..len]).unwrap();
            bytes = &bytes[len..];
        }
        loader
    };
    assert!(is_kind(load(&grown).finish(), true) && is_kind(load(&fixed).finish_scalable(), false));
    assert!(load(&grown).is_scalable() && !load(&fixed).is_scalable());
    // A table of a growing filter is no filter.
    assert!(CuckooFilter::from_bytes(&grown[64..]).is_err());
}

/// Keys that stay are in every dump, however much is moved while it is made.
#[test]
fn chunks_have_every_key_that_nobody_touches_while_tables_come_and_go() {
    let filter = grown(20_000);
    on_threads(2, |thread| {
        if thread == 0 {
            for round in 0..6_u64 {
                let more = (round + 1) << 32..((round + 1) << 32) + 30_000;
                more.clone().for_each(|key| filter.insert(&key).unwrap());
                more.for_each(|key| assert!(filter.remove(&key)));
                filter.compact();
            }
        } else {
            for _ in 0..12 {
                let mut loader = ChunkLoader::new();
                filter.chunks().for_each(|chunk| loader.load(&chunk).unwrap());
                let copy = loader.finish_scalable().unwrap();
                assert!((0..20_000_u64).all(|key| copy.contains(&key)), "a dump misses a key");
            }
        }
    });
}

/// Also if the newly made one has the same tables, with other contents.
#[test]
fn a_transfer_that_is_resumed_after_tables_were_given_back_has_a_whole_chain_or_none() {
    const HELD: u64 = 2000;
    let filter = grown(20_000);
    (HELD..20_000).for_each(|key| assert!(filter.remove(&key)));
    let chunks: Vec<_> = filter.chunks().collect();
    let fewer = filter.clone();
    assert!(fewer.compact() > 0);
    let again = fewer.clone();
    (1 << 40..(1 << 40) + 30_000_u64).for_each(|key| again.insert(&key).unwrap());
    for later in [&fewer, &again] {
        for taken in 1..chunks.len() {
            if let Ok(copy) = resumed(&chunks[..taken], later).finish_scalable() {
                assert!(
                    (0..HELD).all(|key| copy.contains(&key)),
                    "{taken} chunks of the one, then of the other"
                );
            }
        }
    }
}
