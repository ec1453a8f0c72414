//! Threads that load, and wait for others who do.

use super::super::toy::LoadOnce;

#[test]
fn the_value_is_loaded_and_kept() {
    let cache = LoadOnce::new();
    assert_eq!(cache.get_or_insert_with(&1, || 10), 10);
    assert_eq!(cache.get_or_insert_with(&1, || panic!("it is there")), 10);
    assert_eq!((cache.get(&1), cache.loads()), (Some(10), 0));
}
