//! What the flights promise, tested with the smallest cache.

mod colliding;
mod many;
mod nested;
mod refresh;
mod reserve;
mod shared;
mod stale;
mod tasks;
mod threads;
mod writes;

use std::thread;
use std::time::{Duration, Instant};

use super::toy::LoadOnce;
use crate::sync::{AtomicUsize, Ordering};

type Cache = LoadOnce<u32, u32>;

/// A time that no test waits for unless it fails.
const LONG: Duration = Duration::from_secs(60);

/// Waits until a condition holds that must become true.
fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "it never happened");
        thread::yield_now();
    }
}

/// How often something happened.
#[derive(Default)]
struct Count(AtomicUsize);

impl Count {
    fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
