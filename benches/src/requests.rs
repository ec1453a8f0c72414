//! The requests with which hit ratios are measured: generated ones, and traces.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal, Pareto};

use crate::dist::{Dist, Sampler};
use crate::error::{Error, name_of};
use crate::keys;
use crate::trace::{self, Trace};

/// Indices from here on are not those of the popular keys.
const ASIDE: u64 = 1 << 36;
/// In bytes.
const LARGEST: f64 = 64.0 * 1024.0 * 1024.0;

/// Requests, with their name in the tables.
#[derive(Debug)]
pub struct Requests {
    /// The name.
    pub name: String,
    /// How they are generated, or where they come from.
    pub about: String,
    /// The requests.
    pub trace: Trace,
    /// Whether caches for them are bounded only by bytes: without their sizes they would equal other requests.
    pub by_bytes_alone: bool,
}

impl Requests {
    /// The requests in a file.
    ///
    /// # Errors
    ///
    /// As [`trace::read`].
    pub fn of_file(path: &Path) -> Result<Self, Error> {
        let trace = trace::read(path)?;
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        Ok(Requests { name: name_of(Path::new(stem)), about: name_of(path), trace, by_bytes_alone: false })
    }

    fn generated(name: &str, about: &str, count: u64, index: impl FnMut(u64) -> u64) -> Self {
        let trace = Trace::of((0..count).map(index).map(keys::key));
        Requests { name: name.to_owned(), about: about.to_owned(), trace, by_bytes_alone: false }
    }

    /// Draws each key's size from `sizes`, the same in every run.
    fn sized(mut self, sizes: impl Distribution<f64>) -> Self {
        let size = |key: &u64| sizes.sample(&mut SmallRng::seed_from_u64(*key)).clamp(1.0, LARGEST) as u64;
        self.trace.sizes = self.trace.keys.iter().map(size).collect();
        self.by_bytes_alone = true;
        self
    }
}

/// Renames requests that have the name of earlier ones: `t (2)` for the second `t`. All results under one name are one curve.
pub fn name_apart(all: &mut [Requests]) {
    for at in 1..all.len() {
        let (earlier, rest) = all.split_at_mut(at);
        let is_taken = |name: &str| earlier.iter().any(|other| other.name == name);
        if is_taken(&rest[0].name) {
            let mut names = (2..).map(|number: usize| format!("{} ({number})", rest[0].name));
            rest[0].name = names.find(|name| !is_taken(name)).unwrap_or_default();
        }
    }
}

/// All kinds of generated requests: `count` of each, for about a tenth as many keys. The same in every run.
pub fn generated(count: u64) -> Vec<Requests> {
    let keys = (count / 10).max(10);
    let mut all: Vec<Requests> =
        [0.8, 0.99, 1.2].iter().map(|&exponent| zipf(count, keys, exponent)).collect();
    all.extend(loops(count, keys));
    all.extend(scans(count, keys));
    all.extend(shifting(count, keys));
    all.extend(sized(count, keys));
    all
}

fn popular(keys: u64, exponent: f64) -> impl FnMut() -> u64 {
    let mut sampler = Sampler::new(Dist::Zipf(exponent), keys, 0, 1);
    move || sampler.any(keys)
}

fn zipf(count: u64, keys: u64, exponent: f64) -> Requests {
    let mut draw = popular(keys, exponent);
    let about = format!("Zipf with exponent {exponent}");
    Requests::generated(&format!("zipf:{exponent}"), &about, count, |_| draw())
}

fn loops(count: u64, keys: u64) -> [Requests; 2] {
    // A little more than a tenth of the keys, and so more than a cache of a tenth holds.
    let inner = keys * 21 / 200 + 1;
    let outer = keys.saturating_sub(inner).max(1);
    [
        Requests::generated("loop", "All keys in turn, again and again", count, |i| i % keys),
        Requests::generated(
            "two loops",
            "Three requests of four loop over a little more than a tenth of the keys, the fourth over the rest",
            count,
            |i| if i % 4 == 3 { ASIDE + i / 4 % outer } else { (i - i / 4) % inner },
        ),
    ]
}

fn scans(count: u64, keys: u64) -> [Requests; 2] {
    let (mut draw, mut draw_between) = (popular(keys, 0.99), popular(keys / 2, 0.99));
    let mut coin = Sampler::new(Dist::Uniform, 3, 1, 2);
    // Ten rounds: four fifths of each are popular keys, then a fifth of the keys are scanned where the last scan ended.
    let round = (count / 10).max(5);
    let (popular, scanned) = (round * 4 / 5, round / 5);
    [
        Requests::generated(
            "zipf + scans",
            "Zipf with exponent 0.99; every tenth part ends with a scan of a fifth of the keys",
            count,
            |i| {
                let (number, at) = (i / round, i % round);
                if at < popular { draw() } else { (number * scanned + at - popular) % keys }
            },
        ),
        Requests::generated(
            "zipf + one-timers",
            "Zipf with exponent 0.99; one request of three is for a key that is never asked for again",
            count,
            |i| if coin.below(3) == 0 { ASIDE + i } else { draw_between() },
        ),
    ]
}

fn shifting(count: u64, keys: u64) -> [Requests; 2] {
    let (mut draw, mut draw_near) = (popular(keys, 0.99), popular((keys / 5).max(1), 0.9));
    let jump = (count / 8).max(1);
    [
        Requests::generated(
            "shift by jumps",
            "Zipf with exponent 0.99 whose ranks turn by an eighth of the keys, seven times",
            count,
            |i| (draw() + i / jump * (keys / 8)) % keys,
        ),
        Requests::generated(
            "drift",
            "Zipf with exponent 0.9 over a fifth of the keys, a window that moves by a key every 12 requests",
            count,
            |i| draw_near() + i / 12,
        ),
    ]
}

fn sized(count: u64, keys: u64) -> [Requests; 3] {
    let named = |name: &str, about: &str, exponent| {
        let mut draw = popular(keys, exponent);
        Requests::generated(name, about, count, |_| draw())
    };
    let pages = named("pages", "Zipf with exponent 0.9, sizes log-normal: median 10 KB, sigma 1.6", 0.9);
    let files = named("files", "Zipf with exponent 0.8, sizes by Pareto: 2 KB and more, alpha 1.2", 0.8);
    let about = "Zipf with exponent 0.9; one key of a hundred has 3 MB, each other 1 KB";
    [
        pages.sized(LogNormal::new(10_240_f64.ln(), 1.6).expect("a spread")),
        files.sized(Pareto::new(2048.0, 1.2).expect("a scale and a shape")),
        named("few heavy", about, 0.9).sized(OneOfAHundred { heavy: 3_145_728.0, light: 1024.0 }),
    ]
}

/// One of two sizes.
struct OneOfAHundred {
    heavy: f64,
    light: f64,
}

impl Distribution<f64> for OneOfAHundred {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        if rng.random_range(0..100) == 0 { self.heavy } else { self.light }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_many_as_asked_for_and_the_same_every_time() {
        for count in [1, 10, 1000, 20_000] {
            let (first, second) = (generated(count), generated(count));
            assert_eq!(first.len(), 12);
            for (first, second) in first.iter().zip(&second) {
                assert_eq!(first.trace.requests.len() as u64, count, "{}", first.name);
                assert_eq!(first.trace, second.trace, "{}", first.name);
            }
        }
    }

    #[test]
    fn no_two_have_one_name() {
        let named = |name: &&str| Requests::generated(name, "", 1, |i| i);
        let mut all: Vec<Requests> = ["t", "loop", "t", "t (2)", "t", "loop"].iter().map(named).collect();
        name_apart(&mut all);
        let names: Vec<&str> = all.iter().map(|requests| requests.name.as_str()).collect();
        assert_eq!(names, ["t", "loop", "t (2)", "t (2) (2)", "t (3)", "loop (2)"]);
    }

    #[test]
    fn each_kind_is_what_its_name_says() {
        let of =
            |name: &str| generated(20_000).into_iter().find(|requests| requests.name == name).unwrap().trace;
        assert_eq!(of("loop").keys.len(), 2000);
        assert_eq!(of("loop").requests[2000], 0);
        // 211 keys, and 1789 others.
        assert_eq!(of("two loops").keys.len(), 2000);
        let one_timers = of("zipf + one-timers");
        let mut times = vec![0; one_timers.keys.len()];
        one_timers.requests.iter().for_each(|&index| times[index as usize] += 1);
        let once = times.iter().filter(|&&times| times == 1).count();
        assert!((6_000..8_000).contains(&once), "{once}");
        // Each key has one size, and sizes differ.
        let (pages, heavy) = (of("pages"), of("few heavy"));
        let mut sizes = pages.sizes.clone();
        sizes.sort_unstable();
        assert!((8_000..13_000).contains(&sizes[sizes.len() / 2]), "{}", sizes[sizes.len() / 2]);
        let share = heavy.sizes.iter().filter(|&&size| size > 1024).count() as f64 / heavy.keys.len() as f64;
        assert!((0.002..0.02).contains(&share), "{share}");
        // The sharper the distribution, the fewer different keys.
        assert!(of("zipf:1.2").keys.len() < of("zipf:0.99").keys.len());
        assert!(of("zipf:0.99").keys.len() < of("zipf:0.8").keys.len());
        // Keys that are popular at the end were not requested at the beginning, or were not popular.
        let drift = of("drift").requests;
        assert!(drift[18_000..].iter().all(|index| !drift[..2_000].contains(index)));
        let most_asked_for = |requests: &[u32]| {
            let times = |index: &u32| requests.iter().filter(|other| *other == index).count();
            requests.iter().copied().max_by_key(times)
        };
        let jumps = of("shift by jumps").requests;
        assert_ne!(most_asked_for(&jumps[..2_500]), most_asked_for(&jumps[17_500..]));
    }
}
