//! A dump that is serialized and read, and data that pretends to be one.

use std::collections::BTreeMap;
use std::time::Duration;

use ::serde::de::value::{Error, SeqDeserializer};
use ::serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use koel::{Cache, CacheDump, ManualClock, Policy};

use super::lifetimes::dying;
use super::order::wander;
use super::{Hashed, contents, keys, live, load_all, told_cache};
use crate::{POLICIES, SEVERAL_SEGMENTS};

type Dump = CacheDump<u64, u64>;

#[test]
fn what_is_written_down_comes_back() {
    let clock = ManualClock::new();
    let old = dying(&clock, 60, 50);
    old.insert(1, 2).unwrap();
    clock.advance(Duration::from_secs(10));
    let text = serde_json::to_string(&old.dump()).unwrap();
    assert_eq!(text, "[1,10000,[[1,2,4,50000000000,10000000000]]]");
    let cache: Hashed = told_cache(Policy::Adaptive, 500).0;
    wander(&cache, 0..20_000);
    let text = serde_json::to_string(&cache.dump()).unwrap();
    let dump: Dump = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&dump).unwrap(), text);
    let back = told_cache(Policy::Adaptive, 500).0;
    load_all(&back, &dump);
    // Hits, queues and the window's share with it. For the order see `strangers`.
    assert_eq!(parts(&back.dump()), parts(&dump));
    let window = parts(&dump).0.unwrap();
    assert!(window > 100_000, "the window has not grown: {window}");
}

type Entry = (u64, u64, u8, Option<u64>, u64);

/// The window's share, and the entries by key.
fn parts(dump: &Dump) -> (Option<u32>, Vec<Entry>) {
    let text = serde_json::to_string(dump).unwrap();
    let (_, window, mut entries): (u32, Option<u32>, Vec<Entry>) = serde_json::from_str(&text).unwrap();
    entries.sort_unstable();
    (window, entries)
}

#[test]
fn the_windows_share_is_taken_over_by_who_has_not_evicted() {
    let wide: Dump = serde_json::from_str("[1,500000,[]]").unwrap();
    let share = |cache: &Cache<u64, u64>| parts(&cache.dump()).0;
    for entries in [500, SEVERAL_SEGMENTS] {
        let cache: Cache<u64, u64> = Cache::new(entries);
        (0..10).for_each(|key| cache.insert(key, key).unwrap());
        assert_eq!(share(&cache), Some(10_000));
        assert!(cache.load(wide.clone()).is_empty());
        assert_eq!(share(&cache), Some(500_000));
        // A clock does not have these.
        let clock = Cache::builder().max_entries(10).policy(Policy::Clock).build();
        assert_eq!(share(&clock), None);
        assert!(cache.load(clock.dump()).is_empty() && clock.load(wide.clone()).is_empty());
        assert_eq!((share(&cache), share(&clock)), (Some(500_000), None));
        // No policy goes so far.
        for (text, most) in [("[1,1000000,[]]", 900_000), ("[1,0,[]]", 10_000)] {
            assert!(cache.load(serde_json::from_str(text).unwrap()).is_empty());
            assert_eq!(share(&cache), Some(most));
        }
        (0..2 * entries as u64).for_each(|key| cache.insert(key, key).unwrap());
        let own = share(&cache);
        assert!(cache.load(wide.clone()).is_empty());
        assert_eq!(share(&cache), own);
    }
    assert_eq!(share(&Cache::new(0)), None);
}

#[test]
fn what_is_no_dump_is_an_error() {
    let bad = [
        ("", "EOF"),
        ("1", "expected a cache's dump: version 1"),
        ("{}", "expected a cache's dump: version 1"),
        ("[]", "expected a cache's dump: version 1"),
        ("[1]", "invalid length 1"),
        ("[1,null]", "invalid length 2"),
        ("[2,0,[]]", "a cache's dump of version 2: only 1 can be read"),
        ("[2,{\"else\":0}]", "a cache's dump of version 2: only 1 can be read"),
        ("[0,0,[]]", "a cache's dump of version 0"),
        ("[-1,0,[]]", "u32"),
        ("[1,-1,[]]", "u32"),
        ("[1,0.5,[]]", "u32"),
        ("[1,1000001,[]]", "window's share"),
        ("[1,[]]", "u32"),
        ("[1,0,1]", "expected a list"),
        ("[1,0,[1]]", "tuple of size 5"),
        ("[1,0,[],1]", "trailing"),
        ("[1,0,[[]]]", "invalid length 0"),
        ("[1,0,[[1,1,0,null]]]", "invalid length 4"),
        ("[1,0,[[1,1,3,null,0]]]", "heat: 0 to 2, or 4 to 6"),
        ("[1,0,[[1,1,7,null,0]]]", "heat: 0 to 2, or 4 to 6"),
        ("[1,0,[[1,1,8,null,0]]]", "heat: 0 to 2, or 4 to 6"),
        ("[1,0,[[1,1,256,null,0]]]", "u8"),
        ("[1,0,[[1,1,0,-1,0]]]", "u64"),
        ("[1,0,[[1,1,0,null,-1]]]", "u64"),
        ("[1,0,[[1,1,0,18446744073709551616,0]]]", "u64"),
        ("[1,0,[[1,1,0,null,null]]]", "u64"),
        ("[1,0,[[1,1,0,null,0,0]]]", "trailing"),
    ];
    for (text, expected) in bad {
        let error = serde_json::from_str::<Dump>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let good = "[1,20000,[[1,1,0,null,0],[2,2,6,7,0]]]";
    assert_eq!(serde_json::from_str::<Dump>(good).unwrap().len(), 2);
    (0..good.len()).for_each(|len| assert!(serde_json::from_str::<Dump>(&good[..len]).is_err(), "{len}"));
}

#[test]
fn absurd_numbers_and_equal_keys_do_no_harm() {
    let text =
        format!("[1,0,[[1,1,0,{0},{0}],[1,2,6,{0},0],[2,3,5,0,0],[3,4,2,1,{0}],[4,5,4,null,0]]]", u64::MAX);
    let dump: Dump = serde_json::from_str(&text).unwrap();
    let clock = ManualClock::new();
    let cache = dying(&clock, 60, 50);
    assert_eq!(keys(&cache.load(dump.clone())), [1, 2, 3]);
    assert_eq!(contents(&cache), BTreeMap::from([(1, 2), (4, 5)]));
    for policy in POLICIES {
        let cache = told_cache(policy, 3).0;
        assert_eq!(cache.load(dump.clone()).len(), 2);
        live(&cache, 100);
        assert!(cache.len() <= 3);
    }
}

/// Each byte of a dump replaced by others: it is an error, or a dump that loads within the bound and goes on.
#[test]
fn spoilt_bytes_do_no_harm() {
    let old = dying(&ManualClock::new(), 60, 50);
    (0..10).for_each(|key| old.insert(key, key).unwrap());
    let text = serde_json::to_string(&old.dump()).unwrap();
    let mut read = 0;
    for at in 0..text.len() {
        for other in *b"0195,[]-e.n\"" {
            let mut spoilt = text.clone().into_bytes();
            spoilt[at] = other;
            let Ok(dump) = serde_json::from_slice::<Dump>(&spoilt) else { continue };
            read += 1;
            // With a known hash function: in a table so small, an entry may be in the way and have to go.
            let cache = told_cache(Policy::Adaptive, 10).0;
            let before = dump.len();
            let rest = cache.load(dump);
            assert_eq!(cache.len() + rest.len(), before, "{:?}", std::str::from_utf8(&spoilt));
            live(&cache, 30);
            assert!(cache.len() <= 10);
        }
    }
    assert!(read > 100 && read < 12 * text.len() / 2, "{read} of {} could be read", 12 * text.len());
}

/// A list that claims to be as long as possible, and is empty.
struct Liar;

impl Iterator for Liar {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, Some(usize::MAX))
    }
}

enum Part {
    Version,
    Window,
    Entries,
}

impl<'de> Deserializer<'de> for Part {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Part::Version => visitor.visit_u32(1),
            Part::Window => visitor.visit_none(),
            Part::Entries => visitor.visit_seq(SeqDeserializer::<_, Error>::new(Liar)),
        }
    }

    ::serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Part {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[test]
fn a_lying_length_is_not_believed() {
    let parts = SeqDeserializer::<_, Error>::new([Part::Version, Part::Window, Part::Entries].into_iter());
    let read = Dump::deserialize(parts);
    assert!(read.is_ok_and(|dump| dump.is_empty()));
}

/// No cache makes such a dump, but somebody may have written it.
#[test]
fn a_key_that_is_there_again_and_again_takes_the_room_of_one() {
    let again = (0..100).map(|value| format!("[1,{value},{},null,0]", if value == 70 { 6 } else { 5 }));
    let others = (2..60).map(|key| format!("[{key},{key},4,null,0]"));
    let entries: Vec<String> = again.chain(others).collect();
    let dump: Dump = serde_json::from_str(&format!("[1,null,[{}]]", entries.join(","))).unwrap();
    let cache: Cache<u64, u64> = Cache::new(100);
    let rest = cache.load(dump);
    assert_eq!((cache.len(), rest.len()), (59, 99));
    assert!(cache.get(&1) == Some(70) && rest.iter().all(|(key, _)| *key == 1), "the hottest of them");
}
