//! Requests huge pages from the kernel. This module contains the only `unsafe` block of the workspace.

use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use {
    rustix::io,
    rustix::mm::{Advice, madvise},
};

/// Size of a huge page on x86-64, and on arm64 with 4 KiB pages, in bytes. It is a multiple of every ordinary page
/// size, so a range of huge pages always satisfies the alignment that the kernel requires.
#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel to back the part of `memory` that consists of whole huge pages with huge pages.
///
/// The call must come before the first write to the memory: existing pages are not replaced. If the kernel refuses,
/// only the speed changes, so the error is only logged.
pub(super) fn request<T>(memory: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    if let Err(error) = advise(memory) {
        tracing::debug!(%error, "no huge pages for password hashing");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "rustix declares `madvise` unsafe because other kinds of advice discard memory")]
fn advise<T>(memory: &mut [MaybeUninit<T>]) -> io::Result<()> {
    let length = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(HUGE_PAGE);
    let length = length.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
    if length == 0 {
        return Ok(());
    }
    // SAFETY: `start + skipped` to `start + skipped + length` is inside `memory`, which is borrowed exclusively
    // during the call; the address comes from that borrow. `LinuxHugepage` is only advice about the size of pages: it
    // does not read, write, discard or unmap memory, so every byte, initialised or not, keeps its value. The kernel
    // itself checks alignment and mapping and returns an error, which is passed on.
    unsafe { madvise(start.wrapping_add(skipped).cast(), length, Advice::LinuxHugepage) }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns the kernel's flags of the mapping that contains `address`.
    fn flags(address: usize) -> Vec<String> {
        let mut inside = false;
        for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
            let first = line.split_whitespace().next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-') {
                let address_of = |text| usize::from_str_radix(text, 16).unwrap();
                inside = (address_of(from)..address_of(to)).contains(&address);
            } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return flags.split_whitespace().map(str::to_owned).collect();
            }
        }
        panic!("no mapping contains {address:x}");
    }

    #[test]
    fn huge_pages_are_requested() {
        if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return; // built without them
        }
        // Larger than glibc's highest threshold for a separate mapping (32 MiB), so no earlier advice is inherited.
        let mut memory: Vec<u8> = Vec::with_capacity(40 << 20);
        let middle = memory.as_ptr().addr() + (20 << 20);
        assert!(!flags(middle).contains(&"hg".to_owned()));
        request(memory.spare_capacity_mut());
        assert!(flags(middle).contains(&"hg".to_owned()));
    }

    #[test]
    fn written_memory_is_preserved() {
        let mut memory = vec![7_u8; 8 << 20];
        memory.reserve_exact(4 << 20);
        request(memory.spare_capacity_mut());
        assert!(memory.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn memory_shorter_than_a_huge_page_is_unchanged() {
        let mut none: [MaybeUninit<u64>; 0] = [];
        advise(&mut none).unwrap();
        advise(&mut [MaybeUninit::<u64>::uninit(); 3]).unwrap();
        let mut memory: Vec<u8> = Vec::with_capacity(HUGE_PAGE - 1);
        advise(memory.spare_capacity_mut()).unwrap();
    }
}
