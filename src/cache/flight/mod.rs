//! Single flight: of all callers that miss a key at the same time, one loads it and the others wait for its value.
//!
//! A *flight* is one key's load with the callers that wait for it. [`Flights`] has a small table of them, next to the cache's
//! own table: a hit never comes here, unless it is due [F8]. A caller that joins a flight becomes its *leader*, which has a
//! [`Flight`](leader::Flight) and runs the loader, or a *follower*, which has a [`Wait`].
//!
//! 1. After a miss, [`Flights::join`]: the first is the leader [F1].
//! 2. The leader looks the key up once more [F2], because an earlier flight may have landed since its miss. If it finds the
//!    key, the followers look it up as well.
//! 3. It runs its loader and notes that this thread does so ([`running`]), so that recursion is noticed [F6].
//! 4. It puts the value into the cache, unless the key was written to meanwhile ([`Landing::may_put`], [F5]). If nobody
//!    follows, the flight ends there ([`Landing::has_put`]).
//! 5. Else [`Landing::land`] hands the value to the followers, ends the flight and wakes them [F3]. If instead the leader
//!    fails, in whatever way, one follower is woken to lead and run its own loader [F4]; or all get its error, if it
//!    shares that with them ([`Terms`]).
//!
//! A value that is present, but due, is loaded anew in a flight as well, from step 2 on: [`Flights::refresh`] [F8]. A value
//! that is stale to the caller that has found it counts as missed: that caller loads it from step 1 on, and may wait for
//! another caller [F9].
//!
//! [`Flights::load`] and [`Flights::load_async`] are these steps for both kinds of callers; they differ in how they wait
//! and how they run the loader. A follower waits by being a future; a thread blocks on it ([`Wait::block`]).
//!
//! | file | content |
//! | --- | --- |
//! | `load` | the steps above, and what they need from the cache: [`Table`] |
//! | `many` | the same for many keys at once |
//! | `reserve` | the first two steps, for a caller that then loads the key itself [F10] |
//! | `flights` | all flights: joining and invalidation |
//! | `leader`, `wait` | the two roles, each a guard that cleans up after itself |
//! | `running` | the loads that are running on this thread |
//! | `terms` | how long a caller waits for others, and which callers get its loader's error |
//! | `waits` | which load waits for which, among loads that load something themselves |
//! | `shard` | some of the flights |
//! | `entry` | the state of each flight |
//! | `signal` | what a blocked thread sleeps on |
//! | `erased` | keys and values, of which only `flights` and the roles know the types |
//! | `error` | why there is no value |
//! | `toy` | a small cache, for tests and models |

mod entry;
mod erased;
mod error;
mod flights;
mod leader;
mod load;
mod many;
mod reserve;
mod running;
mod shard;
mod signal;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(any(test, loom))]
#[cfg_attr(not(loom), expect(unreachable_pub, reason = "public for the models"))]
pub(crate) mod toy;
mod wait;
mod waits;

pub use error::LoadError;
pub(crate) use error::or_panic;
pub(crate) use flights::Flights;
pub(crate) use leader::{Flight, Landing};
pub(crate) use load::{Table, ToLoad, nothing_is_stale, put_off};
pub(crate) use many::Missed;
pub(crate) use reserve::Held;
pub(crate) use terms::Terms;
