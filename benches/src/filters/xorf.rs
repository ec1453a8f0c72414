//! xorf::BinaryFuse8 and xorf::BinaryFuse16.

use parking_lot::RwLock;
use xorf::Filter as _;

use super::{Expected, Filter, Full, Size};

/// A binary fuse filter: built from all its keys at once, and never changed. It mixes 64-bit keys itself.
#[derive(Debug)]
pub enum BinaryFuse {
    /// For 8 bits.
    Bits8(xorf::BinaryFuse8),
    /// For more.
    Bits16(xorf::BinaryFuse16),
}

impl Filter for BinaryFuse {
    const NAME: &'static str = "xorf";
    const REMOVES: bool = false;
    type Shared = RwLock<Self>;

    fn empty(size: Size) -> Result<Self, String> {
        Self::filled(size, std::iter::empty())?.map_err(|Full| "no empty filter".to_owned())
    }

    fn filled(size: Size, keys: impl Iterator<Item = u64>) -> Result<Result<Self, Full>, String> {
        let keys: Vec<u64> = keys.collect();
        let built = if size.bits <= 8 {
            xorf::BinaryFuse8::try_from(&keys).map(BinaryFuse::Bits8)
        } else {
            xorf::BinaryFuse16::try_from(&keys).map(BinaryFuse::Bits16)
        };
        built.map(Ok).map_err(str::to_owned)
    }

    fn insert(&mut self, _: u64) -> Result<(), Full> {
        Err(Full)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        match self {
            BinaryFuse::Bits8(filter) => filter.contains(&key),
            BinaryFuse::Bits16(filter) => filter.contains(&key),
        }
    }

    fn expected(&self, _: u64) -> Expected {
        Expected::AtMost(match self {
            BinaryFuse::Bits8(_) => 2_f64.powi(-8),
            BinaryFuse::Bits16(_) => 2_f64.powi(-16),
        })
    }

    fn share(self) -> RwLock<Self> {
        RwLock::new(self)
    }
}
