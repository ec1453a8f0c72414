//! A clock that is read in a fraction of the time.

use core::time::Duration;

use super::Clock;

/// The system's monotonic time as of its last tick, for caches whose entries live for seconds or more. A hit takes a third more
/// time than where nothing expires, instead of three times as much. As insertions and look-ups read the same clock, an entry
/// lives up to a tick, 1 to 10 milliseconds, shorter or longer than it should.
///
/// To read the exact time, a processor first finishes the instructions that it has begun, so that one hit does not overlap with
/// the next; reading this clock takes a few loads. If a tick comes late, as on a virtual machine whose host is overloaded, so
/// does the time. On Linux this is `CLOCK_MONOTONIC_COARSE`, which in some kernels goes back by some nanoseconds when the
/// system's clock is adjusted: for that long, an entry that had expired may be found again. The clock stands still while the
/// machine is suspended. On other systems it is exact, like the clock of a cache that is given none.
///
/// ```
/// use std::time::Duration;
///
/// let sessions: koel::Cache<u64, String> = koel::Cache::builder()
///     .max_entries(100_000)
///     .time_to_live(Duration::from_secs(1800))
///     .clock(koel::CoarseClock)
///     .build();
/// sessions.insert(7, "ada".to_string()).unwrap();
/// assert_eq!(sessions.get(&7).as_deref(), Some("ada"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CoarseClock;

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Duration {
        monotonic()
    }
}

/// The system's monotonic time as of its last tick, where the system reports that; elsewhere the exact time.
#[cfg(all(target_os = "linux", not(any(miri, loom, shuttle))))]
pub(super) fn monotonic() -> Duration {
    use core::mem::MaybeUninit;

    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // By the C library: other crates' use of the kernel's page of functions ends a program under valgrind, which hides that
    // page.
    // SAFETY: the place is ours; all zeros are a valid time.
    let time = unsafe {
        let failed = libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, time.as_mut_ptr());
        debug_assert_eq!(failed, 0, "each Linux since 2.6.32 has this clock");
        time.assume_init()
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(all(target_os = "linux", not(any(miri, loom, shuttle)))))]
pub(super) fn monotonic() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    BEGINNING.get_or_init(Instant::now).elapsed()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on() {
        let first = CoarseClock.now();
        let mut now = first;
        while now <= first {
            now = CoarseClock.now();
            // By some nanoseconds it may go back.
            assert!(now + Duration::from_micros(1) > first);
        }
    }
}
