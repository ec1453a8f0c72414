//! Parallel walks and collections.

use koel::HashSet;
use rayon::prelude::*;

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
