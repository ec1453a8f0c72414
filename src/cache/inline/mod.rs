//! [`InlineCache`]: a cache for small plain data, in the slots themselves. It has the policies, the counts and the single
//! flight of [`Cache`](super::Cache), and neither entries nor guards.
//!
//! | file | duty |
//! | --- | --- |
//! | `cache` | making one, reading |
//! | `write` | its writing half |
//! | `load`, `load_if`, `load_many` | values that are loaded when they are missed, or are stale |
//! | `builder`, `iter` | options; walks |

mod builder;
mod cache;
mod iter;
mod load;
mod load_if;
mod load_many;
mod write;

pub use builder::InlineCacheBuilder;
pub use cache::InlineCache;
pub use iter::InlineCacheIter;
