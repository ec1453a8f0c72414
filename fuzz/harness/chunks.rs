//! A transfer by chunks that breaks off, is resumed, and meets wrong chunks.

use koel::{ChunkLoader, CuckooFilter};

use super::filter_bytes::sign;
use super::input::Input;

/// A filter of two segments would need 100,000 keys; this one has one.
fn sample() -> CuckooFilter {
    let filter = CuckooFilter::builder().capacity(20).fingerprint_bits(12).seed(1).build();
    let filter = filter.expect("a small filter");
    (0..10_u64).for_each(|key| filter.insert(&key).expect("there is room"));
    filter
}

/// Loads chunks as the input says: of a filter, in any order, damaged, or made up. What is taken must be a filter's.
pub(crate) fn load(data: &[u8]) {
    let mut input = Input::new(data);
    let filter = sample();
    let mut loader: ChunkLoader = ChunkLoader::new();
    while !input.is_empty() {
        let (next, len) = (loader.next(), loader.next_len());
        let taken = match input.byte() % 8 {
            0 | 1 => chunk_of(&filter, next).is_some_and(|chunk| loader.load(&chunk).is_ok()),
            2 => {
                let number = u32::from(input.byte());
                chunk_of(&filter, number).is_some_and(|chunk| loader.load(&chunk).is_ok())
            }
            3 => {
                let Some(mut chunk) = chunk_of(&filter, next) else { continue };
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

fn chunk_of(filter: &CuckooFilter, number: u32) -> Option<Vec<u8>> {
    filter.chunks_from(number).next()
}

fn finish(loader: ChunkLoader) {
    let complete = loader.next_len().is_none();
    match loader.finish() {
        Ok(filter) => {
            assert!(complete);
            let copy = <CuckooFilter>::from_bytes(&filter.to_bytes()).expect("a filter's own bytes");
            assert_eq!(copy.len(), filter.len());
        }
        Err(error) => assert!(!complete || !error.to_string().is_empty()),
    }
}
