//! The cache: what it evicts is decided by [`policy`].

pub(crate) mod policy;

pub use policy::Policy;
