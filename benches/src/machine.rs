//! The machine's limit: random reads of cache lines, none of which waits for another.

use std::hint::black_box;
use std::time::Duration;

use crate::pages;
use crate::race::race;

const LINE_BYTES: usize = 64;
const WORDS_PER_LINE: usize = LINE_BYTES / 8;

/// Independent streams per thread; more than a core has line fill buffers.
const STREAMS: usize = 16;

/// An array larger than the caches.
#[derive(Debug)]
pub struct Machine {
    words: Vec<u64>,
    log2_lines: u32,
}

impl Machine {
    /// With an array of 2 to the `log2_bytes` bytes, in huge pages where the system grants them.
    pub fn new(log2_bytes: u32) -> Self {
        let mut words = vec![0_u64; (1_usize << log2_bytes) / 8];
        pages::advise_huge(&mut words);
        // Untouched pages would all be mapped to the one page of zeros.
        for (number, line) in words.chunks_mut(WORDS_PER_LINE).enumerate() {
            line[0] = number as u64;
        }
        Machine { words, log2_lines: log2_bytes - LINE_BYTES.trailing_zeros() }
    }

    /// Random cache lines that `threads` threads read per microsecond, each reading `lines`.
    pub fn line_reads_per_microsecond(&self, threads: usize, lines: usize) -> f64 {
        let rounds = lines.div_ceil(STREAMS);
        let (elapsed, _) = race(threads, |_| (), |thread| black_box(self.read_lines(thread as u64, rounds)));
        (threads * rounds * STREAMS) as f64 / (elapsed.max(Duration::from_nanos(1)).as_secs_f64() * 1e6)
    }

    fn read_lines(&self, seed: u64, rounds: usize) -> u64 {
        let mut sum = 0_u64;
        let mut streams: [u64; STREAMS] =
            std::array::from_fn(|i| crate::keys::key(seed * STREAMS as u64 + i as u64));
        for _ in 0..rounds {
            for stream in &mut streams {
                // Knuth's linear congruential generator (MMIX); its top bits are the random ones.
                *stream =
                    stream.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let line = (*stream >> (64 - self.log2_lines)) as usize;
                sum = sum.wrapping_add(self.words[line * WORDS_PER_LINE]);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// The time measured around the reads suffices for all of them, however long it is.
    #[test]
    fn lines_are_read_at_the_rate_that_is_told() {
        const LINES: usize = 100_000;
        let machine = Machine::new(20);
        for threads in [1, 2] {
            let start = Instant::now();
            let rate = machine.line_reads_per_microsecond(threads, LINES);
            let in_all = rate * start.elapsed().as_secs_f64() * 1e6;
            assert!(
                rate.is_finite() && in_all >= (threads * LINES) as f64 * 0.999,
                "{rate}: {in_all} in all"
            );
        }
    }
}
