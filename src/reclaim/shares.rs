//! Which thread frees how much of what waits, on real threads [C5]: a share, if its guard leaves; everything, if it has held
//! the guard for long or was in the way of a flush. Nothing is left for good.

use super::crowd::FEW_BAGS;
use super::epochs::{BAGS, Collector, MANY};
use super::pace::Pace;
use super::stress::{retire, retire_under};
use super::{Guard, Retire};
use crate::record::Extent;
use crate::seats;
use crate::sync::{AtomicU64, Ordering};

/// Nobody retires anything more then, nor flushes: a thread whose guard leaves frees some of it, even if it has not sent any of
/// it away.
#[test]
fn what_is_too_much_and_waits_for_a_guard_is_freed_bit_by_bit_when_that_has_left() {
    const N: usize = 3 * FEW_BAGS * MANY;
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let look = || freed.load(Ordering::Relaxed);
    let on_another_thread =
        |run: &(dyn Fn() + Sync)| std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    let guard = collector.enter();
    on_another_thread(&|| retire(N, &collector, &freed));
    assert_eq!(look(), 0, "a guard lives");
    drop(guard);
    assert_eq!(look(), MANY as u64);
    // A guard that has a record to itself, two guards, an owned guard, a guard that is lent a record.
    let others: [_; 8] = core::array::from_fn(|_| Collector::new(true, None));
    let enters: [&(dyn Fn() + Sync); 4] = [
        &|| drop(collector.enter()),
        &|| drop((collector.enter(), collector.enter())),
        &|| drop(collector.enter_owned()),
        &|| {
            let _others: Vec<_> = others.iter().map(Collector::enter).collect();
            drop(collector.enter());
        },
    ];
    for enter in enters {
        for leave in [enter, &|| on_another_thread(enter)] {
            let before = look();
            leave();
            let more = look() - before;
            assert!(more >= MANY as u64 && more <= 2 * MANY as u64, "{more}");
        }
    }
    let leaves = (0..N).take_while(|_| look() < N as u64).map(|_| drop(collector.enter())).count();
    assert!(look() == N as u64 && leaves < N / MANY, "{} after {leaves}", look());
}

/// That guard was in the way all the time.
#[test]
fn who_sends_much_away_under_one_guard_frees_it_with_what_others_have_sent() {
    const N: usize = LEFT;
    fn send_away<'c, G: Guard>(collector: &'c Collector, enter: impl Fn(&'c Collector) -> G) {
        let freed = AtomicU64::new(0);
        let guard = enter(collector);
        std::thread::scope(|scope| _ = scope.spawn(|| retire(N, collector, &freed)));
        retire_under(N, &guard, &freed);
        assert_eq!(freed.load(Ordering::Relaxed), 0, "a guard lives");
        drop(guard);
        assert_eq!(freed.load(Ordering::Relaxed), 2 * N as u64);
    }
    let [one, other] = core::array::from_fn(|_| Collector::at(Pace::new(0, 0), false, None));
    send_away(&one, Collector::enter);
    send_away(&other, Collector::enter_owned);
}

/// Some dozens of bags, however much others have sent away.
#[test]
fn who_sends_little_away_under_one_guard_frees_a_share() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let guard = collector.enter();
    std::thread::scope(|scope| _ = scope.spawn(|| retire(LEFT, &collector, &freed)));
    retire_under((FEW_BAGS + 60) * MANY, &guard, &freed);
    drop(guard);
    assert_eq!(freed.load(Ordering::Relaxed), MANY as u64);
}

#[test]
fn what_was_flushed_is_freed_by_the_guard_that_was_in_the_way() {
    const N: usize = 3 * FEW_BAGS * MANY;
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let guard = collector.enter();
    let sends = || {
        retire(N, &collector, &freed);
        collector.flush();
    };
    std::thread::scope(|scope| _ = scope.spawn(sends));
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a guard lives");
    drop(guard);
    assert_eq!(freed.load(Ordering::Relaxed), N as u64);
}

/// A collector that leaves something to threads whose guards leave: of `n` objects that another thread has retired, all except
/// one bag.
fn indebted<'c>(n: usize, freed: &AtomicU64, collector: &'c Collector) -> &'c Collector {
    let guard = collector.enter();
    std::thread::scope(|scope| _ = scope.spawn(|| retire(n, collector, freed)));
    drop(guard);
    assert_eq!(freed.load(Ordering::Relaxed), MANY as u64);
    collector
}

/// So much that one thread whose guard leaves does not free it all for others.
const LEFT: usize = 200 * MANY;

/// This includes guards that are never the last of those that share a record.
#[test]
fn guards_that_share_a_record_free_what_is_left() {
    std::thread::spawn(|| {
        let leave: [fn(&Collector); 3] = [
            |collector| {
                let _held: Vec<_> = (0..7).map(|_| collector.enter()).collect();
                (0..LEFT).for_each(|_| drop(collector.enter()));
            },
            |collector| {
                let _held: Vec<_> = (0..3).map(|_| collector.enter_owned()).collect();
                (0..LEFT).for_each(|_| drop(collector.enter_owned()));
            },
            // Each guard is entered before the previous one leaves.
            |collector| {
                let mut held: Vec<_> = (0..3).map(|_| collector.enter_owned()).collect();
                (0..LEFT).for_each(|_| held[2] = collector.enter_owned());
            },
        ];
        for leave in leave {
            let freed = AtomicU64::new(0);
            let collector = Collector::at(Pace::new(0, 0), false, None);
            leave(indebted(LEFT, &freed, &collector));
            assert_eq!(freed.load(Ordering::Relaxed), LEFT as u64);
        }
    })
    .join()
    .unwrap();
}

/// Enters a guard of its collector when it is freed.
struct Enters<'a>(&'a Collector, &'a AtomicU64);

impl Retire for Enters<'_> {
    unsafe fn free(this: *mut Self) {
        // SAFETY: the caller's; from a box.
        let this = unsafe { Box::from_raw(this) };
        this.1.fetch_add(1, Ordering::Relaxed);
        drop(this.0.enter());
    }
}

#[test]
fn destructors_that_enter_guards_free_no_more() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let retire = || {
        for _ in 0..LEFT {
            let object = Box::into_raw(Box::new(Enters(&collector, &freed)));
            // SAFETY: nobody else has it, and it is retired once.
            unsafe { collector.enter().retire(object) };
        }
    };
    let guard = collector.enter();
    std::thread::scope(|scope| _ = scope.spawn(retire));
    assert_eq!(freed.load(Ordering::Relaxed), 0, "a guard lives");
    drop(guard);
    for bags in 1..=3 {
        assert_eq!(freed.load(Ordering::Relaxed), bags * MANY as u64);
        drop(collector.enter());
    }
}

/// Where others' destructors must not run.
#[test]
fn under_a_lock_who_leaves_frees_nothing_and_who_retires_little() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let look = || freed.load(Ordering::Relaxed);
    // What is left is in this thread's own list, from which it frees as it retires.
    let guard = collector.enter();
    retire(LEFT, &collector, &freed);
    drop(guard);
    assert_eq!(look(), MANY as u64);
    let lock = crate::reentry::Entered::new(&0_u8);
    // Guards that have a record to themselves, and guards that share one.
    let held: Vec<_> = (0..8).map(|_| (collector.enter(), collector.enter_owned())).collect();
    drop(held);
    assert_eq!(look(), MANY as u64);
    for _ in 0..4 * MANY {
        let before = look();
        retire(1, &collector, &freed);
        assert!(look() - before <= 8 * MANY as u64, "{} at once", look() - before);
    }
    drop(lock);
    let before = look();
    drop(collector.enter());
    assert_eq!(look() - before, MANY as u64);
}

/// A flush has seen a guard that has left by the time it calls. A guard that is there later, of another collector or of the
/// same, does not concern the flush.
#[test]
fn a_call_of_a_flush_that_comes_too_late_has_no_guard_free_all() {
    for is_the_same in [false, true] {
        std::thread::spawn(move || {
            let freed = AtomicU64::new(0);
            let [one, other] = core::array::from_fn(|_| Collector::at(Pace::new(0, 0), false, None));
            one.flush();
            let guard = one.enter();
            one.advance().unwrap();
            let older = one.advance().unwrap_err().unwrap();
            drop(guard);
            let collector = if is_the_same { &one } else { &other };
            let innocent = collector.enter();
            std::thread::scope(|scope| _ = scope.spawn(|| retire(LEFT, collector, &freed)));
            drop(innocent);
            assert_eq!(freed.load(Ordering::Relaxed), MANY as u64);
            // The call comes; that guard has gone.
            assert!(!one.await_leaving(&older, Extent::All));
            drop(collector.enter());
            assert_eq!(freed.load(Ordering::Relaxed), 2 * MANY as u64);
        })
        .join()
        .unwrap();
    }
}

/// The thread whose guard leaves last may have filled no bags.
#[test]
fn of_owned_guards_that_share_a_record_none_frees_all() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let alone = [collector.enter_owned(), collector.enter_owned()];
    let (one, innocent) = (collector.enter_owned(), collector.enter_owned());
    std::thread::scope(|scope| _ = scope.spawn(|| retire(LEFT, &collector, &freed)));
    retire_under(LEFT, &one, &freed);
    drop((alone, one));
    let before = freed.load(Ordering::Relaxed);
    drop(innocent);
    assert!(freed.load(Ordering::Relaxed) - before <= MANY as u64);
}

/// What was left does not hide from a thread that fills bags that these wait for a guard, which nobody else would call.
#[test]
fn what_comes_later_than_what_is_left_is_not_left_to_nobody() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let waits = |retired: usize| retired - freed.load(Ordering::Relaxed) as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // All in this thread's list.
            let guard = collector.enter();
            retire(10 * LEFT, &collector, &freed);
            drop(guard);
            let (held, under) = (collector.enter(), collector.enter());
            retire_under(LEFT, &under, &freed);
            drop(under);
            drop(held);
            (0..11 * LEFT).for_each(|_| drop(collector.enter()));
        });
    });
    assert!(waits(11 * LEFT) <= FEW_BAGS * MANY, "{} wait for ever", waits(11 * LEFT));
}

/// Both the sealed bags and the one that could not be sealed.
#[test]
fn a_flush_frees_a_bag_that_was_closed_behind_others() {
    let freed = AtomicU64::new(0);
    let collector = Collector::at(Pace::new(0, 0), false, None);
    let guard = collector.enter();
    retire(3 * MANY, &collector, &freed);
    collector.lack_memory();
    let mine = &collector.bags[seats::number() % BAGS];
    let more = (0..).take_while(|_| !mine.lock().is_closed).map(|_| retire(1, &collector, &freed)).count();
    assert!(mine.lock().has_sealed() && mine.lock().sealed() > 1);
    drop(guard);
    assert!(collector.flush());
    assert_eq!((collector.waiting(), freed.load(Ordering::Relaxed)), (0, (3 * MANY + more) as u64));
}
