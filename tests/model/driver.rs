//! Performs an operation on a map and on its model, and compares the results.

use std::collections::HashMap as Model;

use koel::{Compute, Full, Occupied, Operation};

use super::common::{AnyMap, Config, catch};
use super::ops::{Datum, Decision, Op};

/// A map that can be driven.
pub(crate) trait Subject: AnyMap<Key: Datum, Value: Datum> + PartialEq {}

impl<M: AnyMap<Key: Datum, Value: Datum> + PartialEq> Subject for M {}

/// A map and its model.
pub(crate) struct Driver<M: Subject> {
    pub(crate) map: M,
    pub(crate) model: Model<M::Key, M::Value>,
    /// How many entries are certain to fit.
    limit: usize,
}

impl<M: Subject> Driver<M> {
    pub(crate) fn new(config: Config, hasher: M::Hasher) -> Self {
        let limit = config.limit().unwrap_or(usize::MAX);
        Driver { map: M::build(config, hasher), model: Model::new(), limit }
    }

    /// Runs an insertion, which may panic if the map is full: then nothing has changed.
    fn adding<T>(&mut self, key: &M::Key, insert: impl FnOnce(&M) -> T) -> Option<T> {
        if self.model.len() < self.limit || self.model.contains_key(key) {
            return Some(insert(&self.map));
        }
        let result = catch(|| insert(&self.map));
        if let Err(message) = &result {
            assert!(message.contains("full"), "{message}");
            assert!(!self.map.contains_key(key), "the map was full, and yet took {key:?}");
        }
        result.ok()
    }

    pub(crate) fn checked_insert(&mut self, key: M::Key, value: M::Value) {
        match self.map.checked_insert(key.clone(), value.clone()) {
            Ok(old) => assert_eq!(old, self.model.insert(key, value)),
            Err(Full { key: back, value: value_back }) => {
                assert!(self.model.len() >= self.limit && !self.model.contains_key(&key), "refused {key:?}");
                assert_eq!((back, value_back), (key, value), "what is handed back");
            }
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Insert(k, v) => self.insert(Datum::of(k), Datum::of(v)),
            Op::CheckedInsert(k, v) => self.checked_insert(Datum::of(k), Datum::of(v)),
            Op::TryInsert(k, v) => self.try_insert(Datum::of(k), Datum::of(v)),
            Op::TryInsertWith(k, v) => self.try_insert_with(Datum::of(k), Datum::of(v)),
            Op::Remove(k) => {
                let key = Datum::of(k);
                assert_eq!(self.map.remove(&key), self.model.remove(&key));
            }
            Op::RemoveEntry(k) => {
                let key = Datum::of(k);
                assert_eq!(self.map.remove_entry(&key), self.model.remove_entry(&key));
            }
            Op::RemoveIf(k, yes) => self.remove_if(&Datum::of(k), yes),
            Op::Read(k) => self.read(&Datum::of(k)),
            Op::ReadMany(ref keys) => self.read_many(&keys.iter().map(|k| Datum::of(*k)).collect::<Vec<_>>()),
            Op::GetOrInsert(k, v) => {
                let (key, value): (M::Key, M::Value) = (Datum::of(k), Datum::of(v));
                let result = self.adding(&key, |map| map.get_or_insert(key.clone(), value.clone()));
                if let Some(result) = result {
                    assert_eq!(result, *self.model.entry(key).or_insert(value));
                }
            }
            Op::GetOrInsertDefault(k) => {
                let key: M::Key = Datum::of(k);
                let result = self.adding(&key, |map| map.get_or_insert_default(key.clone()));
                if let Some(result) = result {
                    assert_eq!(result, *self.model.entry(key).or_default());
                }
            }
            Op::GetOrInsertWith(k, v) => self.get_or_insert_with(Datum::of(k), Datum::of(v), false),
            Op::GetOrInsertWithRef(k, v) => self.get_or_insert_with(Datum::of(k), Datum::of(v), true),
            Op::TryGetOrInsertWith(k, v) => self.try_get_or_insert_with(Datum::of(k), v.map(Datum::of)),
            Op::Update(k, v) => self.update(Datum::of(k), Datum::of(v)),
            Op::UpdateOrInsert(k, v) => self.update_or_insert(Datum::of(k), Datum::of(v), false),
            Op::UpdateOrInsertWith(k, v) => self.update_or_insert(Datum::of(k), Datum::of(v), true),
            Op::Compute(k, decision) => self.compute(Datum::of(k), decision),
            Op::InsertRange(ref keys) => {
                keys.clone().for_each(|k| self.checked_insert(Datum::of(k), Datum::of(k ^ 1)));
            }
            Op::RemoveRange(ref keys) => {
                for key in keys.clone().map(Datum::of) {
                    assert_eq!(self.map.remove(&key), self.model.remove(&key));
                }
            }
            ref op => self.apply_to_all(op),
        }
        assert_eq!(self.map.len(), self.model.len());
        assert_eq!(self.map.is_empty(), self.model.is_empty());
    }

    fn apply_to_all(&mut self, op: &Op) {
        match *op {
            Op::Retain(sixteenths) => self.retain(sixteenths),
            Op::Clear => {
                self.map.clear();
                self.model.clear();
            }
            Op::Drain(entries) => {
                let drained = self.map.drain(entries);
                assert_eq!(drained.len(), entries.min(self.model.len()));
                let drained = drained.into_iter().map(|(key, value)| self.model.remove(&key) == Some(value));
                assert!(drained.fold(true, |all, this| all & this), "drained what was not there");
                self.model.clear();
            }
            Op::Walk(entries) => {
                let mut seen = Model::new();
                self.map.walk(entries, |key, value| assert_eq!(seen.insert(key, value), None, "seen twice"));
                assert_eq!(seen.len(), entries.min(self.model.len()));
                assert!(seen.iter().all(|(key, value)| self.model.get(key) == Some(value)));
            }
            Op::KeysAndValues => {
                let (keys, values) = (self.map.keys(), self.map.values());
                let pairs: Model<_, _> = keys.into_iter().zip(values).collect();
                assert_eq!(pairs, self.model, "keys and values come in one order");
            }
            Op::Reserve(additional) => self.reserve(additional),
            Op::ShrinkToFit => self.map.shrink_to_fit(),
            Op::Extend(ref pairs) => self.extend(pairs),
            Op::Clone => {
                let copy = self.map.duplicate();
                assert!(copy == self.map, "a copy equals its original");
                assert!(self.map == copy, "an original equals its copy");

                self.map = copy;
            }
            _ => self.check_everything(),
        }
    }

    fn insert(&mut self, key: M::Key, value: M::Value) {
        let result = self.adding(&key, |map| map.insert(key.clone(), value.clone()));
        if let Some(old) = result {
            assert_eq!(old, self.model.insert(key, value));
        }
    }

    fn try_insert(&mut self, key: M::Key, value: M::Value) {
        match self.adding(&key, |map| map.try_insert(key.clone(), value.clone())) {
            None => {}
            Some(Ok(new)) => {
                assert_eq!(new, value);
                assert_eq!(self.model.insert(key, value), None);
            }
            Some(Err(Occupied { current, not_inserted })) => {
                assert_eq!((Some(&current), not_inserted), (self.model.get(&key), value));
            }
        }
    }

    fn try_insert_with(&mut self, key: M::Key, value: M::Value) {
        let mut ran = false;
        let make = || {
            ran = true;
            value.clone()
        };
        let Some(result) = self.adding(&key, |map| map.try_insert_with(key.clone(), make)) else { return };
        assert_eq!(ran, !self.model.contains_key(&key), "whether the closure ran");
        match self.model.get(&key) {
            Some(current) => assert_eq!(result.as_ref(), Err(current)),
            None => {
                assert_eq!(result.as_ref(), Ok(&value));
                self.model.insert(key, value);
            }
        }
    }

    fn remove_if(&mut self, key: &M::Key, yes: bool) {
        let mut seen = None;
        let result = self.map.remove_if(key, |key, value| {
            seen = Some((key.clone(), value.clone()));
            yes
        });
        let current = self.model.get(key).map(|value| (key.clone(), value.clone()));
        assert_eq!(seen, current);
        match current {
            Some(entry) if !yes => assert_eq!(result, Err(entry)),
            _ => assert_eq!(result, Ok(self.model.remove_entry(key))),
        }
    }

    fn read(&self, key: &M::Key) {
        let expected = self.model.get(key);
        assert_eq!(self.map.get(key).as_ref(), expected, "{key:?}");
        assert_eq!(self.map.contains_key(key), expected.is_some());
        assert_eq!(self.map.get_key_value(key), expected.map(|value| (key.clone(), value.clone())));
        assert!(self.map.may_contain(key) || expected.is_none(), "surely absent: {key:?}");
    }

    fn read_many(&self, keys: &[M::Key]) {
        let expected: Vec<_> = keys.iter().map(|key| self.model.get(key).cloned()).collect();
        assert_eq!(self.map.get_many(keys), expected);
        let contained = expected.iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!(self.map.contains_many(keys), contained);
        let keys: Vec<_> = keys.iter().collect();
        assert!(self.map.get_many_ref(&keys).is_none_or(|values| values == expected));
        assert!(self.map.contains_many_ref(&keys).is_none_or(|answers| answers == contained));
    }

    fn get_or_insert_with(&mut self, key: M::Key, value: M::Value, by_ref: bool) {
        let mut ran = false;
        let mut make = || {
            ran = true;
            value.clone()
        };
        let result = self.adding(&key, |map| match by_ref {
            true => map.get_or_insert_with_ref(&key, &mut make),
            false => map.get_or_insert_with(key.clone(), &mut make),
        });
        if let Some(result) = result {
            assert_eq!(ran, !self.model.contains_key(&key), "whether the closure ran");
            assert_eq!(result, *self.model.entry(key).or_insert(value));
        }
    }

    fn try_get_or_insert_with(&mut self, key: M::Key, value: Option<M::Value>) {
        let make = || value.clone().ok_or("no value");
        let result = match value {
            Some(_) => self.adding(&key, |map| map.try_get_or_insert_with(key.clone(), make)),
            None => Some(self.map.try_get_or_insert_with(key.clone(), make)),
        };
        match (result, self.model.get(&key), value) {
            (None, ..) => {}
            (Some(result), Some(current), _) => assert_eq!(result.as_ref(), Ok(current)),
            (Some(result), None, None) => assert_eq!(result, Err("no value")),
            (Some(result), None, Some(value)) => {
                assert_eq!(result.as_ref(), Ok(&value));
                self.model.insert(key, value);
            }
        }
    }

    fn update(&mut self, key: M::Key, value: M::Value) {
        let mut seen = None;
        let result = self.map.update(key.clone(), |old| {
            seen = Some(old);
            value.clone()
        });
        assert_eq!(seen.as_ref(), self.model.get(&key));
        assert_eq!(result, seen.map(|_| value.clone()));
        self.model.entry(key).and_modify(|old| *old = value);
    }

    fn update_or_insert(&mut self, key: M::Key, value: M::Value, with: bool) {
        let mut seen = None;
        let mut update = |old| {
            seen = Some(old);
            value.clone()
        };
        let result = self.adding(&key, |map| match with {
            true => map.update_or_insert_with(key.clone(), &mut update, || value.clone()),
            false => map.update_or_insert(key.clone(), &mut update, value.clone()),
        });
        if let Some(result) = result {
            assert_eq!(result, value);
            assert_eq!(seen, self.model.insert(key, value));
        }
    }

    fn compute(&mut self, key: M::Key, decision: Decision) {
        let old = self.model.get(&key).cloned();
        let f = |value: Option<M::Value>| {
            let operation = match decision {
                Decision::Insert(v) => Operation::Insert(Datum::of(v)),
                Decision::Remove if value.is_some() => Operation::Remove,
                Decision::RemoveAnyway => Operation::Remove,
                Decision::Remove | Decision::Abort => Operation::Abort(7),
            };
            assert_eq!(value, old);
            operation
        };
        if matches!(decision, Decision::RemoveAnyway) && old.is_none() {
            let message = catch(|| self.map.compute(key.clone(), f)).unwrap_err();
            assert!(message.contains("absent"), "{message}");
            return;
        }
        let result = match decision {
            Decision::Insert(_) => self.adding(&key, |map| map.compute(key.clone(), f)),
            _ => Some(self.map.compute(key.clone(), f)),
        };
        let expected = match (decision, old.clone()) {
            (Decision::Insert(v), None) => Compute::Inserted(key.clone(), Datum::of(v)),
            (Decision::Insert(v), Some(old)) => {
                Compute::Updated { old: (key.clone(), old), new: (key.clone(), Datum::of(v)) }
            }
            (Decision::Remove | Decision::RemoveAnyway, Some(old)) => Compute::Removed(key.clone(), old),
            (Decision::Remove | Decision::RemoveAnyway | Decision::Abort, _) => Compute::Aborted(7),
        };
        let Some(result) = result else { return };
        assert_eq!(result, expected);
        match decision {
            Decision::Insert(v) => self.model.insert(key, Datum::of(v)),
            Decision::Remove | Decision::RemoveAnyway => self.model.remove(&key),
            Decision::Abort => None,
        };
    }

    fn retain(&mut self, sixteenths: u32) {
        let mut asked = Model::new();
        let keep = |index: usize| (index as u32).wrapping_mul(7) % 16 < sixteenths;
        self.map.retain(|key, value| {
            let verdict = keep(asked.len());
            assert_eq!(
                asked.insert(key.clone(), (value.clone(), verdict)),
                None,
                "asked twice about {key:?}"
            );
            verdict
        });
        assert_eq!(asked.len(), self.model.len(), "asked about every entry");
        self.model.retain(|key, value| {
            let (seen, verdict) = &asked[key];
            assert_eq!(seen, value);
            *verdict
        });
    }

    fn reserve(&mut self, additional: usize) {
        self.map.reserve(additional);
        if self.limit == usize::MAX {
            let room = self.map.capacity() - self.model.len().min(self.map.capacity());
            assert!(room >= additional, "room for {room} after reserving {additional}");
        }
    }

    fn extend(&mut self, pairs: &[(u32, u32)]) {
        let pairs: Vec<(M::Key, M::Value)> =
            pairs.iter().map(|&(k, v)| (Datum::of(k), Datum::of(v))).collect();
        if self.model.len().saturating_add(pairs.len()) <= self.limit {
            self.map.extend(pairs.clone());
            self.model.extend(pairs);
        } else {
            pairs.into_iter().for_each(|(key, value)| self.checked_insert(key, value));
        }
    }

    /// Checks that every entry is there, and nothing else.
    pub(crate) fn check_everything(&self) {
        for key in self.model.keys() {
            self.read(key);
        }
        let keys: Vec<M::Key> = self.model.keys().cloned().collect();
        self.read_many(&keys);
        for n in (0..30).chain(1000..1010) {
            self.read(&Datum::of(n));
        }
        let entries = self.map.entries();
        assert_eq!(entries.len(), self.model.len(), "a walk sees every entry once");
        assert_eq!(entries.into_iter().collect::<Model<_, _>>(), self.model);
        let len = self.map.stats().overflow + self.map.capacity();
        assert!(len >= self.model.len(), "more entries than slots");
    }

    /// Checks that the owning iterator yields the remaining entries.
    pub(crate) fn finish(self) {
        let entries = self.map.into_entries();
        assert_eq!(entries.len(), self.model.len());
        assert_eq!(entries.into_iter().collect::<Model<_, _>>(), self.model);
    }
}
