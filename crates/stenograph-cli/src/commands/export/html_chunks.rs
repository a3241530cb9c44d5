//! Writes the events of a page. Up to 20 MB, the page holds all events. A larger page keeps them in separate files, which the
//! browser loads as it needs them. Memory stays below that limit.

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
    inline_html: Vec<String>,
    size: usize,
    /// All complete chunks.
    chunk_infos: Vec<PageChunk>,
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
            inline_html: Vec::new(),
            size: 0,
            chunk_infos: Vec::new(),
            is_split: false,
            html: String::new(),
            current: PageChunk::default(),
        }
    }

    /// Counts an event of the current chunk.
    pub fn add_event_number(&mut self, id_prefix: &str, number: u64) {
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
    pub fn finish_chunk(&mut self) -> Result<(), CommandError> {
        let (html, chunk) = (std::mem::take(&mut self.html), std::mem::take(&mut self.current));
        if html.is_empty() {
            return Ok(());
        }
        self.size += html.len();
        let number = self.chunk_infos.len();
        let source = self.page.as_deref().map(|page| {
            // The name is a part of an address, in which `#`, `%` and `?` mean something else.
            format!("{}/{}", utf8_percent_encode(&folder_name(page), ENCODED), file_name(number))
        });
        let source = source.unwrap_or_default();
        self.chunk_infos.push(PageChunk { source, ..chunk });
        if self.is_split {
            return self.write(number, &html);
        }
        self.inline_html.push(html);
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
        let inline_html = std::mem::take(&mut self.inline_html);
        inline_html.iter().enumerate().try_for_each(|(number, html)| self.write(number, html))
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
        if self.is_split { PageBody::Chunks(&self.chunk_infos) } else { PageBody::Inline(&self.inline_html) }
    }

    /// How many files are beside the page.
    pub fn files(&self) -> usize {
        if self.is_split { self.chunk_infos.len() } else { 0 }
    }

    /// The bytes of all events.
    pub fn size(&self) -> usize {
        self.size
    }
}

fn file_name(number: usize) -> String {
    format!("{number:04}.js")
}

/// The folder beside a page that holds its chunks.
fn folder_name(page: &Path) -> String {
    format!("{}.files", super::name_of(page))
}
