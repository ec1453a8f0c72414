//! Values of threads, which others look at: a thread that finds a value finds it constructed, and none is lost.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::Counts;
use loom::thread;

#[test]
fn each_thread_has_a_value_and_whoever_looks_finds_it_made() {
    loom::model(|| {
        // With the first it takes its seat, so that for the second it finds out whether others have made the block.
        let counts = Arc::new([Counts::new(), Counts::new()]);
        let add = |counts: &[Counts; 2], n| counts.iter().for_each(|counts| counts.add(n));
        // The first block has one value: this thread's. Those of the others are in one block, which each of them may make.
        add(&counts, 1);
        let others = [2, 4].map(|n| {
            let counts = Arc::clone(&counts);
            thread::spawn(move || add(&counts, n))
        });
        let seen: Vec<u64> = counts.iter().map(Counts::sum).collect();
        assert!(seen.iter().all(|seen| seen & 1 == 1 && *seen <= 7), "{seen:?}");
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(counts.iter().all(|counts| counts.sum() == 7));
    });
}
