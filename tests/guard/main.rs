//! The guard: it answers as the store does, whatever happens, and mostly without asking the store. `KOEL_SEED` makes other
//! runs.

mod anew;
mod around;
mod bad_input;
mod batch;
mod comes_back;
mod common;
mod compute;
mod doubt;
mod drops;
mod faults;
mod filters;
mod hot;
mod into_store;
mod kills;
mod kinds;
mod laws;
mod locked;
#[cfg(feature = "metrics")]
mod metrics;
mod opening;
mod order;
mod policy;
mod presence;
mod rebuild;
mod scripted;
mod sizes;
mod snapshots;
mod stress;
mod tables;
mod transactions;
