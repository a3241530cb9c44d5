//! Formats a session in a list, for people and for programs.

use stenograph::ledger::Prices;
use stenograph_store::index::catalogue::{Catalogue, Gone, Session, SourceRow};
use stenograph_store::sessions::{SessionCost, SessionRow, ShortNames, session_json, thread_json};

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

/// On a narrower terminal, names are shorter, and the columns MESSAGES and SIZE are left out.
const WIDE: usize = 110;
const NARROW_NAME_LENGTH_MAX: usize = 14;

/// The room for a cost, which is computed when its row is printed.
const COST_WIDTH: usize = 8;

/// How to print a list.
pub(super) struct ListView<'a> {
    pub shorts: &'a ShortNames,
    pub catalogue: &'a Catalogue,
    pub prices: &'a Prices,
    pub colour: Colour,
    pub width: usize,
}

impl ListView<'_> {
    /// The table in pieces, so that a pager shows the beginning before all costs are known.
    pub fn pieces<'r>(&'r self, rows: &'r [SessionRow]) -> impl Iterator<Item = Vec<String>> + 'r {
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
        let pieces = rows.len().div_ceil(PIECE).max(1);
        (0..pieces).map(move |piece| {
            let range = piece * PIECE..((piece + 1) * PIECE).min(rows.len());
            let (rows, plain) = (rows.get(range.clone()).unwrap_or_default(), plain.get(range).unwrap_or_default());
            let cells: Vec<[String; 8]> =
                rows.iter().zip(plain).map(|(row, cells)| self.with_cost(row, cells)).collect();
            let mut lines = self.lines(&cells, widths);
            if let Some(heading) = lines.first_mut() {
                *heading = self.colour.paint(TextStyle::Faint, heading);
            }
            for (line, row) in lines.iter_mut().skip(1).zip(rows) {
                if is_gone(row) {
                    *line = self.colour.paint(TextStyle::Faint, line);
                }
            }
            if piece > 0 {
                lines.remove(0);
            }
            lines
        })
    }

    fn lines(&self, cells: &[[String; 8]], widths: [usize; 8]) -> Vec<String> {
        if self.width >= WIDE {
            return table::lines_at_least(HEADINGS, cells, widths, self.width);
        }
        let pick = |[session, agent, project, last, cost, _, _, title]: [String; 8]| {
            [session, agent, project, last, cost, title]
        };
        let [session, agent, project, last, cost, _, _, title] = widths;
        let [a, b, c, d, e, _, _, f] = HEADINGS;
        let cells: Vec<[String; 6]> = cells.iter().cloned().map(pick).collect();
        table::lines_at_least([a, b, c, d, e, f], &cells, [session, agent, project, last, cost, title], self.width)
    }

    fn with_cost(&self, row: &SessionRow, cells: &[String; 8]) -> [String; 8] {
        let mut cells = cells.clone();
        if let (SessionRow::Session { session, .. }, Some(cell)) = (row, cells.get_mut(4)) {
            *cell = SessionCost::of(session, self.catalogue, self.prices).money();
        }
        cells
    }

    fn cells(&self, row: &SessionRow, now: i64) -> [String; 8] {
        let ago = |ended: Option<i64>| ended.map_or("-".to_owned(), |ended| table::ago(now - ended));
        let most = if self.width >= WIDE { NAME_LENGTH_MAX } else { NARROW_NAME_LENGTH_MAX };
        let short = |text: &str| table::truncated(&harmless_line(text), most);
        let session_length = if self.width == usize::MAX { usize::MAX } else { SESSION_LENGTH_MAX };
        match row {
            SessionRow::Session { session, depth } => [
                format!(
                    "{}{}",
                    indent(depth.unwrap_or(0)),
                    table::truncated(&harmless_line(&self.shorts.name(session)), session_length)
                ),
                short(&session.agent),
                session.project.as_ref().map_or("-".to_owned(), |project| short(&project.name)),
                ago(session.ended),
                " ".repeat(COST_WIDTH),
                grouped(session.messages),
                bytes(session.size),
                harmless_line(&title(session, *depth)),
            ],
            SessionRow::Thread { source, depth, .. } => [
                format!("{}{}", indent(*depth), short(source.thread.as_deref().unwrap_or_default())),
                short(&source.format),
                String::new(),
                ago(source.summary.header.ended_ms),
                String::new(),
                grouped(source.summary.messages),
                bytes(source.stamp.size),
                harmless_line(&[gone(source), source.summary.header.query.as_deref().unwrap_or_default()].concat()),
            ],
        }
    }

    pub fn json(&self, row: &SessionRow) -> Result<String, CommandError> {
        match row {
            SessionRow::Session { session, depth } => {
                Ok(session_json(session, *depth, self.shorts, self.catalogue, self.prices)?)
            }
            SessionRow::Thread { source, session, depth } => Ok(thread_json(source, session, *depth)),
        }
    }
}

fn indent(depth: usize) -> String {
    if depth == 0 { String::new() } else { format!("{}\u{2514} ", "  ".repeat(depth - 1)) }
}

/// Whether it is pinned and gone, its relation to its parent, its title, and its tags.
fn title(session: &Session, depth: Option<usize>) -> String {
    let gone = match (session.gone == session.sources, session.lost == session.sources) {
        (true, true) => "[gone, not archived] ",
        (true, false) => "[gone] ",
        (false, _) => "",
    };
    let link = match (depth, &session.parent) {
        (Some(1..), Some((_, link))) => format!("[{link} it] "),
        _ => String::new(),
    };
    let about = session.about();
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

fn is_gone(row: &SessionRow) -> bool {
    match row {
        SessionRow::Session { session, .. } => session.gone == session.sources,
        SessionRow::Thread { source, .. } => source.gone == Gone::Gone,
    }
}
