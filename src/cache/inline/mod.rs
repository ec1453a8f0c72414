//! [`InlineCache`]: a cache for small plain data, in the slots themselves. It has the policies, the counts and the single
//! flight of [`Cache`](super::Cache), and neither entries nor guards.
//!
//! | file | duty |
//! | --- | --- |
//! | `cache` | construction, reads |
//! | `write` | its writing half |
//! | `load`, `load_if`, `load_many` | values that are loaded when they are missed, or are stale |
//! | `builder`, `iter` | options; walks |

// In the order in which the documentation shows their methods.
mod cache;
mod write;
mod load;
mod load_if;
mod load_many;

// The other files.
mod builder;
mod iter;

pub use builder::InlineCacheBuilder;
pub use cache::InlineCache;
pub use iter::InlineCacheIter;
