//! spec 1.5: text of up to 24 bytes, and with it a usual delta, owns no heap memory.
#![allow(unsafe_code, reason = "an allocator that counts can only be written as an unsafe trait")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use streamkeeper_contract::{Chunk, Id, Lane, Text, id};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // Fails only while the thread goes away.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<T>(run: impl FnOnce() -> T) -> usize {
    let before = ALLOCATIONS.get();
    let value = run();
    let count = ALLOCATIONS.get() - before;
    drop(value);
    count
}

const TWENTY_FOUR: &str = "twenty-four bytes long..";
const TWENTY_FIVE: &str = "twenty-five bytes long...";

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| Box::new(1)), 1);
    assert_eq!(allocations(|| 1), 0);
}

#[test]
fn text_is_inline_up_to_24_bytes() {
    assert_eq!((TWENTY_FOUR.len(), TWENTY_FIVE.len()), (24, 25));
    for len in 0..=24 {
        assert_eq!(allocations(|| Text::from(&TWENTY_FOUR[..len])), 0, "{len} bytes");
    }
    assert_eq!(allocations(|| Text::from(TWENTY_FIVE)), 1);
    assert_eq!(allocations(|| Text::from("äöüß漢字🎉äöü")), 0, "bytes count, not characters");
}

#[test]
fn a_literal_is_never_copied() {
    assert_eq!(allocations(|| Text::from_static(TWENTY_FIVE)), 0);
    assert_eq!(allocations(|| id!("an-id-that-is-longer-than-twenty-four-bytes")), 0);
    let id: Id = id!("an-id-that-is-longer-than-twenty-four-bytes");
    assert_eq!(allocations(|| id.clone()), 0, "nor when it is cloned");
}

#[test]
fn a_small_delta_is_made_cloned_amended_and_read_without_the_heap() {
    let chunk = Chunk::delta(Lane::TEXT.in_choice(1), TWENTY_FOUR);
    assert_eq!(allocations(|| Chunk::delta(Lane::TEXT, TWENTY_FOUR)), 0);
    assert_eq!(allocations(|| chunk.clone()), 0);
    assert_eq!(allocations(|| chunk.with_text("[redacted]").unwrap()), 0);
    assert_eq!(allocations(|| (chunk.kind(), chunk.lane(), chunk.is_barrier_for(Lane::TEXT))), 0);
    let json = serde_json::to_string(&chunk).unwrap();
    assert_eq!(allocations(|| serde_json::from_str::<Chunk>(&json).unwrap()), 0, "{json}");
}
