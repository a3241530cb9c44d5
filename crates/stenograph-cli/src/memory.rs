//! Keeps memory use bounded. The GNU allocator keeps a heap for every thread, and the index engine starts new threads for every
//! batch; the allocator also keeps large freed blocks in its heaps, which small allocations then fragment. Indexing 20 GB took
//! 290 MB and more where 256 MB are allowed. Environment variables control both, but only before a process starts, so the
//! process starts itself again.

/// Restarts the process with few heaps and without large blocks in them, unless the environment already sets their number.
/// Returns if a restart is unnecessary or fails.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn bound_heaps() {
    use std::os::unix::process::CommandExt as _;
    const HEAPS: &str = "MALLOC_ARENA_MAX";
    const LARGE: &str = "MALLOC_MMAP_THRESHOLD_";
    if std::env::var_os(HEAPS).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    if let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) {
        // Returns only on failure; then the process continues unchanged.
        let _ =
            std::process::Command::new(program).arg0(name).args(arguments).env(HEAPS, "2").env(LARGE, "131072").exec();
    }
}

/// Other allocators need no limit.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn bound_heaps() {}
