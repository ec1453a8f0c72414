//! `Serialize` and `Deserialize` of [`Policy`], by its name: feature `serde`.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Policy;

/// Serializes the policy as its name, in lower case. Needs the feature `serde`.
///
/// ```
/// assert_eq!(serde_json::to_string(&koel::Policy::Clock)?, r#""clock""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Policy {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Deserializes the policy from its name, in lower case, as in a program's settings. Any other name is an error. Needs the
/// feature `serde`.
///
/// ```
/// let policy: koel::Policy = serde_json::from_str(r#""local""#)?;
/// assert_eq!(policy, koel::Policy::Local);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name)
    }
}

/// All policies that have names.
const ALL: [Policy; 3] = [Policy::Adaptive, Policy::Clock, Policy::Local];

struct Name;

impl Visitor<'_> for Name {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [adaptive, clock, local] = ALL.map(Policy::name);
        write!(f, "a cache's policy: `{adaptive}`, `{clock}` or `{local}`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Policy, E> {
        let known = ALL.into_iter().find(|policy| policy.name() == name);
        known.ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}
