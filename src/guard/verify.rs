//! Samples of the store's keys, which the filter must not take for absent.

use super::error::Error;
use super::shared::Shared;
use super::store::Store;
use super::stripes::stripe_of;

/// What [`Guarded::verify`](super::Guarded::verify) has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Keys of the store that the filter was asked for.
    pub checked: u64,
    /// Those that it took for absent.
    pub false_negatives: u64,
}

impl<S: Store> Shared<S, S::Error> {
    pub(super) fn verify(&self, samples: usize) -> Result<Verification, Error<S::Error>> {
        let Some(active) = self.active() else { return Ok(Verification::default()) };
        let every = (active.len() / samples.max(1) as u64).max(1) as usize;
        // Which ones differs from time to time, and with the filter's seed.
        let skip = self.plan.hash(&active.len().to_le_bytes()) as usize % every;
        let keys = self.store.scan_keys().map_err(Error::Store)?;
        let mut verification = Verification::default();
        for key in keys.skip(skip).step_by(every).take(samples) {
            let key = key.map_err(Error::Store)?;
            verification.checked += 1;
            let hash = self.plan.hash(&key);
            let stripe = stripe_of(hash);
            let is_known_absent = || self.stripes.is_known_absent(stripe, hash, &key);
            if active.may_contain(hash, stripe) && !is_known_absent() {
                continue;
            }
            // Perhaps it was deleted since the scan began, or the filter replaced: with the stripe held, both are still.
            let _writing = self.stripes.write(stripe);
            let says_absent = self
                .active
                .pin()
                .is_some_and(|active| !active.may_contain(hash, stripe) || is_known_absent());
            if says_absent && self.store.get(&key).map_err(Error::Store)?.is_some() {
                verification.false_negatives += 1;
            }
        }
        Ok(verification)
    }
}
