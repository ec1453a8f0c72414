//! Copies of whole maps: the work of `clone`.
//!
//! A map of which two fifths are taken, in segments of one size, is copied segment by segment, each entry to the slot that it
//! has. The rest of it, and all of any other map, is inserted into the copy as by `extend`.

use core::hash::{BuildHasher, Hash};

use bytemuck::Pod;

use super::alone::{Fill, extend_alone};
use super::builder::sealed::FromShape;
use super::builder::{HashMapKind, InlineMapKind};
use super::{HashMap, InlineMap};
use crate::engine::CapacityError;
use crate::entries::{Entry, OwnedEntry, Table, Within};
use crate::hash::Digest;
use crate::outcome::FULL;

/// Copies every entry that is present throughout, into a map with the same options. The hasher is cloned, and the clone must
/// hash as this one does.
///
/// A map of which two fifths of the slots or more are taken, in segments of one size, is copied slot by slot, without hashing,
/// and the copy has as many slots; only entries that collide with many, or are in a segment that has split meanwhile, are
/// inserted. The entries of any other map are inserted into one that is made for them, or has the same fixed capacity. The
/// copy's [`Stats`](crate::Stats) count from zero.
///
/// # Panics
///
/// If there is no memory for it, and in a closure that runs under this map's lock.
impl<K: Pod + Hash + Eq, V: Pod, S: Clone + BuildHasher> Clone for InlineMap<K, V, S> {
    #[track_caller]
    fn clone(&self) -> Self {
        let Some(replica) = self.slots.empty_replica() else {
            let shape = self.slots.shape_for_items();
            let made =
                shape.and_then(|shape| InlineMapKind::from_shape(shape, self.len(), self.hasher.clone()));
            return finish(made, self.iter());
        };
        let mut rest = Vec::new();
        let copy = replica.map(|mut slots| {
            slots.replicate(&self.slots, &mut rest, |pair, _| pair);
            InlineMap::of(slots, self.hasher.clone())
        });
        finish(copy, rest.into_iter())
    }
}

/// Copies every entry that is present throughout, into a map with the same options. The hasher is cloned, and the clone must
/// hash as this one does. Keys and values are cloned without a lock.
///
/// A map of which two fifths of the slots or more are taken, in segments of one size, is copied slot by slot, without hashing,
/// unless it has [home cells](crate::Builder::home_cells), and the copy has as many slots; only entries that collide with many,
/// or are in a segment that has split meanwhile, are inserted. The entries of any other map are inserted into one that is made
/// for them, or has the same fixed capacity. The copy's [`Stats`](crate::Stats) count from zero.
///
/// # Panics
///
/// If there is no memory for it, and in a closure that runs under this map's lock.
impl<K: Clone + Hash + Eq, V: Clone, S: Clone + BuildHasher> Clone for HashMap<K, V, S> {
    #[track_caller]
    fn clone(&self) -> Self {
        let pin = self.pin();
        let Some(replica) = self.table.directory.empty_replica() else {
            let shape = self.table.directory.shape_for_items();
            let made = shape.and_then(|shape| HashMapKind::from_shape(shape, pin.len(), self.hasher.clone()));
            return finish(made, pin.iter().map(|(key, value)| (key.clone(), value.clone())));
        };
        let mut rest = Vec::new();
        let copy = replica.map(|replica| {
            // Home cells for as many entries as there are, if the original has any.
            let at_home = if self.table.slab.has_home_cells() { pin.len() } else { 0 };
            let table = Table::for_map_with_directory(replica, at_home);
            let mut copy = HashMap { table, hasher: self.hasher.clone() };
            let (directory, slab) = (&mut copy.table.directory, &copy.table.slab);
            let has_homes = slab.has_home_cells();
            directory.replicate(&self.table.directory, &mut rest, |entry, keep| {
                // SAFETY: it was in the table since we have pinned it.
                let (key, value) = unsafe { Entry::<K, V>::deref(entry) }.pair();
                let (digest, within) = match has_homes {
                    true => (self.digest(key), Within::PageAlone),
                    false => (Digest::new(0), Within::Nowhere),
                };
                match OwnedEntry::new(slab, &mut keep.free, digest, within, key.clone(), value.clone()) {
                    Ok(new) => new.into_raw(),
                    Err(_) => panic!("{FULL}"),
                }
            });
            copy
        });
        // SAFETY: as above.
        let pairs = rest.iter().map(|entry| unsafe { Entry::<K, V>::deref(*entry) }.pair());
        finish(copy, pairs.map(|(key, value)| (key.clone(), value.clone())))
    }
}

/// Inserts the pairs that are left into a copy, whose limit they may exceed: more may have come to the original meanwhile.
/// Panics if there is no memory for it or for them.
#[track_caller]
fn finish<K, V, M: Fill<K, V>>(made: Result<M, CapacityError>, pairs: impl Iterator<Item = (K, V)>) -> M {
    let mut copy = match made {
        Ok(copy) => copy,
        Err(error) => panic!("{error}"),
    };
    let limit = copy.directory_mut().limit(usize::MAX);
    extend_alone(&mut copy, pairs);
    if let Some(limit) = limit {
        let len = copy.directory().len();
        copy.directory_mut().limit(limit.max(len));
    }
    copy
}
