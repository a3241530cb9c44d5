//! Files and folders of the index that only their owner may read, because they hold transcripts. On systems without file modes
//! they are ordinary files.

use std::fs;
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents, accessible to the owner only. Restricts an existing folder that is open to others.
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

/// Creates an empty file for the owner only, unless it exists.
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

/// Removes all access except the owner's from a file or a folder.
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
