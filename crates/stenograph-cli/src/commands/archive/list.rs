//! `steno archive list`: lists the copies in the archive.

use stenograph::json::Draft;
use stenograph_store::archive::{CopyInfo, VersionInfo};
use stenograph_store::databases;

use super::{archive, print_warnings};
use crate::clock;
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, TextStyle, grouped, harmless_json, harmless_line, shortened};
use crate::store::{self, StoreArgs};
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
    let rows: Vec<[String; 6]> = copies.iter().map(|copy| cells(copy, now, width)).collect();
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

/// The room for a path beside the widest usual cells of the other columns.
fn path_width(width: usize, gone: &str) -> usize {
    let others = if width < WIDE { 53 } else { 85 };
    if width == usize::MAX { width } else { width.saturating_sub(others + gone.len()).max(12) }
}

fn cells(copy: &CopyInfo, now: i64, width: usize) -> [String; 6] {
    let short = |text: &str| shortened(&harmless_line(text), NAME_LENGTH_MAX).into_owned();
    let name = |text: &str| match width < WIDE {
        true => harmless_line(text).chars().take(PREFIX_LENGTH).collect(),
        false => short(text),
    };
    let gone = if databases::is_there(&copy.path) { "" } else { "[gone] " };
    [
        copy.label.session.as_deref().map_or("-".to_owned(), name),
        short(&copy.label.format),
        table::ago(now - copy.last_ms),
        store::bytes(copy.length),
        grouped(copy.versions.len() as u64),
        format!("{gone}{}", fitted_path(&copy.path, path_width(width, gone))),
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
