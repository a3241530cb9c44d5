//! Files and folders of the index that only their owner may read: they hold what people said. Where the system has no such modes,
//! they are as any other.

use std::fs;
use std::io;
use std::path::Path;

/// Makes a folder and those above it that are missing, for the owner only. One that is there and open to others is closed.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)?;
    hide(path)
}

/// Makes an empty file for the owner only, unless there is one.
pub(super) fn file(path: &Path) -> io::Result<()> {
    let mut options = fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)?;
    hide(path)
}

/// Takes away what anybody but the owner may do with a file or a folder.
pub(super) fn hide(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
