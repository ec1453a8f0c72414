//! The operations, and how to choose them.

use core::fmt::Debug;
use core::hash::Hash;
use core::ops::Range;

use proptest::prelude::*;

/// A key or value made from a number; equal numbers make equal ones.
pub(crate) trait Datum: Clone + Eq + Hash + Debug + Send + Sync {
    fn of(n: u32) -> Self;
}

macro_rules! datums {
    ($($type:ty: $n:ident => $of:expr;)*) => {$(
        impl Datum for $type {
            fn of($n: u32) -> Self {
                $of
            }
        }
    )*};
}

datums! {
    (): _n => ();
    u8: n => n as u8;
    u32: n => n.wrapping_mul(0x0101_0101);
    u64: n => u64::from(n) << 20;
    [u32; 3]: n => [n, !n, n ^ 7];
    [u64; 3]: n => [n.into(), (!n).into(), (n ^ 7).into()];
    [u8; 3]: n => [n as u8, (n >> 8) as u8, 9];
    [u8; 5]: n => [n as u8, 1, (n >> 8) as u8, 2, !n as u8];
    String: n => format!("number {n}");
}

/// What `compute` is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decision {
    Insert(u32),
    /// Or abort, if there is nothing to remove.
    Remove,
    /// A panic, if there is nothing to remove.
    RemoveAnyway,
    Abort,
}

/// One operation; keys and values as numbers.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Insert(u32, u32),
    CheckedInsert(u32, u32),
    TryInsert(u32, u32),
    Remove(u32),
    RemoveEntry(u32),
    RemoveIf(u32, bool),
    /// Every way to look at one key.
    Read(u32),
    ReadMany(Vec<u32>),
    GetOrInsert(u32, u32),
    GetOrInsertWith(u32, u32),
    Update(u32, u32),
    UpdateOrInsert(u32, u32),
    UpdateOrInsertWith(u32, u32),
    Compute(u32, Decision),
    /// Keeps so many sixteenths.
    Retain(u32),
    Clear,
    /// So many entries are taken from a drain before it is dropped.
    Drain(usize),
    /// So many entries are looked at.
    Walk(usize),
    KeysAndValues,
    Reserve(usize),
    ShrinkToFit,
    Extend(Vec<(u32, u32)>),
    Clone,
    InsertRange(Range<u32>),
    RemoveRange(Range<u32>),
    CheckEverything,
}

fn operation(keys: Range<u32>) -> impl Strategy<Value = Op> {
    let k = keys.clone();
    let v = any::<u32>();
    let range = (k.clone(), 0..200_u32).prop_map(|(start, len)| start..start + len);
    let decision = prop_oneof![
        4 => v.prop_map(Decision::Insert),
        3 => Just(Decision::Remove),
        1 => Just(Decision::RemoveAnyway),
        2 => Just(Decision::Abort),
    ];
    let single = prop_oneof![
        8 => (k.clone(), v).prop_map(|(k, v)| Op::Insert(k, v)),
        6 => (k.clone(), v).prop_map(|(k, v)| Op::CheckedInsert(k, v)),
        4 => (k.clone(), v).prop_map(|(k, v)| Op::TryInsert(k, v)),
        6 => k.clone().prop_map(Op::Remove),
        2 => k.clone().prop_map(Op::RemoveEntry),
        3 => (k.clone(), any::<bool>()).prop_map(|(k, yes)| Op::RemoveIf(k, yes)),
        6 => k.clone().prop_map(Op::Read),
        2 => (k.clone(), v).prop_map(|(k, v)| Op::GetOrInsert(k, v)),
        3 => (k.clone(), v).prop_map(|(k, v)| Op::GetOrInsertWith(k, v)),
        4 => (k.clone(), v).prop_map(|(k, v)| Op::Update(k, v)),
        2 => (k.clone(), v).prop_map(|(k, v)| Op::UpdateOrInsert(k, v)),
        3 => (k.clone(), v).prop_map(|(k, v)| Op::UpdateOrInsertWith(k, v)),
        6 => (k.clone(), decision).prop_map(|(k, decision)| Op::Compute(k, decision)),
    ];
    let whole = prop_oneof![
        3 => prop::collection::vec(k.clone(), 0..80).prop_map(Op::ReadMany),
        2 => (0..17_u32).prop_map(Op::Retain),
        1 => Just(Op::Clear),
        1 => prop_oneof![0..20_usize, Just(usize::MAX)].prop_map(Op::Drain),
        2 => prop_oneof![0..20_usize, Just(usize::MAX)].prop_map(Op::Walk),
        1 => Just(Op::KeysAndValues),
        1 => (0..300_usize).prop_map(Op::Reserve),
        2 => Just(Op::ShrinkToFit),
        2 => prop::collection::vec((k, v), 0..60).prop_map(Op::Extend),
        1 => Just(Op::Clone),
        3 => range.clone().prop_map(Op::InsertRange),
        2 => range.prop_map(Op::RemoveRange),
        1 => Just(Op::CheckEverything),
    ];
    prop_oneof![8 => single, 1 => whole]
}

/// Sequences over few keys, or over many.
pub(crate) fn sequences() -> impl Strategy<Value = Vec<Op>> {
    prop_oneof![
        prop::collection::vec(operation(0..24), 1..120),
        prop::collection::vec(operation(0..2000), 1..120),
    ]
}
