//! A transfer by chunks that breaks off, is resumed, and meets wrong chunks.

use koel::{ChunkLoader, CuckooFilter, ScalableCuckooFilter};

use super::bounded;
use super::filter_bytes::sign;
use super::input::Input;

/// The chunks of a filter of either kind. A fixed filter of two segments would need 100,000 keys; the second table of the
/// growing one has two segments.
fn sample(growing: bool) -> Vec<Vec<u8>> {
    if growing {
        let filter = ScalableCuckooFilter::builder().capacity(1).false_positive_rate(0.5).seed(1).build();
        let filter = filter.expect("a small filter");
        assert_eq!(filter.insert_many(&(0..5000_u64).collect::<Vec<_>>()), 5000);
        return filter.chunks().collect();
    }
    let filter = CuckooFilter::builder().capacity(20).fingerprint_bits(12).seed(1).build();
    let filter = filter.expect("a small filter");
    (0..10_u64).for_each(|key| filter.insert(&key).expect("there is room"));
    filter.chunks().collect()
}

thread_local!(static SAMPLES: [Vec<Vec<u8>>; 2] = [sample(false), sample(true)]);

/// Loads chunks as the input says: of a filter, in any order, damaged, or made up. Chunks that are accepted must be a filter's.
pub(crate) fn load(data: &[u8]) {
    SAMPLES.with(|samples| {
        let mut input = Input::new(data);
        let chunks = &samples[usize::from(input.byte() % 2)];
        bounded(data.len() + chunks.iter().flatten().count(), || load_some(chunks, input));
    });
}

fn load_some(chunks: &[Vec<u8>], mut input: Input<'_>) {
    let chunk = |number: u32| chunks.get(number as usize);
    let mut loader = ChunkLoader::new();
    while !input.is_empty() {
        let (next, len) = (loader.next(), loader.next_len());
        let taken = match input.byte() % 8 {
            0 | 1 => chunk(next).is_some_and(|chunk| loader.load(chunk).is_ok()),
            2 => {
                let number = u32::from(input.byte());
                chunk(number).is_some_and(|chunk| loader.load(chunk).is_ok())
            }
            3 => {
                let Some(mut chunk) = chunk(next).cloned() else { continue };
                let at = input.number() as usize % chunk.len();
                chunk[at] ^= input.byte();
                loader.load(&chunk).is_ok()
            }
            4 => {
                let len = usize::from(input.byte());
                loader.load(input.take(len)).is_ok()
            }
            5 => loader.load(input.take(len.unwrap_or(0))).is_ok(),
            6 => {
                let mut chunk = input.take(len.unwrap_or(0)).to_vec();
                sign(&mut chunk);
                loader.load(&chunk).is_ok()
            }
            _ => {
                let done = std::mem::take(&mut loader);
                finish(done);
                continue;
            }
        };
        assert_eq!(loader.next(), next + u32::from(taken), "what is refused changes nothing");
        assert!(!taken || len.is_some(), "there was none to come");
    }
    finish(loader);
}

fn finish(loader: ChunkLoader) {
    let complete = loader.next_len().is_none();
    if loader.is_scalable() {
        match loader.finish_scalable() {
            Ok(filter) => {
                assert!(complete);
                let copy = ScalableCuckooFilter::from_bytes(&filter.to_bytes()).expect("its own bytes");
                assert_eq!(copy.len(), filter.len());
            }
            Err(error) => assert!(!complete, "{error}"),
        }
        return;
    }
    match loader.finish() {
        Ok(filter) => {
            assert!(complete);
            let copy = CuckooFilter::from_bytes(&filter.to_bytes()).expect("its own bytes");
            assert_eq!(copy.len(), filter.len());
        }
        Err(error) => assert!(!complete, "{error}"),
    }
}
