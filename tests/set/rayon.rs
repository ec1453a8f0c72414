//! Parallel walks and collections.

use koel::HashSet;
use rayon::prelude::*;

use crate::common::Noted;
use crate::equal_values::{has_the_first, repeated};

/// Into many segments, most of which one thread has to itself, and into few.
#[test]
fn of_equal_values_that_come_in_parallel_the_first_stays() {
    for values in [10, 1000, 60_000] {
        let all: Vec<Noted> = repeated(values).collect();
        let mut set: HashSet<Noted> = all.par_iter().copied().collect();
        assert!(has_the_first(&set, values), "{values} that were collected");
        let later = || all.par_iter().map(|noted| Noted { note: noted.note + 1, ..*noted });
        (&set).par_extend(later());
        set.par_extend(later());
        assert!(has_the_first(&set, values), "{values} that were there");
        let shared = HashSet::new();
        (&shared).par_extend(all.par_iter().copied());
        assert!(has_the_first(&shared, values), "{values} in a set that is shared");
    }
}

#[test]
fn parallel_walks_and_collections_lose_nothing() {
    let mut set: HashSet<u64> = (0..50_000_u64).into_par_iter().collect();
    set.par_extend((25_000..75_000_u64).into_par_iter());
    (&set).par_extend((75_000..80_000_u64).into_par_iter());
    assert_eq!(set.len(), 80_000);
    let pin = set.pin();
    let walks = [pin.par_iter().copied().sum::<u64>(), (&pin).into_par_iter().copied().sum()];
    drop(pin);
    assert!(format!("{:?}", set.pin().par_iter()).contains("SetParIter"));
    let mut all: Vec<u64> = set.into_par_iter().collect();
    all.par_sort_unstable();
    assert!(all.iter().copied().eq(0..80_000));
    assert_eq!(walks, [all.iter().sum::<u64>(); 2]);
}
