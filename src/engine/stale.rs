//! Which of a segment's buckets have changed since they were copied ahead of its split [G7].

/// A set of buckets.
pub(crate) struct Stale {
    /// A bit for each bucket.
    words: Box<[u64]>,
    /// No bit is set before this word.
    from: usize,
}

impl Stale {
    /// The set of all of so many buckets; `None` if there is no memory.
    pub(super) fn all(buckets: u32) -> Option<Self> {
        let mut words = Vec::new();
        words.try_reserve_exact(buckets.div_ceil(64) as usize).ok()?;
        words.extend((0..buckets).step_by(64).map(|first| u64::MAX >> (64 - (buckets - first).min(64))));
        Some(Stale { words: words.into_boxed_slice(), from: 0 })
    }

    /// Notes that the bucket has changed.
    pub(super) fn note(&mut self, bucket: u32) {
        let word = bucket as usize / 64;
        self.words[word] |= 1 << (bucket % 64);
        self.from = self.from.min(word);
    }

    /// Calls `copy` with stale buckets in order, `most` of them at most, which are then no longer stale. If `copy` panics, its
    /// bucket stays stale.
    #[inline(always)]
    pub(super) fn refresh(&mut self, most: usize, mut copy: impl FnMut(u32)) {
        let mut left = most;
        while let Some(word) = self.words.get_mut(self.from) {
            let begin = self.from as u32 * 64;
            while *word != 0 {
                if left == 0 {
                    return;
                }
                copy(begin + word.trailing_zeros());
                *word &= *word - 1;
                left -= 1;
            }
            self.from += 1;
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn refresh(stale: &mut Stale, most: usize) -> Vec<u32> {
        let mut buckets = Vec::new();
        stale.refresh(most, |bucket| buckets.push(bucket));
        buckets
    }

    #[test]
    fn every_bucket_is_stale_until_it_has_been_copied_and_again_when_it_changes() {
        for buckets in [1, 5, 63, 64, 65, 300] {
            let mut stale = Stale::all(buckets).expect("memory");
            assert_eq!(refresh(&mut stale, 0), []);
            let first = refresh(&mut stale, 3);
            assert_eq!(first.len(), buckets.min(3) as usize);
            assert!(first.into_iter().chain(refresh(&mut stale, usize::MAX)).eq(0..buckets));
            for bucket in (0..buckets).rev().step_by(7) {
                stale.note(bucket);
                stale.note(bucket);
            }
            let panics = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
                stale.refresh(1, |_| panic!("a hash that panics"));
            }));
            assert!(panics.is_err());
            let expected: Vec<u32> = (0..buckets).filter(|bucket| bucket % 7 == (buckets - 1) % 7).collect();
            assert_eq!(refresh(&mut stale, usize::MAX), expected);
            assert_eq!(refresh(&mut stale, usize::MAX), []);
        }
    }
}
