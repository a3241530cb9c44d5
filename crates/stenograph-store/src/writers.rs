//! Finds a process that has a file open for writing. Agents take no lock on their files, so this is the only way to notice an
//! active one. Only Linux provides this; elsewhere no process is found, and an edit relies on the file being unchanged.

use crate::identity::Identity;

/// A process other than this one that has a file open for writing, even if the file has lost its name.
#[cfg(target_os = "linux")]
pub(crate) fn writer_of(file: &Identity) -> Option<u32> {
    use std::fs;

    let own = std::process::id();
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // Other users' processes do not show their files.
        let Ok(open) = fs::read_dir(process.path().join("fd")) else { continue };
        for entry in open.flatten().filter(|_| number != own) {
            let is_it =
                fs::metadata(entry.path()).is_ok_and(|open| Identity::of_metadata(&open).as_ref() == Some(file));
            if is_it && is_for_writing(&process.path().join("fdinfo").join(entry.file_name())) {
                return Some(number);
            }
        }
    }
    None
}

/// Whether a file is open for writing, according to the system: `flags:` and an octal number.
#[cfg(target_os = "linux")]
fn is_for_writing(about: &std::path::Path) -> bool {
    const ACCESS: u32 = 0o3;
    let Ok(text) = std::fs::read_to_string(about) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & ACCESS != 0)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn writer_of(_file: &Identity) -> Option<u32> {
    None
}
