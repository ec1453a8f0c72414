//! Which keys are asked for: uniform, Zipf, the latest, or those of a trace.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

use crate::trace::Trace;

/// The default exponent of a Zipf distribution: YCSB's.
pub const DEFAULT_ZIPF_EXPONENT: f64 = 0.99;

/// How the keys of a workload are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Dist {
    /// Every key equally often.
    Uniform,
    /// The key of rank r with a probability proportional to r to the power of minus the exponent.
    Zipf(f64),
    /// Zipf over the age of keys, the youngest first: YCSB D's.
    Latest,
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dist::Uniform => f.write_str("uniform"),
            Dist::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Dist::Latest => f.write_str("latest"),
        }
    }
}

impl FromStr for Dist {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, exponent) = match text.split_once(':') {
            Some((name, exponent)) => (name, Some(exponent)),
            None => (text, None),
        };
        match (name, exponent) {
            ("uniform", None) => Ok(Dist::Uniform),
            ("zipf", None) => Ok(Dist::Zipf(DEFAULT_ZIPF_EXPONENT)),
            ("zipf", Some(exponent)) => match exponent.parse::<f64>() {
                Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => Ok(Dist::Zipf(exponent)),
                _ => Err(format!("`{exponent}` is not a Zipf exponent: valid are numbers above 0, up to 10")),
            },
            _ => Err("valid distributions: uniform, zipf, zipf:EXPONENT (as in zipf:0.99)".to_owned()),
        }
    }
}

/// Draws key indices for one thread of several.
///
/// Threads share the indices that they read. For writing, each thread owns the indices that leave its number as the remainder
/// when divided by the number of threads.
#[derive(Debug)]
pub struct Sampler {
    rng: SmallRng,
    source: Source,
    thread: u64,
    threads: u64,
}

#[derive(Debug)]
enum Source {
    Uniform,
    Zipf(Zipf<f64>),
    Latest(Zipf<f64>),
    Trace(Replay),
}

/// A thread's path through a trace.
#[derive(Debug)]
struct Replay {
    trace: Arc<Trace>,
    start: usize,
    next_read: usize,
    /// The requests for keys that the thread owns, in order from `start` on; listed when the first is asked for.
    owned: Option<Vec<u32>>,
    next_owned: usize,
}

impl Sampler {
    /// Draws by `dist` for `thread` of `threads`; Zipf ranks run over `keys`.
    pub fn new(dist: Dist, keys: u64, thread: usize, threads: usize) -> Self {
        let zipf = |exponent| {
            Zipf::new(keys.max(1) as f64, exponent).expect("at least one key, and a positive exponent")
        };
        let source = match dist {
            Dist::Uniform => Source::Uniform,
            Dist::Zipf(exponent) => Source::Zipf(zipf(exponent)),
            Dist::Latest => Source::Latest(zipf(DEFAULT_ZIPF_EXPONENT)),
        };
        Self::with_source(source, thread, threads)
    }

    /// Replays `trace`: every thread starts at its own place and wraps around.
    pub fn replay(trace: Arc<Trace>, thread: usize, threads: usize) -> Self {
        let start = trace.requests.len() * thread / threads;
        let replay = Replay { trace, start, next_read: start, owned: None, next_owned: 0 };
        Self::with_source(Source::Trace(replay), thread, threads)
    }

    fn with_source(source: Source, thread: usize, threads: usize) -> Self {
        // A fixed seed: every run, and every contestant, gets the same keys.
        let rng = SmallRng::seed_from_u64(0x6B6F_656C ^ thread as u64);
        Sampler { rng, source, thread: thread as u64, threads: threads as u64 }
    }

    /// An index below `limit` to read; traces know their own limit.
    pub fn any(&mut self, limit: u64) -> u64 {
        let limit = limit.max(1);
        match &mut self.source {
            Source::Uniform => self.rng.random_range(0..limit),
            Source::Zipf(zipf) => (zipf.sample(&mut self.rng) as u64 - 1) % limit,
            Source::Latest(zipf) => limit - 1 - (zipf.sample(&mut self.rng) as u64 - 1) % limit,
            Source::Trace(replay) => u64::from(advance(&replay.trace.requests, &mut replay.next_read)),
        }
    }

    /// An index that this thread owns, below `limit` if it owns one there, else its first; `None` if the trace has
    /// no key that it owns.
    pub fn owned(&mut self, limit: u64) -> Option<u64> {
        if let Source::Trace(replay) = &mut self.source {
            return replay.owned(self.thread, self.threads);
        }
        let drawn = self.any(limit);
        let owned = drawn - drawn % self.threads + self.thread;
        Some(if owned >= limit && owned >= self.threads { owned - self.threads } else { owned })
    }

    /// A number below `limit`, all equally likely.
    pub fn below(&mut self, limit: usize) -> usize {
        self.rng.random_range(0..limit)
    }
}

impl Replay {
    /// The next request for a key that `thread` of `threads` owns, if there is one. The trace is searched once, not for each
    /// request: keys that a thread owns may be rare.
    fn owned(&mut self, thread: u64, threads: u64) -> Option<u64> {
        let owned = self.owned.get_or_insert_with(|| {
            let (before, from) = self.trace.requests.split_at(self.start);
            let is_owned = |index: &&u32| u64::from(**index) % threads == thread;
            from.iter().chain(before).filter(is_owned).copied().collect()
        });
        if owned.is_empty() { None } else { Some(u64::from(advance(owned, &mut self.next_owned))) }
    }
}

fn advance(indices: &[u32], position: &mut usize) -> u32 {
    let index = indices[*position];
    *position = (*position + 1) % indices.len();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_parse_or_list_what_is_valid() {
        assert_eq!("uniform".parse(), Ok(Dist::Uniform));
        assert_eq!("zipf".parse(), Ok(Dist::Zipf(0.99)));
        assert_eq!("zipf:1.2".parse(), Ok(Dist::Zipf(1.2)));
        for bad in ["", "normal", "uniform:1", "Zipf:0.9:1"] {
            assert!(bad.parse::<Dist>().unwrap_err().contains("valid distributions: uniform, zipf"), "{bad}");
        }
        for bad in ["zipf:", "zipf:x", "zipf:-1", "zipf:0", "zipf:NaN", "zipf:inf"] {
            assert!(bad.parse::<Dist>().unwrap_err().contains("valid are numbers above 0"), "{bad}");
        }
    }

    #[test]
    fn samples_stay_below_the_limit_and_writes_with_their_owner() {
        for dist in [Dist::Uniform, Dist::Zipf(0.99), Dist::Latest] {
            for thread in 0..3 {
                let mut sampler = Sampler::new(dist, 100, thread, 3);
                for limit in [3, 4, 5, 50, 100] {
                    for _ in 0..200 {
                        assert!(sampler.any(limit) < limit);
                        let owned = sampler.owned(limit).unwrap();
                        assert!(owned < limit && owned % 3 == thread as u64, "{owned} of {limit}");
                    }
                }
            }
        }
    }

    #[test]
    fn zipf_asks_for_the_first_key_most_and_latest_for_the_last() {
        let count = |dist, wanted| {
            let mut sampler = Sampler::new(dist, 1000, 0, 1);
            (0..10_000).filter(|_| sampler.any(1000) == wanted).count()
        };
        assert!(count(Dist::Zipf(0.99), 0) > 800);
        assert!(count(Dist::Latest, 999) > 800);
        assert!(count(Dist::Uniform, 0) < 100);
    }

    #[test]
    fn a_trace_is_replayed_in_order_and_wraps_around() {
        let trace = Arc::new(Trace::of([5, 6, 7, 6].into_iter()));
        let mut first = Sampler::replay(trace.clone(), 0, 2);
        let mut second = Sampler::replay(trace, 1, 2);
        assert_eq!((0..6).map(|_| first.any(0)).collect::<Vec<_>>(), [0, 1, 2, 1, 0, 1]);
        assert_eq!((0..3).map(|_| second.any(0)).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!((0..3).map(|_| first.owned(0).unwrap()).collect::<Vec<_>>(), [0, 2, 0]);
        assert_eq!((0..3).map(|_| second.owned(0).unwrap()).collect::<Vec<_>>(), [1, 1, 1]);
        let mut idle = Sampler::replay(Arc::new(Trace::of([5].into_iter())), 1, 2);
        assert_eq!(idle.owned(0), None);
    }

    /// The sequence is the one that a search for the next request of an owned key finds, round by round.
    #[test]
    fn owned_requests_come_in_the_order_of_the_trace_from_each_thread_s_own_place() {
        let trace = Arc::new(Trace::of((0..997).map(|i| i * i % 101)));
        for threads in 1..5 {
            for thread in 0..threads {
                let start = 997 * thread / threads;
                let mut sampler = Sampler::replay(trace.clone(), thread, threads);
                let requests = trace.requests.iter().cycle().skip(start);
                let owned = requests.filter(|index| **index as usize % threads == thread);
                for &index in owned.take(2_500) {
                    assert_eq!(sampler.owned(0), Some(u64::from(index)), "thread {thread} of {threads}");
                }
            }
        }
    }

    /// If it were searched for each time, the one key would be a million requests away: that would take some minutes.
    #[test]
    fn a_rare_key_of_one_s_own_is_not_looked_for_each_time() {
        let trace = Arc::new(Trace::of((0..1_000_000).map(|i| u64::from(i == 999_999))));
        let begin = std::time::Instant::now();
        let mut owner = Sampler::replay(trace.clone(), 1, 2);
        let mut nobody = Sampler::replay(trace, 2, 3);
        for _ in 0..10_000 {
            assert_eq!((owner.owned(0), nobody.owned(0)), (Some(1), None));
        }
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{:?}", begin.elapsed());
    }
}
