//! A hint to the processor that a cache line will be read soon.

/// Starts loading the cache line at `at`. A hint: any address will do, and nothing is read.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a prefetch never faults, whatever the address; SSE is part of every x86_64.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast())
    };
    #[cfg(all(target_arch = "aarch64", not(loom)))]
    // SAFETY: a prefetch never faults, whatever the address, and changes no register or flag.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(loom))))]
    let _ = at;
}
