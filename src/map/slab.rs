//! Memory for entries: pieces of one size, cut from chunks that the map keeps until it is dropped.
//!
//! An entry of two words takes two words here and four from a general allocator; and entries lie close together,
//! where huge pages can back them. Taking a piece is popping a list in the segment that the writer has locked, giving
//! one back is pushing onto a list that threads mostly have to themselves; both lists exchange pieces by the dozen.
//!
//! A chunk is made of pages; each begins with the address of its slab, so that a piece finds its way home by itself.

use core::alloc::Layout;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::engine::Meter;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Pieces of one page; a page is where a piece's slab is found.
const PAGE: usize = 4096;
/// Pages in the largest chunk: 2 MiB, a huge page.
const LARGEST_CHUNK: usize = 512;
/// Pieces that a magazine takes at a time.
const REFILL: usize = 32;
/// Lists of returned pieces. A power of two; as many threads return without meeting.
const SHARDS: usize = 8;
/// Larger entries get a box each.
const LARGEST_PIECE: usize = 512;

/// A free piece.
struct Free {
    next: Option<NonNull<Free>>,
}

/// Free pieces, linked through themselves. Owned by a slab, whose memory they are; dropping a list loses nothing but
/// the knowledge that they are free.
#[derive(Default)]
pub(super) struct Magazine {
    head: Option<NonNull<Free>>,
    len: usize,
}

// SAFETY: free pieces belong to whoever has the list.
unsafe impl Send for Magazine {}

impl Magazine {
    #[inline]
    fn pop(&mut self) -> Option<NonNull<Free>> {
        let piece = self.head?;
        // SAFETY: pieces in a list are free and hold a link.
        self.head = unsafe { piece.as_ref() }.next;
        self.len -= 1;
        Some(piece)
    }

    #[inline]
    fn push(&mut self, piece: NonNull<Free>) {
        // SAFETY: a free piece, ours, large enough and aligned for a link.
        unsafe { piece.write(Free { next: self.head }) };
        self.head = Some(piece);
        self.len += 1;
    }

    /// Moves at most `n` pieces from `other` to here.
    fn take(&mut self, other: &mut Magazine, n: usize) {
        for _ in 0..n {
            match other.pop() {
                Some(piece) => self.push(piece),
                None => return,
            }
        }
    }
}

/// The newest chunk, as far as it is not cut up yet, and all chunks.
#[derive(Default)]
struct Chunks {
    /// Pages of the newest chunk that are still whole.
    pages: usize,
    next_page: Option<NonNull<u8>>,
    all: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: the chunks go with the slab.
unsafe impl Send for Chunks {}

/// Where the pieces for entries of type `T` come from. Must not move, hence the `Arc`: pages know its address.
pub(super) struct Slab<T> {
    returned: [CachePadded<Mutex<Magazine>>; SHARDS],
    chunks: Mutex<Chunks>,
    meter: Meter,
    huge_pages: bool,
    pieces: PhantomData<fn() -> T>,
}

impl<T> Slab<T> {
    /// Whether entries are so large, or so oddly aligned, that each has a box. Under loom all do: models want
    /// addresses that are not used again.
    const BOXED: bool = cfg!(loom) || size_of::<T>() > LARGEST_PIECE || align_of::<T>() > 64;
    /// A piece holds an entry or a link.
    const PIECE: Layout = {
        let size = if size_of::<T>() > size_of::<Free>() { size_of::<T>() } else { size_of::<Free>() };
        let align = if align_of::<T>() > align_of::<Free>() { align_of::<T>() } else { align_of::<Free>() };
        match Layout::from_size_align(size, align) {
            Ok(layout) => layout.pad_to_align(),
            Err(_) => panic!("no layout for an entry"),
        }
    };
    /// Pieces begin after the page's header, the slab's address.
    const FIRST: usize = size_of::<*const Self>().next_multiple_of(Self::PIECE.align());

    pub(super) fn new(huge_pages: bool) -> Arc<Self> {
        Arc::new(Slab {
            returned: core::array::from_fn(|_| CachePadded::new(Mutex::new(Magazine::default()))),
            chunks: Mutex::new(Chunks::default()),
            meter: Meter::new(),
            huge_pages,
            pieces: PhantomData,
        })
    }

    /// Bytes of all chunks, or of `len` boxes.
    pub(super) fn memory_usage(&self, len: usize) -> usize {
        if Self::BOXED { len * size_of::<T>() } else { size_of::<Self>() + self.meter.bytes() }
    }

    /// Memory for an entry, uninitialized; `None` if there is none.
    #[inline]
    pub(super) fn allocate(&self, magazine: &mut Magazine) -> Option<NonNull<T>> {
        if Self::BOXED {
            return allocate_box();
        }
        if let Some(piece) = magazine.pop() {
            return Some(piece.cast());
        }
        self.refill(magazine)?;
        magazine.pop().map(NonNull::cast)
    }

    /// Gives a piece back.
    ///
    /// # Safety
    ///
    /// `entry` came from `allocate` of a slab of the same type that still lives; what was in it has been moved out or
    /// dropped; nobody uses it any more.
    #[inline]
    pub(super) unsafe fn free(entry: NonNull<T>) {
        if Self::BOXED {
            // SAFETY: the caller's, and `allocate_box`.
            return unsafe { free_box(entry) };
        }
        // SAFETY: pieces lie in pages that begin with the address of their slab, which lives.
        let slab =
            unsafe { &*entry.as_ptr().map_addr(|addr| addr & !(PAGE - 1)).cast::<*const Self>().read() };
        slab.returned[shard()].lock().push(entry.cast());
    }

    /// Fills an empty magazine: with what was returned, or from a page that is still whole.
    #[cold]
    fn refill(&self, magazine: &mut Magazine) -> Option<()> {
        let mine = shard();
        for i in 0..SHARDS {
            magazine.take(&mut self.returned[(mine + i) % SHARDS].lock(), REFILL);
            if magazine.len > 0 {
                return Some(());
            }
        }
        let page = self.page()?;
        let mut offset = Self::FIRST;
        while offset + Self::PIECE.size() <= PAGE {
            // SAFETY: within the page, and aligned: FIRST and the size are multiples of the alignment.
            magazine.push(unsafe { page.add(offset) }.cast());
            offset += Self::PIECE.size();
        }
        // The rest of the page is for other segments.
        let surplus = magazine.len.saturating_sub(REFILL);
        self.returned[mine].lock().take(magazine, surplus);
        Some(())
    }

    /// A page with its header.
    fn page(&self) -> Option<NonNull<u8>> {
        let mut chunks = self.chunks.lock();
        if chunks.pages == 0 {
            let pages = (1 << chunks.all.len().min(31)).min(LARGEST_CHUNK);
            let align = if self.huge_pages && pages == LARGEST_CHUNK { PAGE * pages } else { PAGE };
            let layout = Layout::from_size_align(PAGE * pages, align).ok()?;
            let chunk = self.meter.allocate(layout)?;
            if align > PAGE {
                crate::engine::advise_huge_pages(chunk, layout.size());
            }
            chunks.all.push((chunk, layout));
            (chunks.pages, chunks.next_page) = (pages, Some(chunk));
        }
        let page = chunks.next_page?;
        chunks.pages -= 1;
        // SAFETY: within the chunk, or one past its end and then not used.
        chunks.next_page = Some(unsafe { page.add(PAGE) });
        // SAFETY: the page is ours alone, and aligned for an address.
        unsafe { page.cast::<*const Self>().write(self) };
        Some(page)
    }
}

impl<T> Drop for Slab<T> {
    fn drop(&mut self) {
        for (chunk, layout) in core::mem::take(&mut self.chunks.lock().all) {
            // SAFETY: the map that used them is gone, and its entries with it.
            unsafe { self.meter.free(chunk, layout) };
        }
    }
}

/// A box without content.
fn allocate_box<T>() -> Option<NonNull<T>> {
    Some(NonNull::from(Box::leak(Box::<T>::new_uninit())).cast())
}

/// Frees a box without dropping its content.
///
/// # Safety
///
/// From [`allocate_box`], and nobody uses it any more.
unsafe fn free_box<T>(entry: NonNull<T>) {
    // SAFETY: the caller's.
    drop(unsafe { Box::from_raw(entry.as_ptr().cast::<core::mem::MaybeUninit<T>>()) });
}

/// The list that this thread returns pieces to.
fn shard() -> usize {
    static NEXT: std::sync::OnceLock<AtomicUsize> = std::sync::OnceLock::new();
    std::thread_local!(static SHARD: Cell<usize> = const { Cell::new(usize::MAX) });
    SHARD.with(|shard| {
        if shard.get() == usize::MAX {
            // Relaxed: any number will do.
            shard.set(NEXT.get_or_init(|| AtomicUsize::new(0)).fetch_add(1, Ordering::Relaxed) % SHARDS);
        }
        shard.get()
    })
}
