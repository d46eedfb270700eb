//! A library to load with `LD_PRELOAD` that makes an allocation of the program fail, whether by Rust, SQLite or the
//! cipher library. Both processes map the file in FAILING_MALLOC, which has two words of eight bytes: the number of
//! allocations until one fails (0 for no failure), and the number of failed allocations.
//!
//! For glibc, whose own functions allocate through other symbols.

#![allow(unsafe_code, reason = "the functions are called from C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const PAGE: usize = 4_096;
const READ_AND_WRITE: c_int = 3; // PROT_READ | PROT_WRITE
const SHARED: c_int = 1; // MAP_SHARED
const O_RDWR: c_int = 2;
const ENOMEM: c_int = 12;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(file: c_int) -> c_int;
    fn mmap(at: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(alignment: usize, size: usize) -> *mut c_void;
}

/// The two mapped words, or null before the file is mapped.
static WORDS: AtomicPtr<[AtomicU64; 2]> = AtomicPtr::new(null_mut());

/// Runs when the library is loaded, before the program starts.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        const NAME: &CStr = c"FAILING_MALLOC";
        // SAFETY: no other code runs yet. The file stays mapped until the process ends.
        unsafe {
            let path = getenv(NAME.as_ptr());
            if path.is_null() {
                return;
            }
            let file = open(path, O_RDWR);
            if file < 0 {
                return;
            }
            let words = mmap(null_mut(), PAGE, READ_AND_WRITE, SHARED, file, 0);
            close(file);
            if words as isize != -1 {
                WORDS.store(words.cast(), Ordering::Release);
            }
        }
    }
    begin
};

/// Returns `true` if this allocation is to fail.
fn fails() -> bool {
    let words = WORDS.load(Ordering::Acquire);
    if words.is_null() {
        return false;
    }
    // SAFETY: the file is never unmapped.
    let [to_go, failed] = unsafe { &*words };
    let next = |to_go: u64| to_go.checked_sub(1);
    if to_go.try_update(Ordering::SeqCst, Ordering::SeqCst, next) != Ok(1) {
        return false;
    }
    failed.fetch_add(1, Ordering::SeqCst);
    // SAFETY: errno of the current thread.
    unsafe { *__errno_location() = ENOMEM };
    true
}

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if fails() { null_mut() } else { unsafe { __libc_malloc(size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if fails() { null_mut() } else { unsafe { __libc_calloc(count, size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if fails() { null_mut() } else { unsafe { __libc_realloc(old, size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    if fails() { null_mut() } else { unsafe { __libc_memalign(alignment, size) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    unsafe { memalign(alignment, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    let found = unsafe { memalign(alignment, size) };
    if found.is_null() {
        return ENOMEM;
    }
    unsafe { *out = found };
    0
}
