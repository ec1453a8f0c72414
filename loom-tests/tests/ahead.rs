//! Copying ahead of a split [G7]: a reader that comes late to a segment that is being filled, and filled anew, reads nothing
//! torn.
#![cfg(loom)]

use std::sync::Arc;

use koel::model::{CopiedAhead, prefix};
use loom::thread;

#[test]
fn late_reader_never_finds_a_torn_value_in_what_is_copied_again() {
    loom::model(|| {
        let mut upper = (0..).filter(|&key| prefix(key) >> 31 == 1);
        let [held, other] = std::array::from_fn(|_| upper.next().expect("there are more"));
        let copied = Arc::new(CopiedAhead::new(held));
        // Otherwise there would be nothing to tear.
        assert_eq!(copied.find_late(held), Some([held, !held]));
        let reader = {
            let copied = Arc::clone(&copied);
            thread::spawn(move || {
                let found = copied.find_late(held);
                assert!(found.is_none_or(|value| value == [held, !held]), "{held}: {found:?}");
            })
        };
        copied.exchange(held, other);
        reader.join().unwrap();
        assert_eq!(copied.find_late(other), Some([other, !other]));
    });
}
