//! Memory for segments: heads beside heads, tags beside tags, slots beside slots.

use core::alloc::Layout;

use super::memory::{Block, Meter};
use super::segment::{Memory, Plan};

/// What has been cut and not yet been taken.
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
    /// Zeroed memory for a segment. Where none is left, heads and tags are cut from allocations of `count` each, and
    /// slots from allocations of `slots`; `huge` asks for huge pages for them. `None` if there is no memory.
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
        if self.0.last().is_some_and(|block| block.layout() == layout) {
            return self.0.pop();
        }
        if count == 1 {
            return Block::allocate(layout, meter);
        }
        // SAFETY: always the table's meter.
        unsafe { self.clear(meter) };
        self.0 = Block::allocate_slab(layout, count, huge, meter)?;
        self.0.pop()
    }

    /// Puts back what `take` gave with the same meter; frees it where the list has no room.
    fn give_back(&mut self, block: Block, meter: &Meter) {
        if self.0.len() < self.0.capacity() {
            self.0.push(block);
        } else {
            // SAFETY: nobody has used it.
            unsafe { block.free(meter) };
        }
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
