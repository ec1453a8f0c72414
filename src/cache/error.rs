//! What is wrong with the options of a cache.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::engine::CapacityError;

/// What is wrong with the options of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// Neither `max_entries` nor `max_weight` was set.
    NoBound,
    /// Both `max_entries` and `max_weight` were set.
    TwoBounds,
    /// There is a weigher, although the bound is on entries.
    WeigherUnused,
    /// There is a clock, although entries do not expire.
    ClockUnused,
    /// Values are to be refreshed ahead of their deadline, but have none.
    RefreshUnused,
    /// Values are to be refreshed so long ahead of their deadline that they are never fresh.
    RefreshTooEarly {
        /// How long before the deadline.
        ahead: Duration,
        /// What `time_to_live` says.
        life: Duration,
    },
    /// The bound is beyond the limit, or there is no memory for it.
    Capacity(CapacityError),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheError::NoBound => {
                f.write_str("a cache without a bound: say `max_entries`, or a `Cache`'s `max_weight` (`u64::MAX` for none)")
            }
            CacheError::TwoBounds => {
                f.write_str("a cache with two bounds: say either `max_entries` or `max_weight`")
            }
            CacheError::WeigherUnused => {
                f.write_str("a weigher for a cache whose bound is on entries: say `max_weight`")
            }
            CacheError::ClockUnused => f.write_str(
                "a clock for a cache whose entries do not expire: say `time_to_live`, `time_to_idle`, `expiry` or `idle_expiry`",
            ),
            CacheError::RefreshUnused => {
                f.write_str("`refresh_ahead` of a deadline that no entry has: say `time_to_live` or `expiry`")
            }
            CacheError::RefreshTooEarly { ahead, life } => {
                write!(f, "`refresh_ahead` of {ahead:?} where entries live for {life:?}: it must be less than that")
            }
            CacheError::Capacity(error) => error.fmt(f),
        }
    }
}

impl Error for CacheError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // An error whose message is part of this one is no source.
            CacheError::Capacity(error) => error.source(),
            _ => None,
        }
    }
}
