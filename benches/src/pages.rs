//! Huge pages, which koel's tables ask for and the rivals' do not: whether the system grants them, and ways to have it grant
//! none, or to ask for them for all tables.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use crate::error::Error;

/// Which tables have huge pages, where the system grants them to those that ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Large tables of koel, which ask for them.
    #[default]
    AsAsked,
    /// None.
    Small,
    /// All: the allocator asks for them for each large block.
    Huge,
}

/// If all tables are to have huge pages, blocks from this size on do; it is the size of koel's smallest table that asks for
/// them.
const HUGE_BLOCK_BYTES: usize = 4 << 20;

/// Whether the allocator asks for huge pages.
static FOR_ALL: AtomicBool = AtomicBool::new(false);

impl Pages {
    /// Applies this choice to the tables of this process from now on.
    ///
    /// # Errors
    ///
    /// If the system does not accept it.
    pub fn arrange(self) -> Result<(), Error> {
        FOR_ALL.store(self == Pages::Huge, Ordering::Relaxed);
        if self == Pages::Small { refuse_huge() } else { Ok(()) }
    }

    /// Which tables asked for huge pages.
    pub fn in_words(self) -> &'static str {
        match self {
            Pages::AsAsked => "large tables of koel's ask for huge pages, those of others do not",
            Pages::Small => "no table had huge pages, koel's neither (--small-pages)",
            Pages::Huge => {
                "huge pages were asked for for all large tables, those of others as well (--huge-pages)"
            }
        }
    }
}

/// Asks for huge pages for a block that has just been allocated, if all are to have them and it is large enough.
///
/// # Safety
///
/// `block` is null, or `bytes` bytes from it on are allocated, and nobody but the caller uses them.
pub unsafe fn advise_block(block: *mut u8, bytes: usize) {
    if bytes >= HUGE_BLOCK_BYTES && FOR_ALL.load(Ordering::Relaxed) && !block.is_null() {
        // SAFETY: as promised; as the bytes are taken as uninitialized, their content does not matter.
        let memory = unsafe { std::slice::from_raw_parts_mut(block.cast::<MaybeUninit<u8>>(), bytes) };
        advise_huge(memory);
    }
}

/// The largest pages that the kernel takes advice for: 4 KiB on most machines, up to 64 KiB on others.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 64 << 10;

/// The file in which Linux shows when it grants huge pages.
const MODE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// From now on the system gives no huge pages to this process, even if they are asked for.
///
/// # Errors
///
/// If the system does not accept it.
fn refuse_huge() -> Result<(), Error> {
    tell_system().map_err(|error| Error::Input(format!("--small-pages: {error}")))
}

#[cfg(target_os = "linux")]
fn tell_system() -> std::io::Result<()> {
    let [yes, none]: [libc::c_ulong; 2] = [1, 0];
    // SAFETY: the call takes numbers, and touches no memory.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, none, none, none) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// koel asks only Linux for huge pages.
#[cfg(not(target_os = "linux"))]
fn tell_system() -> std::io::Result<()> {
    Ok(())
}

/// When the system grants huge pages: `always`, `madvise` (where they are asked for) or `never`; or `unknown`.
pub fn mode() -> String {
    let told = std::fs::read_to_string(MODE_FILE).unwrap_or_default();
    chosen(&told).unwrap_or("unknown").to_owned()
}

/// `madvise` of `always [madvise] never`.
fn chosen(told: &str) -> Option<&str> {
    Some(told.split_once('[')?.1.split_once(']')?.0)
}

/// Asks for huge pages for memory that has not been touched yet: small pages that are in use stay small.
#[cfg(target_os = "linux")]
pub fn advise_huge<T>(memory: &mut [T]) {
    let range = memory.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(PAGE_BYTES);
    let Some(bytes) = (range.end as usize).checked_sub(start) else { return };
    // SAFETY: `start..start + bytes` lies in memory that is borrowed; the advice does not change its content. As it may be
    // refused, the result is ignored.
    unsafe {
        libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE);
    }
}

/// Asks for nothing.
#[cfg(not(target_os = "linux"))]
pub fn advise_huge<T>(_: &mut [T]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_what_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("[always] madvise never\n"), Some("always"));
        assert_eq!(chosen(""), None);
    }
}
