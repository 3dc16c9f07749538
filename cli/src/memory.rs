//! How the C library's allocator is used.

/// One heap for all threads. This program has few threads and seldom two that allocate at once; a heap for each would
/// cost address space, memory that the others cannot use, and system calls at every start of a thread.
///
/// To be called before the first thread is started.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn one_heap() {
    use std::ffi::c_int;

    /// `M_ARENA_MAX` of `malloc.h`.
    const ARENA_MAX: c_int = -8;

    #[allow(unsafe_code)]
    // SAFETY: the declaration is that of `malloc.h`; the call sets a number and may be made at any time.
    unsafe {
        unsafe extern "C" {
            fn mallopt(param: c_int, value: c_int) -> c_int;
        }
        mallopt(ARENA_MAX, 1);
    }
}

/// Other allocators are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn one_heap() {}
