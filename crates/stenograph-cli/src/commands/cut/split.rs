//! Splits a transcript: names the pieces, and overwrites existing files only with `--force`.

use std::io;
use std::path::{Path, PathBuf};

use stenograph::edit::cut::{Division, Hindrance, SplitBy, SplitPart, divisions, split};
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::trim::{Moment, Trim, Trimming};
use stenograph::edit::{EditSource, Edited, Rewritable};
use stenograph::format::Format;
use stenograph::json::Draft;
use stenograph_store::{Problem, Spool};

use super::Options;
use crate::edit_output::{self, EditedFile};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped, harmless_json};
use crate::tokenizer;

/// The limit of written files.
const PIECES_MAX: usize = 10_000;

pub(super) fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let counter = tokenizer::named(options.tokenizer.as_deref().unwrap_or("bytes"))?;
    let mut file = EditedFile::open(&options.place, &options.input, options.from.as_deref(), &options.target, output)?;
    let (name, format) = (file.name(), file.format());
    let files_like = options.target.output.options(Some(file.source()));
    let is_input = file.source().recognizer();
    let mut tokens = Vec::new();
    let counts = options.split_tokens.is_some();
    let base = options.target.output.path().or(file.path()).map(Path::to_owned);
    let mut original = file.read(&mut |event| tokens.extend(counts.then(|| counter.tokenizer.event(event))))?;
    let by = match (options.split_every, options.split_tokens) {
        (Some(turns), _) => SplitBy::Turns(turns),
        (_, Some(tokens_max)) => SplitBy::Tokens(tokens_max, &tokens),
        (None, None) => SplitBy::Events(options.split_at.iter().map(|event| event.saturating_sub(1)).collect()),
    };
    let mut status = match &by {
        SplitBy::Events(places) => {
            report_moved(&divisions(&original.sketches, places), original.sketches.len(), output)
        }
        SplitBy::Turns(_) | SplitBy::Tokens(..) => ExitStatus::Done,
    };
    let parts = split(&original.sketches, &by);
    let count = parts.parts.len();
    let paths = paths(options, base.as_deref(), format, count)?;
    let mut files = Vec::new();
    let mut reports = Vec::new();
    let mut renamed = false;
    let mut result = Spool::new()?;
    for (part, path) in parts.parts.iter().zip(&paths) {
        // A part of a session must not have the session's id: a program that finds both would take one for a copy of the other.
        let own = if count > 1 { parts.plan_as_session(&original.sketches, part) } else { None };
        renamed |= own.is_some();
        let plan = own.unwrap_or_else(|| parts.plan(&original.sketches, part));
        result.restart()?;
        let edited = edit_output::carry_out(&mut original, &plan, &name, &mut result)?;
        drop(plan);
        reports.push(PieceReport::new(path, part, &edited, format, &mut result, &counter.tokenizer)?);
        if !options.target.dry_run {
            if is_input(path) {
                return Err(stenograph_store::Error::about(path, Problem::OwnInput).into());
            }
            let mut file = files_like.clone().create(path, [])?;
            io::copy(&mut *result.reread()?, &mut file)?;
            files.push(file);
        }
    }
    drop(original);
    // All pieces are complete before the first one appears: a full disk leaves none of them.
    for file in files {
        file.commit()?;
    }
    for report in &reports {
        output.line(&if options.target.json {
            harmless_json(&report.json()).into_owned()
        } else {
            report.sentence()
        })?;
    }
    if reports.iter().any(|report| !report.exact) {
        output.say("warning: the format cannot express the whole split: check the pieces with steno check");
    }
    if renamed {
        output.say("note: each piece is a separate session, with an id derived from the original id");
    }
    let tokens_max = options.split_tokens.unwrap_or(u64::MAX);
    for report in reports.iter().filter(|report| report.tokens > tokens_max) {
        let (path, tokens) = (crate::output::harmless_line(&report.path), grouped(report.tokens));
        let why = "turns and the shared header are never split";
        output.say(&format!("note: {path} has {tokens} tokens, more than {}: {why}", grouped(tokens_max)));
        status = status.max(ExitStatus::No);
    }
    if count < 2 {
        output.say(&format!("note: {name} would be one piece"));
        status = status.max(ExitStatus::No);
    }
    Ok(status)
}

/// Reports requested splits that moved or are not possible. The status is `No` if one is not possible.
fn report_moved(divisions: &[Division], count: usize, output: &mut Output<'_>) -> ExitStatus {
    let mut status = ExitStatus::Done;
    for division in divisions {
        let Some(hindrance) = division.hindrance else { continue };
        let (asked, why) = (division.asked + 1, hindrance.words());
        let events = counted(count as u64, "event");
        output.say(&match (division.at, hindrance) {
            (Some(at), _) => format!("note: {why} before event {asked}: split before event {} instead", at + 1),
            (None, Hindrance::Edge) => format!("note: {why} before event {asked} of {events}: not split there"),
            (None, Hindrance::Call | Hindrance::Response | Hindrance::Record) => {
                format!("note: {why} before event {asked} and at every later event: not split there")
            }
        });
        if division.at.is_none() {
            status = ExitStatus::No;
        }
    }
    status
}

/// The names of the pieces: NAME.1.EXT, NAME.2.EXT and so on, beside the file that `-o` names or beside the input.
fn paths(
    options: &Options,
    base: Option<&Path>,
    format: &dyn Format,
    count: usize,
) -> Result<Vec<PathBuf>, CommandError> {
    let Some(base) = base else {
        return Err(CommandError::new("the pieces need a name").hint("set it with -o NAME.jsonl"));
    };
    if count > PIECES_MAX {
        return Err(CommandError::new(format!("this would write {} files", grouped(count as u64)))
            .hint("allow more turns or tokens per piece"));
    }
    let name = base.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = [".gz", ".zst"].into_iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).to_owned();
    let ending = format!(".{}", format.info().extension);
    let (stem, ending) = match name.strip_suffix(&ending).filter(|stem| !stem.is_empty()) {
        Some(stem) => (stem.to_owned(), ending),
        None => match name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()) {
            Some((stem, end)) => (stem.to_owned(), format!(".{end}")),
            None => (name, String::new()),
        },
    };
    let paths: Vec<PathBuf> =
        (1..=count).map(|number| base.with_file_name(format!("{stem}.{number}{ending}"))).collect();
    match paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) if !options.target.dry_run && !options.target.output.force => {
            Err(CommandError::new(format!("{}: already exists", path.display()))
                .hint("choose another name with -o NAME.jsonl; -o with --force replaces existing files"))
        }
        _ => Ok(paths),
    }
}

/// The report of one piece.
struct PieceReport {
    path: String,
    turns: usize,
    first: usize,
    last: usize,
    size: u64,
    tokens: u64,
    tokenizer: String,
    exact: bool,
    session: Option<String>,
}

impl PieceReport {
    fn new(
        path: &Path,
        part: &SplitPart,
        edited: &Edited,
        format: &dyn Format,
        result: &mut Spool,
        tokenizer: &Tokenizer<'_>,
    ) -> Result<PieceReport, CommandError> {
        let how = Trim { tokenizer: tokenizer.borrowed(), ..Trim::default() };
        let mut counting = Trimming::new(Moment::Load, &how);
        let mut session = None;
        let size = io::copy(&mut *result.reread()?, &mut io::sink())?;
        let left = EditSource::read(format, result, &mut |event| {
            counting.add(event);
            if session.is_none() {
                session = event.session.as_deref().map(str::to_owned);
            }
        })?;
        Ok(PieceReport {
            path: path.display().to_string(),
            turns: part.turns,
            first: part.events.start + 1,
            last: part.events.end,
            size,
            tokens: counting.plan(&left.sketches).report.before,
            tokenizer: tokenizer.name().to_owned(),
            exact: edited.is_exact(),
            session,
        })
    }

    fn sentence(&self) -> String {
        let turns = counted(self.turns as u64, "turn");
        let path = crate::output::harmless_line(&self.path);
        let (tokens, size) = (grouped(self.tokens), grouped(self.size));
        format!("{path}: {turns}, events {} to {}, {tokens} tokens, {size} bytes", self.first, self.last)
    }

    fn json(&self) -> String {
        Draft::new()
            .with("output", &self.path)
            .with("turns", self.turns)
            .with("events", [self.first, self.last])
            .with("tokens", self.tokens)
            .with("tokenizer", &self.tokenizer)
            .with("size", self.size)
            .with("exact", self.exact)
            .with("session", &self.session)
            .render(None)
    }
}
