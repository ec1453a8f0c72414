//! What the flights promise, tested with the smallest cache.

mod threads;
