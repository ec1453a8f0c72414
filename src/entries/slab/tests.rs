//! Pieces that are allocated and freed, and given back to the allocator, by one thread.

use std::collections::HashSet;

use super::*;

fn slab() -> Arc<Slab> {
    Slab::new(Layout::new::<(u64, u64)>(), &Shape::for_cache(1, 100).expect("small"), 0)
}

fn allocate(slab: &Slab, magazine: &mut Magazine, n: usize) -> Vec<NonNull<u8>> {
    (0..n).map(|_| slab.allocate(magazine, Digest::ZERO, Within::Page).expect("memory")).collect()
}

fn free(pieces: impl IntoIterator<Item = NonNull<u8>>) {
    // SAFETY: pieces of the slab, without content, which nobody else has.
    pieces.into_iter().for_each(|piece| unsafe { Slab::free(piece) });
}

/// Otherwise each release would leave behind as much memory as is used while it lasts.
#[test]
fn who_allocates_during_a_release_takes_what_is_free() {
    let slab = slab();
    let mut magazine = Magazine::default();
    // One more whole magazine: the last chunk's rest, which is not sorted, is used up.
    let all = allocate(&slab, &mut magazine, 20_000);
    let rest =
        core::iter::repeat_with(|| slab.allocate(&mut magazine, Digest::ZERO, Within::Page).expect("memory"));
    let before = slab.meter.bytes();
    let rest: Vec<_> = rest.take_while(|_| slab.meter.bytes() == before).collect();
    let before = slab.meter.bytes();
    let kept: Vec<_> = all.iter().copied().step_by(7000).collect();
    free(all.iter().copied().filter(|piece| !kept.contains(piece)));
    slab.begin_release();
    let step = || slab.release_some(slab.sorting.lock());
    while slab.sorting.lock().as_ref().expect("it has begun").place().is_some() {
        step();
    }
    let mut during = allocate(&slab, &mut magazine, 10_000);
    assert_eq!(slab.meter.bytes(), before, "new chunks, though pieces are free");
    while step() {}
    let after = slab.meter.bytes();
    assert!(after < before * 2 / 3 && after > before / 3, "of {before} bytes {after} are left");
    during.extend(allocate(&slab, &mut magazine, 20_000));
    during.extend(kept.iter().copied());
    let apart: HashSet<_> = during.iter().chain(&rest).collect();
    assert_eq!(apart.len(), during.len() + rest.len(), "one piece twice");
    free(during.into_iter().chain(rest));
    slab.release(Chain::default());
    assert!(slab.meter.bytes() < before / 10, "{} bytes are left", slab.meter.bytes());
}

/// The pieces that the segments had are not lost then.
#[test]
fn who_finds_another_s_release_brings_it_to_its_end_and_does_his() {
    let slab = slab();
    let mut reserves = Chain::default();
    let all = allocate(&slab, &mut Magazine::default(), 20_000);
    all.into_iter().for_each(|piece| reserves.push(piece.cast()));
    let before = slab.meter.bytes();
    slab.begin_release();
    slab.release(reserves);
    assert!(slab.meter.bytes() < before / 10, "{} bytes are left of {before}", slab.meter.bytes());
    assert!(!slab.release_some(slab.sorting.lock()));
}

/// Pieces that are free by now, and that it has not counted, are counted by one call.
#[test]
fn who_finds_another_s_release_of_chunks_that_few_use_does_his() {
    for steps in [0, 1, 20, 1000] {
        let slab = slab();
        let mut magazine = Magazine::default();
        let all = allocate(&slab, &mut magazine, 20_000);
        let before = slab.meter.bytes();
        free(all.iter().enumerate().filter(|(i, _)| i % 100 > 0).map(|(_, &piece)| piece));
        slab.begin_release();
        for _ in 0..steps {
            slab.release_some(slab.sorting.lock());
        }
        let mut reserves = Chain::default();
        reserves.take_from(&mut magazine);
        all.into_iter().step_by(100).for_each(|piece| reserves.push(piece.cast()));
        slab.release(reserves);
        assert!(slab.meter.bytes() < before / 10, "{} bytes are left of {before}", slab.meter.bytes());
    }
}

/// What withheld pieces there were has been taken since.
#[test]
fn a_release_that_rests_makes_way_for_the_next() {
    let slab = slab();
    let mut magazine = Magazine::default();
    let all = allocate(&slab, &mut magazine, 20_000);
    free(all.iter().enumerate().filter(|(i, _)| i % 100 > 0).map(|(_, &piece)| piece));
    slab.begin_release();
    while slab.sorting.lock().as_ref().is_some_and(|sorting| !sorting.is_resting()) {
        let some = allocate(&slab, &mut magazine, 100);
        free(some);
    }
    let mut more = Vec::new();
    while slab.withheld() > 0 {
        more.extend(allocate(&slab, &mut magazine, 1));
    }
    assert!(more.len() > 15_000, "{}", more.len());
    let (before, mut turns) = (slab.meter.bytes(), 0);
    free(more.into_iter().chain(all.into_iter().step_by(100)));
    while slab.meter.bytes() > before / 4 {
        let mut surplus = slab.surplus.lock();
        surplus.age();
        surplus.note_worth();
        drop(surplus);
        let some = allocate(&slab, &mut magazine, 100);
        free(some);
        turns += 1;
        assert!(turns < 10_000, "{} bytes of {before} are left", slab.meter.bytes());
    }
}

/// They lie below others, and while all are counted anew still others come.
#[test]
fn pieces_that_were_returned_before_anybody_looked_are_found() {
    const HOT: usize = 3000;
    let slab = slab();
    let mut magazine = Magazine::default();
    let all = allocate(&slab, &mut magazine, 20_000);
    let others = &all[5000..];
    free(others.iter().enumerate().filter(|(i, _)| i % 100 > 0).map(|(_, &piece)| piece));
    free(all[HOT..5000].iter().copied());
    let mut hot = all[..HOT].to_vec();
    slab.begin_release();
    let is = |how: fn(&Sorting) -> bool| slab.sorting.lock().as_deref().is_some_and(how);
    while !is(Sorting::is_emptying) {
        slab.release_some(slab.sorting.lock());
    }
    let above = allocate(&slab, &mut magazine, 1500);
    let mut unseen = Chain::default();
    others.iter().step_by(100).for_each(|piece| unseen.push(piece.cast()));
    slab.returned[shard()].lock().push_chain(unseen);
    free(above);
    let before = slab.meter.bytes();
    while is(Sorting::is_emptying) {
        free(hot.drain(..100));
        if is(Sorting::is_sorted) {
            hot.extend(allocate(&slab, &mut magazine, HOT - hot.len()));
        }
    }
    assert!(slab.meter.bytes() < before / 2, "{} bytes are left of {before}", slab.meter.bytes());
}

/// More pieces are in use now and then than the chunks that stay have room for.
#[test]
fn pieces_come_and_go_by_hundreds_while_chunks_are_emptied() {
    for seed in 1..30 {
        let mut random = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed);
        let mut below = |n: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 16) as usize % n
        };
        let slab = slab();
        let mut magazine = Magazine::default();
        let all = allocate(&slab, &mut magazine, 20_000);
        let (hot, others) = all.split_at(5000);
        let mut hot = hot.to_vec();
        free(others.iter().enumerate().filter(|(i, _)| i % 100 > 0).map(|(_, &piece)| piece));
        slab.begin_release();
        for _ in 0..2000 {
            let n = 1 + below(400);
            free((0..n).map(|_| hot.swap_remove(below(hot.len()))));
            hot.extend(allocate(&slab, &mut magazine, n));
        }
        let cold = others.iter().copied().step_by(100);
        assert_eq!(hot.iter().copied().chain(cold.clone()).collect::<HashSet<_>>().len(), 5000 + cold.len());
        free(hot.into_iter().chain(cold));
        let mut reserves = Chain::default();
        reserves.take_from(&mut magazine);
        slab.release(reserves);
        assert!(slab.meter.bytes() < 1 << 16, "{} bytes are left", slab.meter.bytes());
    }
}

/// Also a release that somebody else has begun, however far that is.
#[test]
fn who_releases_leaves_chunks_that_few_use_to_writers_who_empty_them() {
    for steps in [0, 1, 50, 80, 1000] {
        let slab = slab();
        let mut magazine = Magazine::default();
        let all = allocate(&slab, &mut magazine, 20_000);
        let mut kept: Vec<_> = all.iter().copied().step_by(10).collect();
        free(all.into_iter().enumerate().filter(|(i, _)| i % 10 > 0).map(|(_, piece)| piece));
        slab.begin_release();
        for _ in 0..steps {
            slab.release_some(slab.sorting.lock());
        }
        slab.release(Chain::default());
        assert!(slab.sorting.lock().as_ref().is_some_and(|sorting| sorting.is_emptying()), "{steps}");
        let before = slab.meter.bytes();
        for i in 0.. {
            // Some of them are replaced more often than others.
            let at = if i % 2 == 0 { i / 2 } else { i / 16 } % kept.len();
            let new = allocate(&slab, &mut magazine, 1)[0];
            free([core::mem::replace(&mut kept[at], new)]);
            let left = slab.meter.bytes();
            if left < before / 4 {
                break;
            }
            assert!(i < 100 * kept.len(), "{left} bytes are left of {before} after {steps} steps");
        }
        assert_eq!(kept.iter().collect::<HashSet<_>>().len(), kept.len(), "one piece twice");
        slab.release(Chain::default());
        free(kept);
    }
}

/// This includes pieces returned one by one, as entries with a listener are.
#[test]
fn what_is_idle_for_long_goes_little_by_little_while_others_come_and_go() {
    for alone in [false, true] {
        let slab = slab();
        let mut magazine = Magazine::default();
        let all = allocate(&slab, &mut magazine, 200_000);
        let (kept, others) = all.split_at(100);
        free(others.iter().copied());
        let (before, mut turns) = (slab.meter.bytes(), 0);
        while slab.meter.bytes() > before / 4 {
            slab.surplus.lock().age();
            let some = allocate(&slab, &mut magazine, 100);
            if alone {
                free(some);
            } else {
                for some in some.chunks(20) {
                    let mut magazine = Box::new(Magazine::default());
                    some.iter().for_each(|piece| magazine.push(piece.cast()));
                    // SAFETY: pieces of the slab, without content, which nobody else has.
                    unsafe { Slab::free_all(magazine) };
                }
            }
            turns += 1;
            assert!(turns < 10_000, "{} bytes of {before} are left", slab.meter.bytes());
        }
        assert!(turns > 50, "all at once");
        free(kept.iter().copied());
    }
}
