//! Arrays of 64-bit words, read and written at any bit.
//!
//! A table's words are atomics that any thread may read and the segment's lock holder writes [I5]; a view's are bytes that
//! nobody writes. Bit `i` of the array is bit `i % 64` of word `i / 64`.

use crate::sync::{AtomicU64, Ordering, load_half, step};

/// The number of words that a reader of the last bucket may read beyond it; nobody writes them.
pub(crate) const SPARE_WORDS: usize = 2;

/// Words that can be read.
pub(crate) trait Words: Copy {
    /// The word at `index`.
    fn word(self, index: usize) -> u64;

    /// The 32 bits at `index`, counted in units of 32 bits.
    fn half(self, index: usize) -> u64;

    /// The `bits` bits from `bit` on, 1 to 64; higher bits of the result mean nothing.
    #[inline(always)]
    fn load_64(self, bit: u64, _bits: u32) -> u64 {
        let (index, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
        let low = self.word(index);
        step();
        let high = self.word(index + 1);
        low >> shift | (high << 1) << (63 - shift)
    }

    /// The `bits` bits from `bit` on, 65 to 128; higher bits of the result mean nothing.
    #[inline(always)]
    fn load_128(self, bit: u64, _bits: u32) -> u128 {
        let (index, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
        let low = self.word(index);
        step();
        let middle = self.word(index + 1);
        let high = self.word(index + 2);
        let join = |low: u64, high: u64| low >> shift | (high << 1) << (63 - shift);
        u128::from(join(low, middle)) | u128::from(join(middle, high)) << 64
    }
}

/// The words of one segment of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    base: *const AtomicU64,
    /// The number of words that may be read, including the spare ones.
    #[cfg(debug_assertions)]
    len: usize,
}

impl Shared {
    /// # Safety
    ///
    /// `base` points to `len` words that live as long as the result or a copy of it is used.
    #[inline(always)]
    pub(crate) unsafe fn new(base: *const AtomicU64, len: usize) -> Self {
        let _ = len;
        Shared {
            base,
            #[cfg(debug_assertions)]
            len,
        }
    }

    /// The address of a bit's word, to be prefetched.
    #[inline(always)]
    pub(crate) fn address(self, bit: u64) -> *const AtomicU64 {
        self.base.wrapping_add((bit >> 6) as usize)
    }

    #[inline(always)]
    fn at(self, index: usize) -> &'static AtomicU64 {
        #[cfg(debug_assertions)]
        assert!(index < self.len);
        // SAFETY: below `len`: buckets are below the number that the words were allocated for, with two words to spare.
        // The reference does not leave this file.
        unsafe { &*self.base.add(index) }
    }

    /// Writes the low `bits` bits of `value` at `bit`, a word at a time. The lock's holder only [I5].
    #[inline(always)]
    pub(crate) fn store(self, bit: u64, bits: u32, value: u128) {
        let (index, shift) = ((bit >> 6) as usize, (bit & 63) as u32);
        if bits.is_power_of_two() && bits <= 64 {
            // A bucket, which never goes beyond one word.
            debug_assert!(shift + bits <= 64);
            return self.store_in(index, shift, bits, value as u64);
        }
        if bits <= 64 {
            return self.store_across(index, shift, bits, value as u64);
        }
        let first = 64 - shift;
        self.store_in(index, shift, first, value as u64);
        self.store_in(index + 1, 0, (bits - first).min(64), (value >> first) as u64);
        if bits - first > 64 {
            self.store_in(index + 2, 0, bits - first - 64, (value >> first >> 64) as u64);
        }
    }

    /// Writes the low `bits` bits of `value`, 1 to 64, into one word or two. Does not check which, or whether anything changed:
    /// that branch would be mispredicted every other time.
    #[inline(always)]
    fn store_across(self, index: usize, shift: u32, bits: u32, value: u64) {
        let mask = u64::MAX >> (64 - bits);
        let replace = |index: usize, mask: u64, value: u64| {
            let word = self.at(index);
            // Relaxed, and Release: as in `store_in`.
            word.store(word.load(Ordering::Relaxed) & !mask | value & mask, Ordering::Release);
            step();
        };
        replace(index, mask << shift, value << shift);
        let high = |word: u64| word >> 1 >> (63 - shift);
        // The same word again, if all bits are in the first: the next one may belong to another segment.
        let beyond = usize::from(shift + bits > 64);
        if cfg!(loom) && beyond == 0 {
            // loom remembers seven stores to a word: old values are to be seen as long as possible.
            return;
        }
        #[cfg(debug_assertions)]
        assert!(index + beyond < self.len - SPARE_WORDS, "another segment's");
        replace(index + beyond, high(mask), high(value));
    }

    /// Writes the low `bits` bits of `value`, 1 to 64, into a word.
    #[inline(always)]
    fn store_in(self, index: usize, shift: u32, bits: u32, value: u64) {
        let mask = (u64::MAX >> (64 - bits)) << shift;
        let word = self.at(index);
        // Relaxed: only the lock's holder stores.
        let old = word.load(Ordering::Relaxed);
        let new = old & !mask | (value << shift) & mask;
        if new != old {
            // Release: pairs with the Acquire of `word`. A reader that sees a source cleared sees the target filled [I3], and
            // the same word may say both that a lane was filled and that another one was cleared before.
            word.store(new, Ordering::Release);
            step();
        }
    }

    /// Empties a whole word; a word that is empty is not written to, and so its page stays untouched. The lock's holder only
    /// [I5].
    pub(crate) fn clear_word(self, index: usize) {
        let word = self.at(index);
        // Relaxed, and Release: as in `store_in`.
        if word.load(Ordering::Relaxed) != 0 {
            word.store(0, Ordering::Release);
            step();
        }
    }

    /// Fills a whole word of a table that nobody else sees yet.
    pub(crate) fn set_word(self, index: usize, value: u64) {
        // Relaxed: the thread that hands the table over publishes it.
        self.at(index).store(value, Ordering::Relaxed);
    }
}

impl Words for Shared {
    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        // Acquire: pairs with the Release of `store`.
        self.at(index).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn half(self, index: usize) -> u64 {
        #[cfg(debug_assertions)]
        assert!(index / 2 < self.len);
        // Acquire, as in `word`.
        // SAFETY: half of a word that `at` would give.
        unsafe { load_half(self.base, index) }
    }
}

/// Words as little-endian bytes, and eight more bytes, so that 64 bits can be read from each of the words' bytes. Beyond the
/// end, zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    /// The address of a bit's byte, to be prefetched.
    #[inline(always)]
    pub(crate) fn address(self, bit: u64) -> *const u8 {
        self.0.as_ptr().wrapping_add((bit >> 3) as usize)
    }

    /// The 64 bits that begin with this byte.
    #[inline(always)]
    fn word_at(self, byte: u64) -> u64 {
        let byte = byte as usize;
        let bytes = self.0.get(byte..byte + 8).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl Words for Bytes<'_> {
    #[inline(always)]
    fn word(self, index: usize) -> u64 {
        self.word_at(8 * index as u64)
    }

    #[inline(always)]
    fn half(self, index: usize) -> u64 {
        let byte = 4 * index;
        let bytes = self.0.get(byte..byte + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
    }

    /// From the bit's byte on: one load, if the bits and the up to seven that come before them in their byte fit into a word.
    #[inline(always)]
    fn load_64(self, bit: u64, bits: u32) -> u64 {
        let (byte, shift) = (bit >> 3, (bit & 7) as u32);
        let low = self.word_at(byte) >> shift;
        if bits <= 57 { low } else { low | (self.word_at(byte + 8) << 1) << (63 - shift) }
    }

    /// From the bit's byte on: two words suffice, as buckets of more than 64 bits, and their halves, have multiples of four
    /// bits.
    #[inline(always)]
    fn load_128(self, bit: u64, bits: u32) -> u128 {
        let (byte, shift) = (bit >> 3, (bit & 7) as u32);
        debug_assert!(shift + bits <= 128);
        (u128::from(self.word_at(byte)) | u128::from(self.word_at(byte + 8)) << 64) >> shift
    }
}
