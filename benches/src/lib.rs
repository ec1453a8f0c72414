//! Compares koel with other concurrent hash maps, filters and caches; the `koel-bench` program is a thin shell around this
//! library.
//!
//! The layers, from the bottom: [`keys`] and [`dist`] define keys and values; [`workload`], [`whole`] and [`trace`] define
//! operations; [`plan`] writes them down, one by one, with the answers that are required; [`contestants`] are the maps,
//! [`filters`] the filters, [`caches`] the caches; [`check`] and [`race`] run plans on them, through [`entrant`] and in
//! [`rounds`]; [`replay`] puts [`requests`] to caches, and to exact policies of [`reference`]; [`commands`] choose what to run
//! and [`report`] presents the results; [`paper`] reproduces tables of the literature.

pub mod caches;
pub mod check;
pub mod cli;
pub mod commands;
pub mod console;
pub mod contestants;
pub mod dist;
pub mod entrant;
pub mod error;
pub mod faults;
pub mod filters;
pub mod heap;
pub mod keys;
pub mod machine;
pub mod origin;
pub mod pages;
pub mod paper;
pub mod plan;
pub mod race;
pub mod reference;
pub mod replay;
pub mod report;
pub mod requests;
pub mod rounds;
pub mod scratch;
pub mod stats;
pub mod stop;
pub mod stopwatch;
pub mod trace;
pub mod whole;
pub mod workload;
