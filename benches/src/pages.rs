//! Huge pages, which koel's tables ask for and the rivals' do not: what the system grants, and that it grants none.

use crate::error::Error;

/// The largest pages that the kernel takes advice for: 4 KiB on most machines, up to 64 KiB on others.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 64 << 10;

/// Where Linux tells when it grants huge pages.
const MODE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// From now on the system gives no huge pages to this process, whoever asks.
///
/// # Errors
///
/// If the system cannot be told.
pub fn refuse_huge() -> Result<(), Error> {
    tell_system().map_err(|error| Error::Input(format!("--small-pages: {error}")))
}

#[cfg(target_os = "linux")]
fn tell_system() -> std::io::Result<()> {
    let [yes, none]: [libc::c_ulong; 2] = [1, 0];
    // SAFETY: it takes numbers, and no memory is touched.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, none, none, none) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// koel asks Linux alone.
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
    // SAFETY: `start..start + bytes` lies in memory that is borrowed; the advice does not change its content. That it may
    // be refused is why the result is not looked at.
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
