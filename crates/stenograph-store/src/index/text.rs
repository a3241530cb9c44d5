//! The text index: which words occur in which events. It stores no text, only words and positions, and decides nothing by
//! itself: the catalogue decides which documents are live. This folder is the only one that knows the engine's writer.

mod document;
mod private;
mod tokenizer;
pub mod twin;

use std::path::{Path, PathBuf};

use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::query::{InvertedIndexRangeQuery, Query};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Term};

use document::InFlightLimit;
pub use document::IndexDocument;
use private::PrivateDirectory;

use crate::files::{Disk, Files as _};
use crate::{Error, Place, Problem};

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// The words of the event.
    pub text: Field,
    /// The words of the tool's name.
    pub tool: Field,
    /// The tool's name, for display.
    pub tool_name: Field,
    /// 1 if a call or the run failed.
    pub failed: Field,
    /// The files touched.
    pub file: Field,
    /// The model.
    pub model: Field,
    /// The branch.
    pub branch: Field,
    /// Single terms about the event, such as its role.
    pub tag: Field,
    /// The document group.
    pub doc_group: Field,
    /// The batch that added the document.
    pub batch: Field,
    /// The number of the event in its source.
    pub event: Field,
    /// The offset of its record.
    pub offset: Field,
    /// The length of its record.
    pub length: Field,
    /// The line on which its record begins.
    pub line: Field,
    /// The number of its part within the record.
    pub part: Field,
    /// The time, in milliseconds since 1970; absent if the event has no time.
    pub time: Field,
    /// The key that copies of the same record share.
    pub key: Field,
    /// The key that a record and its restatements share, and one for each of its texts; see [`twin`].
    pub twin: Field,
}

impl Fields {
    fn schema() -> (Schema, Fields) {
        let mut schema = Schema::builder();
        let words = |norms: bool| {
            let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer::NAME).set_fieldnorms(norms);
            let indexing = indexing.set_index_option(IndexRecordOption::WithFreqsAndPositions);
            TextOptions::default().set_indexing_options(indexing)
        };
        let raw = TextFieldIndexing::default().set_tokenizer("raw").set_fieldnorms(false);
        let raw = TextOptions::default().set_indexing_options(raw.set_index_option(IndexRecordOption::Basic));
        let fields = Fields {
            text: schema.add_text_field("text", words(true)),
            tool: schema.add_text_field("tool", words(false)),
            tool_name: schema.add_text_field("tool_name", TextOptions::default().set_fast("raw")),
            failed: schema.add_u64_field("failed", FAST),
            file: schema.add_text_field("file", words(false)),
            model: schema.add_text_field("model", words(false)),
            branch: schema.add_text_field("branch", words(false)),
            tag: schema.add_text_field("tag", raw),
            doc_group: schema.add_u64_field("doc_group", INDEXED | FAST),
            batch: schema.add_u64_field("batch", INDEXED),
            event: schema.add_u64_field("event", FAST),
            offset: schema.add_u64_field("offset", FAST),
            length: schema.add_u64_field("length", FAST),
            line: schema.add_u64_field("line", FAST),
            part: schema.add_u64_field("part", FAST),
            time: schema.add_i64_field("time", FAST),
            key: schema.add_u64_field("key", FAST),
            twin: schema.add_u64_field("twin", FAST),
        };
        (schema.build(), fields)
    }
}

/// An open text index.
pub struct TextIndex {
    index: Index,
    /// Its fields.
    pub fields: Fields,
    place: Place,
}

impl std::fmt::Debug for TextIndex {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TextIndex").field("place", &self.place).finish_non_exhaustive()
    }
}

impl TextIndex {
    /// Opens an existing index; `None` if it is missing or unusable.
    pub fn open(folder: &Path) -> Option<TextIndex> {
        let index = Index::open(PrivateDirectory::open(folder).ok()?).ok()?;
        let (schema, fields) = Fields::schema();
        (index.schema() == schema).then(|| TextIndex::with(index, fields, folder))
    }

    /// Creates an empty index in an empty folder.
    pub fn create(folder: &Path) -> Result<TextIndex, Error> {
        let (schema, fields) = Fields::schema();
        let place = Place::Path(folder.to_owned());
        let made = PrivateDirectory::open(folder).map_err(tantivy::TantivyError::from);
        let made = made.and_then(|directory| Index::create(directory, schema, tantivy::IndexSettings::default()));
        let index = made.map_err(|error| engine_error(&place, error))?;
        Ok(TextIndex::with(index, fields, folder))
    }

    fn with(index: Index, fields: Fields, folder: &Path) -> TextIndex {
        index.tokenizers().register(tokenizer::NAME, tokenizer::WordTokenizer::default());
        TextIndex { index, fields, place: Place::Path(folder.to_owned()) }
    }

    /// The number of the last batch committed here; `None` if it is unreadable.
    pub fn batch_number(&self) -> Option<u64> {
        match self.index.load_metas().ok()?.payload {
            Some(payload) => payload.parse().ok(),
            None => Some(0),
        }
    }

    /// A reader of the committed state.
    pub fn reader(&self) -> Result<IndexReader, Error> {
        let reader = self.index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        reader.map_err(|error| engine_error(&self.place, error))
    }

    /// Whether every file of the engine has its recorded checksum. It reads them all.
    pub fn is_whole(&self) -> bool {
        self.index.validate_checksum().is_ok_and(|damaged| damaged.is_empty())
    }

    /// Opens a writer. The caller must hold the index's lock.
    pub fn writer(&self, memory: usize, threads: usize) -> Result<TextWriter, Error> {
        // The engine requires 15 million bytes per thread; fewer threads with more memory each are better.
        const THREAD_MEMORY_MIN: usize = 15_000_000;
        let threads = threads.clamp(1, 8).min((memory / THREAD_MEMORY_MIN).max(1));
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread((memory / threads).max(THREAD_MEMORY_MIN))
            .num_merge_threads(1)
            .build();
        // The operating system releases the lock of a killed process, and the index's own lock excludes other writers.
        let writer = self.index.writer_with_options(options).map_err(|error| engine_error(&self.place, error))?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        // A killed run may have left files with the names that this one will use.
        writer.garbage_collect_files().wait().map_err(|error| engine_error(&self.place, error))?;
        Ok(TextWriter { writer, fields: self.fields, place: self.place.clone(), load: InFlightLimit::new(memory / 4) })
    }
}

pub struct TextWriter {
    writer: IndexWriter<IndexDocument>,
    fields: Fields,
    place: Place,
    load: InFlightLimit,
}

impl std::fmt::Debug for TextWriter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TextWriter").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Beyond this number segments are merged, because every search visits each of them.
const SEGMENTS_MAX: usize = 24;

/// How many segments one merge combines.
const MERGED: usize = 16;

impl TextWriter {
    /// A new document.
    pub fn document(&self) -> IndexDocument {
        IndexDocument::new(self.fields)
    }

    /// Adds a document. Waits while too many bytes are in flight.
    pub fn add(&self, document: IndexDocument) -> Result<(), Error> {
        let document = document.loaded(&self.load);
        self.writer.add_document(document).map(drop).map_err(|error| engine_error(&self.place, error))
    }

    /// Deletes all documents of a group.
    pub fn delete_group(&self, doc_group: u64) {
        self.writer.delete_term(Term::from_field_u64(self.fields.doc_group, doc_group));
    }

    /// Deletes the documents of later batches, which were never committed in the catalogue.
    pub fn delete_after(&self, batch: u64) -> Result<(), Error> {
        let after = Term::from_field_u64(self.fields.batch, batch);
        let query: Box<dyn Query> =
            Box::new(InvertedIndexRangeQuery::new(std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded));
        self.writer.delete_query(query).map(drop).map_err(|error| engine_error(&self.place, error))
    }

    /// Makes all changes durable and visible, as this batch.
    pub fn commit(&mut self, batch: u64) -> Result<(), Error> {
        let place = &self.place;
        let mut prepared = self.writer.prepare_commit().map_err(|error| engine_error(place, error))?;
        prepared.set_payload(&batch.to_string());
        prepared.commit().map_err(|error| engine_error(place, error))?;
        // The engine does not sync its folder after its last rename, and the catalogue is about to rely on that file.
        match place {
            Place::Path(folder) => {
                Disk.sync_folder(folder).map_err(|error| Error::at(folder, Problem::Unwritable, error))
            }
            Place::StandardInput | Place::StandardOutput | Place::Temporary => Ok(()),
        }
    }

    /// Merges the smallest segments if there are too many. `documents_max` bounds the input of one merge, and so its memory.
    pub fn tidy(&mut self, documents_max: u32) -> Result<(), Error> {
        loop {
            let mut metas =
                self.writer.index().searchable_segment_metas().map_err(|error| engine_error(&self.place, error))?;
            if metas.len() <= SEGMENTS_MAX {
                return Ok(());
            }
            metas.sort_by_key(tantivy::index::SegmentMeta::num_docs);
            let mut sum = 0_u32;
            let small = metas.iter().take(MERGED).take_while(|meta| {
                sum = sum.saturating_add(meta.num_docs());
                sum <= documents_max
            });
            let ids: Vec<_> = small.map(tantivy::index::SegmentMeta::id).collect();
            if ids.len() < 2 {
                return Ok(());
            }
            self.writer.merge(&ids).wait().map_err(|error| engine_error(&self.place, error))?;
        }
    }

    /// Rewrites the segments that hold deleted documents, whose words stay in the files until then.
    pub fn drop_deleted(&mut self) -> Result<(), Error> {
        let failed = |error| engine_error(&self.place, error);
        let metas = self.writer.index().searchable_segment_metas().map_err(failed)?;
        for meta in metas.iter().filter(|meta| meta.num_deleted_docs() > 0) {
            self.writer.merge(&[meta.id()]).wait().map_err(failed)?;
        }
        self.writer.garbage_collect_files().wait().map(drop).map_err(failed)
    }

    /// Closes without waiting for merges.
    pub fn close(self) {
        drop(self);
    }
}

/// Turns an engine error into an [`Error`] with a place.
pub(super) fn engine_error(place: &Place, error: tantivy::TantivyError) -> Error {
    use tantivy::TantivyError;
    let problem = match &error {
        _ if is_full(&error) => Problem::Full,
        TantivyError::DataCorruption(_) | TantivyError::IncompatibleIndex(_) | TantivyError::SchemaError(_) => {
            Problem::IndexDamaged
        }
        TantivyError::LockFailure(..) => Problem::Locked { holder: None },
        TantivyError::IoError(source) if source.kind() == std::io::ErrorKind::PermissionDenied => Problem::Denied,
        TantivyError::OpenReadError(_) | TantivyError::OpenDirectoryError(_) => Problem::IndexDamaged,
        _ => Problem::Unwritable,
    };
    Error::from_engine(place, problem, error)
}

/// Whether the disk is full. The engine wraps the system's error in several kinds, some of which keep only its text.
fn is_full(error: &tantivy::TantivyError) -> bool {
    let text = error.to_string();
    [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded]
        .iter()
        .any(|kind| text.contains(&kind.to_string()))
        || cfg!(unix) && ["(os error 28)", "(os error 122)"].iter().any(|code| text.contains(code))
}

/// The engine's folder in the index's folder.
pub(super) const FOLDER: &str = "text";

/// The path of the engine's folder.
pub fn folder(index: &Path) -> PathBuf {
    index.join(FOLDER)
}
