//! Memory for segments: heads next to heads, tags next to tags, slots next to slots.

use core::alloc::Layout;

use super::memory::{Block, Meter};
use super::segment::{Memory, Plan};

/// Blocks that have been cut and not yet taken.
#[derive(Debug, Default)]
pub(super) struct Supply {
    heads: Spare,
    tags: Spare,
    slots: Spare,
}

/// Blocks of one layout.
#[derive(Debug, Default)]
struct Spare(Vec<Block>);

impl Supply {
    /// Zeroed memory for a segment. If none is left, heads and tags are cut from allocations of `count` each, and slots from
    /// allocations of `slots`; `huge` asks for huge pages for them. `None` if there is no memory.
    pub(super) fn take(
        &mut self,
        plan: &Plan,
        count: usize,
        slots: usize,
        huge: bool,
        meter: &Meter,
    ) -> Option<Memory> {
        let head = self.heads.take(plan.head, count, huge, meter)?;
        let Some(tags) = self.tags.take(plan.tags, count, huge, meter) else {
            self.heads.give_back(head, meter);
            return None;
        };
        let Some(slots) = self.slots.take(plan.slots, slots, huge, meter) else {
            self.heads.give_back(head, meter);
            self.tags.give_back(tags, meter);
            return None;
        };
        Some(Memory { head, tags, slots })
    }

    /// Bytes of the lists themselves.
    pub(super) fn memory_usage(&self) -> usize {
        [&self.heads, &self.tags, &self.slots].map(|spare| spare.0.capacity()).iter().sum::<usize>()
            * size_of::<Block>()
    }

    /// Gives up what is left of allocations of which only this supply and `put_away` have parts. What is left of other
    /// allocations stays available: given up, it would still keep its memory until the last of the other parts is freed.
    pub(super) fn give_up<'m>(&mut self, put_away: impl Iterator<Item = &'m Memory> + Clone) -> Supply {
        Supply {
            heads: self.heads.give_up(put_away.clone().map(|memory| &memory.head)),
            tags: self.tags.give_up(put_away.clone().map(|memory| &memory.tags)),
            slots: self.slots.give_up(put_away.map(|memory| &memory.slots)),
        }
    }

    /// Frees what is left.
    ///
    /// # Safety
    ///
    /// `meter` is the one that `take` had.
    pub(super) unsafe fn free(mut self, meter: &Meter) {
        for spare in [&mut self.heads, &mut self.tags, &mut self.slots] {
            // SAFETY: the caller's.
            unsafe { spare.clear(meter) };
        }
    }
}

impl Spare {
    fn take(&mut self, layout: Layout, count: usize, huge: bool, meter: &Meter) -> Option<Block> {
        match self.0.last() {
            Some(block) if block.layout() == layout => self.0.pop(),
            // Requests for the spare blocks' layout may follow; if these were freed, those that have been taken would still
            // keep their memory.
            Some(_) => Block::allocate(layout, meter),
            None if count == 1 => Block::allocate(layout, meter),
            None => {
                self.0 = Block::allocate_shared(layout, count, huge, meter)?;
                self.0.pop()
            }
        }
    }

    /// Puts back what `take` gave last, with the same meter; frees a block that has an allocation of its own, because the
    /// others may be of another layout.
    fn give_back(&mut self, block: Block, meter: &Meter) {
        if block.is_shared() {
            // It came from there.
            self.0.push(block);
        } else {
            // SAFETY: nobody has used it.
            unsafe { block.free(meter) };
        }
    }

    /// Gives up all blocks, which lie in one allocation, if only they and `put_away` are parts of it.
    fn give_up<'m>(&mut self, put_away: impl Iterator<Item = &'m Block>) -> Spare {
        let Some(one) = self.0.last() else { return Spare::default() };
        let beside = put_away.filter(|block| block.lies_beside(one)).count();
        if one.is_one_of(self.0.len() + beside) { core::mem::take(self) } else { Spare::default() }
    }

    /// Frees the blocks.
    ///
    /// # Safety
    ///
    /// `meter` is the one they were allocated with.
    unsafe fn clear(&mut self, meter: &Meter) {
        // SAFETY: nobody has had them.
        self.0.drain(..).for_each(|block| unsafe { block.free(meter) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::payload::Inline;
    use super::super::segment::Segment;
    use super::*;

    const SMALL: Layout = Layout::new::<[u64; 8]>();

    fn plan() -> Plan {
        Segment::<Inline<u64, u64>>::plan(4, 4).expect("a layout")
    }

    /// A layout of which no array of several is possible: there is no memory for them, and the allocator is not asked.
    fn endless() -> Layout {
        Layout::from_size_align(isize::MAX as usize, 1).expect("one is a layout")
    }

    /// Otherwise no more would be cut, and none of those that have been cut would be found, until a block of that layout was
    /// wanted.
    #[test]
    fn what_was_cut_is_kept_when_it_is_given_back_and_what_was_not_is_freed() {
        let (meter, mut spare) = (Meter::new(), Spare::default());
        let block = spare.take(SMALL, 3, false, &meter).expect("memory");
        let shared = meter.bytes();
        for layout in [Layout::new::<u64>(), SMALL] {
            let another = Block::allocate(layout, &meter).expect("memory");
            spare.give_back(another, &meter);
            assert_eq!((spare.0.len(), meter.bytes()), (2, shared));
        }
        spare.give_back(block, &meter);
        assert_eq!((spare.0.len(), spare.0.capacity(), meter.bytes()), (3, 3, shared));
        // SAFETY: the same meter; nobody has the blocks.
        unsafe { spare.clear(&meter) };
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn spare_blocks_are_of_one_layout_until_the_last_has_been_taken() {
        let (meter, mut spare) = (Meter::new(), Spare::default());
        let first = spare.take(SMALL, 2, false, &meter).expect("memory");
        let shared = meter.bytes();
        let second = spare.take(SMALL, 2, false, &meter).expect("cut already");
        assert_eq!((spare.0.len(), meter.bytes()), (0, shared));
        spare.give_back(second, &meter);
        for count in [1, 2] {
            let alone = spare.take(Layout::new::<u64>(), count, false, &meter).expect("memory");
            assert_eq!((spare.0.len(), alone.size()), (1, 8), "one of another leaves the list as it is");
            // SAFETY: ours, and not used.
            unsafe { alone.free(&meter) };
        }
        let third = spare.take(SMALL, 2, false, &meter).expect("cut already");
        let other = spare.take(Layout::new::<u64>(), 2, false, &meter).expect("memory");
        assert_eq!((spare.0.len(), other.size()), (1, 8));
        for block in [first, third, other] {
            // SAFETY: ours, and not used.
            unsafe { block.free(&meter) };
        }
        // SAFETY: the same meter; nobody has the blocks.
        unsafe { spare.clear(&meter) };
        assert_eq!(meter.bytes(), 0);
    }

    #[test]
    fn a_segment_that_is_not_to_be_had_costs_none_of_its_parts() {
        for (no_tags, no_slots) in [(false, true), (true, false)] {
            let (meter, mut supply, mut plan) = (Meter::new(), Supply::default(), plan());
            if no_tags {
                plan.tags = endless();
            }
            if no_slots {
                plan.slots = endless();
            }
            assert!(supply.take(&plan, 2, 2, false, &meter).is_none());
            let kept = [&supply.heads, &supply.tags, &supply.slots].map(|spare| spare.0.len());
            assert_eq!(kept, [2, if no_tags { 0 } else { 2 }, 0]);
            assert!(supply.memory_usage() >= kept.iter().sum::<usize>() * size_of::<Block>());
            assert!(supply.memory_usage() < 3 * 4 * size_of::<Block>());
            // SAFETY: the same meter.
            unsafe { supply.free(&meter) };
            assert_eq!(meter.bytes(), 0);
        }
        let (meter, mut supply, mut plan) = (Meter::new(), Supply::default(), plan());
        plan.slots = endless();
        assert!(supply.take(&plan, 1, 2, false, &meter).is_none());
        assert_eq!((meter.bytes(), supply.memory_usage()), (0, 0), "blocks of their own go back at once");
    }
}
