//! Formats a session in a list, for people and for programs.

use stenograph::json::Draft;
use stenograph::ledger::Prices;
use stenograph_store::index::catalogue::{Catalogue, Gone, IndexedSession, SourceRow};
use stenograph_store::sessions::{SessionCost, SessionRow, ShortNames, session_draft, session_fields, thread_fields};

use super::tree::{FileRow, Origin};
use crate::clock;
use crate::error::CommandError;
use crate::output::{Colour, TextStyle, grouped, harmless_line};
use crate::store::{PIN, bytes};
use crate::table::{self, Align};

const HEADINGS: [(&str, Align); 8] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("PROJECT", Align::Left),
    ("LAST", Align::Right),
    ("COST", Align::Right),
    ("MESSAGES", Align::Right),
    ("SIZE", Align::Right),
    ("TITLE", Align::Left),
];

/// The maximum length of a name.
const NAME_LENGTH_MAX: usize = 24;

/// The maximum length of a session's name on a terminal. Only a name that shares more letters with another one is cut; commands
/// accept it with its ellipsis, and name the candidates.
const SESSION_LENGTH_MAX: usize = 10;

/// The maximum length of a file's name.
const FILE_LENGTH_MAX: usize = 48;

/// On a narrower terminal, names are shorter, and the columns MESSAGES and SIZE are left out.
const WIDE: usize = 110;
const NARROW_NAME_LENGTH_MAX: usize = 14;
const NARROW_FILE_LENGTH_MAX: usize = 18;

/// Whether all rows have the same agent. On a narrow terminal, the title needs the room of a column that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agents {
    One,
    Several,
}

/// The room for a cost, which is computed when its row is printed.
const COST_WIDTH: usize = 8;

/// One row of a list.
pub(super) struct ListRow {
    pub item: ListItem,
    /// Its depth in the tree; `None` in a flat list.
    pub depth: Option<usize>,
    /// Where it branched off, if its events were compared.
    pub origin: Option<Origin>,
}

pub(super) enum ListItem {
    Session(Box<IndexedSession>),
    /// A sub-agent of the session above it.
    Thread {
        source: Box<SourceRow>,
        session: String,
    },
    File(Box<FileRow>),
    /// Events of the conversation above it that did not continue.
    Abandoned {
        path: String,
        session: Option<String>,
        started: Option<i64>,
        ended: Option<i64>,
    },
}

impl From<SessionRow> for ListRow {
    fn from(row: SessionRow) -> ListRow {
        let (item, depth) = match row {
            SessionRow::Session { session, depth } => (ListItem::Session(session), depth),
            SessionRow::Thread { source, session, depth } => (ListItem::Thread { source, session }, Some(depth)),
        };
        ListRow { item, depth, origin: None }
    }
}

impl ListRow {
    /// Whether it is a conversation, not a part of the one above it.
    pub fn is_conversation(&self) -> bool {
        matches!(self.item, ListItem::Session(_) | ListItem::File(_))
    }

    fn is_gone(&self) -> bool {
        match &self.item {
            ListItem::Session(session) => session.gone == session.sources,
            ListItem::Thread { source, .. } => source.gone == Gone::Gone,
            ListItem::File(_) | ListItem::Abandoned { .. } => false,
        }
    }
}

/// How to print a list.
pub(super) struct ListView<'a> {
    pub shorts: &'a ShortNames,
    /// The index; files are listed without one.
    pub catalogue: Option<&'a Catalogue>,
    pub prices: &'a Prices,
    pub colour: Colour,
    pub width: usize,
}

impl ListView<'_> {
    /// The table in pieces, so that a pager shows the beginning before all costs are known.
    pub fn pieces<'r>(&'r self, rows: &'r [ListRow]) -> impl Iterator<Item = Vec<String>> + 'r {
        const PIECE: usize = 50;
        let now = clock::millis();
        let plain: Vec<[String; 8]> = rows.iter().map(|row| self.cells(row, now)).collect();
        let widths =
            plain.iter().fold(HEADINGS.map(|(heading, _)| table::display_width(heading)), |mut widths, cells| {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(table::display_width(cell));
                }
                widths
            });
        let mut agents = plain.iter().map(|[_, agent, ..]| agent).filter(|agent| !agent.is_empty());
        let first = agents.next();
        let agents = if agents.all(|agent| Some(agent) == first) { Agents::One } else { Agents::Several };
        let pieces = rows.len().div_ceil(PIECE).max(1);
        (0..pieces).map(move |piece| {
            let range = piece * PIECE..((piece + 1) * PIECE).min(rows.len());
            let (rows, plain) = (rows.get(range.clone()).unwrap_or_default(), plain.get(range).unwrap_or_default());
            let cells: Vec<[String; 8]> =
                rows.iter().zip(plain).map(|(row, cells)| self.with_cost(row, cells)).collect();
            let mut lines = self.lines(&cells, widths, agents);
            if let Some(heading) = lines.first_mut() {
                *heading = self.colour.paint(TextStyle::Faint, heading);
            }
            for (line, row) in lines.iter_mut().skip(1).zip(rows) {
                if row.is_gone() {
                    *line = self.colour.paint(TextStyle::Faint, line);
                }
            }
            if piece > 0 {
                lines.remove(0);
            }
            lines
        })
    }

    fn lines(&self, cells: &[[String; 8]], widths: [usize; 8], agents: Agents) -> Vec<String> {
        if self.width >= WIDE {
            return table::lines_at_least(HEADINGS, cells, widths, self.width);
        }
        let pick = |[session, agent, project, last, cost, _, _, title]: [String; 8]| {
            [session, agent, project, last, cost, title]
        };
        let without_agent =
            |[session, _, project, last, cost, _, _, title]: [String; 8]| [session, project, last, cost, title];
        let [session, agent, project, last, cost, _, _, title] = widths;
        let [a, b, c, d, e, _, _, f] = HEADINGS;
        match agents {
            Agents::One => {
                let cells: Vec<[String; 5]> = cells.iter().cloned().map(without_agent).collect();
                table::lines_at_least([a, c, d, e, f], &cells, [session, project, last, cost, title], self.width)
            }
            Agents::Several => {
                let cells: Vec<[String; 6]> = cells.iter().cloned().map(pick).collect();
                let widths = [session, agent, project, last, cost, title];
                table::lines_at_least([a, b, c, d, e, f], &cells, widths, self.width)
            }
        }
    }

    fn with_cost(&self, row: &ListRow, cells: &[String; 8]) -> [String; 8] {
        let mut cells = cells.clone();
        if let (ListItem::Session(session), Some(cell), Some(catalogue)) = (&row.item, cells.get_mut(4), self.catalogue)
        {
            *cell = SessionCost::of(session, catalogue, self.prices).money();
        }
        cells
    }

    fn cells(&self, row: &ListRow, now: i64) -> [String; 8] {
        let ago = |ended: Option<i64>| ended.map_or("-".to_owned(), |ended| table::ago(now - ended));
        let most = if self.width >= WIDE { NAME_LENGTH_MAX } else { NARROW_NAME_LENGTH_MAX };
        let most_of_path = if self.width >= WIDE { FILE_LENGTH_MAX } else { NARROW_FILE_LENGTH_MAX };
        let short = |text: &str| table::truncated(&harmless_line(text), most);
        let session_length = if self.width == usize::MAX { usize::MAX } else { SESSION_LENGTH_MAX };
        let named = |name: String| format!("{}{name}", indent(row.depth.unwrap_or(0)));
        match &row.item {
            ListItem::Session(session) => [
                named(table::truncated(&harmless_line(&self.shorts.name(session)), session_length)),
                short(&session.agent),
                session.project.as_ref().map_or("-".to_owned(), |project| short(&project.name)),
                ago(session.ended),
                " ".repeat(COST_WIDTH),
                grouped(session.messages),
                bytes(session.size),
                harmless_line(&title(session, row)),
            ],
            ListItem::Thread { source, .. } => [
                named(short(source.thread.as_deref().unwrap_or_default())),
                short(&source.format),
                String::new(),
                ago(source.summary.header.ended_ms),
                String::new(),
                grouped(source.summary.messages),
                bytes(source.stamp.size),
                harmless_line(&[gone(source), source.summary.header.query.as_deref().unwrap_or_default()].concat()),
            ],
            ListItem::File(file) => [
                named(path_end(&harmless_line(&file.name), most_of_path)),
                short(file.agent),
                String::new(),
                ago(file.ended),
                String::new(),
                grouped(file.messages),
                file.size.map(bytes).unwrap_or_default(),
                harmless_line(&with_origin(row, file.asked.as_deref())),
            ],
            ListItem::Abandoned { ended, .. } => {
                let [empty, ..] = [const { String::new() }; 8];
                let title = harmless_line(&with_origin(row, None));
                [
                    named("abandoned".to_owned()),
                    empty.clone(),
                    empty.clone(),
                    ago(*ended),
                    empty.clone(),
                    empty.clone(),
                    empty,
                    title,
                ]
            }
        }
    }

    pub fn json(&self, row: &ListRow) -> Result<String, CommandError> {
        let mut draft = match &row.item {
            ListItem::Session(session) => match self.catalogue {
                Some(catalogue) => session_fields(session, self.shorts, catalogue, self.prices)?,
                None => session_draft(session, self.shorts),
            },
            ListItem::Thread { source, session } => thread_fields(source, session),
            ListItem::File(file) => file_fields(file),
            ListItem::Abandoned { path, session, started, ended } => {
                let mut draft = Draft::new();
                draft.set_str("path", path);
                draft.set_opt("session", session.as_deref());
                draft.set_opt("started", clock::iso(*started).as_deref());
                draft.set_opt("ended", clock::iso(*ended).as_deref());
                draft
            }
        };
        draft.set_number("depth", row.depth.map(|depth| depth as u64));
        if let Some(origin) = &row.origin {
            draft.nest("origin", origin.json.clone());
        }
        Ok(draft.render(None))
    }
}

fn file_fields(file: &FileRow) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_str("path", &file.name);
    draft.set_str("agent", file.agent);
    draft.set_opt("session", file.session.as_deref());
    draft.set_opt("asked", file.asked.as_deref());
    draft.set_opt("started", clock::iso(file.started).as_deref());
    draft.set_opt("ended", clock::iso(file.ended).as_deref());
    draft.set_number("events", Some(file.events));
    draft.set_number("messages", Some(file.messages));
    draft.set_number("size", file.size);
    draft
}

/// A path with at most this many columns; its end says the most.
fn path_end(path: &str, width: usize) -> String {
    if table::display_width(path) <= width {
        return path.to_owned();
    }
    let fits = |(at, _): &(usize, char)| table::display_width(path.get(*at..).unwrap_or_default()) < width;
    let from = path.char_indices().find(fits).map_or(path.len(), |(at, _)| at);
    format!("…{}", path.get(from..).unwrap_or_default())
}

fn indent(depth: usize) -> String {
    if depth == 0 { String::new() } else { format!("{}\u{2514} ", "  ".repeat(depth - 1)) }
}

/// Where a row branched off and what was asked then, or else its title.
fn with_origin(row: &ListRow, title: Option<&str>) -> String {
    match &row.origin {
        Some(origin) => {
            let asked = origin.asked.iter().flat_map(|asked| asked.split_whitespace());
            let text = format!("[{}]", origin.text);
            std::iter::once(text.as_str()).chain(asked).collect::<Vec<_>>().join(" ")
        }
        None => title.unwrap_or_default().to_owned(),
    }
}

/// Whether it is pinned and gone, its relation to its parent, its title, and its tags.
fn title(session: &IndexedSession, row: &ListRow) -> String {
    let gone = match (session.gone == session.sources, session.lost == session.sources) {
        (true, true) => "[gone, not archived] ",
        (true, false) => "[gone] ",
        (false, _) => "",
    };
    let link = match (row.depth, &session.parent) {
        (Some(1..), Some((_, link))) if row.origin.is_none() => format!("[{link} it] "),
        _ => String::new(),
    };
    let about = with_origin(row, Some(&session.about()));
    let pin = if session.marks.pinned { PIN } else { "" };
    let tags: String = session.marks.tags.iter().map(|tag| format!(" #{tag}")).collect();
    format!("{pin}{gone}{link}{about}{tags}")
}

fn gone(source: &SourceRow) -> &'static str {
    match (source.gone, &source.archive_copy) {
        (Gone::There, _) => "",
        (Gone::Gone, Some(_)) => "[gone] ",
        (Gone::Gone, None) => "[gone, not archived] ",
    }
}
