//! How operations are chosen.

use core::ops::Range;

use proptest::prelude::*;

use crate::ops::{Decision, Op};

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
        2 => (k.clone(), v).prop_map(|(k, v)| Op::TryInsertWith(k, v)),
        6 => k.clone().prop_map(Op::Remove),
        2 => k.clone().prop_map(Op::RemoveEntry),
        3 => (k.clone(), any::<bool>()).prop_map(|(k, yes)| Op::RemoveIf(k, yes)),
        6 => k.clone().prop_map(Op::Read),
        2 => (k.clone(), v).prop_map(|(k, v)| Op::GetOrInsert(k, v)),
        1 => k.clone().prop_map(Op::GetOrInsertDefault),
        3 => (k.clone(), v).prop_map(|(k, v)| Op::GetOrInsertWith(k, v)),
        2 => (k.clone(), v).prop_map(|(k, v)| Op::GetOrInsertWithRef(k, v)),
        2 => (k.clone(), any::<Option<u32>>()).prop_map(|(k, v)| Op::TryGetOrInsertWith(k, v)),
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
