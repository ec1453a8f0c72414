//! Operations on one contestant's whole map: the timed calls, and checks of their results.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::runner::{failure, finds, sample};
use crate::contestants::{Contestant, View};
use crate::error::CheckError;
use crate::keys;
use crate::plan::Start;
use crate::whole::{Whole, stays};

/// A map, and what it holds.
pub(super) struct Subject<'m, C> {
    map: &'m C,
    /// Entries.
    count: usize,
    /// The sum of their keys and values.
    sum: u64,
    /// How many stay when half of them are retained.
    staying: usize,
    /// Some keys that stay then.
    stay: Vec<u64>,
    /// Some keys that are removed then.
    go: Vec<u64>,
}

impl<'m, C: Contestant> Subject<'m, C> {
    /// The subject for a map that holds `start`.
    pub(super) fn new(map: &'m C, start: &Start) -> Self {
        let (stay, go) = sample(start).into_iter().partition(|&key| stays(key));
        let mut subject = Subject { map, count: start.filled as usize, sum: 0, staying: 0, stay, go };
        for key in (0..start.filled).map(|index| start.keys.key(index)) {
            subject.sum = subject.sum.wrapping_add(key).wrapping_add(keys::value(key, 0));
            subject.staying += usize::from(stays(key));
        }
        subject
    }

    /// Does `what` until `seconds` have been spent in it. Returns entries per microsecond.
    pub(super) fn measure(&self, what: Whole, seconds: f64) -> Result<f64, CheckError> {
        // Untimed: this checks the map, and warms the caches.
        self.walk()?;
        let mut clock = Clock::new(seconds);
        while clock.goes_on() {
            let elapsed = match what {
                Whole::Walk => self.walk(),
                Whole::Clone => self.duplicate(),
                Whole::Retain => self.retain(),
                Whole::Clear => self.clear(),
            };
            clock.add(elapsed?, self.count as u64);
        }
        Ok(clock.ops_per_microsecond())
    }

    fn walk(&self) -> Result<Duration, CheckError> {
        let (elapsed, sum) = timed(|| black_box(self.map).sum());
        adds_up::<C>(sum, self.sum)?;
        Ok(elapsed)
    }

    fn duplicate(&self) -> Result<Duration, CheckError> {
        let (elapsed, copy) = timed(|| self.map.duplicate());
        has(&copy, self.count, "its copy has")?;
        finds(&copy, &self.stay, true)?;
        finds(&copy, &self.go, true)?;
        // Changes to a copy do not change the map.
        for &key in self.stay.iter().chain(&self.go).take(1) {
            copy.view().remove(key);
            finds(self.map, &[key], true)?;
        }
        Ok(elapsed)
    }

    fn retain(&self) -> Result<Duration, CheckError> {
        let copy = self.copy()?;
        let (elapsed, ()) = timed(|| copy.retain(stays));
        has(&copy, self.staying, "it has retained")?;
        finds(&copy, &self.stay, true)?;
        finds(&copy, &self.go, false)?;
        Ok(elapsed)
    }

    fn clear(&self) -> Result<Duration, CheckError> {
        let copy = self.copy()?;
        let (elapsed, ()) = timed(|| copy.clear());
        has(&copy, 0, "cleared, it has")?;
        adds_up::<C>(copy.sum(), 0)?;
        Ok(elapsed)
    }

    /// A copy from which entries will be removed.
    fn copy(&self) -> Result<C, CheckError> {
        let copy = self.map.duplicate();
        has(&copy, self.count, "its copy has")?;
        Ok(copy)
    }
}

/// How long `run` takes, and its result, which is not dropped in that time.
fn timed<R>(run: impl FnOnce() -> R) -> (Duration, R) {
    let began = Instant::now();
    let result = black_box(run());
    (began.elapsed(), result)
}

/// Checks that a map has this many entries.
fn has<C: Contestant>(map: &C, expected: usize, told: &str) -> Result<(), CheckError> {
    let entries = map.entries();
    if entries == expected {
        Ok(())
    } else {
        Err(failure::<C>(format!("{told} {entries} entries, expected {expected}")))
    }
}

/// Checks that the keys and values that a walk has seen add up to this.
fn adds_up<C: Contestant>(sum: u64, expected: u64) -> Result<(), CheckError> {
    if sum == expected {
        return Ok(());
    }
    Err(failure::<C>(format!("what a walk has seen adds up to {sum:#x}, expected {expected:#x}")))
}
