//! `steno archive list`: lists the copies in the archive.

use std::collections::HashMap;
use std::path::PathBuf;

use stenograph::json::Draft;
use stenograph_store::archive::{CopyInfo, VersionInfo};
use stenograph_store::databases;
use stenograph_store::index::Store;
use stenograph_store::index::catalogue::SessionId;

use super::{archive, print_warnings};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, TextStyle, grouped, harmless_json, harmless_line, shortened};
use crate::store::{self, ShortNames, StoreArgs};
use crate::table::{self, Align};
use crate::terminal::fitted_path;

/// List the archived copies
///
/// Prints one line per copy, the first archived one first. [gone] marks copies whose file no longer exists.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno archive list
  steno archive list --json | jq -r 'select(.gone).path'   copies without a file

Exit codes: 0 copies listed, 1 the archive is empty, 2 error")]
pub struct Options {
    #[command(flatten)]
    place: StoreArgs,
    /// Print one JSON object per copy
    #[arg(long)]
    json: bool,
}

const HEADINGS: [(&str, Align); 6] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("ARCHIVED", Align::Right),
    ("SIZE", Align::Right),
    ("VERSIONS", Align::Right),
    ("PATH", Align::Left),
];

/// The maximum length of a session's name, and the length of a prefix of it on a narrow terminal.
const NAME_LENGTH_MAX: usize = 36;
const PREFIX_LENGTH: usize = 8;

/// The width of a terminal with room for whole names.
const WIDE: usize = 110;

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let archive = archive(&options.place.store()?)?;
    let root = options.place.root();
    let is_inside = |copy: &CopyInfo| root.as_ref().is_none_or(|root| copy.path.starts_with(root));
    let copies: Vec<CopyInfo> = archive.copies().filter(is_inside).collect();
    print_warnings(archive.warnings(), output);
    if copies.is_empty() {
        return Err(CommandError::not_found("the archive is empty")
            .hint("archive transcripts with steno index or steno archive add"));
    }
    if options.json {
        for copy in &copies {
            output.line(&harmless_json(&json(copy)))?;
        }
        return Ok(ExitStatus::Done);
    }
    output.page();
    let (now, width) = (clock::millis(), table::screen_width());
    let names = SessionNames::of(&options.place.store()?)?;
    let mut rows: Vec<[String; 6]> = copies.iter().map(|copy| cells(copy, &names, now, width)).collect();
    let room = path_width(&rows, width);
    for (copy, [.., path]) in copies.iter().zip(&mut rows) {
        let gone = if databases::is_there(&copy.path) { "" } else { "[gone] " };
        *path = format!("{gone}{}", fitted_path(&copy.path, room.saturating_sub(gone.len())));
    }
    let mut lines = table::lines(HEADINGS, &rows, width);
    if let Some(heading) = lines.first_mut() {
        *heading = output.colour().paint(TextStyle::Faint, heading);
    }
    for line in lines {
        output.line(&line)?;
    }
    let size = archive.size();
    output.say(&format!("{} archived in {}", store::bytes(size.sources), store::bytes(size.stored)));
    Ok(ExitStatus::Done)
}

/// The narrowest column of paths.
const PATH_WIDTH_MIN: usize = 20;

/// The room for a path beside the other columns. The end of a path tells files apart, so the table must not cut it.
fn path_width(rows: &[[String; 6]], width: usize) -> usize {
    if width == usize::MAX {
        return width;
    }
    let widest = |column: usize, heading: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| table::display_width(cell));
        cells.max().unwrap_or(0).max(heading.len())
    };
    let columns = HEADINGS.iter().enumerate().take(HEADINGS.len() - 1);
    let taken: usize = columns.map(|(column, (heading, _))| widest(column, heading) + 2).sum();
    width.saturating_sub(taken).max(PATH_WIDTH_MIN)
}

/// The short names of the sessions, by the paths of their files. Empty without an index.
#[derive(Default)]
struct SessionNames(HashMap<PathBuf, String>);

impl SessionNames {
    fn of(store: &Store) -> Result<SessionNames, CommandError> {
        let Ok(catalogue) = store.catalogue() else { return Ok(SessionNames::default()) };
        let short_names = ShortNames::of(&catalogue)?;
        let sessions: HashMap<SessionId, String> =
            catalogue.sessions()?.iter().map(|session| (session.id, short_names.name(session))).collect();
        let sources = catalogue.sources()?.into_iter();
        Ok(SessionNames(sources.filter_map(|row| Some((row.path, sessions.get(&row.session)?.clone()))).collect()))
    }
}

/// The cells of a copy without its path, whose width depends on the others.
fn cells(copy: &CopyInfo, names: &SessionNames, now: i64, width: usize) -> [String; 6] {
    let short = |text: &str| shortened(&harmless_line(text), NAME_LENGTH_MAX).into_owned();
    let name = |text: &str| match width < WIDE {
        // The name that steno list prints.
        true if let Some(name) = names.0.get(&copy.path) => harmless_line(name),
        true => harmless_line(text).chars().take(PREFIX_LENGTH).collect(),
        false => short(text),
    };
    [
        copy.label.session.as_deref().map_or("-".to_owned(), name),
        short(&copy.label.format),
        table::ago(now - copy.last_ms),
        store::bytes(copy.length),
        grouped(copy.versions.len() as u64),
        String::new(),
    ]
}

fn json(copy: &CopyInfo) -> String {
    let mut draft = Draft::new();
    draft.set_number("copy", Some(u64::from(copy.id.0)));
    draft.set_str("path", &copy.path.display().to_string());
    draft.set_str("format", &copy.label.format);
    draft.set_opt("session", copy.label.session.as_deref());
    draft.set_number("length", Some(copy.length));
    draft.set("gone", (!databases::is_there(&copy.path)).to_string());
    draft.set_opt("first", clock::iso(Some(copy.first_ms)).as_deref());
    draft.set_opt("last", clock::iso(Some(copy.last_ms)).as_deref());
    let version = |version: &VersionInfo| {
        let mut draft = Draft::new();
        draft.set_number("version", Some(u64::from(version.number)));
        draft.set_number("length", Some(version.length));
        draft.set_opt("first", clock::iso(Some(version.first_ms)).as_deref());
        draft.set_opt("last", clock::iso(Some(version.last_ms)).as_deref());
        draft.render(None)
    };
    draft.set("versions", format!("[{}]", copy.versions.iter().map(version).collect::<Vec<_>>().join(",")));
    draft.render(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_gets_the_room_that_the_other_columns_leave() {
        let row = ["01a1e18e-4", "openai-agents", "13m ago", "461 bytes", "1", ""].map(str::to_owned);
        assert_eq!(path_width(std::slice::from_ref(&row), 80), 80 - (10 + 13 + 8 + 9 + 8 + 10));
        assert_eq!(path_width(&[row], 40), PATH_WIDTH_MIN);
    }
}
