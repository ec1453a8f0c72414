//! Values that cannot be refreshed: the old ones stay until their end.

use std::time::Duration;

use koel::LoadError;
use pollster::block_on;

use crate::common::catch;
use crate::refresh::{AHEAD, LIFE, due};

/// In each way to fail in turn: the refresh is tried again when half of the time is left, and half of that, and so on.
#[test]
fn who_fails_gets_the_old_value_until_it_has_expired() {
    let (cache, clock) = due();
    let mut out = [None];
    let mut tries = 0;
    let mut left = AHEAD;
    while left > Duration::from_micros(400) {
        assert!(cache.needs_refresh(&1), "{left:?}");
        match tries % 5 {
            0 => assert_eq!(cache.try_get_or_insert_with(1, || Err("no")), Ok(7)),
            1 => assert_eq!(block_on(cache.try_get_or_insert_async(1, async { Err("no") })), Ok(7)),
            2 => {
                assert_eq!(
                    cache.try_get_many_or_insert_with(&[1], &mut out, |_| Err::<[_; 0], _>("no")),
                    Ok(())
                );
                assert_eq!(out, [Some(7)]);
            }
            3 => {
                // The source has no such row any more.
                cache.get_many_or_insert_with(&[1], &mut out, |_| []);
                assert_eq!(out, [Some(7)]);
            }
            _ => assert_eq!(cache.try_get_or_insert_with_shared_ref(&1, || Err("no")).ok(), Some(7)),
        }
        tries += 1;
        assert!(!cache.needs_refresh(&1), "{left:?}");
        assert_eq!(cache.get_or_insert_with(1, || unreachable!("it is put off")), 7);
        clock.advance(left / 2 - Duration::from_nanos(16));
        assert_eq!(cache.get_or_insert_with(1, || unreachable!("it is put off")), 7);
        clock.advance(left - left / 2 + Duration::from_nanos(16) - left / 2);
        left = cache.time_left(&1).expect("it lives");
    }
    assert_eq!(tries, 15);
    let late = cache.try_get_or_insert_with(1, || {
        clock.advance(AHEAD);
        Err("no")
    });
    assert_eq!(late, Ok(7), "fifteen times are enough");
    clock.advance(left);
    assert_eq!(cache.try_get_or_insert_with(1, || Err("no")), Err(LoadError::Loader("no")));
}

#[test]
fn who_fails_when_the_old_value_has_expired_gets_the_error() {
    let (cache, clock) = due();
    let late = cache.try_get_or_insert_with(1, || {
        clock.advance(AHEAD);
        Err("no")
    });
    assert_eq!((late, cache.stats().failed_loads), (Err(LoadError::Loader("no")), 1));

    let (cache, clock) = due();
    cache.insert(2, 20).unwrap();
    // An expired value is not returned, in whatever order the keys come.
    for keys in [[1, 3], [3, 1]] {
        cache.insert(1, 7).unwrap();
        clock.advance(LIFE - AHEAD);
        let mut out = [Some(1); 2];
        let failed = cache.try_get_many_or_insert_with(&keys, &mut out, |_| {
            clock.advance(AHEAD);
            Err::<[_; 0], _>("no")
        });
        assert_eq!((failed, out), (Err(LoadError::Loader("no")), [None; 2]));
    }
}

#[test]
fn who_panics_leaves_the_old_value_to_be_refreshed_by_the_next() {
    let (cache, _) = due();
    assert_eq!(catch(|| cache.get_or_insert_with(1, || panic!("as planned"))).unwrap_err(), "as planned");
    assert!(cache.needs_refresh(&1));
    assert_eq!(cache.get_or_insert_with(1, || 8), 8);
}

/// However late the refresh fails, or was asked for.
#[test]
fn who_fails_late_puts_it_off_all_the_same() {
    let second = Duration::from_secs(1);
    let (cache, clock) = due();
    let slow = cache.try_get_or_insert_with(1, || {
        clock.advance(5 * second);
        Err("no")
    });
    assert_eq!(slow, Ok(7));
    clock.advance(2 * second);
    assert!(!cache.needs_refresh(&1), "three of five seconds are left");
    clock.advance(second / 2);
    assert!(cache.needs_refresh(&1));

    // Asked for the first time at the last moment.
    let (cache, clock) = due();
    clock.advance(9 * second);
    assert_eq!(cache.try_get_or_insert_with(1, || Err("no")), Ok(7));
    clock.advance(second / 4);
    assert!(!cache.needs_refresh(&1));
    clock.advance(second / 2);
    assert!(cache.needs_refresh(&1));
}
