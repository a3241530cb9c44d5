//! Documents that are written when a recording ends: files written from their beginning and compared with the expected content.
//! This file does not interpret them.

use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph::model::Kind;
use stenograph::wire;

use crate::files::{Files, OpenFile};

/// A file of a disk as a writer.
pub struct FileWriter<'a>(pub &'a mut dyn OpenFile);

impl Write for FileWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The native line of a header in one format's keys, which that format writes unchanged.
pub fn header_line(format: &dyn Format, words: Draft<'_>) -> String {
    let mut extra = Draft::new();
    extra.nest(format.info().name, words);
    let mut line = Draft::new();
    line.set("v", wire::VERSION.to_string());
    line.set_str("kind", Kind::Fact.name());
    line.set_str("name", "session");
    line.nest("extra", extra);
    line.render(None) + "\n"
}

/// The name of a file while it is written. The next attempt overwrites what a crash left.
pub fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

/// Writes a file from its beginning and makes it durable. Returns its length.
pub fn write_from_start(
    files: &dyn Files,
    path: &Path,
    fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut file = files.open(path)?;
    file.truncate(0)?;
    let mut out = BufWriter::with_capacity(256 << 10, FileWriter(file.as_mut()));
    fill(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync()?;
    Ok(files.length(path)?.unwrap_or(0))
}

/// Whether both streams have the same bytes.
pub fn are_equal(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let (length, same) = (fill(one, &mut left)?, fill(other, &mut right)?);
        if left.get(..length) != right.get(..same) {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match from.read(room) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
