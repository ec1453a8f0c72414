//! One write of one key: the order rules [D1], [D2], enforced by a type that is ended on every path.

use std::sync::Arc;

use super::filter::{Active, Added};
use super::rebuild::Rebuild;
use super::shared::Shared;
use super::stripes::{Seen, Writing, stripe_of};

/// A write, from before the commit until filter and store agree again.
///
/// If it is dropped without having been told the outcome of the write (an error that leaves it open, a panic of the store), it
/// assumes that the key is there: the filter may then say "perhaps" for an absent key, and never "absent" for a present one.
#[derive(Debug)]
pub(super) struct Section<'a> {
    hash: u64,
    stripe: usize,
    active: Option<Arc<Active>>,
    next: Option<Arc<Rebuild>>,
    /// What `announce` did, until the outcome of the write is known.
    announced: Option<Option<Added>>,
    /// `None` if the caller writes several keys at once and holds it itself. The last field: it is dropped after this type's
    /// own `Drop` has run.
    writing: Option<Writing<'a>>,
}

impl<'a> Section<'a> {
    /// Waits for other writers of the stripe. From here on, until the section ends, nothing of the key is cached.
    pub(super) fn begin<S, E>(shared: &'a Shared<S, E>, hash: u64, key: &[u8]) -> Self {
        Self::with(shared, hash, key, shared.stripes.write(stripe_of(hash)))
    }

    /// The same; `None` if a write of the stripe has completed since it was `seen`.
    pub(super) fn begin_unless_changed<S, E>(
        shared: &'a Shared<S, E>,
        hash: u64,
        key: &[u8],
        seen: Seen,
    ) -> Option<Self> {
        let writing = shared.stripes.write_unless_changed(stripe_of(hash), seen)?;
        Some(Self::with(shared, hash, key, writing))
    }

    fn with<S, E>(shared: &Shared<S, E>, hash: u64, key: &[u8], writing: Writing<'a>) -> Self {
        let mut section = Self::within(shared, hash, key, &writing);
        section.writing = Some(writing);
        section
    }

    /// The same for one of several keys, whose stripe is held already, and for longer than this section.
    pub(super) fn within<S, E>(shared: &Shared<S, E>, hash: u64, key: &[u8], writing: &Writing<'_>) -> Self {
        shared.hot.remove(key);
        writing.forget_absent(hash);
        // Filters are replaced only while no write is under way: these stay the current ones.
        let (active, next) = (shared.active(), shared.next.lock().clone());
        Section { hash, stripe: stripe_of(hash), active, next, announced: None, writing: None }
    }

    /// Called before the commit of a put: adds one more fingerprint, whether or not the key is new.
    pub(super) fn announce(&mut self) {
        self.announced = Some(self.active.as_ref().map(|active| active.add(self.hash, self.stripe)));
    }

    /// The same, along with other keys of the stripe: where there was no room the mark stays, which may stand for those as well
    /// [D4].
    pub(super) fn announce_beside_others(&mut self) {
        self.announce();
        if let Some(Some(added @ Added::Crowded)) = &mut self.announced {
            *added = Added::Unneeded;
        }
    }

    /// The store has put a key that it did not hold: its fingerprint stays.
    pub(super) fn came(mut self) {
        self.announced = None;
        self.note_put();
    }

    /// The store has put a key that it held before: what was announced is taken back. False: the filter had not known it, and
    /// is not to be trusted.
    pub(super) fn stayed(mut self) -> bool {
        match (self.announced.take(), &self.active) {
            (Some(Some(added)), Some(active)) => active.undo_of_known(added, self.hash, self.stripe),
            _ => self.next.as_ref().is_none_or(|next| next.note_held(self.hash, self.stripe)),
        }
    }

    /// It is certain that the key is not there now: what was announced is taken back.
    pub(super) fn revoke(mut self) {
        if let (Some(Some(added)), Some(active)) = (self.announced.take(), &self.active) {
            active.undo(added, self.hash, self.stripe);
        }
    }

    /// The store has deleted a key that it held. False: the filter had not known it, and is not to be trusted.
    pub(super) fn left(self) -> bool {
        let next_knew = self.next.as_ref().is_none_or(|next| next.note_delete(self.hash, self.stripe));
        self.active.as_ref().is_none_or(|active| active.remove(self.hash, self.stripe)) && next_knew
    }

    fn note_put(&self) {
        if let Some(next) = &self.next {
            next.note_put(self.hash, self.stripe);
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        if self.announced.is_some() {
            self.note_put();
        }
    }
}
