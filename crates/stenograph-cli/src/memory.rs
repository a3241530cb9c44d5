//! A ceiling of memory that holds. The allocator of GNU systems keeps a heap for every thread that ever was, and the engine of the index
//! starts new threads with every batch; and what it once gave out in large pieces it keeps in its heaps, where small ones settle in
//! between. Indexing 20 GB that way it came to hold 290 MB and more where 256 were allowed. Both can only be told to it before the
//! process begins, so it begins once more.

/// Begins the process anew with few heaps, from which large pieces stay out, unless the environment says how many there are to be.
/// Returns when nothing has to be done, or nothing can.
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
        // It does not come back, unless it failed; then all goes on as it was.
        let _ =
            std::process::Command::new(program).arg0(name).args(arguments).env(HEAPS, "2").env(LARGE, "131072").exec();
    }
}

/// Elsewhere nothing is known to be needed.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn bound_heaps() {}
