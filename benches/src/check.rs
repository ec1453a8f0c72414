//! Carries out operations and checks every answer.

use crate::contestants::View;
use crate::filters::Expected;
use crate::keys;
use crate::plan::{Action, After, Counts, Expect, MixPlan, Op, Prediction};

/// What one thread saw.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: Counts,
    /// The sum of the values that writes brought in, minus those that they replaced and removed.
    net: u64,
    wrong: u64,
    first_wrong: Option<(Op, Option<u64>)>,
    may_miss_replaced: bool,
    lost_reads: u64,
}

impl Tally {
    /// A tally for a map that may, or may not, miss keys while other threads replace them.
    pub fn new(may_miss_replaced: bool) -> Self {
        Tally { may_miss_replaced, ..Tally::default() }
    }

    /// Lookups that missed a key while another thread replaced it.
    pub fn lost_reads(&self) -> u64 {
        self.lost_reads
    }

    /// Performs `op` through `view` and checks the answer.
    #[inline(always)]
    pub fn perform<V: View>(&mut self, view: &V, op: &Op) {
        match op.action {
            Action::Get => {
                let got = view.get(op.key);
                count(got.is_some(), &mut self.counts.hits, &mut self.counts.misses);
                self.judge(op, op.version, got);
            }
            Action::Insert => {
                let new = keys::value(op.key, op.version);
                let old = view.insert(op.key, new);
                self.net = self.net.wrapping_add(new).wrapping_sub(old.unwrap_or(0));
                count(old.is_some(), &mut self.counts.replaced, &mut self.counts.inserted);
                self.judge(op, op.version.wrapping_sub(1), old);
            }
            Action::Remove => {
                let removed = view.remove(op.key);
                self.net = self.net.wrapping_sub(removed.unwrap_or(0));
                count(removed.is_some(), &mut self.counts.removed, &mut self.counts.unremoved);
                self.judge(op, op.version, removed);
            }
            Action::Update => {
                let new = view.update(op.key);
                self.net = self.net.wrapping_add(u64::from(new.is_some()));
                count(new.is_some(), &mut self.counts.updated, &mut self.counts.unupdated);
                self.judge(op, op.version, new);
            }
        }
    }

    #[inline(always)]
    fn judge(&mut self, op: &Op, version: u32, got: Option<u64>) {
        if !op.expect.admits(op.key, version, got) {
            self.fail(op, got);
        }
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, op: &Op, got: Option<u64>) {
        let of_foreign_key = op.action == Action::Get && op.expect == Expect::PRESENT;
        if self.may_miss_replaced && of_foreign_key && got.is_none() {
            self.lost_reads += 1;
            return;
        }
        self.wrong += 1;
        self.first_wrong.get_or_insert((*op, got));
    }

    /// Checks that all answers were right and add up to what was predicted.
    ///
    /// # Errors
    ///
    /// What was wrong.
    pub fn verify(&self, predicted: &Prediction) -> Result<(), String> {
        if let Some((op, got)) = &self.first_wrong {
            return Err(format!("{} wrong answers, the first to {op:?}: {}", self.wrong, describe(*got)));
        }
        let (seen, certain, open) = (&self.counts, &predicted.certain, &predicted.open);
        let Some(misses) = seen.misses.checked_sub(self.lost_reads) else {
            return Err(format!("{} misses, of which {} are excused", seen.misses, self.lost_reads));
        };
        let adds_up = [
            ((seen.hits + self.lost_reads, misses), (certain.hits, certain.misses), open.reads),
            ((seen.replaced, seen.inserted), (certain.replaced, certain.inserted), open.inserts),
            ((seen.removed, seen.unremoved), (certain.removed, certain.unremoved), open.removes),
            ((seen.updated, seen.unupdated), (certain.updated, certain.unupdated), open.updates),
        ];
        if adds_up.into_iter().all(|(seen, certain, open)| is_within(seen, certain, open)) {
            return Ok(());
        }
        Err(format!(
            "answers do not add up: {seen:?}, predicted {certain:?} and {open:?} that may come either way"
        ))
    }
}

/// What a thread of pure lookups saw.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadTally {
    hits: u64,
    misses: u64,
    foreign: u64,
}

impl ReadTally {
    /// Notes the answer for `key`: maps that are only read hold first versions.
    #[inline(always)]
    pub fn note(&mut self, key: u64, got: Option<u64>) {
        match got {
            Some(value) => {
                self.hits += 1;
                self.foreign += u64::from(value != keys::value(key, 0));
            }
            None => self.misses += 1,
        }
    }

    /// Notes the answer for a text key: whether it was found, and if so whether the value was its own.
    #[inline(always)]
    pub fn note_text(&mut self, right: Option<bool>) {
        match right {
            Some(right) => {
                self.hits += 1;
                self.foreign += u64::from(!right);
            }
            None => self.misses += 1,
        }
    }

    /// Checks that all `lookups` hit, or all missed, and that every value was the one that its key was given.
    ///
    /// # Errors
    ///
    /// What was wrong.
    pub fn verify(&self, lookups: usize, present: bool) -> Result<(), String> {
        let lookups = lookups as u64;
        let (hits, misses) = if present { (lookups, 0) } else { (0, lookups) };
        if self.foreign > 0 {
            return Err(format!(
                "{} of {} values found are not those that their keys were given",
                self.foreign, self.hits
            ));
        }
        if (self.hits, self.misses) != (hits, misses) {
            return Err(format!(
                "{} hits and {} misses, predicted {hits} and {misses}",
                self.hits, self.misses
            ));
        }
        Ok(())
    }
}

/// Checks that the map holds what it should after a run of `plan` in which its threads saw `seen`.
///
/// # Errors
///
/// The first key that has another value, the two lengths, or a message that the answers to writes do not balance with what is
/// there.
pub fn content<V: View>(view: &V, len: usize, plan: &MixPlan, seen: &[Tally]) -> Result<(), String> {
    for &(key, expected) in &plan.samples {
        let got = view.get(key);
        if got != expected {
            return Err(format!(
                "key {key:#x} afterwards: {}, expected {}",
                describe(got),
                describe(expected)
            ));
        }
    }
    let len_after = match plan.after {
        After::Certain { len } => len,
        After::Answered { len, sum } => len.wrapping_add_signed(balance(view, &plan.written, sum, seen)?),
    };
    if len != len_after {
        return Err(format!("{len} entries afterwards, expected {len_after}"));
    }
    Ok(())
}

/// How many more entries the map has than before. Checks that it has as many of the written keys, all of which it had, as the
/// answers to insertions and removals say; and that their values, which added up to `sum`, add up to what the answers to all
/// writes say.
fn balance<V: View>(view: &V, written: &[u64], sum: u64, seen: &[Tally]) -> Result<isize, String> {
    let gains = seen.iter().map(|tally| tally.counts.inserted as isize - tally.counts.removed as isize);
    let (gained, mut found, mut left) = (gains.sum::<isize>(), 0, 0_u64);
    for &key in written {
        let got = view.get(key);
        if !Expect::OPEN.admits(key, 0, got) {
            return Err(format!("key {key:#x} afterwards: {}, which is not one of its own", describe(got)));
        }
        found += usize::from(got.is_some());
        left = left.wrapping_add(got.unwrap_or(0));
    }
    let expected = written.len().wrapping_add_signed(gained);
    if found != expected {
        return Err(format!(
            "{found} of {} written keys are there afterwards, by the answers to insertions and removals {expected} are",
            written.len()
        ));
    }
    let told = seen.iter().fold(sum, |sum, tally| sum.wrapping_add(tally.net));
    if told != left {
        return Err(format!(
            "the values of {} written keys add up to {left:#x} afterwards, by the answers to writes to {told:#x}: a write was \
             lost, or told to have replaced what it did not",
            written.len()
        ));
    }
    Ok(gained)
}

/// Checks that all `lookups` of present keys found them.
///
/// # Errors
///
/// How many did not.
pub fn no_false_negatives(found: u64, lookups: u64) -> Result<(), String> {
    if found == lookups {
        return Ok(());
    }
    Err(format!("{} false negatives in {lookups} look-ups of present keys", lookups - found))
}

/// A rate may differ by this fraction of itself from what formulas say, which simplify a little.
const RATE_TOLERANCE: f64 = 0.25;

/// It may also differ by this many standard deviations; and, where that is less than one look-up, by this many look-ups.
const RATE_DEVIATIONS: f64 = 6.0;

/// Checks that `lookups` of different absent keys found about as many as a filter's parameters lead one to expect.
///
/// # Errors
///
/// How many they found, and how many were expected.
pub fn false_positives(found: u64, lookups: u64, expected: Expected) -> Result<(), String> {
    let (rate, least) = match expected {
        Expected::About(rate) => (rate, rate * (1.0 - RATE_TOLERANCE)),
        Expected::AtMost(rate) => (rate, 0.0),
    };
    let mean = rate * lookups as f64;
    let chance = RATE_DEVIATIONS * (mean.sqrt() + 1.0);
    let range = least * lookups as f64 - chance..=mean * (1.0 + RATE_TOLERANCE) + chance;
    if range.contains(&(found as f64)) {
        return Ok(());
    }
    Err(format!(
        "{found} false positives in {lookups} look-ups of absent keys, expected were about {mean:.0}"
    ))
}

/// Whether two counts are those that are certain, plus `open` in all.
fn is_within(seen: (u64, u64), certain: (u64, u64), open: u64) -> bool {
    let more = seen.0.checked_sub(certain.0).zip(seen.1.checked_sub(certain.1));
    more.is_some_and(|(found, absent)| found + absent == open)
}

#[inline(always)]
fn count(first: bool, if_so: &mut u64, if_not: &mut u64) {
    *if_so += u64::from(first);
    *if_not += u64::from(!first);
}

fn describe(value: Option<u64>) -> String {
    match value {
        Some(value) => format!("value {value:#x}"),
        None => "no value".to_owned(),
    }
}
