//! Integers as registers of equal lanes: the little arithmetic that layouts need of `u64` and `u128`.

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use super::words::{Words, load_64, load_128};

/// `u64` or `u128`.
pub(crate) trait Num:
    Copy
    + Debug
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Bits.
    const WIDTH: u32;
    /// 0.
    const ZERO: Self;

    /// From a small number.
    fn of(small: u32) -> Self;

    /// Its low 32 bits.
    fn low(self) -> u32;

    /// All of it.
    fn wide(self) -> u128;

    /// As many low bits as fit.
    fn narrow(wide: u128) -> Self;

    /// `self + other`, modulo its width.
    fn plus(self, other: Self) -> Self;

    /// `self - other`, modulo its width.
    fn minus(self, other: Self) -> Self;

    /// `self * other`, modulo its width.
    fn times(self, other: u32) -> Self;

    /// Bits that are 1.
    fn ones(self) -> u32;

    /// Zeros below the lowest 1.
    fn zeros_below(self) -> u32;

    /// Loads from any bit.
    fn load(words: impl Words, bit: u64) -> Self;
}

impl Num for u64 {
    const WIDTH: u32 = 64;
    const ZERO: Self = 0;

    #[inline(always)]
    fn of(small: u32) -> Self {
        u64::from(small)
    }

    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn wide(self) -> u128 {
        u128::from(self)
    }

    #[inline(always)]
    fn narrow(wide: u128) -> Self {
        wide as u64
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn times(self, other: u32) -> Self {
        self.wrapping_mul(u64::from(other))
    }

    #[inline(always)]
    fn ones(self) -> u32 {
        self.count_ones()
    }

    #[inline(always)]
    fn zeros_below(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline(always)]
    fn load(words: impl Words, bit: u64) -> Self {
        load_64(words, bit)
    }
}

impl Num for u128 {
    const WIDTH: u32 = 128;
    const ZERO: Self = 0;

    #[inline(always)]
    fn of(small: u32) -> Self {
        u128::from(small)
    }

    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn wide(self) -> u128 {
        self
    }

    #[inline(always)]
    fn narrow(wide: u128) -> Self {
        wide
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }

    #[inline(always)]
    fn times(self, other: u32) -> Self {
        self.wrapping_mul(u128::from(other))
    }

    #[inline(always)]
    fn ones(self) -> u32 {
        self.count_ones()
    }

    #[inline(always)]
    fn zeros_below(self) -> u32 {
        self.trailing_zeros()
    }

    #[inline(always)]
    fn load(words: impl Words, bit: u64) -> Self {
        load_128(words, bit)
    }
}
