//! A growing filter with a limit on its memory.

use koel::ScalableCuckooFilter;

/// Fills a filter until it refuses a key; returns how many keys it has.
fn fill(filter: &ScalableCuckooFilter, from: u64) -> u64 {
    (from..).take_while(|key| filter.insert(key).is_ok()).count() as u64
}

#[test]
fn no_table_is_added_beyond_the_limit() {
    for limit in [20_000, 100_000, 9_000_000] {
        let builder = ScalableCuckooFilter::builder().max_memory(limit).seed(1);
        let filter = builder.build().unwrap();
        assert_eq!(filter.max_memory(), Some(limit));
        let keys = fill(&filter, 0);
        assert!(filter.memory_usage() <= limit, "{} of {limit}", filter.memory_usage());
        // Another one would be twice as large as the newest, which is half of all.
        assert!(filter.memory_usage() > limit / 4, "{} of {limit}", filter.memory_usage());
        assert!(filter.load_factor() > 0.94, "{}", filter.info());
        assert!((0..keys).all(|key| filter.contains(&key)) && filter.len() as u64 == keys);
        // Removed keys make room.
        (0..keys / 10).for_each(|key| assert!(filter.remove(&key)));
        assert!((0..keys / 20).all(|key| filter.insert(&(keys + key)).is_ok()), "{}", filter.info());
    }
}

/// Where a single byte decides: the memory of a table apart from its slots counts as well.
#[test]
fn the_limit_holds_to_the_byte() {
    let sizes = |limit: usize| {
        let filter = ScalableCuckooFilter::builder().max_memory(limit).seed(1).build().unwrap();
        fill(&filter, 0);
        filter.memory_usage()
    };
    let [one, two] = [sizes(0), sizes(60_000)];
    assert!(one < two && two <= 60_000, "{one} {two}");
    assert!((two - 200..two).all(|limit| sizes(limit) == one));
    assert_eq!(sizes(two + 200), two);
}

#[test]
fn a_limit_can_be_changed_and_is_a_clones_and_no_part_of_the_bytes() {
    let filter = ScalableCuckooFilter::builder().max_memory(0).seed(1).build().unwrap();
    let first = fill(&filter, 0);
    assert!(first >= 3500 && filter.info().tables.len() == 1, "the first table is made in any case");
    let (clone, read) = (filter.clone(), ScalableCuckooFilter::from_bytes(&filter.to_bytes()).unwrap());
    assert!(clone.max_memory() == Some(0) && clone.insert(&first).is_err());
    assert!(read.max_memory().is_none() && read.insert(&first).is_ok());
    filter.set_max_memory(Some(2 * filter.memory_usage()));
    assert!(filter.insert(&first).is_err(), "a second table is twice as large");
    filter.set_max_memory(Some(4 * filter.memory_usage()));
    assert!(fill(&filter, first) > first && filter.info().tables.len() == 2);
    // It keeps the tables that it has.
    filter.set_max_memory(Some(1));
    assert!((0..first).all(|key| filter.contains(&key)) && filter.info().tables.len() == 2);
    filter.set_max_memory(None);
    assert!((0..10 * first).all(|key| filter.insert(&(key << 40)).is_ok()));
}
