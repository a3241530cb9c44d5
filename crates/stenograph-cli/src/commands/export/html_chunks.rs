//! The events of a page on their way to the disk. A small page keeps them in one file; above a limit they move to files beside
//! the page, which the browser loads as it needs them. Memory stays below that limit.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use stenograph::render::html::{PageBody, PageChunk, chunk_script};
use stenograph_store::files::{Disk, Files as _};
use stenograph_store::{Error, NewFileOptions, Place, Problem};

use crate::error::CommandError;

/// The largest page in one file. Browsers open larger ones slowly, and mail and chat programs refuse them.
pub(super) const PAGE_SIZE_MAX: usize = 20_000_000;

/// The size of a chunk: small enough to be laid out at once, large enough that a large session has some hundred files.
const CHUNK_SIZE: usize = 512 << 10;

/// The characters of a file name that are encoded in its address.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// The events of one page.
pub(super) struct HtmlChunks {
    /// The page that they belong to; `None` for standard output, which cannot have files beside it.
    page: Option<PathBuf>,
    options: NewFileOptions,
    /// The chunks in memory.
    parts: Vec<String>,
    size: usize,
    /// All complete chunks.
    chunks: Vec<PageChunk>,
    /// Whether the chunks are in files.
    is_split: bool,
    /// The events of the current chunk.
    pub html: String,
    current: PageChunk,
}

impl HtmlChunks {
    pub fn new(page: Option<&Path>, options: NewFileOptions) -> HtmlChunks {
        HtmlChunks {
            page: page.map(Path::to_owned),
            options,
            parts: Vec::new(),
            size: 0,
            chunks: Vec::new(),
            is_split: false,
            html: String::new(),
            current: PageChunk::default(),
        }
    }

    /// Takes notice of an event in the current chunk.
    pub fn count(&mut self, id_prefix: &str, number: u64) {
        if self.current.events == 0 {
            self.current = PageChunk { id_prefix: id_prefix.to_owned(), first: number, ..PageChunk::default() };
        }
        (self.current.last, self.current.events) = (number, self.current.events + 1);
    }

    /// Whether the current chunk is large enough.
    pub fn is_full(&self) -> bool {
        self.html.len() >= CHUNK_SIZE
    }

    /// Ends the current chunk.
    pub fn end(&mut self) -> Result<(), CommandError> {
        let (html, chunk) = (std::mem::take(&mut self.html), std::mem::take(&mut self.current));
        if html.is_empty() {
            return Ok(());
        }
        self.size += html.len();
        let number = self.chunks.len();
        let source = self.page.as_deref().map(|page| {
            // The name is a part of an address, in which `#`, `%` and `?` mean something else.
            format!("{}/{}", utf8_percent_encode(&folder_name(page), ENCODED), file_name(number))
        });
        let source = source.unwrap_or_default();
        self.chunks.push(PageChunk { source, ..chunk });
        if self.is_split {
            return self.write(number, &html);
        }
        self.parts.push(html);
        if self.size <= PAGE_SIZE_MAX {
            return Ok(());
        }
        self.split()
    }

    /// Moves the chunks to files.
    fn split(&mut self) -> Result<(), CommandError> {
        let Some(page) = &self.page else {
            return Err(
                CommandError::new("the page is larger than 20 MB").hint("write it to a file with -o session.html")
            );
        };
        let folder = page.with_file_name(folder_name(page));
        let unwritable = |error| Error::from_system(&Place::Path(folder.clone()), Problem::Unwritable, error);
        Disk.create_folder(&folder).map_err(unwritable)?;
        self.is_split = true;
        let parts = std::mem::take(&mut self.parts);
        parts.iter().enumerate().try_for_each(|(number, html)| self.write(number, html))
    }

    fn write(&self, number: usize, html: &str) -> Result<(), CommandError> {
        let Some(page) = &self.page else { return Ok(()) };
        let path = page.with_file_name(folder_name(page)).join(file_name(number));
        let mut file = self.options.clone().create(&path, [])?;
        file.write_all(chunk_script(number, html).as_bytes())?;
        Ok(file.commit()?)
    }

    /// The events for the page.
    pub fn body(&self) -> PageBody<'_> {
        if self.is_split { PageBody::Chunks(&self.chunks) } else { PageBody::Inline(&self.parts) }
    }

    /// How many files are beside the page.
    pub fn files(&self) -> usize {
        if self.is_split { self.chunks.len() } else { 0 }
    }

    /// The bytes of all events.
    pub fn size(&self) -> usize {
        self.size
    }
}

/// The folder beside a page that holds its chunks.
fn file_name(number: usize) -> String {
    format!("{number:04}.js")
}

fn folder_name(page: &Path) -> String {
    format!("{}.files", super::name_of(page))
}
