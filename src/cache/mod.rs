//! A bounded cache.

#[cfg_attr(not(any(test, loom)), allow(dead_code, unused_imports, reason = "the cache is to call it"))]
mod flight;

pub use flight::LoadError;
#[cfg(loom)]
pub use flight::toy::LoadOnce;
