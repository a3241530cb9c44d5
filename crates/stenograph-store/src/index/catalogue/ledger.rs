//! Ledger pages in the catalogue: the usage of model calls, by document group. They are packed, because no query needs a single
//! row.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::{OptionalExtension as _, Row, params};
use stenograph::ledger::{CountingState, SourceUsage};

use super::row::{path_of, to_signed, to_unsigned};
use super::{Catalogue, SessionId, SourceId};
use crate::Error;

/// The size at which a page is full. Without pages that grow, a source that grows in small steps would get a page for each
/// step.
const PAGE_SIZE_MAX: usize = 16 << 10;

/// A source and the groups of its ledger pages.
#[derive(Clone, Debug)]
pub struct SourcePages {
    /// The source.
    pub id: SourceId,
    /// The session's name.
    pub session: String,
    /// Whether the original has grown since it was copied, so that the pages include calls that the copy lacks.
    pub is_outgrown: bool,
    doc_groups: [u64; 2],
}

/// The ledger pages of all sources, packed.
#[derive(Debug, Default)]
pub struct LedgerPages(HashMap<u64, Vec<Vec<u8>>>);

impl LedgerPages {
    /// The pages of the part of a source that more input does not change. `None` if one of them is unreadable.
    pub(crate) fn final_pages(&self, source: &SourcePages) -> Option<Vec<SourceUsage>> {
        let [doc_group, _] = source.doc_groups;
        self.0.get(&doc_group).into_iter().flatten().map(|bytes| postcard::from_bytes(bytes).ok()).collect()
    }

    /// The pages of a source, in order. `None` if one is unreadable, because the others alone give wrong totals.
    pub fn of(&self, source: &SourcePages) -> Option<Vec<SourceUsage>> {
        let parts = source.doc_groups.iter().filter_map(|doc_group| self.0.get(doc_group)).flatten();
        parts.map(|bytes| postcard::from_bytes(bytes).ok()).collect()
    }
}

impl Catalogue {
    /// Appends a page to those of a group.
    pub(crate) fn put_page(&self, doc_group: u64, page: SourceUsage) -> Result<(), Error> {
        if page.is_empty() {
            return Ok(());
        }
        let (part, page) = match self.last_page(doc_group)? {
            Some((part, bytes)) => match postcard::from_bytes::<SourceUsage>(&bytes).ok() {
                Some(mut before) if bytes.len() < PAGE_SIZE_MAX => {
                    before.append(page);
                    (part, before)
                }
                _ => (part + 1, page),
            },
            None => (0, page),
        };
        // Serializing into memory does not fail.
        let bytes = postcard::to_allocvec(&page).unwrap_or_default();
        self.query(|connection| {
            let sql = "INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![to_signed(doc_group), part, bytes]).map(drop)
        })
    }

    /// The counting state after the last page of a group.
    pub(crate) fn ledger_state(&self, doc_group: u64) -> Result<CountingState, Error> {
        let page = self.last_page(doc_group)?.and_then(|(_, bytes)| postcard::from_bytes::<SourceUsage>(&bytes).ok());
        Ok(page.map(|page| page.state).unwrap_or_default())
    }

    fn last_page(&self, doc_group: u64) -> Result<Option<(i64, Vec<u8>)>, Error> {
        self.query(|connection| {
            let sql = "SELECT part, page FROM pages WHERE doc_group = ?1 ORDER BY part DESC LIMIT 1";
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            connection.prepare_cached(sql)?.query_row([to_signed(doc_group)], read).optional()
        })
    }

    /// Every source with the groups of its pages. A copy uses those of its original.
    pub(crate) fn paged(&self) -> Result<HashMap<PathBuf, SourcePages>, Error> {
        self.query(|connection| {
            let sql = "SELECT sources.id, sources.path, sessions.name, coalesce(origin.doc_group, sources.doc_group), \
                       coalesce(origin.tail, sources.tail), \
                       origin.size IS NOT NULL AND origin.size <> sources.size \
                       FROM sources JOIN sessions ON sessions.id = sources.session \
                       LEFT JOIN sources AS origin ON origin.id = sources.copy_of";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                let doc_groups = [to_unsigned(row.get(3)?), to_unsigned(row.get(4)?)];
                Ok((path, SourcePages { id: row.get(0)?, session: row.get(2)?, doc_groups, is_outgrown: row.get(5)? }))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// The usage of a session: the pages of each of its sources, with the source's path and the time of its last change. A page that is
    /// unreadable is left out.
    pub(crate) fn session_usage(&self, session: SessionId) -> Result<Vec<(PathBuf, i64, SourceUsage)>, Error> {
        self.query(|connection| {
            let sql = "SELECT sources.path, sources.changed, pages.page FROM sources \
                       LEFT JOIN sources AS origin ON origin.id = sources.copy_of \
                       JOIN pages ON pages.doc_group IN (coalesce(origin.doc_group, sources.doc_group), coalesce(origin.tail, sources.tail)) \
                       WHERE sources.session = ?1 ORDER BY sources.id, pages.doc_group, pages.part";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(0)?.as_bytes().unwrap_or_default());
                let bytes: Vec<u8> = row.get(2)?;
                Ok(postcard::from_bytes(&bytes).ok().map(|page| (path, row.get(1), page)))
            };
            let mut found = Vec::new();
            for page in statement.query_map([session], read)? {
                if let Some((path, changed, page)) = page? {
                    found.push((path, changed?, page));
                }
            }
            Ok(found)
        })
    }

    /// All pages.
    pub(crate) fn pages(&self) -> Result<LedgerPages, Error> {
        self.query(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT doc_group, page FROM pages ORDER BY doc_group, part")?;
            let mut pages: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                pages.entry(to_unsigned(row.get(0)?)).or_default().push(row.get(1)?);
            }
            Ok(LedgerPages(pages))
        })
    }
}
