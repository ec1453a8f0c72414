//! A copy of koel's look-up, for one layout that the compiler knows: comparing the two shows what it costs koel to choose its
//! layout at run time.
//!
//! Made from the bytes of a filter (`docs/filter-format.md`), it keeps them as the filter does: each segment's stripes,
//! then its words, in whole cache lines. It takes the same steps in the same order, the check for displacements among
//! them, though nobody writes here. Everything that follows from the layout, and the seed, is a constant.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use ::koel::{CuckooFilter, Xxh3};
use parking_lot::RwLock;

use super::{BUCKET_SLOTS, BuildShared, Expected, Filter, Full, SEED, Size};
use crate::pages;

/// Bytes of a header, of the count before a segment's words, and of the checksum after them.
const HEADER_BYTES: usize = 64;
const AROUND_BYTES: usize = 16;

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// Stripes of a filter, and the fewest of a segment, as in koel.
const STRIPES: u32 = 1024;
const MIN_STRIPES: u32 = 8;

/// Bytes of a table for which huge pages are asked for, as in koel.
const HUGE_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
#[repr(align(64))]
struct CacheLine([AtomicU64; LINE_WORDS]);

/// Buckets of four fingerprints of `BITS` bits; 8, 12 or 16.
#[derive(Debug)]
pub struct KoelFixed<const BITS: u32> {
    lines: Box<[CacheLine]>,
    /// Words from one segment's stripes to the next one's.
    stride: usize,
    stripes: u32,
    segments: u32,
    buckets: u32,
    len: u64,
    rate: f64,
}

impl<const BITS: u32> KoelFixed<BITS> {
    const BUCKET_BITS: u32 = BITS * BUCKET_SLOTS;
    const ONES: u64 = (1 << (3 * BITS)) | (1 << (2 * BITS)) | (1 << BITS) | 1;
    const TOPS: u64 = Self::ONES << (BITS - 1);

    fn of(filter: &CuckooFilter<Xxh3>) -> Result<Self, String> {
        let bytes = filter.to_bytes();
        let info = filter.info();
        if (info.fingerprint_bits, info.bucket_slots, info.semi_sorted) != (BITS, BUCKET_SLOTS, false) {
            return Err(format!("there is no fixed layout for {info}"));
        }
        let number = |at: usize| {
            let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or("the bytes end early")
        };
        let (segments, buckets) = (number(16)?, number(20)?);
        let words = (buckets as usize * Self::BUCKET_BITS as usize).div_ceil(64);
        let stripes = 1_u32 << buckets.min((STRIPES / segments).max(MIN_STRIPES)).ilog2();
        let stride = words.next_multiple_of(LINE_WORDS) + stripes as usize;
        // One more word: a bucket of 48 bits is read as two words, the last one as well.
        let lines = empty_lines(segments as usize * stride / LINE_WORDS + 1);
        let fixed = KoelFixed {
            lines,
            stride,
            stripes,
            segments,
            buckets,
            len: filter.len() as u64,
            rate: filter.false_positive_rate(),
        };
        let each = bytes[HEADER_BYTES..].chunks_exact(8 * words + AROUND_BYTES);
        for (segment, bytes) in each.enumerate() {
            let first = segment * stride + stripes as usize;
            for (index, bytes) in bytes[8..][..8 * words].chunks_exact(8).enumerate() {
                let at = first + index;
                let word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                fixed.lines[at / LINE_WORDS].0[at % LINE_WORDS].store(word, Ordering::Relaxed);
            }
        }
        Ok(fixed)
    }

    #[inline(always)]
    fn word(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.lines.len() * LINE_WORDS);
        // SAFETY: segments, buckets and stripes are below the numbers that the lines were allocated for: a fraction
        // of a number stays below it, `mirror` below `buckets`, and a line is left behind the last segment.
        unsafe { &*self.lines.as_ptr().cast::<AtomicU64>().add(index) }
    }

    /// Half of a word, `number` halves after the first of a segment's words; lower halves come first.
    #[inline(always)]
    fn half(&self, first: usize, number: u32) -> u64 {
        let index = 2 * first + (number ^ u32::from(cfg!(target_endian = "big"))) as usize;
        debug_assert!(index < 2 * self.lines.len() * LINE_WORDS);
        // SAFETY: half of a word, as in `word`; nobody writes, so that halves may be read beside wholes.
        let half = unsafe { &*self.lines.as_ptr().cast::<AtomicU32>().add(index) };
        // Acquire, as in `bucket`.
        u64::from(half.load(Ordering::Acquire))
    }

    /// A bucket of the segment whose words begin at `first`.
    #[inline(always)]
    fn bucket(&self, first: usize, bucket: u32) -> u64 {
        let bit = u64::from(bucket) * u64::from(Self::BUCKET_BITS);
        let (index, shift) = (first + (bit >> 6) as usize, (bit & 63) as u32);
        // Acquire, like koel's, though there is no writer to pair with: the loads must not change places.
        let low = self.word(index).load(Ordering::Acquire);
        if 64 % Self::BUCKET_BITS == 0 {
            return low >> shift;
        }
        let high = self.word(index + 1).load(Ordering::Acquire);
        low >> shift | (high << 1) << (63 - shift)
    }

    /// Whether one of two buckets, an odd and an even one, has the fingerprint.
    #[inline(always)]
    fn pair_has(&self, first: usize, one: u32, other: u32, fingerprint: u32) -> bool {
        if Self::BUCKET_BITS == 32 {
            // Halves of two words, side by side.
            let both = self.half(first, one) | self.half(first, other) << 32;
            let (ones, tops) = (Self::ONES << 32 | Self::ONES, Self::TOPS << 32 | Self::TOPS);
            let both = both ^ ones.wrapping_mul(u64::from(fingerprint));
            return both.wrapping_sub(ones) & !both & tops != 0;
        }
        let (one, other) = (self.bucket(first, one), self.bucket(first, other));
        let pattern = Self::ONES.wrapping_mul(u64::from(fingerprint));
        let (one, other) = (one ^ pattern, other ^ pattern);
        let equal = one.wrapping_sub(Self::ONES) & !one | other.wrapping_sub(Self::ONES) & !other;
        equal & Self::TOPS != 0
    }

    #[inline(always)]
    fn look(&self, key: u64) -> bool {
        let wide = u128::from(BuildShared.hash_one(key)) * 0x243F_6A88_85A3_08D3;
        let digest = wide as u64 ^ (wide >> 64) as u64;
        let segment = ((u128::from(digest) * u128::from(self.segments)) >> 64) as u32;
        let product = u128::from(digest.swap_bytes()) * u128::from(self.buckets);
        let one = (product >> 64) as u32;
        let upper = (product as u64 >> (64 - BITS)) as u32;
        let fingerprint = upper + u32::from(upper == 0);
        let mixed = u64::from(fingerprint).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed >> 32) as u32 ^ mixed as u32;
        let sum = scale(mixed, self.buckets) | 1;
        let other = sum.wrapping_sub(one);
        // The smaller of the two, as in koel's `mirror`.
        let other = other.min(other.wrapping_add(self.buckets));

        let stripes = segment as usize * self.stride;
        let stripe = self.word(stripes + ((one ^ other) >> 1 & (self.stripes - 1)) as usize);
        // Acquire, as in `bucket`.
        let version = stripe.load(Ordering::Acquire);
        if self.pair_has(stripes + self.stripes as usize, one, other, fingerprint) {
            return true;
        }
        fence(Ordering::Acquire);
        if stripe.load(Ordering::Relaxed) == version & !1 {
            return false;
        }
        moved()
    }
}

/// Empty lines, in the pages that koel's table would be in.
fn empty_lines(count: usize) -> Box<[CacheLine]> {
    let mut lines = Vec::with_capacity(count);
    if count * size_of::<CacheLine>() >= HUGE_BYTES {
        pages::advise_huge(lines.spare_capacity_mut());
    }
    lines.resize_with(count, CacheLine::default);
    lines.into_boxed_slice()
}

/// A reader would look again.
#[cold]
#[inline(never)]
fn moved() -> bool {
    unreachable!("nobody writes")
}

#[inline(always)]
fn scale(fraction: u32, n: u32) -> u32 {
    ((u64::from(fraction) * u64::from(n)) >> 32) as u32
}

impl<const BITS: u32> Filter for KoelFixed<BITS> {
    const NAME: &'static str = "koel-fixed";
    const REMOVES: bool = false;
    const LOOKUPS_ONLY: bool = true;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        Self::filled(size, std::iter::empty())?.map_err(|Full| "no empty filter".to_owned())
    }

    fn filled(size: Size, keys: impl Iterator<Item = u64>) -> Result<Result<Self, Full>, String> {
        let filter = super::koel::build(size, false, Xxh3::with_seed(SEED))?;
        for key in keys {
            if filter.insert(&key).is_err() {
                return Ok(Err(Full));
            }
        }
        Self::of(&filter).map(Ok)
    }

    fn insert(&mut self, _: u64) -> Result<(), Full> {
        Err(Full)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.look(key)
    }

    fn entries(&self) -> Option<u64> {
        Some(self.len)
    }

    fn load(&self) -> Option<f64> {
        let slots = f64::from(self.segments) * f64::from(self.buckets) * f64::from(BUCKET_SLOTS);
        Some(self.len as f64 / slots)
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::About(self.rate)
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
