//! Pages of the ledger in the catalogue: what model calls took, by the lot whose events tell of them. They are packed, for nobody asks
//! for one row.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::{OptionalExtension as _, Row, params};
use stenograph::ledger::{CountingState, SourceUsage};

use super::row::{bits, path_of, word};
use super::{Catalogue, SourceId};
use crate::Error;

/// How large a page may become before the next one begins. Sources that grow bit by bit would else have a page for each bit.
const PAGE_SIZE_MAX: usize = 16 << 10;

/// A source and the lots of its pages.
#[derive(Clone, Debug)]
pub struct Paged {
    /// The source.
    pub id: SourceId,
    /// The name of its session.
    pub session: String,
    /// Whether its original has grown since it was copied: the pages tell of more calls than the copy does.
    pub is_outgrown: bool,
    lots: [u64; 2],
}

/// The pages of all sources, packed.
#[derive(Debug, Default)]
pub struct Pages(HashMap<u64, Vec<Vec<u8>>>);

impl Pages {
    /// The pages of what more input of a source does not change; nothing when one of them cannot be read.
    pub fn settled(&self, source: &Paged) -> Option<Vec<SourceUsage>> {
        let [lot, _] = source.lots;
        self.0.get(&lot).into_iter().flatten().map(|bytes| postcard::from_bytes(bytes).ok()).collect()
    }

    /// The pages of a source, in order; nothing when one of them cannot be read, for the others are no answer without it.
    pub fn of(&self, source: &Paged) -> Option<Vec<SourceUsage>> {
        let parts = source.lots.iter().filter_map(|lot| self.0.get(lot)).flatten();
        parts.map(|bytes| postcard::from_bytes(bytes).ok()).collect()
    }
}

impl Catalogue {
    /// Puts the next page of a lot behind those it has.
    pub fn put_page(&self, lot: u64, page: SourceUsage) -> Result<(), Error> {
        if page.is_empty() {
            return Ok(());
        }
        let (part, page) = match self.last_page(lot)? {
            Some((part, bytes)) => match postcard::from_bytes::<SourceUsage>(&bytes).ok() {
                Some(mut before) if bytes.len() < PAGE_SIZE_MAX => {
                    before.append(page);
                    (part, before)
                }
                _ => (part + 1, page),
            },
            None => (0, page),
        };
        // Only a serializer that fails could fail here, and one that writes into memory does not.
        let bytes = postcard::to_allocvec(&page).unwrap_or_default();
        self.ask(|connection| {
            let sql = "INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![word(lot), part, bytes]).map(drop)
        })
    }

    /// Where counting stood when the last page of a lot was turned.
    pub fn ledger_state(&self, lot: u64) -> Result<CountingState, Error> {
        let page = self.last_page(lot)?.and_then(|(_, bytes)| postcard::from_bytes::<SourceUsage>(&bytes).ok());
        Ok(page.map(|page| page.state).unwrap_or_default())
    }

    fn last_page(&self, lot: u64) -> Result<Option<(i64, Vec<u8>)>, Error> {
        self.ask(|connection| {
            let sql = "SELECT part, page FROM pages WHERE lot = ?1 ORDER BY part DESC LIMIT 1";
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            connection.prepare_cached(sql)?.query_row([word(lot)], read).optional()
        })
    }

    /// Every source, with where its pages are found. A copy has those of its original.
    pub fn paged(&self) -> Result<HashMap<PathBuf, Paged>, Error> {
        self.ask(|connection| {
            let sql = "SELECT sources.id, sources.path, sessions.name, coalesce(origin.lot, sources.lot), \
                       coalesce(origin.tail, sources.tail), \
                       origin.size IS NOT NULL AND origin.size <> sources.size \
                       FROM sources JOIN sessions ON sessions.id = sources.session \
                       LEFT JOIN sources AS origin ON origin.id = sources.copy_of";
            let mut statement = connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| {
                let path = path_of(row.get_ref(1)?.as_bytes().unwrap_or_default());
                let lots = [bits(row.get(3)?), bits(row.get(4)?)];
                Ok((path, Paged { id: row.get(0)?, session: row.get(2)?, lots, is_outgrown: row.get(5)? }))
            };
            statement.query_map([], read)?.collect()
        })
    }

    /// All pages.
    pub fn pages(&self) -> Result<Pages, Error> {
        self.ask(|connection| {
            let mut statement = connection.prepare_cached("SELECT lot, page FROM pages ORDER BY lot, part")?;
            let mut pages: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                pages.entry(bits(row.get(0)?)).or_default().push(row.get(1)?);
            }
            Ok(Pages(pages))
        })
    }
}
