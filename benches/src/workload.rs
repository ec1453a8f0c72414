//! Workloads: a mix of operations, how full the map is at the start, and which keys are inserted.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use crate::dist::{DEFAULT_ZIPF_EXPONENT, Dist};

/// Percentages of operations; they add up to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Lookups.
    pub read: u32,
    /// Inserts.
    pub insert: u32,
    /// Removals.
    pub remove: u32,
    /// Read-modify-writes of a key that is there.
    pub update: u32,
}

const MIX_FORM: &str =
    "valid: four whole percentages READ/INSERT/REMOVE/UPDATE that add up to 100, as in 98/1/1/0";

impl Mix {
    /// The mix with these percentages, if they add up to 100.
    pub const fn new(read: u32, insert: u32, remove: u32, update: u32) -> Option<Mix> {
        if read as u64 + insert as u64 + remove as u64 + update as u64 == 100 {
            Some(Mix { read, insert, remove, update })
        } else {
            None
        }
    }

    const fn known(read: u32, insert: u32, remove: u32, update: u32) -> Mix {
        match Mix::new(read, insert, remove, update) {
            Some(mix) => mix,
            None => panic!("a mix adds up to 100"),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.read, self.insert, self.remove, self.update)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<u32> =
            text.split('/').map(str::parse).collect::<Result<_, _>>().map_err(|_| MIX_FORM.to_owned())?;
        let &[read, insert, remove, update] = parts.as_slice() else {
            return Err(MIX_FORM.to_owned());
        };
        Mix::new(read, insert, remove, update).ok_or_else(|| {
            let sum: u64 = parts.iter().copied().map(u64::from).sum();
            format!("these add up to {sum}; {MIX_FORM}")
        })
    }
}

/// Which keys an insert takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserts {
    /// New ones: the map gains an entry.
    Fresh,
    /// Drawn like reads: the entry is replaced if it is there.
    Drawn,
}

/// Which keys a thread writes, of those that are not fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// Keys of its own, which no other thread writes: every answer to it is known beforehand.
    Own,
    /// Any keys: threads contend for the same ones.
    Shared,
}

/// One workload, for any number of keys and threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name in the tables.
    pub name: String,
    /// The operations.
    pub mix: Mix,
    /// Which keys inserts take.
    pub inserts: Inserts,
    /// Which keys a thread writes.
    pub writes: Writes,
    /// Percent of the keys that are in the map at the start.
    pub filled_percent: u64,
    /// Whether the map is built for its keys, or starts with no capacity at all.
    pub reserved: bool,
    /// The distribution to use when none is asked for.
    pub dist: Dist,
    /// The number of operations in percent of `keys`, all threads together; `None`: as many as `--ops` says, as long as there
    /// is room.
    pub ops_percent: Option<u64>,
}

impl Workload {
    /// A mix over a map that holds all its keys; inserts replace.
    pub fn replacing(name: &str, mix: Mix) -> Self {
        Workload {
            name: name.to_owned(),
            mix,
            inserts: Inserts::Drawn,
            writes: Writes::Own,
            filled_percent: 100,
            reserved: true,
            dist: Dist::Uniform,
            ops_percent: None,
        }
    }

    /// A mix over a map that holds all its keys at the start, whose threads write the same keys.
    pub fn shared(name: &str, mix: Mix) -> Self {
        Workload { writes: Writes::Shared, ..Workload::replacing(name, mix) }
    }

    /// The number of operations of each of `threads` threads if `asked` are asked for: as many as the workload says, and, if
    /// the map grows, no more than until it holds `keys`.
    pub fn ops(&self, keys: u64, threads: usize, asked: usize) -> usize {
        let grows = self.mix.insert.saturating_sub(self.mix.remove);
        let all = match self.ops_percent {
            Some(percent) => keys * percent / 100,
            None if self.inserts == Inserts::Fresh && grows > 0 => {
                let room = keys - keys * self.filled_percent / 100;
                (room * 100 / u64::from(grows)).min((asked * threads) as u64)
            }
            None => return asked,
        };
        (all as usize / threads).max(1)
    }

    /// A mix over a map that is three quarters full, as in bustle; inserts add keys.
    pub fn churning(name: &str, mix: Mix) -> Self {
        Workload { inserts: Inserts::Fresh, filled_percent: 75, ..Workload::replacing(name, mix) }
    }
}

/// Mixes by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// bustle's: 98 read, 1 insert, 1 remove
    #[value(name = "ReadHeavy", alias = "read-heavy")]
    ReadHeavy,
    /// bustle's: 10 read, 40 insert, 40 remove, 10 update
    #[value(name = "Exchange")]
    Exchange,
    /// bustle's: 5 read, 80 insert, 5 remove, 10 update, from an empty map
    #[value(name = "RapidGrow", alias = "rapid-grow")]
    RapidGrow,
    /// YCSB A: 50 read, 50 replace, Zipf
    #[value(name = "YCSB-A", alias = "YcsbA")]
    YcsbA,
    /// YCSB B: 95 read, 5 replace, Zipf
    #[value(name = "YCSB-B", alias = "YcsbB")]
    YcsbB,
    /// YCSB C: read only, Zipf
    #[value(name = "YCSB-C", alias = "YcsbC")]
    YcsbC,
    /// YCSB D: 95 read of the latest, 5 insert
    #[value(name = "YCSB-D", alias = "YcsbD")]
    YcsbD,
    /// YCSB F: 50 read, 50 read-modify-write, Zipf
    #[value(name = "YCSB-F", alias = "YcsbF")]
    YcsbF,
    /// MemC3's, of the whole system: 95 get, 5 set, Zipf
    #[value(name = "MemC3")]
    MemC3,
}

impl Preset {
    /// The workload of the preset.
    pub fn workload(self) -> Workload {
        const ZIPF: Dist = Dist::Zipf(DEFAULT_ZIPF_EXPONENT);
        let name = self.name();
        let ycsb = |mix| Workload { dist: ZIPF, ..Workload::shared(name, mix) };
        match self {
            Preset::ReadHeavy => Workload::churning(name, Mix::known(98, 1, 1, 0)),
            Preset::Exchange => Workload::churning(name, Mix::known(10, 40, 40, 10)),
            Preset::RapidGrow => Workload {
                filled_percent: 0,
                reserved: false,
                // Four fifths of the operations insert: the map grows to about `keys` entries.
                ops_percent: Some(125),
                ..Workload::churning(name, Mix::known(5, 80, 5, 10))
            },
            Preset::YcsbA => ycsb(Mix::known(50, 50, 0, 0)),
            Preset::YcsbB => ycsb(Mix::known(95, 5, 0, 0)),
            Preset::YcsbC => ycsb(Mix::known(100, 0, 0, 0)),
            Preset::YcsbD => {
                Workload { dist: Dist::Latest, ..Workload::churning(name, Mix::known(95, 5, 0, 0)) }
            }
            Preset::YcsbF => ycsb(Mix::known(50, 0, 0, 50)),
            Preset::MemC3 => ycsb(Mix::known(95, 5, 0, 0)),
        }
    }

    /// Its name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Preset::ReadHeavy => "ReadHeavy",
            Preset::Exchange => "Exchange",
            Preset::RapidGrow => "RapidGrow",
            Preset::YcsbA => "YCSB-A",
            Preset::YcsbB => "YCSB-B",
            Preset::YcsbC => "YCSB-C",
            Preset::YcsbD => "YCSB-D",
            Preset::YcsbF => "YCSB-F",
            Preset::MemC3 => "MemC3",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_parse_or_say_what_is_valid() {
        assert_eq!("98/1/1/0".parse(), Ok(Mix { read: 98, insert: 1, remove: 1, update: 0 }));
        assert_eq!("0/0/0/100".parse(), Ok(Mix { read: 0, insert: 0, remove: 0, update: 100 }));
        assert_eq!("98/1/1/0".parse::<Mix>().unwrap().to_string(), "98/1/1/0");
        for bad in ["", "100", "50/50", "a/b/c/d", "-1/101/0/0", "25/25/25/25/0", "50.5/49.5/0/0", "98/1/1/"]
        {
            assert!(bad.parse::<Mix>().unwrap_err().starts_with("valid: four whole percentages"), "{bad}");
        }
        let over = "98/1/1/1".parse::<Mix>().unwrap_err();
        assert!(over.starts_with("these add up to 101; valid:"), "{over}");
        assert!("4294967295/1/0/100".parse::<Mix>().is_err());
    }

    #[test]
    fn a_map_that_grows_ends_with_its_keys() {
        let ops = |percentages: &str, threads, asked| {
            let mix = percentages.parse().unwrap();
            Workload::churning("", mix).ops(60_000, threads, asked)
        };
        // A quarter of the keys is not there at the start.
        assert_eq!((ops("50/50/0/0", 1, 1_000_000), ops("50/50/0/0", 2, 1_000_000)), (30_000, 15_000));
        assert_eq!(ops("0/60/40/0", 1, 1_000_000), 75_000);
        assert_eq!(ops("50/50/0/0", 2, 7_000), 7_000);
        // These do not grow the map.
        assert_eq!((ops("98/1/1/0", 2, 1_000_000), ops("0/40/60/0", 1, 1_000_000)), (1_000_000, 1_000_000));
        let replacing = Workload::replacing("", Mix::known(50, 50, 0, 0));
        assert_eq!(replacing.ops(60_000, 2, 1_000_000), 1_000_000);
        assert_eq!(Preset::RapidGrow.workload().ops(60_000, 2, 10), 37_500);
        assert_eq!(Workload::churning("", Mix::known(0, 100, 0, 0)).ops(1, 4, 10), 1);
    }

    #[test]
    fn presets_are_found_by_their_names_in_any_case() {
        for preset in Preset::value_variants() {
            let name = preset.name();
            assert_eq!(Preset::from_str(name, false).as_ref(), Ok(preset));
            assert_eq!(Preset::from_str(&name.to_lowercase(), true).as_ref(), Ok(preset));
        }
        assert!(Preset::from_str("YCSB-E", true).is_err());
    }

    #[test]
    fn presets_have_the_published_mixes() {
        let mix = |preset: Preset| preset.workload().mix.to_string();
        assert_eq!(mix(Preset::ReadHeavy), "98/1/1/0");
        assert_eq!(mix(Preset::Exchange), "10/40/40/10");
        assert_eq!(mix(Preset::RapidGrow), "5/80/5/10");
        assert_eq!(mix(Preset::YcsbA), "50/50/0/0");
        assert_eq!(mix(Preset::YcsbD), "95/5/0/0");
        assert_eq!(Preset::YcsbD.workload().dist, Dist::Latest);
        assert_eq!(mix(Preset::YcsbF), "50/0/0/50");
    }
}
