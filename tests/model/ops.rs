//! The operations.

use core::fmt::Debug;
use core::hash::Hash;
use core::ops::Range;

/// A key or value made from a number; equal numbers make equal ones.
pub(crate) trait Datum: Clone + Default + Eq + Hash + Debug + Send + Sync {
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

/// What the closure of `compute` decides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Decision {
    Insert(u32),
    /// Remove, or abort if there is nothing to remove.
    Remove,
    /// Remove, which panics if there is nothing to remove.
    RemoveAnyway,
    Abort,
}

/// One operation; keys and values as numbers.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Insert(u32, u32),
    CheckedInsert(u32, u32),
    TryInsert(u32, u32),
    TryInsertWith(u32, u32),
    Remove(u32),
    RemoveEntry(u32),
    RemoveIf(u32, bool),
    /// Every kind of look-up of one key.
    Read(u32),
    ReadMany(Vec<u32>),
    GetOrInsert(u32, u32),
    GetOrInsertDefault(u32),
    GetOrInsertWith(u32, u32),
    GetOrInsertWithRef(u32, u32),
    /// If the value is `None` the closure fails.
    TryGetOrInsertWith(u32, Option<u32>),
    Update(u32, u32),
    UpdateOrInsert(u32, u32),
    UpdateOrInsertWith(u32, u32),
    Compute(u32, Decision),
    /// Keeps this many sixteenths of the entries.
    Retain(u32),
    Clear,
    /// This many entries are taken from a drain before it is dropped.
    Drain(usize),
    /// This many entries are visited.
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
