//! [`Callers`]: how often those have come that were turned away, exactly, where a ghost knows only their epochs.

use super::Locator;

/// So many are told apart; who has not come for longest is forgotten for another.
const CALLERS: usize = 8;
/// After so many times somebody is counted anew: what counts is how often it has been asked for lately.
const LATELY: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Caller {
    locator: Locator,
    times: usize,
    /// How many keys had been rejected before it came first.
    since: u64,
}

/// The last who came last.
#[derive(Debug, Default)]
pub(super) struct Callers(Vec<Caller>);

impl Callers {
    /// How many times somebody has come, and among how many rejected keys, its own among them, when there were `rejected`.
    pub(super) fn times(&self, locator: Locator, rejected: u64) -> (usize, u64) {
        let caller = self.0.iter().find(|caller| caller.locator == locator);
        // They are counted anew with a new ghost.
        caller.map_or((0, 0), |caller| (caller.times, rejected.checked_sub(caller.since).unwrap_or(u64::MAX)))
    }

    /// Somebody comes, before whom so many keys have been rejected.
    pub(super) fn note(&mut self, locator: Locator, rejected: u64) {
        let known = self.0.iter().position(|caller| caller.locator == locator);
        let mut caller = match known {
            Some(at) => self.0.remove(at),
            None => {
                if self.0.len() == CALLERS {
                    self.0.remove(0);
                }
                Caller { locator, times: 0, since: rejected }
            }
        };
        if caller.times == LATELY || caller.since > rejected {
            (caller.times, caller.since) = (0, rejected);
        }
        caller.times += 1;
        self.0.push(caller);
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.0.capacity() * size_of::<Caller>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Digest;

    fn key(i: u64) -> Locator {
        Locator::new(Digest::new(i))
    }

    #[test]
    fn who_comes_is_counted_among_those_since_and_forgotten_when_others_come() {
        let mut callers = Callers::default();
        for times in 0..LATELY {
            assert_eq!(callers.times(key(0), 100 + 3 * times as u64), (times, 3 * times as u64));
            callers.note(key(0), 100 + 3 * times as u64);
        }
        callers.note(key(0), 200);
        assert_eq!(callers.times(key(0), 210), (1, 10), "anew");
        callers.note(key(0), 5);
        assert_eq!(callers.times(key(0), 7), (1, 2), "a new ghost");
        (1..CALLERS as u64).for_each(|i| callers.note(key(i), 8));
        assert_eq!(callers.times(key(0), 9).0, 1);
        callers.note(key(CALLERS as u64), 9);
        assert_eq!((callers.times(key(0), 9).0, callers.times(key(1), 9).0), (0, 1));
    }
}
