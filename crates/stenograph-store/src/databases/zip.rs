//! Conversations in a zip archive: the members that `FormatInfo::archive` describes. The archive is only read, one member at a
//! time, and nothing is unpacked under the name of a member.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder};
use stenograph::formats::FORMATS;
use stenograph::model::ArchiveMembers;

use super::{DatabaseConversation, changed_ns};
use crate::discover::Stat;
use crate::error::{Error, Problem};
use crate::output::Spool;

/// How many members an archive may have: the largest evaluations have some ten thousand samples.
const MEMBERS_MAX: usize = 1_000_000;

/// Archives that expand to less are no bombs.
const EXPANDED_MIN: u64 = 64 << 20;

/// How many times larger than the archive its members may be. Logs expand to 20 times their size.
const RATIO_MAX: u64 = 200;

/// An open archive.
pub(super) struct Archive {
    path: PathBuf,
    zip: ZipArchive<FileReader>,
    conversations: Vec<Member>,
    changed_ms: i64,
}

/// A member that is a conversation.
struct Member {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    crc: u32,
    size: u64,
}

impl Archive {
    /// Reads the directory of an archive, if it has conversations of a known format.
    pub fn open(path: &Path, file: File) -> Result<Option<Archive>, Error> {
        let stat = Stat::of(path).map_err(|error| Error::at(path, Problem::Unreadable, error))?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let damaged = |_| Error::about(path, Problem::ArchiveFileDamaged);
        let zip = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
        let mut members = Vec::new();
        let mut ranges = Vec::new();
        let mut expanded: u64 = 0;
        let mut entries = zip.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(damaged)? {
            if members.len() >= MEMBERS_MAX {
                return Err(Error::about(path, Problem::ArchiveFileDamaged));
            }
            let size = entry.uncompressed_size_hint();
            let start = entry.local_header_offset();
            ranges.push((start, start.saturating_add(entry.compressed_size_hint())));
            expanded = expanded.saturating_add(size);
            members.push(Member {
                name: String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned(),
                place: entry.wayfinder(),
                method: entry.compression_method(),
                crc: entry.crc32(),
                size,
            });
        }
        let has = |marks: &[&str]| members.iter().any(|member| marks.contains(&member.name.as_str()));
        let described = FORMATS.iter().filter_map(|format| format.info().archive);
        let Some(layout) = described.into_iter().find(|layout| has(layout.marks)) else { return Ok(None) };
        let mut names = HashSet::new();
        ranges.sort_unstable();
        let is_overlapping = ranges.windows(2).any(|pair| matches!(pair, [one, next] if one.1 > next.0));
        if is_overlapping || !members.iter().all(|member| names.insert(member.name.as_str())) {
            return Err(Error::about(path, Problem::AmbiguousMembers));
        }
        if expanded > EXPANDED_MIN && expanded / RATIO_MAX > stat.size {
            return Err(Error::about(path, Problem::Bomb { decoded: expanded, raw: stat.size }));
        }
        let conversations = members.into_iter().filter_map(|member| member.conversation(&layout)).collect();
        Ok(Some(Archive { path: path.to_owned(), zip, conversations, changed_ms: stat.modified_ns / 1_000_000 }))
    }

    /// The conversations.
    pub fn conversations(&self) -> impl Iterator<Item = DatabaseConversation> {
        self.conversations.iter().map(|member| DatabaseConversation {
            name: member.name.clone(),
            title: None,
            changed_ns: changed_ns(self.changed_ms, format!("{} {}", member.crc, member.size).as_bytes()),
            size: member.size,
        })
    }

    /// Writes the bytes of a conversation. Nothing is written if the archive does not have it.
    pub fn copy(&self, name: &str, to: &mut Spool) -> Result<(), Error> {
        let Some(member) = self.conversations.iter().find(|member| member.name == name) else { return Ok(()) };
        let damaged = |_| Error::about(&self.path, Problem::ArchiveFileDamaged);
        let entry = self.zip.get_entry(member.place).map_err(damaged)?;
        let raw = entry.reader();
        let bytes: Box<dyn Read + '_> = match member.method {
            CompressionMethod::STORE => Box::new(raw),
            CompressionMethod::DEFLATE => Box::new(flate2::read::DeflateDecoder::new(raw)),
            CompressionMethod::ZSTD => {
                let decoder = zstd::stream::read::Decoder::new(raw);
                Box::new(decoder.map_err(|error| Error::at(&self.path, Problem::Unreadable, error))?)
            }
            _ => return Err(Error::about(&self.path, Problem::ArchiveFileDamaged)),
        };
        // A member that is longer than it states fails the check of its size.
        let mut bytes = entry.verifying_reader(bytes).take(member.size.saturating_add(1));
        io::copy(&mut bytes, to).map_err(|error| match error.downcast::<Error>() {
            Ok(inside) => inside,
            Err(error) => Error::at(&self.path, Problem::ArchiveFileDamaged, error),
        })?;
        Ok(())
    }
}

impl Member {
    /// The member with the name of its conversation; `None` if it is none.
    fn conversation(self, layout: &ArchiveMembers) -> Option<Member> {
        let name = self.name.strip_prefix(layout.prefix)?.strip_suffix(layout.suffix)?;
        (!name.is_empty()).then(|| Member { name: name.to_owned(), ..self })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::databases::{conversation_path, conversations};
    use crate::{Passes, Source};

    const SAMPLE: &str = r#"{"id": 1, "epoch": 1, "input": "Why?", "target": "", "messages": []}"#;

    /// An archive with these members, each compressed in one way.
    fn archive(path: &Path, members: &[(&str, &[u8])], method: CompressionMethod) {
        let mut out = Vec::new();
        let mut zip = rawzip::ZipArchiveWriter::new(&mut out);
        for (name, bytes) in members {
            let (mut entry, config) = zip.new_file(*name).compression_method(method).start().unwrap();
            let compressed = match method {
                CompressionMethod::ZSTD => zstd::encode_all(*bytes, 3).unwrap(),
                CompressionMethod::DEFLATE => {
                    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                    encoder.write_all(bytes).unwrap();
                    encoder.finish().unwrap()
                }
                _ => bytes.to_vec(),
            };
            let mut counted = config.wrap(io::sink());
            counted.write_all(bytes).unwrap();
            let (_, descriptor) = counted.finish().unwrap();
            entry.write_all(&compressed).unwrap();
            entry.finish(descriptor).unwrap();
        }
        zip.finish().unwrap();
        std::fs::write(path, out).unwrap();
    }

    fn problem(path: &Path) -> Option<Problem> {
        conversations(path).err().map(|error| error.problem)
    }

    #[test]
    fn the_samples_of_a_log_are_read_whatever_compresses_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eval");
        let other = SAMPLE.replace("Why?", "How?");
        let members = [
            ("_journal/start.json", "{}".as_bytes()),
            ("samples/1_epoch_1.json", SAMPLE.as_bytes()),
            ("samples/a/b_epoch_1.json", other.as_bytes()),
        ];
        for method in [CompressionMethod::STORE, CompressionMethod::DEFLATE, CompressionMethod::ZSTD] {
            archive(&path, &members, method);
            let found = conversations(&path).unwrap().unwrap();
            let mut names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names, ["1_epoch_1", "a/b_epoch_1"]);
            for (name, content) in [("1_epoch_1", SAMPLE), ("a/b_epoch_1", other.as_str())] {
                let mut source = Source::open(&conversation_path(&path, name), Passes::Once).unwrap();
                assert_eq!(source.read_whole(1 << 20).unwrap(), content.as_bytes());
            }
        }
    }

    #[test]
    fn archives_that_are_damaged_or_deceive_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.eval");
        let sample = ("samples/1_epoch_1.json", SAMPLE.as_bytes());
        archive(&path, &[("header.json", b"{}"), sample, sample], CompressionMethod::STORE);
        assert_eq!(problem(&path), Some(Problem::AmbiguousMembers));
        let large = vec![b' '; (EXPANDED_MIN + 1) as usize];
        archive(&path, &[("header.json", b"{}"), ("samples/1_epoch_1.json", &large)], CompressionMethod::DEFLATE);
        assert!(matches!(problem(&path), Some(Problem::Bomb { .. })));
        archive(&path, &[("header.json", b"{}"), sample], CompressionMethod::STORE);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 30]).unwrap();
        assert_eq!(problem(&path), Some(Problem::ArchiveFileDamaged));
        // A changed byte fails the checksum of its member.
        let at = whole.windows(4).position(|bytes| bytes == b"Why?").unwrap();
        let mut changed = whole;
        changed[at] = b'x';
        std::fs::write(&path, changed).unwrap();
        let read = Source::open(&conversation_path(&path, "1_epoch_1"), Passes::Once);
        assert_eq!(read.unwrap_err().problem, Problem::ArchiveFileDamaged);
        archive(&path, &[("mimetype", b"x")], CompressionMethod::STORE);
        assert!(conversations(&path).unwrap().is_none());
    }
}
