//! New segments become current [G2]: the directory leads to them, and doubles first if it must.

use core::ptr::NonNull;

use super::directory::Directory;
use super::draft::NoRoom;
use super::locked::Locked;
use super::payload::Payload;
use super::root::{Root, RootHeader};
use crate::sync::Ordering;

impl<P: Payload> Directory<P> {
    /// Makes the directory lead to the new segments, whose locks are held until it does. They give the table `more` more
    /// segments than before.
    pub(super) fn publish(&self, new: &[Locked<'_, P>], more: usize) -> Result<(), NoRoom> {
        let mut pool = self.pool.lock();
        let level = new[0].state_ref().level;
        if level > self.root().level {
            pool.roots.try_reserve(1).map_err(|_| NoRoom)?;
            let old = self.double_root()?;
            pool.roots.push(old);
        }
        let root = self.root();
        for locked in new {
            let span = root.level - level;
            let first = locked.state_ref().index << span;
            for index in first..first + (1 << span) {
                // Release: pairs with the Acquire in `locate_from`, also for `is_current`.
                root.entry(index).store(locked.segment_ref().pointer().as_ptr(), Ordering::Release);
            }
        }
        pool.live += more;
        Ok(())
    }

    /// Publishes a root of twice the length and returns the old one. With the pool locked, so that entries do not change
    /// meanwhile.
    fn double_root(&self) -> Result<NonNull<RootHeader>, NoRoom> {
        let old = self.root();
        let len = old.len.checked_mul(2).ok_or(NoRoom)?;
        let new = Root::<P>::allocate(len, old.level + 1, &self.meter).ok_or(NoRoom)?;
        // SAFETY: just constructed.
        let root = unsafe { Root::<P>::new(new) };
        for index in 0..len {
            // Relaxed: stores to entries are made with the pool locked; the root's Release publishes them.
            let segment = old.entry(index / 2).load(Ordering::Relaxed);
            root.entry(index).store(segment, Ordering::Relaxed);
        }
        self.set_root(new).ok_or(NoRoom)
    }
}
