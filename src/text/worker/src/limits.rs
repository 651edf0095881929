//! How this process ends: at a limit of memory, time or depth, or when nobody is left to answer.
//! The exit status says which; text_worker.cc turns it into a sentence.

use std::alloc::{GlobalAlloc, Layout, System};
use std::time::Duration;

use crate::requests;

/// As WorkerExit of worker_protocol.h, which is where SIGXCPU comes in, too.
#[derive(Clone, Copy)]
pub enum Exit {
    Done = 0,
    OtherVersion = 90,
    NoMemory = 91,
    TooDeep = 92,
    Panic = 93,
}

/// Without destructors: other threads may be in the middle of anything.
pub fn leave(exit: Exit) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(exit as i32) }
}

/// The default is an abort with a message, which says nothing to the other end.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn or_leave(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        leave(Exit::NoMemory);
    }
    memory
}

// SAFETY: as System is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        or_leave(System.alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        or_leave(System.alloc_zeroed(layout))
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        or_leave(System.realloc(memory, layout, size))
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        System.dealloc(memory, layout);
    }
}

fn set_limit(resource: libc::__rlimit_resource_t, most: u64) {
    // SAFETY: both calls only read and write `limit`.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(resource, &mut limit);
        limit.rlim_cur = most.min(limit.rlim_max);
        libc::setrlimit(resource, &limit);
    }
}

/// The only faults of safe code are those of a stack that is full.
extern "C" fn on_fault(_signal: i32) {
    leave(Exit::TooDeep);
}

/// Everything that holds from start to end; the stack of a thread counts as memory.
pub fn apply(memory_bytes: u64) {
    set_limit(libc::RLIMIT_DATA, memory_bytes);
    set_limit(libc::RLIMIT_CORE, 0);
    std::panic::set_hook(Box::new(|info| {
        // What is larger than any address panics before it is asked for.
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or_default();
        if text == "capacity overflow" {
            leave(Exit::NoMemory);
        }
        requests::reply_panic(text);
        leave(Exit::Panic);
    }));
    // SAFETY: the handler calls nothing but _exit. It runs on the small stack that Rust gives every
    // thread for this.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Processor time, so that a busy machine changes nothing.
pub fn used_time() -> Duration {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `used`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

/// Of that. SIGXCPU ends the process.
pub fn allow_time(seconds: u32) {
    set_limit(libc::RLIMIT_CPU, used_time().as_secs() + 1 + u64::from(seconds));
}

/// Returns when the other end is gone, also while a request is being worked on.
pub fn wait_for_hang_up(socket: i32) {
    let mut poll = libc::pollfd { fd: socket, events: 0, revents: 0 };
    // SAFETY: one entry, as it says.
    while unsafe { libc::poll(&mut poll, 1, -1) } < 1 {}
}
