//! Operations on filters, against what they must answer.
//!
//! For a filter of fixed capacity the oracle knows every answer, false positives included. For a growing one it knows that no
//! key that was inserted and not removed is ever missed.

use std::collections::HashMap;

use koel::{CuckooFilter, FilterBuilder, FilterError, FilterView, ScalableCuckooFilter};

use super::input::Input;
use super::oracle::Oracle;

/// A fixed filter or a growing one, which begins empty or is made of keys.
pub(crate) fn filter_ops(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => fixed(input),
        2 => of_keys(input),
        _ => growing(input),
    }
}

/// Filters of both kinds, made in all ways of keys, some of which occur more than once.
fn of_keys(mut input: Input<'_>) {
    let options = builder(&mut input);
    let mut keys = run(&mut input);
    let different = keys.len();
    for _ in 0..input.byte() % 12 {
        let from = input.number() as usize % (different + 1);
        keys.extend_from_within(from..different);
    }
    let times = |key: &u64| keys.iter().filter(|other| *other == key).count();
    let most =
        keys[..different].first().map_or(0, |_| keys[..different].iter().map(times).max().unwrap_or(0));
    for options in [options, CuckooFilter::builder().seed(1)] {
        match options.from_keys(&keys) {
            Ok(filter) => {
                assert_eq!(filter.len(), keys.len());
                assert!(keys[..different].iter().all(|key| filter.count(key) >= times(key)));
            }
            Err(FilterError::Full { inserted }) => assert!(inserted < keys.len() && most > 1),
            Err(_) => {}
        }
    }
    let few = CuckooFilter::from_keys(&keys, 0.01);
    assert!(few.is_ok() || most > 8, "{few:?}");
    let growing = |most| ScalableCuckooFilter::builder().seed(1).max_duplicates(most).from_keys(&keys);
    let most = most.max(8);
    let filter = growing(most).unwrap_or_else(|error| {
        let filter =
            growing(10 * most).expect("no key comes more often than it may, nor do ten that are alike");
        assert!(keys.iter().any(|key| filter.count(key) > most), "{error}");
        filter
    });
    assert!(filter.len() == keys.len() && keys.iter().all(|key| filter.contains(key)));
}

/// Hashes with one, two, or all of the input's bits; few of them differ.
fn hash(input: &mut Input<'_>) -> u64 {
    match input.byte() % 4 {
        0 => input.word(),
        1 => u64::from(input.byte() % 8),
        _ => u64::from(input.number()).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}

/// Consecutive hashes, spread by the filter.
fn run(input: &mut Input<'_>) -> Vec<u64> {
    let (start, len) = (u64::from(input.number()), u64::from(input.number() % 1024));
    (start..start + len).collect()
}

fn builder(input: &mut Input<'_>) -> FilterBuilder {
    let bits = 2 + u32::from(input.byte() % 31);
    let (kind, capacity) = (input.byte() % 5, 1 + input.number() as usize % 600);
    let builder = CuckooFilter::builder().fingerprint_bits(bits).capacity(capacity).seed(1);
    match kind {
        4 => builder.bucket_slots(4).semi_sorted(true),
        _ => builder.bucket_slots(1 << kind),
    }
}

fn build(input: &mut Input<'_>) -> Option<CuckooFilter> {
    builder(input).build().ok().filter(|filter| filter.memory_usage() < 1 << 20)
}

fn fixed(mut input: Input<'_>) {
    let Some(mut filter) = build(&mut input) else { return };
    let mut oracle = Oracle::new(&filter.info());
    let most = 2 * filter.info().bucket_slots as usize;
    let mut turns = 200;
    while !input.is_empty() && turns > 0 {
        turns -= 1;
        let code = input.byte();
        match code % 12 {
            0..=2 => {
                let hash = hash(&mut input);
                insert(&filter, &mut oracle, hash, most);
            }
            3 | 4 => {
                let hash = hash(&mut input);
                assert_eq!(filter.remove_hash(hash), oracle.remove(hash));
            }
            5 => {
                let hash = hash(&mut input);
                let present = oracle.count(hash) > 0;
                match filter.insert_unique_hash(hash) {
                    Ok(new) => assert_eq!(new, !present),
                    Err(_) => assert!(!present),
                }
                (!present && filter.contains_hash(hash)).then(|| oracle.insert(hash));
            }
            6 if code < 128 => {
                let hashes = run(&mut input);
                let inserted = filter.insert_many_hash(&hashes);
                hashes[..inserted].iter().for_each(|hash| oracle.insert(*hash));
            }
            6 => insert_unique_many(&filter, &mut oracle, &run(&mut input)),
            7 => {
                let hashes = run(&mut input);
                let mut removed = vec![false; hashes.len()];
                if code < 128 {
                    removed = hashes.iter().map(|hash| filter.remove_hash(*hash)).collect();
                } else {
                    filter.remove_many_hash(&hashes, &mut removed);
                }
                assert!(hashes.iter().map(|hash| oracle.remove(*hash)).eq(removed));
            }
            8 => look(&filter, &oracle, &run(&mut input)),
            9 if filter.len() % 2 == 0 => filter = filter.clone(),
            9 => filter = CuckooFilter::from_bytes(&filter.to_bytes()).expect("its own bytes"),
            10 => unite(&filter, &mut oracle, &mut input),
            _ => {
                filter.clear();
                oracle.clear();
            }
        }
        assert_eq!(filter.len(), oracle.len);
    }
    look(&filter, &oracle, &(0..1000).collect::<Vec<_>>());
    let _ = (filter.info().to_string(), filter.measure_false_positive_rate(10));
}

/// Inserts those that are not there, up to one for which there is no room.
fn insert_unique_many(filter: &CuckooFilter, oracle: &mut Oracle, hashes: &[u64]) {
    let mut inserted = vec![true; hashes.len()];
    let there = filter.insert_unique_many_hash(hashes, &mut inserted);
    for (hash, inserted) in hashes[..there].iter().zip(&inserted) {
        assert_eq!(*inserted, oracle.count(*hash) == 0);
        inserted.then(|| oracle.insert(*hash));
    }
    assert!(inserted[there..].iter().all(|inserted| !inserted));
    assert!(hashes.get(there).is_none_or(|hash| oracle.count(*hash) == 0), "full, and it is there");
}

/// Unites a filter with itself, or with a part of it and others.
fn unite(filter: &CuckooFilter, oracle: &mut Oracle, input: &mut Input<'_>) {
    let hashes = run(input);
    if hashes.is_empty() {
        let twice = oracle.clone();
        match filter.try_union(filter) {
            Ok(()) => oracle.unite(&twice),
            Err(_) => assert!(oracle.len > 0, "a union with nothing"),
        }
        return;
    }
    let (other, mut also) = (filter.clone(), oracle.clone());
    other.clear();
    also.clear();
    let inserted = other.insert_many_hash(&hashes);
    hashes[..inserted].iter().for_each(|hash| also.insert(*hash));
    match filter.try_union(&other) {
        Ok(()) => oracle.unite(&also),
        Err(_) => assert!(inserted > 0, "a union with nothing"),
    }
    look(filter, oracle, &hashes);
    look(&other, &also, &hashes);
}

/// Inserts one more copy; or nothing has changed, and then at least two keys are there unless all copies are of one.
fn insert(filter: &CuckooFilter, oracle: &mut Oracle, hash: u64, most: usize) {
    match filter.insert_hash(hash) {
        Ok(()) => oracle.insert(hash),
        Err(_) => assert!(oracle.len >= most, "full with {} keys", oracle.len),
    }
    assert!(oracle.count(hash) <= most);
}

/// Every kind of look-up gives the oracle's answer.
fn look(filter: &CuckooFilter, oracle: &Oracle, hashes: &[u64]) {
    let (bytes, mut found) = (filter.to_bytes(), vec![false; hashes.len()]);
    let view = FilterView::from_bytes(&bytes).expect("its own bytes");
    filter.contains_many_hash(hashes, &mut found);
    let mut seen = vec![false; hashes.len()];
    view.contains_many_hash(hashes, &mut seen);
    assert_eq!(seen, found);
    for (hash, found) in hashes.iter().zip(found) {
        let count = oracle.count(*hash);
        assert_eq!((filter.count_hash(*hash), view.count_hash(*hash)), (count, count));
        assert_eq!(filter.contains_hash(*hash), count > 0);
        assert_eq!((found, view.contains_hash(*hash)), (count > 0, count > 0));
    }
}

/// A growing filter and the keys that were put into it.
struct Growing {
    filter: ScalableCuckooFilter,
    present: HashMap<u64, usize>,
    len: usize,
    rate: f64,
}

fn growing(mut input: Input<'_>) {
    let rate = [0.5, 0.1, 0.01, 1e-6][usize::from(input.byte() % 4)];
    let copies = 1 + usize::from(input.byte() % 12);
    let builder = ScalableCuckooFilter::builder().capacity(1).false_positive_rate(rate).seed(1);
    let filter = builder.max_duplicates(copies).build().expect("a small filter");
    let mut all = Growing { filter, present: HashMap::new(), len: 0, rate };
    // Inputs that would take long teach nothing new.
    let mut turns = 60;
    while !input.is_empty() && turns > 0 && all.len < 16_000 {
        turns -= 1;
        let code = input.byte();
        match code % 10 {
            0 | 1 => {
                let hash = hash(&mut input);
                all.insert(hash, copies);
            }
            2 => {
                let hash = hash(&mut input);
                all.remove(hash);
            }
            3 if code >= 128 => all.insert_unique_many(&run(&mut input)),
            3 => {
                let hash = hash(&mut input);
                let there = all.filter.contains_hash(hash);
                if all.filter.insert_unique_hash(hash) == Ok(true) {
                    assert!(!there);
                    all.note(hash);
                }
            }
            4 | 5 => {
                let (start, times) = (u64::from(input.number()), u64::from(input.byte() % 4));
                let hashes = start..start + 1024 * times;
                if code < 128 {
                    hashes.for_each(|hash| all.insert(hash, copies));
                } else {
                    all.insert_many(&hashes.collect::<Vec<_>>(), copies);
                }
            }
            6 | 7 if code < 128 => run(&mut input).into_iter().for_each(|hash| all.remove(hash)),
            6 | 7 => all.remove_many(run(&mut input)),
            8 => {
                all.filter.compact();
                all.check();
            }
            _ if input.byte() < 64 => {
                all.filter.clear();
                (all.present, all.len) = (HashMap::new(), 0);
            }
            _ if all.len % 2 == 0 => all.filter = all.filter.clone(),
            _ => {
                let bytes = all.filter.to_bytes();
                all.filter = ScalableCuckooFilter::from_bytes(&bytes).expect("its own bytes");
            }
        }
        assert_eq!(all.filter.len(), all.len);
    }
    all.finish();
}

impl Growing {
    fn note(&mut self, hash: u64) {
        *self.present.entry(hash).or_default() += 1;
        self.len += 1;
    }

    fn insert(&mut self, hash: u64, copies: usize) {
        let before = self.present.get(&hash).copied().unwrap_or(0);
        match self.filter.insert_hash(hash) {
            Ok(()) => {
                assert!(before < copies, "a copy too many");
                self.note(hash);
            }
            // Other keys' fingerprints may count as copies.
            Err(_) => assert!(self.filter.count_hash(hash) >= copies),
        }
    }

    /// Inserts keys up to one that has too many copies, as far as can be known.
    fn insert_many(&mut self, hashes: &[u64], copies: usize) {
        let inserted = self.filter.insert_many_hash(hashes);
        for hash in &hashes[..inserted] {
            self.note(*hash);
            assert!(self.present[hash] <= copies, "a copy too many");
        }
        assert!(hashes.get(inserted).is_none_or(|hash| self.filter.count_hash(*hash) >= copies));
    }

    fn insert_unique_many(&mut self, hashes: &[u64]) {
        let mut inserted = vec![true; hashes.len()];
        let there = self.filter.insert_unique_many_hash(hashes, &mut inserted);
        assert_eq!(there, hashes.len(), "no copies");
        for (hash, inserted) in hashes.iter().zip(inserted) {
            assert!(
                !(inserted && self.present.contains_key(hash)),
                "a key was missed when it was to be inserted"
            );
            inserted.then(|| self.note(*hash));
            assert!(self.filter.contains_hash(*hash));
        }
    }

    /// Removes some of the keys that are there.
    fn remove_many(&mut self, mut hashes: Vec<u64>) {
        hashes.retain(|hash| self.present.contains_key(hash));
        let mut removed = vec![false; hashes.len()];
        self.filter.remove_many_hash(&hashes, &mut removed);
        assert!(removed.iter().all(|removed| *removed), "a key was missed when it was to be removed");
        hashes.iter().for_each(|hash| self.forget(*hash));
    }

    /// Removes a key only if it is there: otherwise another key may be removed.
    fn remove(&mut self, hash: u64) {
        if self.present.contains_key(&hash) {
            self.forget(hash);
            assert!(self.filter.remove_hash(hash), "a key was missed when it was to be removed");
        }
    }

    fn forget(&mut self, hash: u64) {
        let count = self.present.get_mut(&hash).expect("it is there");
        *count -= 1;
        if *count == 0 {
            self.present.remove(&hash);
        }
        self.len -= 1;
    }

    fn check(&self) {
        let bytes = self.filter.to_bytes();
        let view = FilterView::from_bytes(&bytes).expect("its own bytes");
        let hashes: Vec<u64> = self.present.keys().copied().chain(0..100).collect();
        let mut found = vec![false; hashes.len()];
        self.filter.contains_many_hash(&hashes, &mut found);
        let mut seen = vec![false; hashes.len()];
        view.contains_many_hash(&hashes, &mut seen);
        assert_eq!(seen, found);
        for (hash, found) in hashes.iter().zip(found) {
            let (count, there) = (self.filter.count_hash(*hash), self.filter.contains_hash(*hash));
            assert!(count >= self.present.get(hash).copied().unwrap_or(0), "missed");
            assert_eq!((there, found, view.contains_hash(*hash)), (count > 0, count > 0, count > 0));
            assert_eq!(view.count_hash(*hash), count);
        }
        assert!(self.filter.false_positive_rate() <= self.rate, "{}", self.filter.info());
    }

    fn finish(mut self) {
        self.check();
        let all: Vec<(u64, usize)> = self.present.iter().map(|(hash, count)| (*hash, *count)).collect();
        for (hash, count) in all {
            (0..count).for_each(|_| self.remove(hash));
        }
        assert!(self.filter.is_empty());
    }
}
