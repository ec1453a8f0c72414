//! Values whose drops are counted.

use std::sync::{Arc, Mutex};

/// Records for each value that was made how often it was dropped, and reported to a listener. Not scheduled: it takes no part
/// in the test.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Vec<Ends>>);

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    drops: usize,
    told: usize,
}

/// A value for a key. Its clones are not counted.
#[derive(Debug)]
pub struct Value {
    key: u64,
    /// Which of the key's values it is.
    pub version: u64,
    number: usize,
    not_number: usize,
    ledger: Option<Arc<Ledger>>,
}

impl Ledger {
    fn change(&self, number: usize, change: impl FnOnce(&mut Ends)) {
        change(&mut self.0.lock().unwrap()[number]);
    }

    /// A new value.
    pub fn value(self: &Arc<Self>, key: u64, version: u64) -> Value {
        let mut all = self.0.lock().unwrap();
        let number = all.len();
        all.push(Ends::default());
        Value { key, version, number, not_number: !number, ledger: Some(Arc::clone(self)) }
    }

    /// Checks a value that was read, while something keeps it alive: it is the key's, whole, and not dropped.
    pub fn check(&self, key: u64, value: &Value) {
        value.check(key);
        assert_eq!(self.0.lock().unwrap()[value.number].drops, 0, "read after its drop");
    }

    /// Notes that a listener was told that the value has left.
    pub fn tell(&self, key: u64, value: &Value) {
        self.check(key, value);
        self.change(value.number, |ends| ends.told += 1);
    }

    /// Checks at the end that each value was dropped once.
    pub fn all_are_dropped(&self) {
        let all = self.0.lock().unwrap();
        let wrong = all.iter().position(|ends| ends.drops != 1);
        assert_eq!(wrong.map(|number| all[number].drops), None, "value {wrong:?} of {}", all.len());
    }

    /// Checks, while nobody writes, that a listener was told once of each value except `kept`, and never of those.
    pub fn all_are_told_but(&self, kept: usize) {
        let all = self.0.lock().unwrap();
        let told = |times| all.iter().filter(|ends| ends.told == times).count();
        assert_eq!((told(0), told(1)), (kept, all.len() - kept), "never and once, of {}", all.len());
    }
}

impl Value {
    /// Checks that it is the key's, and whole.
    pub fn check(&self, key: u64) {
        assert_eq!(self.number, !self.not_number, "a value that is not whole, or not there any more");
        assert_eq!(self.key, key, "another key's value");
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        Value { ledger: None, ..*self }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            ledger.change(self.number, |ends| ends.drops += 1);
        }
    }
}
