//! Lookups of texts on one contestant's map.

use std::hint::black_box;

use super::clock::Clock;
use crate::check::ReadTally;
use crate::contestants::{HELD_OPS, TextContestant, TextView};
use crate::error::CheckError;
use crate::keys::{self, TEXT_BYTES};
use crate::plan::TextPlan;
use crate::race::race;

/// A contestant that maps texts to texts, and its map.
pub trait TextEntrant {
    /// Runs the lookups until `seconds` have been spent in them. Returns operations per microsecond.
    ///
    /// # Errors
    ///
    /// A wrong answer.
    fn read(&mut self, plan: &TextPlan, seconds: f64) -> Result<f64, CheckError>;
}

/// A contestant's map of texts, and how many it holds.
#[derive(Debug)]
pub struct TextRunner<C> {
    map: Option<(C, u64)>,
}

impl<C: TextContestant> TextRunner<C> {
    /// A runner without a map yet.
    pub fn new() -> Self {
        TextRunner { map: None }
    }

    fn prepare(&mut self, count: u64) -> Result<&C, CheckError> {
        // The old map is dropped first: two at a time may not fit into memory.
        self.map = self.map.take().filter(|(_, held)| *held == count);
        let map = match self.map.take() {
            Some((map, _)) => map,
            None => build::<C>(count)?,
        };
        Ok(&self.map.insert((map, count)).0)
    }
}

impl<C: TextContestant> Default for TextRunner<C> {
    fn default() -> Self {
        TextRunner::new()
    }
}

impl<C: TextContestant> TextEntrant for TextRunner<C> {
    fn read(&mut self, plan: &TextPlan, seconds: f64) -> Result<f64, CheckError> {
        let map = self.prepare(plan.filled)?;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let (elapsed, tallies) = race(
                plan.threads.len(),
                |t| {
                    if clock.is_fresh() {
                        black_box(lookups(map, &plan.threads[t]));
                    }
                },
                |t| black_box(lookups(map, &plan.threads[t])),
            );
            for (tally, text) in tallies.iter().zip(&plan.threads) {
                tally.verify(text.len() / TEXT_BYTES, true).map_err(|e| CheckError::new(C::NAME, e))?;
            }
            clock.add(elapsed, plan.threads.iter().map(|text| (text.len() / TEXT_BYTES) as u64).sum());
        }
        Ok(clock.ops_per_microsecond())
    }
}

fn build<C: TextContestant>(count: u64) -> Result<C, CheckError> {
    let map = C::with_capacity(count as usize);
    for index in 0..count {
        let key = keys::text_key(index);
        let value = keys::text_value(&key);
        if !map.insert_text(key, value) {
            return Err(CheckError::new(
                C::NAME,
                format!("text {index} of {count} distinct ones was not new"),
            ));
        }
    }
    Ok(map)
}

fn lookups<C: TextContestant>(map: &C, text: &str) -> ReadTally {
    let mut tally = ReadTally::default();
    for first in (0..text.len()).step_by(TEXT_BYTES * HELD_OPS) {
        let view = map.view();
        for at in (first..text.len().min(first + TEXT_BYTES * HELD_OPS)).step_by(TEXT_BYTES) {
            let key = &text[at..at + TEXT_BYTES];
            tally.note_text(view.read(key, |value| keys::text_belongs(key, value)));
        }
    }
    tally
}
