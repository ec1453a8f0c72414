//! What a cache keeps of each entry in addition to key and value: words behind the entry, one for each fact that the cache's
//! options require, and none where they require nothing.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::time::Duration;

use super::time::{NEVER, Nanos, TRIES, nanos};
use crate::entries::EntryPointer;
use crate::sync::{AtomicU64, Ordering};

/// Hits within this much of one another may count as one: a hot entry's time of last use is not written with every hit.
const USE_GRAIN: Nanos = 1_000_000;

/// The facts about an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// The weight that the weigher returned.
    pub(super) weight: u64,
    /// When the entry must go, used or not: see [`Time::deadline_after`](super::time::Time::deadline_after).
    pub(super) deadline: Nanos,
    /// When it was hit last, or inserted.
    pub(super) last_use: Nanos,
    /// How long after its last use it must go.
    pub(super) idle: Nanos,
}

impl Facts {
    /// Whether the entry must not be returned any more.
    #[inline(always)]
    pub(super) fn has_expired(&self, now: Nanos) -> bool {
        now >= self.deadline || now >= self.last_use.saturating_add(self.idle)
    }
}

/// Which words follow each entry of a cache, in this order: its weight, its deadline, when it was used last, how long it may be
/// idle. A fact that has no word is the same for all entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    /// Bytes from an entry's address to its words.
    at: usize,
    /// How many words there are.
    words: u8,
    has_weight: bool,
    has_deadline: bool,
    /// Only where there is a deadline as well.
    has_last_use: bool,
    /// Only where there is a last use.
    has_idle: bool,
    /// How long each entry may be idle, if there is no word for it.
    idle: Nanos,
    /// The bits of a deadline that are not part of the time: [`TRIES`] or none.
    tries: Nanos,
}

/// How entries expire, as far as their fields depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    /// How long each of them may be idle.
    pub(super) to_idle: Option<Duration>,
    /// Whether each has a limit of its own to that.
    pub(super) has_own_idle: bool,
    /// Whether values are loaded anew ahead of their deadlines [F8].
    pub(super) is_refreshed: bool,
}

impl Fields {
    /// The fields of a cache whose entries have their words this many bytes from their address, with or without a weigher, and
    /// with these limits, if its entries expire.
    pub(super) fn new(at: usize, has_weight: bool, limits: Option<Limits>) -> Self {
        let has_deadline = limits.is_some();
        let Limits { to_idle, has_own_idle: has_idle, is_refreshed } = limits.unwrap_or_default();
        let has_last_use = has_idle || to_idle.is_some();
        let words = [has_weight, has_deadline, has_last_use, has_idle].map(u8::from).iter().sum();
        let (idle, tries) = (to_idle.map_or(NEVER, nanos), if is_refreshed { TRIES } else { 0 });
        Fields { at, words, has_weight, has_deadline, has_last_use, has_idle, idle, tries }
    }

    /// How many bytes follow each entry.
    pub(super) fn bytes(&self) -> usize {
        usize::from(self.words) * size_of::<AtomicU64>()
    }

    /// Whether entries have a weight each.
    #[inline(always)]
    pub(super) fn has_weight(&self) -> bool {
        self.has_weight
    }

    /// The facts about an entry.
    ///
    /// # Safety
    ///
    /// [`Fields::write`] has written it at `at`, and it is not used longer than the lock or the guard under which the entry was
    /// found.
    #[inline(always)]
    pub(super) unsafe fn of(&self, entry: EntryPointer) -> Meta<'_> {
        // SAFETY: the caller's.
        unsafe { Meta::new(entry.byte_add(self.at).cast(), self) }
    }

    /// Writes the facts about an entry behind it.
    ///
    /// # Safety
    ///
    /// At `words` are [`Fields::bytes`] of ours, aligned for words, which nobody else sees yet.
    #[inline(always)]
    pub(super) unsafe fn write(&self, words: NonNull<AtomicU64>, facts: &Facts) {
        if self.words != 0 {
            // SAFETY: the caller's.
            unsafe { self.write_words(words, facts) };
        }
    }

    /// [`Fields::write`], where there are facts to write.
    ///
    /// # Safety
    ///
    /// As for [`Fields::write`].
    unsafe fn write_words(&self, words: NonNull<AtomicU64>, facts: &Facts) {
        let mut next = words;
        let mut push = |is_there: bool, word: u64| {
            if is_there {
                // SAFETY: the caller's; `new` has counted as many words as are written.
                next = unsafe {
                    next.write(AtomicU64::new(word));
                    next.add(1)
                };
            }
        };
        push(self.has_weight, facts.weight);
        push(self.has_deadline, facts.deadline);
        push(self.has_last_use, facts.last_use);
        push(self.has_idle, facts.idle);
    }
}

/// The facts that follow an entry.
#[derive(Clone, Copy)]
pub(super) struct Meta<'g> {
    words: NonNull<AtomicU64>,
    fields: &'g Fields,
    lives: PhantomData<&'g AtomicU64>,
}

impl<'g> Meta<'g> {
    /// The facts that [`Fields::write`] has written at `words`.
    ///
    /// # Safety
    ///
    /// The same fields have written them, and this is not used longer than the lock or the guard under which the entry was
    /// found.
    #[inline(always)]
    pub(super) unsafe fn new(words: NonNull<AtomicU64>, fields: &'g Fields) -> Self {
        Meta { words, fields, lives: PhantomData }
    }

    /// The word that has this many before it, not counting the weight.
    ///
    /// # Safety
    ///
    /// There is such a word.
    #[inline(always)]
    unsafe fn word(self, before: usize) -> &'g AtomicU64 {
        // SAFETY: the caller's, and that of `new`.
        unsafe { self.words.add(usize::from(self.fields.has_weight) + before).as_ref() }
    }

    /// The weight of the entry.
    #[inline(always)]
    pub(super) fn weight(self) -> u64 {
        // SAFETY: it is the first one. Relaxed: written before the entry was published, like the deadline, and how long it may
        // be idle.
        if self.fields.has_weight { unsafe { self.words.as_ref() }.load(Ordering::Relaxed) } else { 1 }
    }

    /// When it must go, used or not.
    pub(super) fn deadline(self) -> Nanos {
        let until = self.until();
        // Without its last bits `NEVER` would be a moment.
        if until >= NEVER & !TRIES { NEVER } else { until }
    }

    /// Sets the deadline. Only for the holder of the lock under which the entry was found. Does nothing where there are no
    /// deadlines.
    pub(super) fn set_deadline(self, deadline: Nanos) {
        // Relaxed: as in `has_expired`.
        self.deadline_word().into_iter().for_each(|word| word.store(deadline, Ordering::Relaxed));
    }

    /// The same, except that for an entry that lives forever it is some moment that no clock shows.
    #[inline(always)]
    fn until(self) -> Nanos {
        // Relaxed: as in `has_expired`.
        self.deadline_word().map_or(NEVER, |word| word.load(Ordering::Relaxed) & !self.fields.tries)
    }

    #[inline(always)]
    fn deadline_word(self) -> Option<&'g AtomicU64> {
        // SAFETY: it follows the weight.
        self.fields.has_deadline.then(|| unsafe { self.word(0) })
    }

    /// Whether the entry has so little time left that its value is to be loaded anew: no more than `ahead`; or, where that was
    /// tried in vain, no more than half of that for each time [F8].
    pub(super) fn is_due(self, now: Nanos, ahead: Nanos) -> bool {
        // Relaxed: as in `has_expired`.
        let tries = self.deadline_word().map_or(TRIES, |word| word.load(Ordering::Relaxed) & TRIES);
        tries != TRIES && self.is_near_end(now, ahead >> tries)
    }

    /// Whether it has no more than `ahead` left, however often its value could not be refreshed.
    pub(super) fn is_near_end(self, now: Nanos, ahead: Nanos) -> bool {
        self.fields.tries != 0 && self.until().saturating_sub(now) <= ahead
    }

    /// Notes that the value, which was due, could not be refreshed: it is not due again before at least a quarter of what is
    /// left now has passed.
    pub(super) fn put_off(self, now: Nanos, ahead: Nanos) {
        let Some(word) = self.deadline_word() else { return };
        // Relaxed, both: a number, which says nothing of others. It is in vain if another thread has noted it at the same time.
        let old = word.load(Ordering::Relaxed);
        let left = (old & !TRIES).saturating_sub(now);
        if left > ahead {
            // The entry has got more time meanwhile.
            return;
        }
        let is_soon = |tries: &Nanos| ahead >> tries > left - left / 4;
        let tries = ((old & TRIES) + 1..TRIES).find(|tries| !is_soon(tries)).unwrap_or(TRIES);
        let _ = word.compare_exchange(old, old & !TRIES | tries, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The word for the time of last use, if that is noted, and how long after it the entry must go.
    #[inline(always)]
    fn idle(self) -> Option<(&'g AtomicU64, Nanos)> {
        if !self.fields.has_last_use {
            return None;
        }
        // SAFETY: the deadline is before the last use, and that before the time of its own.
        let (last_use, own) = unsafe { (self.word(1), self.fields.has_idle.then(|| self.word(2))) };
        Some((last_use, own.map_or(self.fields.idle, |own| own.load(Ordering::Relaxed))))
    }

    /// When the entry was hit last, or inserted, if that is known.
    pub(super) fn last_use(self) -> Option<Nanos> {
        // SAFETY: the deadline is before it.
        // Relaxed: as in `has_expired`.
        self.fields.has_last_use.then(|| unsafe { self.word(1) }.load(Ordering::Relaxed))
    }

    /// Whether the entry must not be returned any more.
    #[inline(always)]
    pub(super) fn has_expired(self, now: Nanos) -> bool {
        // Relaxed: a moment; reading an older one is as if another thread had hit the entry just now and that were not visible
        // yet.
        let is_idle = |(last_use, idle): (&AtomicU64, Nanos)| {
            now >= last_use.load(Ordering::Relaxed).saturating_add(idle)
        };
        self.fields.has_deadline && (now >= self.until() || self.idle().is_some_and(is_idle))
    }

    /// How long the entry may still be returned, if it is not used meanwhile; `None` is forever.
    pub(super) fn left(self, now: Nanos) -> Option<Nanos> {
        // Relaxed: as in `has_expired`.
        let idle =
            |(last_use, idle): (&AtomicU64, Nanos)| last_use.load(Ordering::Relaxed).saturating_add(idle);
        let end = self.idle().map_or(NEVER, idle).min(self.deadline());
        (end != NEVER).then(|| end.saturating_sub(now))
    }

    /// Notes a hit.
    #[inline(always)]
    pub(super) fn note_use(self, now: Nanos) {
        let Some((last_use, idle)) = self.idle() else { return };
        // Relaxed, both: as in `has_expired`.
        if now > last_use.load(Ordering::Relaxed).saturating_add(USE_GRAIN.min(idle / 64)) {
            // Not a store: a thread that was stopped before it would undo the uses since.
            last_use.fetch_max(now, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const FACTS: Facts = Facts { weight: 7, deadline: 1 << 50, last_use: 1 << 40, idle: 1 << 30 };
    const ALL: Duration = Duration::from_secs(1);

    fn limits(all: bool, own: bool) -> Limits {
        Limits { to_idle: all.then_some(ALL), has_own_idle: own, is_refreshed: false }
    }

    /// Calls `f` with the facts behind an entry, and with how many words they have.
    fn with_written(weighs: bool, limits: Option<Limits>, f: impl FnOnce(Meta<'_>, usize)) {
        let words = [const { AtomicU64::new(u64::MAX) }; 5];
        let fields = Fields::new(0, weighs, limits);
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
            with_written(weighs, Some(limits(false, false)), |meta, words| {
                let known = (meta.weight(), meta.deadline(), meta.last_use(), words);
                assert_eq!(known, (weight, 1 << 50, None, one + 1));
            });
            for (all, own, n, idle) in
                [(true, false, 2, nanos(ALL)), (false, true, 3, 1 << 30), (true, true, 3, 1 << 30)]
            {
                with_written(weighs, Some(limits(all, own)), |meta, words| {
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
            with_written(true, Some(limits(true, own)), |meta, _| {
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
