//! What filters, their tables, views and builders report about themselves.

use koel::{CuckooFilter, FilterError, FilterView, FilterViewOwned, ScalableCuckooFilter, TableInfo};

use crate::common::seed;
use crate::{builder, layouts};

/// Except for displacements, which are not in the bytes, and memory.
fn is_same(table: &TableInfo, other: &TableInfo) -> bool {
    let mut same = table.clone();
    (same.displacements, same.memory_usage) = (other.displacements, other.memory_usage);
    same == *other
}

#[test]
fn the_tables_of_a_growing_filter_say_what_they_are() {
    for sorted in [false, true] {
        let builder = ScalableCuckooFilter::builder().semi_sorted(sorted).max_duplicates(3).seed(seed());
        let filter = builder.build().unwrap();
        (0..20_000_u64).for_each(|key| filter.insert(&key).unwrap());
        let info = filter.info();
        assert_eq!((info.max_keys, info.max_duplicates), (filter.max_keys(), 3));
        assert_eq!(filter.max_duplicates(), 3);
        let sum = |of: fn(&TableInfo) -> usize| info.tables.iter().map(of).sum::<usize>();
        assert_eq!((sum(|table| table.len), sum(|table| table.slots)), (filter.len(), filter.capacity()));
        assert_eq!(sum(|table| table.memory_usage), filter.memory_usage());
        for (number, table) in (0..).zip(&info.tables) {
            assert_eq!((table.bucket_slots, table.semi_sorted), (4, sorted), "{info}");
            assert_eq!(table.fingerprint_bits, info.tables[0].fingerprint_bits + number, "{info}");
            let load = table.capacity_keys as f64 / table.slots as f64;
            assert!((0.93..0.95).contains(&load) && table.false_positive_rate > 0.0, "{info}");
        }
        assert!(info.tables[0].displacements > 100, "{info}");
    }
}

#[test]
fn views_say_what_they_look_up_in() {
    for layout in layouts() {
        let filter = builder(layout).capacity(20).seed(7).build().unwrap();
        (0..20_u64).for_each(|key| filter.insert(&key).unwrap());
        let (bytes, of_filter) = (filter.to_bytes(), filter.info());
        let view = FilterView::from_bytes(&bytes).unwrap();
        let info = view.info();
        let table = &info.tables[0];
        assert_eq!((info.scalable, info.tables.len(), view.hasher()), (false, 1, filter.hasher()));
        assert_eq!((table.fingerprint_bits, table.bucket_slots, table.semi_sorted), layout);
        assert_eq!((table.capacity_keys, table.len, table.slots), (20, 20, of_filter.slots));
        assert_eq!(table.false_positive_rate, of_filter.false_positive_rate);
        assert_eq!((table.memory_usage, table.displacements), (bytes.len() - 64, 0));
        let owned = FilterViewOwned::from_bytes(bytes.clone()).unwrap();
        assert_eq!((owned.info(), owned.hasher()), (info, filter.hasher()));
    }
    let growing = ScalableCuckooFilter::builder().seed(7).build().unwrap();
    (0..20_000_u64).for_each(|key| growing.insert(&key).unwrap());
    let (bytes, of_filter) = (growing.to_bytes(), growing.info());
    let info = FilterView::from_bytes(&bytes).unwrap().info();
    assert!(info.scalable && info.tables.len() == of_filter.tables.len() && info.tables.len() > 1);
    assert!(info.tables.iter().zip(&of_filter.tables).all(|(one, other)| is_same(one, other)), "{info}");
    assert_eq!(FilterViewOwned::from_bytes(bytes).unwrap().info(), info);
}

#[test]
fn what_they_say_is_lines_of_text() {
    let bytes = CuckooFilter::from_keys(0..1000, 0.001).unwrap().to_bytes();
    let text = FilterView::from_bytes(&bytes).unwrap().info().to_string();
    assert!(text.starts_with("view of a cuckoo filter: 1 table\ntable 0: 1000 keys in "), "{text}");
    let growing = ScalableCuckooFilter::from_keys(0..1000, 0.001).unwrap();
    let text = growing.info().to_string();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines.len() == 3 && lines[1].starts_with("table 0: 1000 keys in 4096 slots of 14 bits, "),
        "{text}"
    );
    assert!(lines[2].starts_with("room for "), "{text}");
    let text = FilterView::from_bytes(&growing.to_bytes()).unwrap().info().to_string();
    assert!(text.starts_with("view of a growing cuckoo filter: 1 table\n"), "{text}");
}

/// The memory taken may be some cache lines less.
fn is_as_planned(planned: usize, taken: usize) -> bool {
    taken <= planned && planned - taken <= 256
}

#[test]
fn a_filter_is_as_it_was_planned() {
    for layout in layouts() {
        for capacity in [1, 30, 500] {
            let Ok(mut plan) = builder(layout).capacity(capacity).plan() else {
                assert!(builder(layout).capacity(capacity).build().is_err(), "{layout:?}, {capacity}");
                continue;
            };
            let info = builder(layout).capacity(capacity).build().unwrap().info();
            assert!(is_as_planned(plan.memory_usage, info.memory_usage), "{plan}\n{info}");
            plan.memory_usage = info.memory_usage;
            assert_eq!(plan, info);
        }
    }
    for (capacity, rate) in [(1, 0.5), (1000, 0.01), (300_000, 1e-3), (3_000_000, 1e-5)] {
        let builder = CuckooFilter::builder().capacity(capacity).false_positive_rate(rate);
        let (plan, info) = (builder.plan().unwrap(), builder.build().unwrap().info());
        assert!(is_as_planned(plan.memory_usage, info.memory_usage), "{plan}\n{info}");
        assert_eq!((plan.slots, plan.fingerprint_bits), (info.slots, info.fingerprint_bits));
    }
}

#[test]
fn a_growing_filter_is_as_it_was_planned() {
    for capacity in [1, 3500, 300_000, 1_000_000] {
        let builder = ScalableCuckooFilter::builder().capacity(capacity).bucket_slots(8);
        let (mut plan, info) = (builder.plan().unwrap(), builder.build().unwrap().info());
        assert!(is_as_planned(plan.tables[0].memory_usage, info.tables[0].memory_usage), "{plan}\n{info}");
        plan.tables[0].memory_usage = info.tables[0].memory_usage;
        assert_eq!(plan, info);
    }
}

/// More than any machine has memory for; and impossible filters are refused as by `build`.
#[test]
fn to_plan_takes_no_memory() {
    let builder = || CuckooFilter::builder().fingerprint_bits(32);
    #[cfg(target_pointer_width = "64")]
    assert!(builder().capacity(1 << 33).plan().unwrap().memory_usage > 32 << 30);
    assert!(matches!(builder().plan(), Err(FilterError::Capacity { requested: 0, .. })));
    let growing = || ScalableCuckooFilter::builder().fingerprint_bits(32);
    #[cfg(target_pointer_width = "64")]
    assert!(growing().capacity(1 << 33).plan().unwrap().tables[0].memory_usage > 32 << 30);
    assert!(matches!(growing().capacity(0).plan(), Err(FilterError::Capacity { requested: 0, .. })));
}
