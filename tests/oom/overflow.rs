//! Colliding keys, and no memory for an overflow.

use core::cell::Cell;

use koel::HashMap;

use crate::allocator::Plan;
use crate::common::hashers::Through;

thread_local!(static HASHED: Cell<u64> = const { Cell::new(0) });

/// Keys below a hundred collide.
const COUNTING: Through = Through(|n| {
    HASHED.set(HASHED.get() + 1);
    if n < 100 { 7 } else { n }
});

/// A segment with items in its overflow is replaced by two, and all its keys are hashed.
#[test]
fn a_segment_that_had_no_memory_for_an_overflow_splits_as_one_that_has_none() {
    let mut refused = 0;
    for n in 1.. {
        let map = HashMap::<u64, u64>::builder().capacity(57).segment_slots(64).hasher(COUNTING).build();
        let pin = map.pin();
        assert!((0..8).all(|key| pin.checked_insert(key, key).is_ok()) && map.stats().overflow == 0);
        let mut plan = Plan::new(n, false);
        let is_refused = plan.run(|| pin.checked_insert(8, 8).is_err());
        if !plan.is_over() {
            break;
        }
        if !is_refused {
            continue;
        }
        refused += 1;
        let hashed = (1000..2000).find_map(|key| {
            let before = HASHED.get();
            pin.insert(key, key);
            (map.stats().splits > 0).then(|| HASHED.get() - before)
        });
        assert!(hashed.is_some_and(|hashed| hashed <= 2), "{hashed:?}");
    }
    assert!(refused > 0);
}
