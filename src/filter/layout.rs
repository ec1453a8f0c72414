//! Which layout a filter has, and the one place where it is chosen at run time: [`Layout::run`].
//!
//! A [`Task`] is written once, over any [`Codec`]; `run` compiles it for every class of layouts and jumps to the right one. The
//! eight layouts that are requested most, or fit a word, have classes of their own, in which the compiler knows all widths. The
//! four of them that are not semi-sorted are inlined; the others are called, so that a look-up saves no registers for code that
//! it does not run.

use super::codec::Codec;
use super::lanes::{Dynamic, Halves, Lanes, Static};
use super::semi_sorted::{LOW_BITS, SemiSorted};

/// An operation that works in any layout.
pub(crate) trait Task {
    /// Its result.
    type Output;

    /// Runs the operation.
    fn run<C: Codec>(self, codec: C) -> Self::Output;
}

/// Widths of fingerprints.
pub(crate) const FINGERPRINT_BITS: core::ops::RangeInclusive<u32> = 2..=32;
/// Widths of fingerprints in semi-sorted buckets.
pub(crate) const SEMI_SORTED_BITS: core::ops::RangeInclusive<u32> = 5..=32;
/// Sizes of buckets.
pub(crate) const BUCKET_SLOTS: [u32; 4] = [1, 2, 4, 8];

/// How a bucket is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of a fingerprint.
    pub(crate) fingerprint_bits: u32,
    /// Slots in a bucket.
    pub(crate) bucket_slots: u32,
    /// The low nibbles are sorted and coded.
    pub(crate) semi_sorted: bool,
}

impl Format {
    /// Bits of a bucket.
    pub(crate) fn bucket_bits(self) -> u32 {
        self.fingerprint_bits * self.bucket_slots - if self.semi_sorted { 4 } else { 0 }
    }

    /// Whether there is such a layout.
    pub(crate) fn is_valid(self) -> bool {
        FINGERPRINT_BITS.contains(&self.fingerprint_bits)
            && BUCKET_SLOTS.contains(&self.bucket_slots)
            && (!self.semi_sorted
                || self.bucket_slots == 4 && SEMI_SORTED_BITS.contains(&self.fingerprint_bits))
    }
}

/// A format, with the values that reading and writing it require.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    class: Class,
}

/// A class of layouts: each has machine code of its own.
#[derive(Clone, Copy, Debug)]
enum Class {
    Four8,
    Four12,
    Four16,
    Eight8,
    Narrow(Lanes<Dynamic<u64>, u64>),
    Wide(Lanes<Dynamic<u128>, u128>),
    Widest(Halves),
    Sorted5,
    Sorted9,
    Sorted13,
    Sorted17,
    SortedNarrow(SemiSorted<Dynamic<u64>, u64, true>),
    SortedWide(SemiSorted<Dynamic<u128>, u128, true>),
}

impl Layout {
    /// The layout of a valid format.
    pub(crate) fn new(format: Format) -> Self {
        assert!(format.is_valid());
        let (bits, slots) = (format.fingerprint_bits, format.bucket_slots);
        let class = match (format.semi_sorted, bits, slots) {
            (true, 5, _) => Class::Sorted5,
            (true, 9, _) => Class::Sorted9,
            (true, 13, _) => Class::Sorted13,
            (true, 17, _) => Class::Sorted17,
            (true, ..=16, _) => Class::SortedNarrow(SemiSorted::new(Dynamic::new(bits - LOW_BITS, slots))),
            (true, ..) => Class::SortedWide(SemiSorted::new(Dynamic::new(bits - LOW_BITS, slots))),
            (false, 8, 4) => Class::Four8,
            (false, 12, 4) => Class::Four12,
            (false, 16, 4) => Class::Four16,
            (false, 8, 8) => Class::Eight8,
            (false, ..) if format.bucket_bits() <= 64 => Class::Narrow(Lanes::new(Dynamic::new(bits, slots))),
            (false, ..) if format.bucket_bits() <= 128 => Class::Wide(Lanes::new(Dynamic::new(bits, slots))),
            (false, ..) => Class::Widest(Halves::new(bits)),
        };
        Layout { format, class }
    }

    /// Runs an operation in this layout.
    #[inline(always)]
    pub(crate) fn run<T: Task>(&self, task: T) -> T::Output {
        match self.class {
            Class::Four8 => task.run(Lanes::new(Static::<8, 4>)),
            Class::Four12 => task.run(Lanes::new(Static::<12, 4>)),
            Class::Four16 => task.run(Lanes::new(Static::<16, 4>)),
            Class::Eight8 => task.run(Lanes::new(Static::<8, 8>)),
            Class::Narrow(ref codec) => outlined(task, *codec),
            Class::Wide(ref codec) => outlined(task, *codec),
            Class::Widest(ref codec) => outlined(task, *codec),
            Class::Sorted5 => outlined(task, SemiSorted::<_, u64, false>::new(Static::<1, 4>)),
            Class::Sorted9 => outlined(task, SemiSorted::<_, u64, false>::new(Static::<5, 4>)),
            Class::Sorted13 => outlined(task, SemiSorted::<_, u64, true>::new(Static::<9, 4>)),
            Class::Sorted17 => outlined(task, SemiSorted::<_, u64, false>::new(Static::<13, 4>)),
            Class::SortedNarrow(ref codec) => outlined(task, *codec),
            Class::SortedWide(ref codec) => outlined(task, *codec),
        }
    }
}

/// [`Task::run`], in a function of its own: see above. The codec is passed by value: a reference would force a copy of it to
/// the stack.
#[inline(never)]
fn outlined<T: Task, C: Codec>(task: T, codec: C) -> T::Output {
    task.run(codec)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::words::{Bytes, SPARE_WORDS, Shared, Words};
    use super::*;
    use crate::sync::AtomicU64;

    /// Every format there is.
    pub(crate) fn formats() -> impl Iterator<Item = Format> {
        let all = |semi_sorted| {
            FINGERPRINT_BITS.flat_map(move |fingerprint_bits| {
                BUCKET_SLOTS.map(|bucket_slots| Format { fingerprint_bits, bucket_slots, semi_sorted })
            })
        };
        all(false).chain(all(true)).filter(|format| format.is_valid())
    }

    /// Fills and empties three buckets that share words, against vectors.
    struct Oracle(u32);

    impl Task for Oracle {
        type Output = ();

        fn run<C: Codec>(self, codec: C) {
            let memory: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
            // SAFETY: 64 words, which outlive it.
            let words = unsafe { Shared::new(memory.as_ptr(), memory.len()) };
            let mut oracle = vec![Vec::<u32>::new(); 5];
            let mut state = 7_u64;
            let mut random = |below: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((state >> 33) % u64::from(below)) as u32
            };
            // Some fingerprints that are met often: with and without low nibbles, narrow and as wide as possible.
            let mask = u32::MAX >> (32 - self.0);
            let pool = [
                1,
                2,
                3,
                15,
                16,
                0xF0,
                0x1101,
                0x2210,
                0x8000_0001,
                !0,
                !15,
                !0 << (self.0 - 1),
                0x5A5A_5A5A,
            ];
            for _ in 0..400 {
                let bucket = random(5);
                let fingerprint = (pool[random(pool.len() as u32) as usize] & mask).max(1);
                let bits = codec.load(words, bucket);
                let mine = &mut oracle[bucket as usize];
                if random(2) == 0 {
                    let more = codec.with(bits, fingerprint);
                    assert_eq!(more.is_some(), mine.len() < codec.slots() as usize);
                    if let Some(bits) = more {
                        mine.push(fingerprint);
                        codec.store(words, bucket, bits);
                    }
                } else {
                    let at = mine.iter().position(|other| *other == fingerprint);
                    let less = codec.without(bits, fingerprint);
                    assert_eq!(less.is_some(), at.is_some());
                    if let (Some(bits), Some(at)) = (less, at) {
                        mine.swap_remove(at);
                        codec.store(words, bucket, bits);
                    }
                }
                check(codec, words, &oracle, fingerprint);
            }
        }
    }

    /// Checks that all buckets have what they should have; of this fingerprint, as many copies.
    fn check<C: Codec>(codec: C, words: Shared, oracle: &[Vec<u32>], fingerprint: u32) {
        for (bucket, mine) in (0..).zip(oracle) {
            let bits = codec.load(words, bucket);
            let mut all: Vec<u32> =
                (0..codec.slots()).map(|lane| codec.get(bits, lane)).filter(|f| *f != 0).collect();
            all.sort_unstable();
            let mut mine = mine.clone();
            mine.sort_unstable();
            assert_eq!(all, mine);
            let copies = mine.iter().filter(|f| **f == fingerprint).count();
            assert_eq!(codec.count(bits, fingerprint) as usize, copies);
            let none = codec.load(words, 5);
            assert_eq!(codec.either_has(bits, none, fingerprint), copies > 0);
            assert_eq!(codec.either_has(none, bits, fingerprint), copies > 0);
            let pair = [bucket & !1, bucket | 1];
            let held = pair.iter().filter_map(|bucket| oracle.get(*bucket as usize));
            let held = held.flatten().any(|other| *other == fingerprint);
            assert_eq!(codec.pair_has(words, pair[0], pair[1], fingerprint), held);
            assert_eq!(codec.pair_has(words, pair[1], pair[0], fingerprint), held);
            assert_eq!(codec.count(bits, 0) as usize, codec.slots() as usize - mine.len());
            assert_eq!(codec.free_lane(bits).is_some(), mine.len() < codec.slots() as usize);
            assert!(codec.is_valid(bits));
        }
    }

    /// Fills all lanes of some buckets, and reads them from words and from bytes.
    struct Alike(u32);

    impl Task for Alike {
        type Output = ();

        fn run<C: Codec>(self, codec: C) {
            const BUCKETS: u32 = 66;
            let len = (BUCKETS * codec.bucket_bits()).div_ceil(64) as usize;
            let memory: Vec<AtomicU64> = (0..len + SPARE_WORDS).map(|_| AtomicU64::new(0)).collect();
            // SAFETY: this many words, which outlive it.
            let words = unsafe { Shared::new(memory.as_ptr(), memory.len()) };
            let fingerprint =
                |at: u32| ((at + 1).wrapping_mul(0x9E37_79B9) >> (32 - self.0)).max(1 << (self.0 - 1));
            for at in 0..BUCKETS * codec.slots() {
                let bits = codec.load(words, at / codec.slots());
                codec.store(words, at / codec.slots(), codec.with(bits, fingerprint(at)).unwrap());
            }
            let mut bytes: Vec<u8> = (0..len).flat_map(|index| words.word(index).to_le_bytes()).collect();
            // The bits after the last word belong to no bucket.
            bytes.extend([0xA5; 8]);
            for bucket in 0..BUCKETS {
                let (bits, alike) = (codec.load(words, bucket), codec.load(Bytes(&bytes), bucket));
                for lane in 0..codec.slots() {
                    let fingerprint = codec.get(bits, lane);
                    assert_eq!(codec.get(alike, lane), fingerprint, "bucket {bucket}, lane {lane}");
                    assert_eq!(codec.count(alike, fingerprint), codec.count(bits, fingerprint));
                    assert!(codec.pair_has(Bytes(&bytes), bucket, bucket ^ 1, fingerprint));
                }
                assert!(codec.is_valid(alike) && codec.count(alike, 0) == 0);
            }
        }
    }

    /// Counts in bytes that are valid or not, and are empty or not.
    struct Occupied;

    impl Task for Occupied {
        type Output = ();

        fn run<C: Codec>(self, codec: C) {
            const BUCKETS: u32 = 302;
            let bits = (BUCKETS * codec.bucket_bits()) as usize;
            let mut bytes = vec![0; bits.div_ceil(64) * 8 + 8];
            let mut state = 5_u32;
            for sparse in [false, true, true] {
                assert_eq!(codec.occupied(Bytes(&bytes), BUCKETS), occupied(codec, &bytes, BUCKETS));
                for byte in &mut bytes[..bits / 8] {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *byte = if sparse && state >> 20 & 15 != 0 { 0 } else { (state >> 24) as u8 };
                }
            }
        }
    }

    /// Bucket by bucket.
    fn occupied<C: Codec>(codec: C, bytes: &[u8], buckets: u32) -> Option<u64> {
        let buckets = (0..buckets).map(|bucket| codec.load(Bytes(bytes), bucket));
        let count = |bits| {
            let lanes = (0..codec.slots()).filter(|lane| codec.get(bits, *lane) != 0);
            codec.is_valid(bits).then(|| lanes.count() as u64)
        };
        buckets.map(count).sum()
    }

    #[test]
    fn occupied_slots_are_counted_in_every_layout() {
        for format in formats() {
            Layout::new(format).run(Occupied);
        }
    }

    #[test]
    fn bytes_are_read_as_words_are_in_every_layout() {
        for format in formats() {
            Layout::new(format).run(Alike(format.fingerprint_bits));
        }
    }

    /// Fills two buckets, the emptier first where the layout can tell.
    struct Evenly {
        bits: u32,
        /// Whether the layout can tell which bucket is the emptier.
        tells: bool,
    }

    impl Task for Evenly {
        type Output = ();

        fn run<C: Codec>(self, codec: C) {
            let slots = codec.slots();
            let mut buckets = [codec.load(Bytes(&[]), 0); 2];
            let mut taken = [0; 2];
            // Of different nibbles, and as wide as possible.
            let fingerprint = |i: u32| (1 + i % 3) | (i << 4 & (u32::MAX >> (32 - self.bits)) & !15);
            for i in 0..2 * slots {
                let Some((is_second, more)) = codec.either_with(buckets[0], buckets[1], fingerprint(i))
                else {
                    panic!("{taken:?} of {slots}");
                };
                let bucket = usize::from(is_second);
                assert_eq!(
                    codec.count(more, fingerprint(i)),
                    codec.count(buckets[bucket], fingerprint(i)) + 1
                );
                buckets[bucket] = more;
                taken[bucket] += 1;
                assert!(taken.iter().all(|n| *n <= slots), "{taken:?}");
                if self.tells {
                    assert!(taken[0].abs_diff(taken[1]) <= 1, "{taken:?}");
                }
            }
            assert!(codec.either_with(buckets[0], buckets[1], 1).is_none());
            // One slot is empty again, in either bucket.
            for emptied in [0, 1] {
                let mut buckets = buckets;
                let held = codec.get(buckets[emptied], 0);
                buckets[emptied] = codec.without(buckets[emptied], held).unwrap();
                let (is_second, more) = codec.either_with(buckets[0], buckets[1], 1).unwrap();
                assert_eq!((usize::from(is_second), codec.free_lane(more)), (emptied, None));
            }
        }
    }

    #[test]
    fn one_of_two_buckets_gets_a_fingerprint_in_every_layout() {
        for format in formats() {
            let tells = !format.semi_sorted && format.bucket_bits() <= 128;
            Layout::new(format).run(Evenly { bits: format.fingerprint_bits, tells });
        }
    }

    #[test]
    fn every_layout_holds_what_is_put_into_it_and_nothing_else() {
        assert_eq!(formats().count(), 31 * 4 + 28);
        for format in formats() {
            let layout = Layout::new(format);
            layout.run(Oracle(format.fingerprint_bits));
        }
    }
}
