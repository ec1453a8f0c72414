//! The checker itself: histories whose verdict is known, and random ones on which two algorithms and all permutations must
//! agree.

use super::checker::{Event, Register, Saw, Wrote, check, search};
use crate::common::{Rng, seed};

fn event(invoked: u64, returned: u64, saw: Option<u64>, wrote: Wrote) -> Event {
    Event { invoked, returned, saw: saw.map_or(Saw::Absent, Saw::Value), wrote }
}

fn get(invoked: u64, returned: u64, saw: Option<u64>) -> Event {
    event(invoked, returned, saw, Wrote::Nothing)
}

fn put(invoked: u64, returned: u64, saw: Option<u64>, value: u64) -> Event {
    event(invoked, returned, saw, Wrote::State(Some(value)))
}

fn remove(invoked: u64, returned: u64, saw: Option<u64>) -> Event {
    event(invoked, returned, saw, Wrote::State(None))
}

/// Both algorithms' verdict.
fn verdict(initial: Option<u64>, events: &[Event]) -> bool {
    verdict_of(Register::Keeps, initial, events)
}

fn verdict_of(register: Register, initial: Option<u64>, events: &[Event]) -> bool {
    let verdict = check(register, initial, events).is_ok();
    assert_eq!(verdict, search(register, initial, events), "{register:?}: {events:?}");
    verdict
}

#[test]
fn a_cache_may_forget_and_not_remember() {
    let forgets = |initial, events: &[Event]| verdict_of(Register::Forgets, initial, events);
    assert!(forgets(Some(1), &[get(0, 1, None)]), "evicted");
    assert!(forgets(None, &[put(0, 1, None, 1), get(2, 3, Some(1)), get(4, 5, None), get(6, 7, None)]));
    assert!(forgets(Some(1), &[put(0, 5, None, 2), get(1, 2, Some(1)), get(3, 4, None), get(6, 7, Some(2))]));
    assert!(!forgets(Some(1), &[get(0, 1, None), get(2, 3, Some(1))]), "resurrected");
    assert!(
        !forgets(None, &[put(0, 1, None, 1), put(2, 3, Some(1), 2), get(4, 5, Some(1))]),
        "a stale value"
    );
    assert!(!forgets(Some(1), &[remove(0, 1, Some(1)), get(2, 3, Some(1))]), "removed, and there");
    assert!(!forgets(Some(1), &[remove(0, 3, Some(1)), remove(1, 4, Some(1))]), "removed twice");
    assert!(!forgets(None, &[get(0, 1, Some(1)), put(2, 3, None, 1)]), "a value from the future");
    // The value may be gone when the one looks, and must not come back for the other.
    assert!(!forgets(Some(1), &[get(0, 1, None), get(2, 5, Some(1)), get(3, 4, None)]));
    assert!(forgets(Some(1), &[get(0, 5, Some(1)), get(1, 4, None)]));
}

#[test]
fn a_filter_may_say_maybe_and_never_no_of_what_is_there() {
    let step = |invoked, returned, saw, wrote| Event { invoked, returned, saw, wrote };
    let insert = |invoked, returned| step(invoked, returned, Saw::Nothing, Wrote::More);
    let remove = |invoked, returned| step(invoked, returned, Saw::Present, Wrote::Less);
    let maybe = |invoked, returned| step(invoked, returned, Saw::Nothing, Wrote::Nothing);
    let no = |invoked, returned| step(invoked, returned, Saw::AtMost(0), Wrote::Nothing);
    let copies = |invoked, returned, n| step(invoked, returned, Saw::AtMost(n), Wrote::Nothing);
    assert!(verdict(None, &[maybe(0, 1), no(2, 3), insert(4, 5), maybe(6, 7)]));
    assert!(!verdict(None, &[insert(0, 1), no(2, 3)]));
    assert!(verdict(None, &[insert(0, 3), no(1, 2)]));
    assert!(verdict(Some(1), &[insert(0, 1), remove(2, 3), copies(4, 5, 1), remove(6, 7), no(8, 9)]));
    assert!(!verdict(Some(1), &[insert(0, 1), remove(2, 3), no(4, 5)]), "two less one are not none");
    assert!(!verdict(Some(2), &[copies(0, 1, 1)]));
    assert!(verdict(Some(2), &[copies(0, 1, 3)]), "one may be counted twice");
    assert!(!verdict(Some(1), &[remove(0, 3), remove(1, 4)]), "one copy removed twice");
    assert!(verdict(Some(1), &[remove(0, 9), insert(1, 8), no(2, 7)]), "removed, asked for, inserted");
    assert!(!verdict(Some(1), &[insert(0, 1), remove(2, 9), no(3, 8)]), "one was there throughout");
}

#[test]
fn good_histories_are_accepted() {
    assert!(verdict(None, &[]));
    assert!(verdict(Some(1), &[get(0, 1, Some(1))]));
    // One after the other.
    assert!(verdict(None, &[put(0, 1, None, 1), get(2, 3, Some(1)), remove(4, 5, Some(1)), get(6, 7, None)]));
    // A get concurrent with a put may see either state.
    assert!(verdict(None, &[put(0, 3, None, 1), get(1, 2, Some(1))]));
    assert!(verdict(None, &[put(0, 3, None, 1), get(1, 2, None)]));
    // Old value after new value, of overlapping gets: no, but of overlapping puts: yes.
    assert!(verdict(
        None,
        &[put(0, 5, None, 1), put(1, 6, Some(1), 2), get(2, 3, Some(1)), get(4, 7, Some(2))]
    ));
    // Three writers at once; what they saw forces the order 2, 3, 1.
    assert!(verdict(
        None,
        &[put(0, 9, Some(3), 1), put(1, 8, None, 2), put(2, 7, Some(2), 3), get(10, 11, Some(1))]
    ));
    // Presence is enough for `contains_key`.
    let contains = Event { invoked: 1, returned: 2, saw: Saw::Present, wrote: Wrote::Nothing };
    assert!(verdict(None, &[put(0, 3, None, 1), contains]));
}

#[test]
fn bad_histories_are_rejected() {
    assert!(!verdict(None, &[get(0, 1, Some(1))]), "a value nobody wrote");
    assert!(!verdict(Some(1), &[get(0, 1, None)]), "a missing key");
    assert!(!verdict(None, &[put(0, 1, None, 1), get(2, 3, None)]), "a lost insert");
    assert!(
        !verdict(None, &[put(0, 1, None, 1), put(2, 3, Some(1), 2), get(4, 5, Some(1))]),
        "a stale value"
    );
    assert!(!verdict(None, &[get(0, 1, Some(1)), put(2, 3, None, 1)]), "a value from the future");
    // New, then old again, while the put is under way.
    assert!(!verdict(None, &[put(0, 9, None, 1), get(1, 2, Some(1)), get(3, 4, None)]), "back and forth");
    // Both increments saw the same value.
    assert!(!verdict(Some(1), &[put(0, 3, Some(1), 2), put(1, 4, Some(1), 3)]), "a lost update");
    assert!(!verdict(None, &[put(0, 3, None, 1), put(1, 2, None, 2)]), "both inserted");
    assert!(!verdict(Some(1), &[remove(0, 3, Some(1)), remove(1, 4, Some(1))]), "removed twice");
    let torn =
        Event { invoked: 0, returned: 1, saw: Saw::Garbage("[1, 2, 1]".into()), wrote: Wrote::Nothing };
    assert!(!verdict(Some(1), &[torn]), "torn");
    let absent = Event { invoked: 2, returned: 3, saw: Saw::Absent, wrote: Wrote::Nothing };
    assert!(!verdict(None, &[put(0, 1, None, 1), absent]), "surely absent, and yet present");
}

/// Tries all orders, with and without forgetting before each event.
fn by_permutation(register: Register, state: Option<u64>, events: &[Event]) -> bool {
    if events.is_empty() {
        return true;
    }
    if register == Register::Forgets && state.is_some() && by_permutation(register, None, events) {
        return true;
    }
    (0..events.len()).any(|i| {
        let mut rest = events.to_vec();
        let event = rest.remove(i);
        let may_be_first = rest.iter().all(|other| event.invoked < other.returned);
        let explained = match event.saw {
            Saw::Value(value) => state == Some(value),
            Saw::Present => state.is_some(),
            Saw::Absent => state.is_none(),
            Saw::AtMost(copies) => state.unwrap_or(0) <= copies,
            Saw::Nothing => true,
            Saw::Garbage(_) => false,
        };
        may_be_first && explained && by_permutation(register, event.wrote.applied_to(state), &rest)
    })
}

/// A history of up to seven random events, half of the time one that is possible.
fn random_history(rng: &mut Rng) -> Vec<Event> {
    let count = 1 + rng.below(7);
    let mut state = None;
    let happened = rng.one_in(2);
    let make = |i: u64| {
        // Takes effect at 10 * i + 5, and lasts for some time before and after.
        let invoked = (100 + 10 * i).saturating_sub(rng.below(30)) * 10 + i;
        let returned = (100 + 10 * i + 1 + rng.below(30)) * 10 + i;
        let seen = if happened { state } else { rng.below(4).checked_sub(1) };
        let wrote = match rng.below(6) {
            0 | 1 => Wrote::Nothing,
            2 => Wrote::State(None),
            3 => Wrote::State(Some(rng.below(3))),
            4 => Wrote::More,
            _ => Wrote::Less,
        };
        state = wrote.applied_to(state);
        event(invoked, returned, seen, wrote)
    };
    (0..count).map(make).collect()
}

#[test]
fn both_algorithms_agree_with_trying_all_orders() {
    let mut rng = Rng::new(seed());
    let (mut good, mut forgotten) = (0, 0);
    const HISTORIES: usize = 20_000;
    for _ in 0..HISTORIES {
        let events = random_history(&mut rng);
        let forgets = by_permutation(Register::Forgets, None, &events);
        assert_eq!(verdict_of(Register::Forgets, None, &events), forgets, "{events:?}");
        let expected = by_permutation(Register::Keeps, None, &events);
        assert_eq!(verdict(None, &events), expected, "{events:?}");
        assert!(forgets || !expected);
        (good, forgotten) = (good + usize::from(expected), forgotten + usize::from(forgets && !expected));
    }
    assert!((HISTORIES / 3..HISTORIES).contains(&good), "{good} of {HISTORIES} are good");
    assert!(forgotten > HISTORIES / 1000, "{forgotten} are good if keys may be forgotten");
}

#[test]
fn one_bad_event_in_a_long_history_is_found() {
    let mut events: Vec<Event> = (0..50_000).map(|i| put(i * 4, i * 4 + 3, i.checked_sub(1), i)).collect();
    assert!(check(Register::Keeps, None, &events).is_ok());
    let bad = 40_000;
    events.push(get(bad * 4 + 1, bad * 4 + 2, Some(bad - 2)));
    let violation = check(Register::Keeps, None, &events).unwrap_err();
    assert!(violation.around.iter().any(|event| event.invoked == bad * 4 + 1), "{violation:?}");
}
