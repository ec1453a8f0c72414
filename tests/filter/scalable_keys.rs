//! Growing filters: `clear`, and keys that are bytes.

use crate::scalable::new;

#[test]
fn a_growing_filter_is_cleared_and_goes_on() {
    let filter = new(1000, 0.01);
    let fill = |keys: std::ops::Range<u64>| keys.for_each(|key| filter.insert(&key).unwrap());
    fill(0..20_000);
    let (tables, slots) = (filter.info().tables.len(), filter.capacity());
    assert!(tables > 2 && filter.load_factor() == 20_000.0 / slots as f64);
    filter.clear();
    assert!(filter.is_empty() && filter.load_factor() == 0.0 && filter.false_positive_rate() == 0.0);
    assert!((0..20_000_u64).all(|key| !filter.contains(&key) && filter.count(&key) == 0));
    assert_eq!((filter.info().tables.len(), filter.capacity()), (tables, slots));
    fill(20_000..40_000);
    assert!((20_000..40_000_u64).all(|key| filter.contains(&key)) && filter.info().tables.len() == tables);
    (20_000..40_000_u64).for_each(|key| assert!(filter.remove(&key)));
    assert!(filter.is_empty());
}

#[test]
fn keys_of_a_growing_filter_may_be_bytes() {
    let filter = new(1000, 0.001);
    let names: Vec<_> = (0..5000_u32).map(|number| number.to_string().into_bytes()).collect();
    for name in &names {
        filter.insert_bytes(name).unwrap();
        assert_eq!(filter.insert_unique_bytes(name), Ok(false));
    }
    assert!(filter.len() == names.len() && filter.info().tables.len() > 1);
    assert!(names.iter().all(|name| filter.contains_bytes(name) && filter.count_bytes(name) > 0));
    let strangers = (5000..15_000_u32).filter(|number| filter.contains_bytes(number.to_string().as_bytes()));
    assert!(strangers.count() < 100);
    names.iter().for_each(|name| assert!(filter.remove_bytes(name)));
    assert!(filter.is_empty() && !filter.remove_bytes(&names[0]) && !filter.contains_bytes(&names[0]));
}
