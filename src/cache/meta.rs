//! What a cache keeps of each entry beside key and value: words behind it, one for each thing that the cache's options make it
//! know, and none where they ask for nothing.

use core::marker::PhantomData;
use core::ptr::NonNull;

use super::time::{NEVER, Nanos, Time, nanos};
use crate::sync::{AtomicU64, Ordering};

/// Hits within so much of one another may count as one: a hot entry's time of last use is not written with every hit.
const USE_GRAIN: Nanos = 1_000_000;

/// What is known of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// What the weigher said.
    pub(super) weight: u64,
    /// When the entry must go, used or not.
    pub(super) deadline: Nanos,
    /// When it was hit last, or inserted.
    pub(super) last_use: Nanos,
    /// How long after that it must go.
    pub(super) idle: Nanos,
}

impl Facts {
    /// Whether the entry must not be returned any more.
    #[inline(always)]
    pub(super) fn has_expired(&self, now: Nanos) -> bool {
        now >= self.deadline || now >= self.last_use.saturating_add(self.idle)
    }
}

/// How long entries may go without a hit.
#[derive(Clone, Copy, Debug)]
enum Idle {
    /// For ever: hits are not noted.
    Forever,
    /// All of them so long.
    All(Nanos),
    /// Each has a time of its own.
    Each,
}

/// Which words follow each entry of a cache: its weight, its deadline, when it was used last, how long it may be idle. What has
/// no word is the same for all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    weighs: bool,
    expires: bool,
    idle: Idle,
}

impl Fields {
    /// Those of a cache that has a weigher or not, and such times.
    pub(super) fn new<K, V>(weighs: bool, time: Option<&Time<K, V>>) -> Self {
        let idle = match time {
            Some(Time { own_idle: Some(_), .. }) => Idle::Each,
            Some(Time { to_idle: Some(all), .. }) => Idle::All(nanos(*all)),
            _ => Idle::Forever,
        };
        Fields { weighs, expires: time.is_some(), idle }
    }

    /// How many bytes follow each entry.
    pub(super) fn bytes(&self) -> usize {
        let of_idle = match self.idle {
            Idle::Forever => 0,
            Idle::All(_) => 1,
            Idle::Each => 2,
        };
        (self.before_last_use() + of_idle) * size_of::<AtomicU64>()
    }

    /// Whether entries have a weight each.
    #[inline(always)]
    pub(super) fn weighs(&self) -> bool {
        self.weighs
    }

    /// Whether it is known when an entry was used last.
    #[inline(always)]
    pub(super) fn notes_use(&self) -> bool {
        !matches!(self.idle, Idle::Forever)
    }

    #[inline(always)]
    fn before_last_use(&self) -> usize {
        usize::from(self.weighs) + usize::from(self.expires)
    }

    /// Writes what is known of an entry behind it.
    ///
    /// # Safety
    ///
    /// At `words` are [`Fields::bytes`] of ours, aligned for words, which nobody else sees yet.
    pub(super) unsafe fn write(&self, words: NonNull<AtomicU64>, facts: &Facts) {
        let mut next = words;
        let mut push = |word: u64| {
            // SAFETY: the caller's; as many are written as `bytes` has counted.
            next = unsafe {
                next.write(AtomicU64::new(word));
                next.add(1)
            };
        };
        if self.weighs {
            push(facts.weight);
        }
        if self.expires {
            push(facts.deadline);
        }
        if self.notes_use() {
            push(facts.last_use);
        }
        if let Idle::Each = self.idle {
            push(facts.idle);
        }
    }
}

/// What follows an entry.
#[derive(Clone, Copy)]
pub(super) struct Meta<'g> {
    words: NonNull<AtomicU64>,
    fields: &'g Fields,
    lives: PhantomData<&'g AtomicU64>,
}

impl<'g> Meta<'g> {
    /// What [`Fields::write`] has written there.
    ///
    /// # Safety
    ///
    /// The same fields did, and the entry lives as long as this.
    #[inline(always)]
    pub(super) unsafe fn new(words: NonNull<AtomicU64>, fields: &'g Fields) -> Self {
        Meta { words, fields, lives: PhantomData }
    }

    /// One of the words.
    ///
    /// # Safety
    ///
    /// There are more than `index`.
    #[inline(always)]
    unsafe fn word(self, index: usize) -> &'g AtomicU64 {
        // SAFETY: the caller's, and that of `new`.
        unsafe { self.words.add(index).as_ref() }
    }

    /// What the entry weighs.
    #[inline(always)]
    pub(super) fn weight(self) -> u64 {
        // SAFETY: it is the first one, if it is there.
        // Relaxed: written before the entry was published, as the deadline, and how long it may be idle.
        if self.fields.weighs { unsafe { self.word(0) }.load(Ordering::Relaxed) } else { 1 }
    }

    /// When it must go, used or not.
    #[inline(always)]
    pub(super) fn deadline(self) -> Nanos {
        if !self.fields.expires {
            return NEVER;
        }
        // SAFETY: the weight is before it.
        unsafe { self.word(usize::from(self.fields.weighs)) }.load(Ordering::Relaxed)
    }

    /// Where it is noted when it was used last, and how long after that it must go; if that is known.
    #[inline(always)]
    fn idle(self) -> Option<(&'g AtomicU64, Nanos)> {
        let at = self.fields.before_last_use();
        // SAFETY: these are there for each such cache, behind weight and deadline.
        unsafe {
            match self.fields.idle {
                Idle::Forever => None,
                Idle::All(idle) => Some((self.word(at), idle)),
                Idle::Each => Some((self.word(at), self.word(at + 1).load(Ordering::Relaxed))),
            }
        }
    }

    /// When it was hit last, or inserted; if that is known.
    pub(super) fn last_use(self) -> Option<Nanos> {
        // Relaxed: as in `has_expired`.
        self.idle().map(|(last_use, _)| last_use.load(Ordering::Relaxed))
    }

    /// Whether it must not be returned any more.
    #[inline(always)]
    pub(super) fn has_expired(self, now: Nanos) -> bool {
        // Relaxed: a moment; an older one is as long ago as somebody has hit the entry just now and not been seen yet.
        let is_idle = |(last_use, idle): (&AtomicU64, Nanos)| {
            now >= last_use.load(Ordering::Relaxed).saturating_add(idle)
        };
        now >= self.deadline() || self.idle().is_some_and(is_idle)
    }

    /// Notes a hit.
    #[inline(always)]
    pub(super) fn note_use(self, now: Nanos) {
        let Some((last_use, idle)) = self.idle() else { return };
        // Relaxed, both: as in `has_expired`.
        if now > last_use.load(Ordering::Relaxed).saturating_add(USE_GRAIN.min(idle / 64)) {
            // Not a store: whoever was stopped before it would undo the uses since.
            last_use.fetch_max(now, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::time::Duration;

    use super::super::ManualClock;
    use super::*;

    const FACTS: Facts = Facts { weight: 7, deadline: 1 << 50, last_use: 1 << 40, idle: 1 << 30 };
    const ALL: Duration = Duration::from_secs(1);

    fn time(all: bool, own: bool) -> Time<u32, u32> {
        Time {
            clock: Box::new(ManualClock::new()),
            to_live: None,
            own_life: None,
            to_idle: all.then_some(ALL),
            own_idle: own.then(|| Box::new(|_: &u32, _: &u32| None) as _),
        }
    }

    /// Calls `f` with what is behind an entry, and how many words that has.
    fn with_written(weighs: bool, time: Option<Time<u32, u32>>, f: impl FnOnce(Meta<'_>, usize)) {
        let words = [const { AtomicU64::new(u64::MAX) }; 5];
        let fields = Fields::new(weighs, time.as_ref());
        let n = fields.bytes() / size_of::<AtomicU64>();
        let first = NonNull::from(&words).cast();
        // SAFETY: there are more of them than any cache has.
        let meta = unsafe {
            fields.write(first, &FACTS);
            Meta::new(first, &fields)
        };
        f(meta, n);
        assert!(words[n..].iter().all(|word| word.load(Ordering::Relaxed) == u64::MAX), "{fields:?}");
    }

    #[test]
    fn an_entry_has_a_word_for_each_thing_that_the_options_make_the_cache_know() {
        with_written(false, None, |meta, words| {
            assert_eq!((meta.weight(), meta.deadline(), meta.last_use(), words), (1, NEVER, None, 0));
        });
        with_written(true, None, |meta, words| {
            assert_eq!((meta.weight(), meta.deadline(), meta.last_use(), words), (7, NEVER, None, 1));
        });
        for weighs in [false, true] {
            let (weight, one) = if weighs { (7, 1) } else { (1, 0) };
            with_written(weighs, Some(time(false, false)), |meta, words| {
                let known = (meta.weight(), meta.deadline(), meta.last_use(), words);
                assert_eq!(known, (weight, 1 << 50, None, one + 1));
            });
            for (all, own, n, idle) in
                [(true, false, 2, nanos(ALL)), (false, true, 3, 1 << 30), (true, true, 3, 1 << 30)]
            {
                with_written(weighs, Some(time(all, own)), |meta, words| {
                    let known = (meta.weight(), meta.deadline(), meta.last_use(), words);
                    assert_eq!(known, (weight, 1 << 50, Some(1 << 40), one + n));
                    assert!(!meta.has_expired((1 << 40) + idle - 1) && meta.has_expired((1 << 40) + idle));
                });
            }
        }
    }

    #[test]
    fn a_hit_is_noted_unless_another_was_just_before() {
        for (own, idle) in [(false, nanos(ALL)), (true, 1 << 30)] {
            with_written(true, Some(time(true, own)), |meta, _| {
                meta.note_use((1 << 40) + USE_GRAIN);
                assert_eq!(meta.last_use(), Some(1 << 40));
                meta.note_use((1 << 40) + USE_GRAIN + 1);
                assert_eq!(meta.last_use(), Some((1 << 40) + USE_GRAIN + 1));
                meta.note_use(1 << 39);
                assert!(!meta.has_expired((1 << 40) + USE_GRAIN + idle), "an older hit changes nothing");
                assert!(meta.has_expired(1 << 50), "used or not");
            });
        }
    }
}
