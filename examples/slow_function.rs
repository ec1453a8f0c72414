//! A cache before a slow function: threads ask for the largest prime factors of numbers, of small numbers more often.
//!
//! ```text
//! cargo run --release --example slow_function
//! ```

use std::io::Write;
use std::time::{Duration, Instant};

use koel::Cache;

const THREADS: u64 = 4;
const REQUESTS: u64 = 50_000;
const NUMBERS: u64 = 100_000;

fn main() {
    let cache: Cache<u64, u64> =
        Cache::builder().max_entries(20_000).time_to_live(Duration::from_secs(600)).build();
    // Of all threads that miss a number at the same time, one factors it, and the others wait for the result.
    let cached = time("with the cache", |number| cache.get_or_insert_with(number, || largest_factor(number)));
    let direct = time("without", largest_factor);
    assert_eq!(cached, direct, "the cache has answered something else");
    say(&format!("\n{}", cache.stats()));
}

/// The reader may have closed the pipe, as in `slow_function | head`: no reason to panic.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Lets all threads ask, and prints how long they took; returns the sum of the answers.
fn time(how: &str, ask: impl Fn(u64) -> u64 + Sync) -> u64 {
    let start = Instant::now();
    let sum = std::thread::scope(|scope| {
        let ask = &ask;
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || requests(thread).map(ask).sum::<u64>())).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread has panicked")).sum()
    });
    say(&format!("{how}: {:.2?} for {} requests", start.elapsed(), THREADS * REQUESTS));
    sum
}

/// The numbers that a thread asks for: from eighth powers of evenly spread fractions, so that half of them are in the first
/// 256th of the range.
fn requests(thread: u64) -> impl Iterator<Item = u64> {
    let mut state = thread + 1;
    (0..REQUESTS).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let fraction = (state >> 11) as f64 / (1_u64 << 53) as f64;
        1_000_000_000 + (fraction.powi(8) * NUMBERS as f64) as u64
    })
}

/// Finds it by trial division, which is slow.
fn largest_factor(mut number: u64) -> u64 {
    let (mut divisor, mut largest) = (2, 1);
    while divisor * divisor <= number {
        while number % divisor == 0 {
            (number, largest) = (number / divisor, divisor);
        }
        divisor += 1;
    }
    number.max(largest)
}
