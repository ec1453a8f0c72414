//! Random bits for numbers that must not repeat.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// 128 random bits, different ones each time.
pub(crate) fn draw() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_else(|before| before.duration());
    draw_by(&RandomState::new(), std::process::id(), now)
}

/// Processes that were forked from one thread have the same random keys: so the process and the time are hashed as well.
fn draw_by(keys: &RandomState, process: u32, now: Duration) -> u128 {
    let half = |number: u8| u128::from(keys.hash_one((number, process, now)));
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_draws_other_bits() {
        let (keys, now) = (RandomState::new(), Duration::from_secs(1_764_000_000));
        let parents = draw_by(&keys, 7, now);
        assert_ne!(parents, draw_by(&keys, 8, now));
        // A process that has the number of one that has ended.
        assert_ne!(parents, draw_by(&keys, 7, now + Duration::from_nanos(1)));
        assert_ne!(parents >> 64, parents & u128::from(u64::MAX));
    }
}
