//! Keys that are reserved: the holder of the lead does as it likes [F10].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use super::{Cache, Count, until};
use crate::cache::flight::LoadError;

#[test]
fn what_is_put_is_kept_and_found() {
    let cache = Cache::new();
    assert_eq!(cache.reserve(&1, || Some(7)), Ok(Some(7)));
    assert_eq!(cache.reserve(&1, || unreachable!("it is there")), Ok(Some(7)));
    assert_eq!((cache.get(&1), cache.loads()), (Some(7), 0));
}

#[test]
fn what_is_given_up_leaves_nothing_behind() {
    let cache = Cache::new();
    assert_eq!(cache.reserve(&1, || None), Ok(None));
    let lost =
        catch_unwind(AssertUnwindSafe(|| cache.reserve(&1, || std::panic::resume_unwind(Box::new(())))));
    assert!(lost.is_err());
    assert_eq!((cache.get(&1), cache.loads()), (None, 0));
}

/// Three callers wait for the leader, whatever it does.
#[test]
fn who_waits_reserves_it_or_gets_its_value() {
    const WAITING: usize = 3;
    for fails in 0..=WAITING {
        let (cache, reserved) = (Cache::new(), Count::default());
        let one = || {
            cache.reserve(&1, || {
                let before = reserved.add();
                until(|| cache.followers(&1) == WAITING - before);
                (before == fails).then_some(7)
            })
        };
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..=WAITING).map(|_| scope.spawn(one)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let in_vain = found.iter().filter(|found| **found == Ok(None)).count();
        assert_eq!((in_vain, reserved.get(), cache.get(&1)), (fails, fails + 1, Some(7)));
    }
}

#[test]
fn a_loader_that_reserves_its_own_key_is_told() {
    let cache = Cache::new();
    let value = cache.get_or_insert_with(&1, || {
        assert_eq!(cache.reserve(&1, || unreachable!()), Err(LoadError::Recursion));
        assert_eq!(cache.reserve(&2, || Some(8)), Ok(Some(8)));
        7
    });
    assert_eq!((value, cache.get(&2), cache.loads()), (7, Some(8), 0));
}
