//! Keys and values that every check can recompute: the value of a key is a function of the key and a version.
//!
//! Keys are numbered; `key(i)` scatters the number over all 64 bits, so that no contestant profits from consecutive integers. A
//! value carries 32 bits derived from its key and the 32-bit version of its last write: a value that belongs to another key, or
//! to an older write, can be told from the right one.

/// Indices from here on are never inserted: their keys are certain misses.
pub const FIRST_ABSENT: u64 = 1 << 40;

/// Bytes of a text key and of a text value.
pub const TEXT_BYTES: usize = 20;

const TEXT_KEY_PREFIX: &str = "user";
const TEXT_VALUE_PREFIX: &str = "data";

/// The key of an index: SplitMix64's finalizer (Steele, Lea, Flood, 2014), a bijection, so keys are distinct.
#[inline]
pub fn key(index: u64) -> u64 {
    let mut z = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The value of `key` after its write number `version`.
#[inline]
pub fn value(key: u64, version: u32) -> u64 {
    // One multiplication: this runs inside the timed loops.
    (key.wrapping_mul(0xD6E8_FEB8_6659_FD93) & !u64::from(u32::MAX)) | u64::from(version)
}

/// The text key of an index: 20 ASCII bytes.
pub fn text_key(index: u64) -> String {
    format!("{TEXT_KEY_PREFIX}{:016x}", key(index))
}

/// The text value of a text key: 20 ASCII bytes that repeat the key's last 16.
pub fn text_value(key: &str) -> String {
    format!("{TEXT_VALUE_PREFIX}{}", key.get(TEXT_KEY_PREFIX.len()..).unwrap_or_default())
}

/// Whether `value` is the one written for `key`.
#[inline]
pub fn text_belongs(key: &str, value: &str) -> bool {
    value.len() == TEXT_BYTES
        && value.starts_with(TEXT_VALUE_PREFIX)
        && value.as_bytes()[TEXT_VALUE_PREFIX.len()..] == key.as_bytes()[TEXT_KEY_PREFIX.len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_its_key_and_version_alone() {
        for i in 0..1000 {
            assert_ne!(value(key(i), 7) >> 32, value(key(i + 1), 7) >> 32);
            assert_ne!(value(key(i), 7), value(key(i), 8));
        }
    }

    #[test]
    fn a_text_value_belongs_to_its_key_alone() {
        let (a, b) = (text_key(1), text_key(2));
        assert_eq!((a.len(), text_value(&a).len()), (TEXT_BYTES, TEXT_BYTES));
        assert!(text_belongs(&a, &text_value(&a)));
        assert!(!text_belongs(&a, &text_value(&b)));
        assert!(!text_belongs(&a, &a));
        assert!(!text_belongs(&a, ""));
    }
}
