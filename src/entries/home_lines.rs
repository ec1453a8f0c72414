//! What a look-up needs to know of home cells: which line it may start loading.
//!
//! A copy, which a table keeps next to what its look-ups read anyway: the cells themselves, and who has them, are the business
//! of `homes`.

use super::page::PAGE;
use crate::hash::{Digest, scale};
use crate::prefetch::prefetch;
use crate::sync::{AtomicU32, Ordering};

/// Where the home cells of keys are, for look-ups that start loading what is there. Only a hint: it may outlive the cells.
#[derive(Debug)]
pub(crate) struct HomeLines {
    base: *const u8,
    /// 0: there are no homes. Relaxed: a hint.
    pages: AtomicU32,
    /// The bytes of the cells of a page.
    bytes: u32,
}

// SAFETY: only the address is of use.
unsafe impl Send for HomeLines {}
// SAFETY: as above.
unsafe impl Sync for HomeLines {}

impl HomeLines {
    /// Home lines in so many pages, from `base`, each of which has cells of so many bytes in all. Without pages there are no
    /// homes.
    pub(super) fn new(base: *const u8, pages: u32, bytes: u32) -> Self {
        HomeLines { base, pages: AtomicU32::new(pages), bytes }
    }

    /// Starts loading the line in which a key's entry is at home [M5].
    #[inline(always)]
    pub(super) fn prefetch(&self, digest: Digest) {
        if let Some(home) = self.home(digest) {
            prefetch(home);
        }
    }

    /// A byte of the cell that [`Homes::home`] selects: the same share of all cells' bytes as of their number.
    #[inline(always)]
    pub(super) fn home(&self, digest: Digest) -> Option<*const u8> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages == 0 {
            return None;
        }
        let (page, rest) = page_of(digest, pages);
        Some(self.base.wrapping_add(page as usize * PAGE + scale(rest, self.bytes) as usize))
    }

    /// Notes that the cells have been given back: look-ups are not to load what is there now.
    pub(super) fn withdraw(&self) {
        self.pages.store(0, Ordering::Relaxed);
    }
}

/// The page that a digest selects by its top bits, as it does the segment, so that neighbours lie side by side in both; and a
/// fraction of 2^32 that selects a cell there. (Some cells are no key's home if there are more than 2^23 pages, which is 32
/// GiB.)
#[inline(always)]
pub(super) fn page_of(digest: Digest, pages: u32) -> (u32, u32) {
    let wide = u64::from(digest.prefix()) * u64::from(pages);
    ((wide >> 32) as u32, wide as u32)
}
