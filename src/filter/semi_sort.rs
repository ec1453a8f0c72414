//! Semi-sorting: a bucket's four low nibbles, sorted, as one code of 12 bits (Fan et al., CoNEXT 2014, section 5.2).
//!
//! Four nibbles are 16 bits, but there are only 3,876 sorted ones: one bit is saved for each fingerprint. Pure functions and
//! tables.

/// The number of sorted quadruples of nibbles: C(16 + 3, 4).
pub(crate) const CODES: u32 = 3876;

/// Bits of a code.
pub(crate) const CODE_BITS: u32 = 12;

/// For each of two quadruples, the set of those of the four nibbles that are equal to `nibble`: bit i for nibble i.
#[inline(always)]
pub(crate) fn equal_nibbles([first, second]: [u16; 2], nibble: u32) -> [usize; 2] {
    const LOW: u32 = 0x7777_7777;
    let differ = (u32::from(first) | u32::from(second) << 16) ^ (nibble * 0x1111_1111);
    let equal = !(((differ & LOW) + LOW) | differ) & 0x8888_8888;
    // The bits 3, 7, 11 and 15 side by side: no two of the sixteen products share a bit.
    [equal & 0xFFFF, equal >> 16].map(|equal| ((equal * 0x249) >> 12 & 15) as usize)
}

/// How many of four nibbles in ascending order are less than `nibble`.
#[inline(always)]
pub(crate) fn less_nibbles(nibbles: u16, nibble: u32) -> u32 {
    let not_less = |nibbles: u32| ((nibbles & 0x0F0F) | 0x1010) - nibble * 0x0101;
    let nibbles = u32::from(nibbles);
    let (even, odd) = (not_less(nibbles) & 0x1010, not_less(nibbles >> 4) & 0x1010);
    // Bits 4, 8, 12 and 16: which of the four are not; bit 20: the end.
    (even | odd << 4 | 1 << 20).trailing_zeros() / 4 - 1
}

/// `n` choose `k`.
const fn choose(n: u32, k: u32) -> u32 {
    let (mut result, mut i) = (1, 0);
    while i < k {
        if n < k {
            return 0;
        }
        result = result * (n - i) / (i + 1);
        i += 1;
    }
    result
}

/// What each of the four sorted nibbles adds to the code: the combinatorial number system, made strict by adding the
/// position to each nibble.
const RANKS: [[u16; 16]; 4] = {
    let mut ranks = [[0; 16]; 4];
    let mut position = 0;
    while position < 4 {
        let mut nibble = 0;
        while nibble < 16 {
            ranks[position][nibble] = choose((nibble + position) as u32, position as u32 + 1) as u16;
            nibble += 1;
        }
        position += 1;
    }
    ranks
};

/// The nibbles of each code, the first in the lowest bits. Longer than the number of codes, so that 12 bits never index out of
/// bounds.
static NIBBLES: [u16; 1 << CODE_BITS] = {
    let mut table = [0; 1 << CODE_BITS];
    let mut all = 0_u32;
    while all < 1 << 16 {
        let (a, b, c, d) = (all & 15, all >> 4 & 15, all >> 8 & 15, all >> 12);
        if a <= b && b <= c && c <= d {
            table[encode(all as u16) as usize] = all as u16;
        }
        all += 1;
    }
    table
};

/// The code of four nibbles in ascending order.
#[inline]
pub(crate) const fn encode(nibbles: u16) -> u32 {
    let n = nibbles as usize;
    (RANKS[0][n & 15] + RANKS[1][n >> 4 & 15] + RANKS[2][n >> 8 & 15] + RANKS[3][n >> 12]) as u32
}

/// The nibbles of a code; zeros for a number that is not a code.
#[inline(always)]
pub(crate) fn decode(code: u32) -> u16 {
    NIBBLES[(code & ((1 << CODE_BITS) - 1)) as usize]
}

/// The nibbles of each code in lanes of five bits, above the code's own.
static SPREAD: [u32; 1 << CODE_BITS] = {
    let mut table = [0; 1 << CODE_BITS];
    let mut code = 0;
    while code < table.len() {
        let nibbles = NIBBLES[code] as u32;
        let (a, b, c, d) = (nibbles & 15, nibbles >> 4 & 15, nibbles >> 8 & 15, nibbles >> 12);
        table[code] = (a | b << 5 | c << 10 | d << 15) << CODE_BITS;
        code += 1;
    }
    table
};

/// The nibbles of a code in lanes of five bits, the first from bit 12 on; zeros for a number that is not a code.
#[inline(always)]
pub(crate) fn spread_nibbles(code: u32) -> u32 {
    SPREAD[(code & ((1 << CODE_BITS) - 1)) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_nibbles_are_those_that_are_equal() {
        for nibbles in 0..=u16::MAX {
            for nibble in 0..16 {
                let set = |nibbles: u16| {
                    (0..4).filter(|i| u32::from(nibbles >> (4 * i) & 15) == nibble).map(|i| 1 << i).sum()
                };
                let other = nibbles.rotate_left(7);
                assert_eq!(equal_nibbles([nibbles, other], nibble), [set(nibbles), set(other)]);
            }
        }
    }

    #[test]
    fn less_nibbles_are_those_that_are_less() {
        for nibbles in NIBBLES {
            for nibble in 0..16 {
                let less = (0..4).filter(|i| u32::from(nibbles >> (4 * i) & 15) < nibble);
                assert_eq!(less_nibbles(nibbles, nibble), less.count() as u32);
            }
        }
    }

    #[test]
    fn every_sorted_quadruple_has_a_code_of_its_own() {
        let mut seen = vec![false; CODES as usize];
        for all in 0..=u16::MAX {
            let nibbles: Vec<u16> = (0..4).map(|i| all >> (4 * i) & 15).collect();
            if nibbles.is_sorted() {
                let code = encode(all);
                assert!(!core::mem::replace(&mut seen[code as usize], true), "{all:x}");
                assert_eq!(decode(code), all);
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
        assert_eq!((decode(CODES), decode(4095)), (0, 0));
    }

    #[test]
    fn spread_nibbles_are_the_nibbles() {
        for code in 0..1 << CODE_BITS {
            let spread =
                (0..4).map(|i| (u32::from(decode(code)) >> (4 * i) & 15) << (CODE_BITS + 5 * i)).sum();
            assert_eq!(spread_nibbles(code), spread);
        }
    }
}
