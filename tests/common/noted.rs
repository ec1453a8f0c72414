//! Keys by which equal ones can be told apart.

use core::hash::{Hash, Hasher};

use koel::Equivalent;

/// Equal to any other with this key, whatever its note.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Noted {
    pub(crate) key: u64,
    pub(crate) note: u64,
}

impl PartialEq for Noted {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Noted {}

impl Hash for Noted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl Equivalent<Noted> for u64 {
    fn equivalent(&self, noted: &Noted) -> bool {
        *self == noted.key
    }
}
