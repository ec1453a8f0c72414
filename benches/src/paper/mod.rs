//! Tables of the literature, reproduced and compared with the published figures: `koel-bench filter --paper`.
//!
//! The cuckoo filter's come from B. Fan, D. Andersen, M. Kaminsky, M. Mitzenmacher, "Cuckoo Filter: Practically Better
//! Than Bloom", CoNEXT 2014. Every filter that is filled here is checked for false negatives.

mod bloom;
mod hashes;
mod inserts;
mod load;
mod rate;
mod space;

use koel::CuckooFilter;

use crate::check;
use crate::console::Console;
use crate::error::{CheckError, Error};
use crate::faults::caught;
use crate::filters::{BuildShared, Expected};
use crate::keys;
use crate::report::PaperTable;
use crate::stop;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Keys of a filter.
    pub keys: u64,
    /// Rounds of measurements that are timed or random.
    pub rounds: usize,
}

type Reproduce = fn(&Scale) -> Result<PaperTable, CheckError>;

const TABLES: [(&str, Reproduce); 6] = [
    ("load factors", load::table),
    ("bits per key", space::table),
    ("error rates", rate::table),
    ("inserts against load", inserts::table),
    ("Bloom filters", bloom::table),
    ("hash functions", hashes::table),
];

/// Reproduces all tables and passes each to `each` as it is done.
///
/// # Errors
///
/// A filter that gives a wrong answer.
pub fn reproduce(scale: &Scale, console: &Console, mut each: impl FnMut(PaperTable)) -> Result<(), Error> {
    console.expect(TABLES.len());
    for (name, table) in TABLES {
        stop::check()?;
        console.check()?;
        console.begin("paper", name);
        let reproduced =
            caught(|| table(scale)).unwrap_or_else(|panic| Err(CheckError::new("a filter", panic)));
        each(reproduced.map_err(|failure| failure.during(name))?);
        console.done();
    }
    Ok(())
}

/// Keys of one round: no other round has them.
fn keys_of(round: usize) -> impl Iterator<Item = u64> {
    let first = (round as u64) << 32;
    (first..).map(keys::key)
}

/// Keys that none of the filters holds.
fn absent_keys(count: u64) -> impl Iterator<Item = u64> {
    (keys::FIRST_ABSENT..keys::FIRST_ABSENT + count).map(keys::key)
}

type Koel = CuckooFilter<BuildShared>;

/// Checks that koel's filter holds the keys.
fn check_holds(filter: &Koel, keys: impl Iterator<Item = u64>) -> Result<(), CheckError> {
    let (mut found, mut all) = (0, 0);
    for key in keys {
        found += u64::from(filter.contains(&key));
        all += 1;
    }
    check::no_false_negatives(found, all).map_err(|detail| CheckError::new("koel", detail))
}

/// The wanted number of false positives: with so many, chance moves a rate by a thirtieth.
const WANTED_POSITIVES: f64 = 1000.0;

/// False positives among look-ups of absent keys.
#[derive(Debug, Clone, Copy)]
struct Observed {
    found: u64,
    lookups: u64,
}

impl Observed {
    fn rate(self) -> f64 {
        self.found as f64 / self.lookups as f64
    }

    /// Checks that they are what the parameters of `filter` lead one to expect.
    fn check(self, filter: &str, expected: Expected) -> Result<(), CheckError> {
        let checked = check::false_positives(self.found, self.lookups, expected);
        checked.map_err(|detail| CheckError::new(filter, detail))
    }
}

/// How often `contains` takes absent keys for present. Looks up enough of them for [`WANTED_POSITIVES`] at the rate `expected`,
/// unless that is too many for a filter of this many keys.
fn observe(expected: f64, keys: u64, contains: impl Fn(u64) -> bool) -> Observed {
    let most = (keys * 200).min(200_000_000);
    let lookups = ((WANTED_POSITIVES / expected) as u64).clamp(1_000_000.min(most), most);
    let found = absent_keys(lookups).filter(|&key| contains(key)).count() as u64;
    Observed { found, lookups }
}

fn refused(error: impl std::fmt::Display) -> CheckError {
    CheckError::new("koel", error.to_string())
}
