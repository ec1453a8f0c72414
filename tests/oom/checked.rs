//! What a closure has made, and there is no memory for.

use koel::{HashMap, Operation};

use crate::allocator::Plan;
use crate::operations::failed;

/// Entries with boxes of their own: to replace one takes memory, too.
pub(crate) fn replaced_boxes(plan: &mut Plan) {
    let map = HashMap::<u64, [u64; 1000]>::new();
    let there = |key: u64| map.pin().get(&key).map(|value| value[0]);
    for (round, key) in (0..3).flat_map(|round| (0..8).map(move |key| (round, key))) {
        let before = there(key);
        let refused = plan.run(|| match key % 2 {
            0 => {
                let pin = map.pin();
                let next = |there: Option<(&u64, &[u64; 1000])>| there.map_or(key, |(_, value)| value[0] + 1);
                pin.checked_compute(key, |there| Operation::Insert::<_, ()>([next(there); 1000]))
                    .map(drop)
                    .err()
            }
            _ => {
                let pin = map.pin();
                let next = |value: &[u64; 1000]| value.map(|n| n + 1);
                pin.checked_update_or_insert(key, next, [key; 1000]).map(drop).err()
            }
        });
        if let Some(full) = refused {
            assert_eq!((full.key, full.value[0], full.value[999]), (key, key + round, key + round));
            assert!(plan.is_over());
            failed();
            assert_eq!(there(key), before);
            assert!(map.pin().checked_insert(full.key, full.value).is_ok(), "there is memory again");
        }
        assert_eq!(there(key), Some(key + round));
    }
    assert_eq!(map.len(), 8);
}
