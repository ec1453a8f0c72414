//! Integers as registers of equal lanes: the few operations on `u64` and `u128` that layouts need.

use core::fmt::Debug;
use core::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use super::words::Words;

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

    /// Loads this many `bits` from any bit on: more than 64, if that is possible.
    fn load(words: impl Words, bit: u64, bits: u32) -> Self;
}

/// [`Num`] for an integer, which `load` loads.
macro_rules! num {
    ($number:ty, $load:ident) => {
        impl Num for $number {
            const WIDTH: u32 = <$number>::BITS;
            const ZERO: Self = 0;

            #[inline(always)]
            fn of(small: u32) -> Self {
                <$number>::from(small)
            }

            #[inline(always)]
            fn low(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn wide(self) -> u128 {
                self as u128
            }

            #[inline(always)]
            fn narrow(wide: u128) -> Self {
                wide as $number
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
                self.wrapping_mul(<$number>::from(other))
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
            fn load(words: impl Words, bit: u64, bits: u32) -> Self {
                words.$load(bit, bits)
            }
        }
    };
}

num!(u64, load_64);
num!(u128, load_128);
