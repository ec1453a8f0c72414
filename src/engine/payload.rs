//! What a slot holds in addition to its tag: a pointer to an entry, or the entry itself.
//!
//! The engine is written once, over [`Payload`]. Two things differ between payloads, and both are constants: whether the slot
//! says by itself that it is occupied ([`Payload::NULLABLE`]), and how many words it is ([`Payload::WORDS`]). Pure functions on
//! words; which caller may call which function is decided in `segment` and `locked`.

use core::marker::PhantomData;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use bytemuck::Pod;

use crate::prefetch::prefetch;
use crate::sync::{AtomicPtr, AtomicU64, Ordering, Word};

/// The content of a slot. Sealed: the engine's proofs cover the implementations in this file.
///
/// # Safety
///
/// If `NULLABLE`, `WORDS` is 1 and `load` returns `None` exactly for a word that is null, as new and cleared
/// words are. Otherwise every bit pattern is a valid `Item`, for readers may load a torn one.
pub(crate) unsafe trait Payload: Sized {
    /// The atomic words a slot is made of.
    type Word: Word;
    /// A slot's content, copied out of it.
    type Item: Copy;
    /// What a front end keeps under each segment's lock; a segment's successor inherits it.
    type Keep: Keep;

    /// How many words a slot is.
    const WORDS: usize;
    /// Whether the slot's word is null while the slot is empty, so that one store fills it. Otherwise the tag alone says
    /// whether the slot is occupied, the item can tear, and readers validate what they loaded.
    const NULLABLE: bool;
    /// How many words a replacement in place has to write. If more than one, a reader may find them half written, so the writer
    /// leaves a copy of the old item for readers.
    const REPLACED_WORDS: usize;
    /// See [`Keep::MARKED`].
    const MARKED: bool = Self::Keep::MARKED;
    /// How many split bits a slot has in addition to its item [G8]: as many as an aligned address leaves room for.
    const SPLIT_BITS: u32;
    /// All of them.
    const SPLIT_MASK: u8 = (1 << Self::SPLIT_BITS) - 1;

    /// Copies the item out; `None` if `NULLABLE` and null.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn load(slot: *const Self::Word) -> Option<Self::Item>;

    /// Writes all words: with `Release` if `NULLABLE`, else `Relaxed`.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words; a pointer is aligned.
    unsafe fn store(slot: *const Self::Word, item: Self::Item, split_bits: u8);

    /// The split bits of a slot; 0 if it is null. By the holder of the lock.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn split_bits(slot: *const Self::Word) -> u8;

    /// Replaces the split bits of a slot that is not null; readers find the same item. By the holder of the lock, which has
    /// called `publish_departures` since the item was stored.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn set_split_bits(slot: *const Self::Word, split_bits: u8);

    /// Makes the slot null with `Release`; does nothing unless `NULLABLE`.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn clear(slot: *const Self::Word);

    /// Makes the slot null as `clear` does if `condition` is true, and leaves it as it is if not. By the holder of the lock.
    /// Takes no branch.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn clear_if(condition: bool, slot: *const Self::Word);

    /// Copies what a slot holds if `condition` is true; if not, the copy is null if `NULLABLE`, and arbitrary otherwise. By the
    /// holder of both locks. Takes no branch for short slots.
    ///
    /// # Safety
    ///
    /// `from` and `to` point to `WORDS` words each.
    unsafe fn copy_if(condition: bool, from: *const Self::Word, to: *const Self::Word);

    /// Copies the item of a slot to `out` if `condition` holds; otherwise whatever is written there must not be read. By the
    /// holder of the lock; if `condition` holds, the slot is taken. Takes no branch for short slots.
    ///
    /// # Safety
    ///
    /// `slot` points to `WORDS` words.
    unsafe fn copy_out_if(condition: bool, slot: *const Self::Word, out: &mut MaybeUninit<Self::Item>);

    /// Starts loading what an item points to.
    fn prefetch(item: Self::Item);
}

/// What a front end keeps under the lock of each segment.
pub(crate) trait Keep: Default {
    /// Whether each slot has a mark: half a byte next to its tag that readers may change as well, and that moves with the item.
    const MARKED: bool = false;
}

impl Keep for () {}

/// The most split bits that are used. In models, which are small, every second split is to hash.
pub(super) const MOST_SPLIT_BITS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 3 };

/// The pointer with these bits in place of those of `mask`.
#[inline(always)]
fn with_split_bits<E>(pointer: *mut E, mask: u8, split_bits: u8) -> *mut E {
    debug_assert!(split_bits & !mask == 0);
    pointer.map_addr(|address| address & !usize::from(mask) | usize::from(split_bits))
}

/// A slot that points to an entry, at an aligned address. The bits of the address that are therefore 0 hold split bits.
#[derive(Debug)]
pub(crate) struct Pointer<E, R>(PhantomData<(*mut E, R)>);

// SAFETY: one word, null when empty.
unsafe impl<E, R: Keep> Payload for Pointer<E, R> {
    type Word = AtomicPtr<E>;
    type Item = NonNull<E>;
    type Keep = R;
    const WORDS: usize = 1;
    const NULLABLE: bool = true;
    const REPLACED_WORDS: usize = 1;
    const SPLIT_BITS: u32 = match align_of::<E>().trailing_zeros() {
        _ if Self::MARKED => 0,
        free if free < MOST_SPLIT_BITS => free,
        _ => MOST_SPLIT_BITS,
    };

    #[inline(always)]
    unsafe fn load(slot: *const AtomicPtr<E>) -> Option<NonNull<E>> {
        // Acquire: pairs with the Release in `store`, so that the entry is seen whole; with the one in `clear`, so that a
        // reader that sees a displaced item's source empty sees its target filled [I3]. As strong as the reclaimer requires of
        // a protected load.
        // SAFETY: the caller's.
        let pointer = unsafe { (*slot).load(crate::reclaim::PROTECTED) };
        NonNull::new(with_split_bits(pointer, Self::SPLIT_MASK, 0))
    }

    #[inline(always)]
    unsafe fn store(slot: *const AtomicPtr<E>, item: NonNull<E>, split_bits: u8) {
        debug_assert!(item.is_aligned());
        let pointer = with_split_bits(item.as_ptr(), Self::SPLIT_MASK, split_bits);
        // Release: pairs with the load: the entry.
        // SAFETY: the caller's.
        unsafe { (*slot).store(pointer, Ordering::Release) };
    }

    #[inline(always)]
    unsafe fn split_bits(slot: *const AtomicPtr<E>) -> u8 {
        // Relaxed: what holders of the lock have stored.
        // SAFETY: the caller's.
        unsafe { (*slot).load(Ordering::Relaxed) }.addr() as u8 & Self::SPLIT_MASK
    }

    #[inline(always)]
    unsafe fn set_split_bits(slot: *const AtomicPtr<E>, split_bits: u8) {
        // Relaxed, both: what holders of the lock have stored; and the caller's fence pairs with the Acquire in `load`: the
        // entry.
        // SAFETY: the caller's.
        unsafe {
            let pointer = (*slot).load(Ordering::Relaxed);
            debug_assert!(!pointer.is_null());
            (*slot).store(with_split_bits(pointer, Self::SPLIT_MASK, split_bits), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    unsafe fn clear(slot: *const AtomicPtr<E>) {
        // Release: pairs with the load: the item's target [I3].
        // SAFETY: the caller's.
        unsafe { (*slot).store(core::ptr::null_mut(), Ordering::Release) };
    }

    #[inline(always)]
    unsafe fn clear_if(condition: bool, slot: *const AtomicPtr<E>) {
        // A pointer that stays is stored once more.
        // SAFETY: the caller's.
        unsafe { Self::copy_if(!condition, slot, slot) };
    }

    #[inline(always)]
    unsafe fn copy_if(condition: bool, from: *const AtomicPtr<E>, to: *const AtomicPtr<E>) {
        // Relaxed: what holders of the lock have stored. Release: as in `store` and `clear`.
        // SAFETY: the caller's.
        unsafe {
            let pointer = (*from).load(Ordering::Relaxed);
            (*to).store(if condition { pointer } else { core::ptr::null_mut() }, Ordering::Release);
        }
    }

    #[inline(always)]
    unsafe fn copy_out_if(_: bool, slot: *const AtomicPtr<E>, out: &mut MaybeUninit<NonNull<E>>) {
        // Relaxed: what holders of the lock have stored.
        // SAFETY: the caller's.
        let pointer = unsafe { (*slot).load(Ordering::Relaxed) };
        // SAFETY: as large and as aligned as a pointer; if it is null nobody takes it for an item.
        unsafe { out.as_mut_ptr().cast::<*mut E>().write(with_split_bits(pointer, Self::SPLIT_MASK, 0)) };
    }

    #[inline(always)]
    fn prefetch(item: NonNull<E>) {
        prefetch(item.as_ptr());
    }
}

/// A slot that holds key and value themselves, as plain bytes in 64-bit words.
#[derive(Debug)]
pub(crate) struct Inline<K, V, R = ()>(PhantomData<(K, V, R)>);

/// Key and value, then as many bytes as may be added by rounding up to whole words, at least one.
#[repr(C, packed)]
struct Padded<K, V> {
    key: K,
    value: V,
    padding: [u8; 8],
}

impl<K: Pod, V: Pod, R: Keep> Inline<K, V, R> {
    /// Whether a slot is copied whatever is in it: that costs less than an unpredictable branch.
    const IS_SHORT: bool = <Self as Payload>::WORDS <= 2;
    /// The words that the value shares.
    const VALUE_WORDS: core::ops::Range<usize> =
        size_of::<K>() / 8..(size_of::<K>() + size_of::<V>()).div_ceil(8);
}

// SAFETY: every bit pattern is a valid pair of `Pod`s.
unsafe impl<K: Pod, V: Pod, R: Keep> Payload for Inline<K, V, R> {
    type Word = AtomicU64;
    type Item = (K, V);
    type Keep = R;
    const WORDS: usize = match (size_of::<K>() + size_of::<V>()).div_ceil(8) {
        // Slots have addresses of their own [`Found`](super::Found).
        0 => 1,
        words => words,
    };
    const NULLABLE: bool = false;
    const REPLACED_WORDS: usize = Self::VALUE_WORDS.end - Self::VALUE_WORDS.start;
    const SPLIT_BITS: u32 = 0;

    #[inline(always)]
    unsafe fn load(slot: *const AtomicU64) -> Option<(K, V)> {
        let mut bytes = MaybeUninit::<Padded<K, V>>::zeroed();
        let words = bytes.as_mut_ptr().cast::<u64>();
        for i in 0..Self::WORDS {
            // Relaxed: the version loads around it order it; a torn item is thrown away.
            // SAFETY: i < WORDS words at `slot`, and at `words`, which is that long: at most 8 bytes of rounding.
            unsafe { words.add(i).write_unaligned((*slot.add(i)).load(Ordering::Relaxed)) };
        }
        // SAFETY: zeroed and then overwritten with initialized bytes; `Pod` takes any bit pattern.
        let Padded { key, value, .. } = unsafe { bytes.assume_init() };
        Some((key, value))
    }

    #[inline(always)]
    unsafe fn store(slot: *const AtomicU64, (key, value): (K, V), _: u8) {
        let bytes = Padded { key, value, padding: [0; 8] };
        let words = (&raw const bytes).cast::<u64>();
        for i in 0..Self::WORDS {
            // SAFETY: i < WORDS words at `slot`, and at `words`, all initialized: `Pod`s have no padding.
            unsafe { (*slot.add(i)).store(words.add(i).read_unaligned(), Ordering::Relaxed) };
        }
    }

    #[inline(always)]
    unsafe fn split_bits(_: *const AtomicU64) -> u8 {
        0
    }

    #[inline(always)]
    unsafe fn set_split_bits(_: *const AtomicU64, _: u8) {}

    #[inline(always)]
    unsafe fn clear(_: *const AtomicU64) {}

    #[inline(always)]
    unsafe fn clear_if(_: bool, _: *const AtomicU64) {}

    #[inline(always)]
    unsafe fn copy_if(condition: bool, from: *const AtomicU64, to: *const AtomicU64) {
        // The tag says that there is nothing.
        if !condition && !Self::IS_SHORT {
            return;
        }
        for i in 0..Self::WORDS {
            // Relaxed, both: as `load` and `store`.
            // SAFETY: i < WORDS.
            unsafe { (*to.add(i)).store((*from.add(i)).load(Ordering::Relaxed), Ordering::Relaxed) };
        }
    }

    #[inline(always)]
    unsafe fn copy_out_if(condition: bool, slot: *const AtomicU64, out: &mut MaybeUninit<(K, V)>) {
        if condition || Self::IS_SHORT {
            // SAFETY: the caller's.
            if let Some(item) = unsafe { Self::load(slot) } {
                out.write(item);
            }
        }
    }

    #[inline(always)]
    fn prefetch(_: (K, V)) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn round_trip<K: Pod + PartialEq + core::fmt::Debug, V: Pod + PartialEq + core::fmt::Debug>(
        key: K,
        value: V,
    ) {
        let words: Vec<AtomicU64> = (0..Inline::<K, V>::WORDS + 1).map(|_| AtomicU64::new(!0)).collect();
        // SAFETY: WORDS words are there.
        let got = unsafe {
            Inline::<K, V>::store(words.as_ptr(), (key, value), 0);
            Inline::<K, V>::load(words.as_ptr())
        };
        assert_eq!(got, Some((key, value)));
        assert_eq!(words[Inline::<K, V>::WORDS].load(Ordering::Relaxed), !0, "one word too many written");
    }

    #[test]
    fn inline_items_of_every_shape_round_trip() {
        round_trip(1_u64, 2_u64);
        round_trip(1_u32, 2_u32);
        round_trip(1_u8, 2_u8);
        round_trip(1_u8, ());
        round_trip((), ());
        round_trip([1_u8, 2, 3], [4_u16; 7]);
        round_trip(u128::MAX, [9_u64; 32]);
    }

    #[test]
    fn values_in_one_word_are_replaced_by_one_store() {
        assert_eq!(Inline::<u64, u64>::REPLACED_WORDS, 1);
        assert_eq!(Inline::<u32, u32>::REPLACED_WORDS, 1);
        assert_eq!(Inline::<u64, ()>::REPLACED_WORDS, 0);
        assert_eq!(Inline::<u32, u64>::REPLACED_WORDS, 2);
        assert_eq!(Inline::<u64, [u64; 2]>::REPLACED_WORDS, 2);
    }
}
