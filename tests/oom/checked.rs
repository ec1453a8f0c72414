//! Values that a closure has made, and for which there is no memory.

use koel::{HashMap, Operation};

use crate::allocator::Plan;
use crate::common::fuse::{Fragile, Site, arm, disarm};
use crate::common::{Ledger, catch};
use crate::operations::failed;

/// Entries with boxes of their own: replacing one takes memory, too.
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

/// A panic in the drop of the closure that did not run comes before there is an answer, which would otherwise leak.
#[test]
fn what_was_made_is_not_leaked_if_the_drop_of_the_other_closure_panics() {
    let ledger = Ledger::new();
    let map = HashMap::new();
    let value = |n| (ledger.value(n), [n; 1000]);
    map.pin().insert(1, value(1));
    let (made, own) = (value(2), Fragile(ledger.value(3)));
    arm(Site::Drop, 0);
    let message = Plan::of_large(1, 4096).run(|| {
        let make = move || panic!("{own:?}");
        catch(|| map.pin().checked_update_or_insert_with(1, |_| made, make).map(drop).err()).unwrap_err()
    });
    assert!(disarm() && message.starts_with("fuse"), "{message}");
    assert_eq!((map.pin()[&1].0.n, ledger.alive()), (1, 1));
}
