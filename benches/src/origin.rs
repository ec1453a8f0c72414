//! What the program is built from: without that nobody can reproduce its figures.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::Command;

/// The other maps, and the hash function for all of them.
const MAPS: &[&str] = &["papaya", "dashmap", "scc", "hashbrown", "parking_lot", "ahash"];

/// The other filters, the lock around those that need one, and the hash functions whose collisions are counted.
const FILTERS: &[&str] = &[
    "atomic-cuckoo-filter",
    "cuckoofilter",
    "scalable_cuckoo_filter",
    "qfilter",
    "fastbloom",
    "xorf",
    "parking_lot",
    "twox-hash",
    "fnv",
    "murmur3",
    "siphasher",
];

/// The other caches, and the hash function for all of them.
const CACHES: &[&str] = &["quick_cache", "moka", "mini-moka", "scc", "ahash"];

/// The stores that the guard is put before.
const STORES: &[&str] = &["redb", "fjall"];

/// Where the figures of a report come from.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Origin {
    /// koel's version.
    pub koel: String,
    /// The commit that was built, and whether files differed from it; or `unknown commit`.
    pub revision: String,
    /// Versions of the libraries that koel is compared with, and of what they need.
    pub crates: BTreeMap<&'static str, &'static str>,
    /// The compiler and its version.
    pub compiler: String,
    /// The target that it compiled for.
    pub target: String,
    /// The processor features that it assumed.
    pub target_features: String,
    /// Its flags, from the environment or a configuration file.
    pub flags: String,
    /// cargo's profile.
    pub profile: String,
    /// The optimization level.
    pub opt_level: String,
}

impl Origin {
    /// The origin of what `command` measures; without a command, of what the tour measures.
    pub fn of(command: Option<&Command>) -> Self {
        let names = match command {
            None | Some(Command::Tour(_) | Command::Map(_) | Command::Latency(_) | Command::Memory(_)) => {
                MAPS
            }
            Some(Command::Filter(_)) => FILTERS,
            Some(Command::Cache(_)) => CACHES,
            Some(Command::Guard(_)) => STORES,
        };
        Origin {
            koel: version_of("koel").to_owned(),
            revision: env!("KOEL_BENCH_REVISION").to_owned(),
            crates: names.iter().map(|&name| (name, version_of(name))).collect(),
            compiler: env!("KOEL_BENCH_COMPILER").to_owned(),
            target: env!("KOEL_BENCH_TARGET").to_owned(),
            target_features: env!("KOEL_BENCH_TARGET_FEATURES").to_owned(),
            flags: env!("KOEL_BENCH_FLAGS").to_owned(),
            profile: env!("KOEL_BENCH_PROFILE").to_owned(),
            opt_level: env!("KOEL_BENCH_OPT_LEVEL").to_owned(),
        }
    }

    /// koel and the libraries that it is compared with.
    pub fn crates_in_words(&self) -> String {
        let crates: Vec<String> =
            self.crates.iter().map(|(name, version)| format!("{name} {version}")).collect();
        format!("koel {} ({}), beside it {}", self.koel, self.revision, crates.join(", "))
    }

    /// How it was compiled.
    pub fn compiler_in_words(&self) -> String {
        let Origin { compiler, target, target_features, flags, profile, opt_level, .. } = self;
        let flags = if flags.is_empty() { String::new() } else { format!(", flags {flags}") };
        format!("{compiler}, {profile}, opt-level {opt_level}, {target} with {target_features}{flags}")
    }

    /// A warning if the figures are worthless.
    pub fn warning(&self) -> Option<&'static str> {
        cfg!(debug_assertions).then_some(
            "NOT OPTIMIZED: this program was built for debugging, and no figure means anything; cargo's option is --release",
        )
    }
}

/// The version in `Cargo.lock`.
fn version_of(name: &str) -> &'static str {
    let all = env!("KOEL_BENCH_CRATES").split(',').filter_map(|one| one.split_once(' '));
    let mut found = all.filter(|(other, _)| *other == name).map(|(_, version)| version);
    found.next().unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rival_has_a_version() {
        for name in [&["koel"], MAPS, FILTERS, CACHES, STORES].concat() {
            let version = version_of(name);
            assert!(version.split('.').count() == 3, "{name} {version}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{name} {version}");
        }
        // koel depends on another version.
        assert!(version_of("hashbrown").starts_with("0.17."), "{}", version_of("hashbrown"));
    }
}
