//! Pieces that are sorted, withheld and taken, by the steps of a release.

use core::alloc::Layout;
use std::collections::HashSet;

use super::*;

const PIECES: usize = 100;
const PIECE: usize = 32;

/// Chunks side by side, and the pieces of each.
struct Scene {
    _memory: Vec<u128>,
    base: NonNull<u8>,
}

impl Scene {
    fn of(chunks: usize) -> Self {
        let mut memory = vec![0_u128; chunks * PIECES * PIECE / size_of::<u128>()];
        Scene { base: NonNull::new(memory.as_mut_ptr()).unwrap().cast(), _memory: memory }
    }

    fn piece(&self, chunk: usize, at: usize) -> NonNull<Free> {
        // SAFETY: within the memory.
        unsafe { self.base.add((chunk * PIECES + at) * PIECE) }.cast()
    }

    /// These chunks, not in the order of their addresses.
    fn chunks(&self, some: &[usize]) -> Vec<Chunk> {
        let layout = Layout::from_size_align(PIECES * PIECE, 8).unwrap();
        let chunk = |&chunk: &usize| {
            let mut chunk = Chunk::new(self.piece(chunk, 0).cast(), layout);
            chunk.pieces = PIECES;
            chunk
        };
        some.iter().rev().map(chunk).collect()
    }

    /// A sorting of these chunks, all of whose free pieces the caller counts.
    fn sorting(&self, some: &[usize]) -> Sorting {
        let mut sorting = Sorting::new(self.chunks(some));
        end_counting(&mut sorting);
        sorting
    }
}

/// Nothing is left to be counted.
fn end_counting(sorting: &mut Sorting) {
    (0..PLACES).for_each(|place| sorting.note_empty(place));
}

fn count(sorting: &mut Sorting, pieces: impl IntoIterator<Item = NonNull<Free>>) {
    for piece in pieces {
        let mut magazine = Magazine::default();
        magazine.push(piece);
        sorting.count(&mut magazine);
    }
}

/// The pieces of used chunks, and where the unused chunks begin.
fn end(mut sorting: Sorting) -> (HashSet<NonNull<Free>>, HashSet<NonNull<Free>>) {
    let mut used = HashSet::new();
    while let Some(mut some) = sorting.sort() {
        while let Some(piece) = some.pop() {
            assert!(used.insert(piece), "twice");
        }
    }
    let unused = core::iter::from_fn(|| sorting.take_unused()).map(|chunk| chunk.base.cast()).collect();
    let (chunks, taken) = sorting.into_chunks();
    assert!(chunks.len() <= taken && chunks.iter().all(|chunk| !chunk.is_unused()));
    (used, unused)
}

#[test]
fn chunks_are_unused_if_all_their_pieces_are_free() {
    let scene = Scene::of(4);
    // The fourth chunk is not among those that are sorted, and begins where the third ends.
    let mut sorting = scene.sorting(&[0, 1, 2]);
    count(&mut sorting, (0..PIECES).map(|at| scene.piece(0, at)));
    count(&mut sorting, (1..PIECES).map(|at| scene.piece(1, at)));
    count(&mut sorting, (0..PIECES).map(|at| scene.piece(2, at)));
    count(&mut sorting, [scene.piece(3, 0), scene.piece(3, 7)]);
    assert!(sorting.decide() && !sorting.decide());
    let (used, unused) = end(sorting);
    let expected = (1..PIECES).map(|at| scene.piece(1, at)).chain([0, 7].map(|at| scene.piece(3, at)));
    assert_eq!(used, expected.collect());
    assert_eq!(unused, [scene.piece(0, 0), scene.piece(2, 0)].into());
}

#[test]
fn who_takes_a_piece_before_it_is_decided_keeps_its_chunk() {
    let scene = Scene::of(2);
    let mut sorting = scene.sorting(&[0, 1]);
    count(
        &mut sorting,
        (0..2).flat_map(|chunk| (0..PIECES).map(move |at| (chunk, at))).map(|(c, at)| scene.piece(c, at)),
    );
    let mut magazine = Magazine::default();
    assert!(sorting.fill(&mut magazine));
    assert_eq!(magazine.pieces().len(), Magazine::ROOM);
    sorting.decide();
    let (mut used, unused) = end(sorting);
    used.extend(magazine.pieces());
    assert_eq!(
        used,
        (0..PIECES).map(|at| scene.piece(1, at)).collect(),
        "the last that were counted come first"
    );
    assert_eq!(unused, [scene.piece(0, 0)].into());
}

#[test]
fn of_unused_chunks_nobody_takes_a_piece_when_that_is_decided() {
    let scene = Scene::of(2);
    let mut sorting = scene.sorting(&[0, 1]);
    count(&mut sorting, (0..PIECES - 5).map(|at| scene.piece(0, at)));
    count(&mut sorting, (0..PIECES).map(|at| scene.piece(1, at)));
    sorting.decide();
    let mut taken = HashSet::new();
    let mut magazine = Magazine::default();
    while sorting.fill(&mut magazine) {
        while let Some(piece) = magazine.pop() {
            assert!(taken.insert(piece), "twice");
        }
    }
    assert_eq!(taken, (0..PIECES - 5).map(|at| scene.piece(0, at)).collect());
    let (used, unused) = end(sorting);
    assert_eq!((used, unused), ([].into(), [scene.piece(1, 0)].into()));
}

/// Ten chunks that have been sorted: four have many pieces in use, and six have few. And those few.
fn sparse() -> (Scene, Sorting, Vec<NonNull<Free>>) {
    let scene = Scene::of(10);
    let mut sorting = scene.sorting(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let is_used = |chunk: usize, at: usize| if chunk % 3 == 0 { at < 60 } else { at < 5 };
    let free = (0..10).flat_map(|chunk| (0..PIECES).map(move |at| (chunk, at)));
    count(&mut sorting, free.filter(|&(chunk, at)| !is_used(chunk, at)).map(|(c, at)| scene.piece(c, at)));
    assert!(sorting.decide());
    let mut given = HashSet::new();
    while let Some(mut some) = sorting.sort() {
        given.extend(core::iter::from_fn(|| some.pop()));
    }
    let dense = [0, 3, 6, 9].into_iter().flat_map(|chunk| (60..PIECES).map(move |at| (chunk, at)));
    assert_eq!(given, dense.map(|(chunk, at)| scene.piece(chunk, at)).collect());
    assert!(sorting.take_unused().is_none() && sorting.is_emptying());
    let few = [1, 2, 4, 5, 7, 8].into_iter().flat_map(|chunk| (0..5).map(move |at| (chunk, at)));
    let few = few.map(|(chunk, at)| scene.piece(chunk, at)).collect();
    (scene, sorting, few)
}

fn magazine(pieces: impl IntoIterator<Item = NonNull<Free>>) -> Magazine {
    let mut magazine = Magazine::default();
    pieces.into_iter().for_each(|piece| magazine.push(piece));
    magazine
}

/// All withheld pieces, which are taken out a few at a time.
fn withheld(sorting: &mut Sorting) -> HashSet<NonNull<Free>> {
    let mut all = HashSet::new();
    while let Some(mut some) = sorting.take_withheld() {
        while let Some(piece) = some.pop() {
            assert!(all.insert(piece), "twice");
        }
    }
    all
}

#[test]
fn chunks_of_which_few_pieces_are_in_use_go_when_the_last_one_is_returned() {
    let (scene, mut sorting, few) = sparse();
    let mut freed = HashSet::new();
    for (i, piece) in few.into_iter().enumerate() {
        // With it comes a piece of a chunk that stays.
        let (mut others, unused) = sorting.withhold(&mut magazine([scene.piece(0, i), piece]));
        assert_eq!((others.pop(), others.pop()), (Some(scene.piece(0, i)), None));
        assert_eq!(unused.is_some(), i % 5 == 4);
        freed.extend(unused.map(|chunk| chunk.base.cast()));
    }
    assert_eq!(freed, [1, 2, 4, 5, 7, 8].map(|chunk| scene.piece(chunk, 0)).into());
    assert!(!sorting.is_emptying() && withheld(&mut sorting).is_empty());
    let (chunks, taken) = sorting.into_chunks();
    assert_eq!((chunks.len(), taken), (4, 10));
}

#[test]
fn of_two_chunks_that_a_magazine_empties_one_waits_for_the_next_look() {
    let (scene, mut sorting, _) = sparse();
    let [first, last] = [1, 2].map(|chunk| (0..5).map(move |at| (chunk, at)));
    let both = first.chain(last).map(|(chunk, at)| scene.piece(chunk, at));
    let (mut others, unused) = sorting.withhold(&mut magazine(both));
    let freed = unused.expect("one").base;
    assert_eq!(freed, scene.piece(2, 0).cast());
    let others: Vec<_> = core::iter::from_fn(|| others.pop()).collect();
    assert_eq!(others.len(), 5);
    // A piece at an address of the freed chunk: it is in another one now.
    let (mut strays, none) = sorting.withhold(&mut magazine([scene.piece(2, 7)]));
    assert!(strays.pop().is_some() && none.is_none());
    assert_eq!(sorting.withhold(&mut magazine(others)).1.expect("the other").base, scene.piece(1, 0).cast());
}

#[test]
fn what_was_returned_unseen_is_found_when_all_is_counted_anew() {
    let (scene, mut sorting, few) = sparse();
    let (unseen, rest) = few.split_at(5);
    let cold = rest.last().copied();
    let mut stays = (0..).map(|at| scene.piece(3, at % 60));
    while !sorting.wants_recount() {
        sorting.withhold(&mut magazine(stays.by_ref().take(Magazine::ROOM)));
    }
    sorting.recount();
    assert_eq!(sorting.place(), Some(0));
    count(&mut sorting, unseen.iter().copied().chain([scene.piece(3, 1)]));
    end_counting(&mut sorting);
    assert!(!sorting.decide());
    let mut others = sorting.sort().expect("some");
    assert_eq!((others.pop(), others.pop()), (Some(scene.piece(3, 1)), None));
    assert!(sorting.sort().is_none());
    assert_eq!(sorting.take_unused().expect("the first").base, scene.piece(1, 0).cast());
    assert!(sorting.take_unused().is_none());
    // That was worth some more rounds. When these are in vain, the sorting rests.
    let mut rounds = 0;
    while sorting.is_emptying() {
        if sorting.wants_recount() {
            sorting.recount();
            end_counting(&mut sorting);
            rounds += 1;
        }
        sorting.withhold(&mut magazine(stays.by_ref().take(Magazine::ROOM)));
    }
    assert!(rounds == MOST_RECOUNTS && sorting.is_resting());
    sorting.give_up();
    let all = withheld(&mut sorting);
    assert!(all.len() == 5 * (PIECES - 5) && !cold.is_some_and(|cold| all.contains(&cold)));
}

#[test]
fn a_thread_that_finds_no_piece_elsewhere_gets_withheld_ones() {
    let (scene, mut sorting, few) = sparse();
    let mut taken = HashSet::new();
    let mut magazine = Magazine::default();
    while sorting.fill(&mut magazine) {
        while let Some(piece) = magazine.pop() {
            assert!(taken.insert(piece), "twice");
        }
    }
    assert_eq!((taken.len(), sorting.withheld()), (6 * (PIECES - 5), 0));
    assert!(few.iter().all(|piece| !taken.contains(piece)) && !taken.contains(&scene.piece(0, 99)));
    sorting.give_up();
    assert!(withheld(&mut sorting).is_empty());
    assert_eq!(sorting.into_chunks().0.len(), 10);
}

#[test]
fn where_half_is_in_use_nothing_is_emptied() {
    let scene = Scene::of(2);
    let mut sorting = scene.sorting(&[0, 1]);
    count(&mut sorting, (10..PIECES).map(|at| scene.piece(0, at)).chain([scene.piece(1, 0)]));
    sorting.decide();
    assert!(!sorting.is_emptying() && !sorting.is_resting());
    assert_eq!(end(sorting).0.len(), PIECES - 9);
}

/// Looks at pieces of a chunk that stays, until all is to be counted anew; and counts these as returned.
fn recounted(scene: &Scene, sorting: &mut Sorting, returned: impl IntoIterator<Item = NonNull<Free>>) {
    while !sorting.wants_recount() {
        sorting.withhold(&mut magazine((0..Magazine::ROOM).map(|at| scene.piece(3, at))));
    }
    sorting.recount();
    count(sorting, returned);
    end_counting(sorting);
}

#[test]
fn a_piece_of_a_chunk_that_stays_may_be_taken_when_all_is_counted_anew() {
    let scene = Scene::of(4);
    let mut sorting = scene.sorting(&[0, 1, 2, 3]);
    // All of the last one are in use at first, and five of each of the others.
    let free = (0..3).flat_map(|chunk| (5..PIECES).map(move |at| (chunk, at)));
    count(&mut sorting, free.map(|(chunk, at)| scene.piece(chunk, at)));
    sorting.decide();
    while sorting.sort().is_some() {}
    recounted(&scene, &mut sorting, [scene.piece(3, 1)]);
    let mut magazine = Magazine::default();
    assert!(sorting.fill(&mut magazine));
    assert_eq!(magazine.pieces(), [scene.piece(3, 1)]);
}

#[test]
fn a_chunk_that_turns_out_to_be_unused_when_emptying_was_given_up_goes_all_the_same() {
    let (scene, mut sorting, few) = sparse();
    recounted(&scene, &mut sorting, few[..5].iter().copied());
    sorting.give_up();
    assert!(!sorting.decide());
    while sorting.sort().is_some() {}
    assert_eq!(sorting.take_unused().expect("the first").base, scene.piece(1, 0).cast());
    assert!(sorting.take_unused().is_none() && !sorting.is_emptying() && !sorting.is_resting());
    assert_eq!(withheld(&mut sorting).len(), 5 * (PIECES - 5));
    assert_eq!((sorting.withheld(), sorting.into_chunks().0.len()), (0, 9));
}

#[test]
fn of_a_chunk_that_is_about_to_go_nobody_takes_a_withheld_piece() {
    let (scene, mut sorting, few) = sparse();
    recounted(&scene, &mut sorting, few[..5].iter().copied());
    while sorting.sort().is_some() {}
    let mut magazine = Magazine::default();
    assert!(sorting.fill(&mut magazine));
    assert!((0..PIECES).all(|at| !magazine.pieces().contains(&scene.piece(1, at))));
    assert_eq!(sorting.take_unused().expect("the first").base, scene.piece(1, 0).cast());
    sorting.give_up();
    assert_eq!(withheld(&mut sorting).len(), 5 * (PIECES - 5) - Magazine::ROOM);
}

#[test]
fn a_thread_that_finds_only_pieces_of_unused_chunks_does_not_end_emptying() {
    let scene = Scene::of(20);
    let mut sorting = scene.sorting(&(0..20).collect::<Vec<_>>());
    // What is counted last comes first.
    let first_used = |chunk| {
        if chunk < 4 {
            60
        } else if chunk < 10 {
            5
        } else {
            0
        }
    };
    let free = (0..20).flat_map(|chunk| (first_used(chunk)..PIECES).map(move |at| (chunk, at)));
    count(&mut sorting, free.map(|(chunk, at)| scene.piece(chunk, at)));
    sorting.decide();
    assert!(!sorting.fill(&mut Magazine::default()) && sorting.is_emptying());
    while sorting.sort().is_some() {}
    assert_eq!(sorting.withheld(), 6 * (PIECES - 5));
}

#[test]
fn who_gives_up_before_it_is_decided_has_nothing_emptied() {
    let scene = Scene::of(10);
    let mut sorting = scene.sorting(&[0, 1, 2]);
    count(
        &mut sorting,
        (0..3).flat_map(|chunk| (1..PIECES).map(move |at| (chunk, at))).map(|(c, at)| scene.piece(c, at)),
    );
    sorting.give_up();
    sorting.decide();
    assert!(!sorting.is_emptying());
    assert_eq!(end(sorting).0.len(), 3 * (PIECES - 1));
}
