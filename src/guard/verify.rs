//! Samples the store's keys, none of which the filter may take for absent.

use super::error::Error;
use super::filter::Active;
use super::shared::Shared;
use super::store::Store;
use super::stripes::stripe_of;
use crate::draw::draw;

/// The result of [`Guarded::verify`](super::Guarded::verify).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Keys of the store about which the filter was asked.
    pub checked: u64,
    /// Those that it took for absent.
    pub false_negatives: u64,
}

impl<S: Store> Shared<S, S::Error> {
    /// Returns what it has seen, even if the store fails in the end.
    pub(super) fn verify(
        &self,
        samples: usize,
        verification: &mut Verification,
    ) -> Result<(), Error<S::Error>> {
        let Some(active) = self.active() else { return Ok(()) };
        let mut denied = Vec::new();
        let sampled = self.sample(&active, samples.max(1), verification, &mut denied);
        // Only after the scan: a store may block writes as long as it lasts, and a waiting writer holds a stripe.
        for (hash, key) in denied {
            let found = {
                // The key may have been deleted since the scan began, or the filter replaced: with the stripe held, neither
                // changes.
                let _writing = self.stripes.write(stripe_of(hash));
                let is_denied = self.active.pin().is_some_and(|active| self.denies(&active, hash, &key));
                if is_denied { self.store.get(&key) } else { Ok(None) }
            };
            verification.false_negatives += u64::from(found.map_err(Error::Store)?.is_some());
        }
        sampled
    }

    /// Asks the filter for about `samples` of the store's keys: `denied` are those that it takes for absent.
    fn sample(
        &self,
        active: &Active,
        samples: usize,
        verification: &mut Verification,
        denied: &mut Vec<(u64, Box<[u8]>)>,
    ) -> Result<(), Error<S::Error>> {
        // To the end of the scan: keys that the filter does not know may come last. Some stores also count keys that have been
        // replaced or deleted; going by their count, only a fraction of the samples would be taken.
        let len = self.store.len_hint().map_or(active.len(), |hint| hint.min(active.len()));
        let every = (len / samples as u64).max(1);
        // Other keys each time: repeated calls eventually check all of them.
        let first = draw() as u64 % every;
        let keys = self.store.scan_keys().map_err(Error::Store)?;
        for (key, number) in keys.zip(0_u64..) {
            // Also for a key that is passed over: some stores end their scan where it fails.
            let key = key.map_err(Error::Store)?;
            if number % every != first {
                continue;
            }
            verification.checked += 1;
            let hash = self.plan.hash(&key);
            if self.denies(active, hash, &key) {
                denied.push((hash, key));
                // The store has many more keys than anybody knew.
                if denied.len() >= samples {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a look-up of the key would find it absent.
    fn denies(&self, active: &Active, hash: u64, key: &[u8]) -> bool {
        let stripe = stripe_of(hash);
        !active.may_contain(hash, stripe) || self.stripes.is_known_absent(stripe, hash, key)
    }
}
