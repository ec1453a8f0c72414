//! [`Clock`]: MemC3's policy, a hand that sweeps the slots.

use super::swept::{Rule, Swept};
use super::{Heat, Newcomer, Residents, mark};

/// One bit of the mark says that there was a hit since the hand last passed. The hand clears it, and takes the first item it
/// finds without (Fan, Andersen and Kaminsky, NSDI 2013, section 3.4; after Corbato, 1968).
pub(super) type Clock = Swept<OneBit>;

/// The rule of [`Clock`].
#[derive(Debug)]
pub(super) enum OneBit {}

impl Rule for OneBit {
    fn spare(mark: u8) -> Option<u8> {
        (mark::hit(mark) == 0).then_some(mark::CLOCK)
    }

    fn mark(heat: Heat) -> u8 {
        if heat.hits() == 0 { mark::CLOCK } else { mark::CLOCK | mark::hit(mark::CLOCK) }
    }

    fn heat(mark: u8) -> Heat {
        Heat::new(u8::from(mark::hit(mark) == 0), true)
    }

    /// New items enter without the bit, as in the paper's memcached; otherwise one scan would turn the hand all the way round.
    fn admit<R: Residents>(_: &mut Clock, _: Newcomer, _: &mut R) -> u8 {
        mark::CLOCK
    }
}
