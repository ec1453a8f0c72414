//! Operations on a whole map.

use clap::ValueEnum;

/// The operations, in the order in which they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Whole {
    /// All entries are looked at, and added up
    Walk,
    /// A copy with all entries
    Clone,
    /// Half of the entries stay
    Retain,
    /// No entry stays
    Clear,
}

impl Whole {
    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Whole::Walk => "walk",
            Whole::Clone => "clone",
            Whole::Retain => "retain half",
            Whole::Clear => "clear",
        }
    }

    /// What it does, in words.
    pub fn about(self) -> String {
        let does = match self {
            Whole::Walk => "All entries are looked at, and their keys and values added up",
            Whole::Clone => "A copy is made of the map; to drop it is not timed",
            Whole::Retain => "Half of the entries are removed, by their keys, of a copy that was made before",
            Whole::Clear => "All entries are removed, of a copy that was made before",
        };
        format!(
            "{does}. Millions of entries a second, of those that the map has at first, by one thread; it is built for its keys \
             and holds them all."
        )
    }
}

/// Whether the entry of a key stays when half of them are retained: all keys are equally likely to stay.
pub fn stays(key: u64) -> bool {
    key.is_multiple_of(2)
}
