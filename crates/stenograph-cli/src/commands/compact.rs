//! `steno compact`: a summary takes the place of the old part of a conversation. Files are edited by the library's plan, contexts
//! by their layout; where the summary comes from is in `compact/summary.rs`, what is said about it in `compact/report.rs`.

mod report;
mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};

use stenograph::edit::compact::{self, Keep, Stamp, aside, has_place};
use stenograph::edit::tokens::Tokenizer;
use stenograph::edit::{Applied, Original, SIZE_MAX, apply};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph_store::layouts::chibi::{BroughtBack, Context, Window};
use stenograph_store::log::Durability;
use stenograph_store::undo::{self, Undone};
use stenograph_store::{NewFile, Passes, random_id};

use super::record::{say, site};
use crate::context::{Named, missing};
use crate::error::{CommandError, Status};
use crate::input::{self, Input};
use crate::output::Output;
use report::Report;
use summary::{Summary, Wanted};

/// Put a summary in the place of the old part of a conversation
///
/// The newest turns are kept as they are, after a marker with the summary, so that the agent goes on from there. System prompts stay, a call is
/// never parted from its result, and the summary before is folded into the new one. The summary is given with --summary, or a command that is
/// given with --summarise reads what goes and prints it.
///
/// A file is changed in place, and what it was is kept beside it: --undo gives it back. In a context of Chibi's the old entries go to its archive
/// with their ids, and what was said is added to transcript.md. Every format that has a record for a summary can be compacted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno compact session.jsonl --summary 'We fixed the parser; the tests pass.'
  steno compact session.jsonl --keep-tokens 20000 --summarise 'my-model --prompt summarise.txt'
  steno compact session.jsonl --keep 2 --dry-run
  steno compact --context research --drop-percent 50 --summary @summary.txt
  steno compact session.jsonl --undo

Exit codes: 0 done, 1 there is nothing to compact or to undo, 2 error")]
pub struct Options {
    /// The file, or the folder of a context; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "context", conflicts_with_all = ["context", "root"])]
    input: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
    /// Read as this format instead of looking at the content
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
    from: Option<String>,
    /// Write to this file, whole or not at all, instead of changing the input
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Keep so many of the newest turns [default: 4]
    #[arg(long, value_name = "N", conflicts_with_all = ["keep_tokens", "drop_percent"])]
    keep: Option<usize>,
    /// Keep at most so many tokens (four bytes are one)
    #[arg(long, value_name = "N", conflicts_with = "drop_percent")]
    keep_tokens: Option<u64>,
    /// Let so many of a hundred messages go, the oldest ones
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=100))]
    drop_percent: Option<u8>,
    #[command(flatten)]
    summary: Wanted,
    /// Bring back what the last compaction put aside
    #[arg(long, conflicts_with_all = ["summary", "summarise", "output", "dry_run", "keep", "keep_tokens", "drop_percent", "from"])]
    undo: bool,
    /// Change nothing, and say what would go
    #[arg(long)]
    dry_run: bool,
    /// Report what was done as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(options: &Options, output: &mut Output<'_>) -> Result<Status, CommandError> {
    match (options.context()?, options.input.as_deref()) {
        (Some(context), _) if options.undo => undo_context(options, &context, output),
        (Some(context), _) => compact_context(options, &context, output),
        (None, Some(path)) if options.undo => undo_file(options, path, output),
        (None, Some(path)) => compact_file(options, path, output),
        (None, None) => {
            Err(CommandError::new("nothing is named").hint("name a file, or a context with --context NAME"))
        }
    }
}

impl Options {
    /// The context that is meant, if one is. The window of a context is compacted with the rest of it, unless it is only read.
    fn context(&self) -> Result<Option<Context>, CommandError> {
        let Some(path) = &self.input else { return self.named.context() };
        if path.is_dir() {
            return Ok(Some(Context::at(path)));
        }
        Ok(Context::of_window(path).filter(|_| self.output.is_none() && self.from.is_none()))
    }

    fn keep(&self) -> Keep {
        match (self.keep, self.keep_tokens, self.drop_percent) {
            (Some(turns), _, _) => Keep::Turns(turns),
            (_, Some(tokens), _) => Keep::Tokens(tokens),
            (_, _, Some(percent)) => Keep::Dropping(percent),
            (None, None, None) => Keep::default(),
        }
    }
}

fn compact_file(options: &Options, path: &Path, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let mut input = input::open(path, options.from.as_deref(), Passes::Many)?;
    let bytes = input.source.read_whole(SIZE_MAX as u64)?;
    let name = input.name();
    if !has_place(input.format) {
        return Err(no_place(&name, input.format));
    }
    let target = Target::of(options, &input, bytes.len())?;
    let original = Original::read(input.format, &bytes)?;
    let tokenizer = Tokenizer::default();
    let mut report = Report::new(&name);
    let Some(old) = aside(&original.events, options.keep(), &tokenizer) else {
        return report.nothing(options, target.reported(), output);
    };
    report.add(&original.events, &old, &tokenizer);
    if options.dry_run {
        return report.done(options, target.reported(), output);
    }
    let told = old.told.iter().filter_map(|number| original.events.get(*number)).cloned().collect();
    let summary = Summary { events: told, origin: input.format.info().name }.make(&options.summary)?;
    let stamp = Stamp { id: random_id(), time: crate::clock::now() };
    let plan = compact::plan(&original, &old, &summary, &stamp).ok_or_else(|| no_place(&name, input.format))?;
    let applied = apply(&original, &plan)?;
    report.summary(&summary, &tokenizer);
    report.differs(&applied);
    write(&target, &input, &bytes, &applied, &mut report, output)?;
    report.done(options, target.reported(), output)
}

/// Where the output goes.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// To standard output.
    Standard,
    /// Into another file.
    File(PathBuf),
    /// Into the input itself.
    InPlace(PathBuf),
}

impl Target {
    fn of(options: &Options, input: &Input, length: usize) -> Result<Target, CommandError> {
        let standard = Path::new("-");
        let path = options.input.as_deref().unwrap_or(standard);
        match options.output.as_deref() {
            Some(output) if output != standard => Ok(Target::File(output.to_owned())),
            None if path != standard && (options.dry_run || input.source.length() == Some(length as u64)) => {
                Ok(Target::InPlace(path.to_owned()))
            }
            None if path != standard => {
                Err(CommandError::new(format!("{}: a compressed file is not changed in place", path.display()))
                    .hint("write to another file with -o OUT"))
            }
            Some(_) | None if input.source.is_standard_output() => {
                Err(CommandError::new("standard output is the input itself").hint("write to another file"))
            }
            Some(_) | None => Ok(Target::Standard),
        }
    }

    fn reported(&self) -> report::Where {
        match self {
            Target::Standard => report::Where::Talk,
            Target::File(_) | Target::InPlace(_) => report::Where::Data,
        }
    }
}

fn write(
    target: &Target,
    input: &Input,
    before: &[u8],
    applied: &Applied,
    report: &mut Report,
    output: &mut Output<'_>,
) -> Result<(), CommandError> {
    match target {
        Target::Standard => Ok(output.data().write_all(&applied.bytes)?),
        Target::File(path) => {
            let mut file = NewFile::create(path, Some(&input.source))?;
            file.write_all(&applied.bytes)?;
            file.commit()?;
            report.output = Some(path.clone());
            Ok(())
        }
        Target::InPlace(path) => {
            report.undo = Some(undo::replace(path, before, &applied.bytes, "compact").map_err(|error| {
                match error.problem {
                    stenograph_store::Problem::Changed => {
                        CommandError::new(format!("{}: was written to meanwhile; nothing was changed", path.display()))
                            .hint("wait until the agent is done, and do it again")
                    }
                    _ => error.into(),
                }
            })?);
            report.output = Some(path.clone());
            Ok(())
        }
    }
}

fn no_place(name: &str, format: &dyn Format) -> CommandError {
    let places = FORMATS.iter().filter(|format| has_place(**format)).map(|format| format.info().name);
    let places: Vec<&str> = places.collect();
    let this = format.info().name;
    CommandError::new(format!("{name}: {this} has no place for a summary"))
        .hint(format!("these have: {}; steno convert makes one of them", places.join(", ")))
}

fn compact_context(options: &Options, context: &Context, output: &mut Output<'_>) -> Result<Status, CommandError> {
    if options.output.is_some() || options.from.is_some() {
        return Err(CommandError::new("a context is compacted where it is")
            .hint("without -o and --from, or name its context.jsonl to write a compacted copy of that"));
    }
    let window = hold(context)?;
    let tokenizer = Tokenizer::default();
    let mut report = Report::new(&context.folder.display().to_string());
    let Some(choice) = window.choose(options.keep(), &tokenizer) else {
        return report.nothing(options, report::Where::Data, output);
    };
    report.add(&choice.events, &choice.aside, &tokenizer);
    if options.dry_run {
        return report.done(options, report::Where::Data, output);
    }
    let told = choice.aside.told.iter().filter_map(|number| choice.events.get(*number)).cloned().collect();
    let summary = Summary { events: told, origin: choice.origin() }.make(&options.summary)?;
    let changed = window.compact(&choice, &summary)?;
    changed.remarks.iter().for_each(|remark| say(remark, output));
    report.summary(&summary, &tokenizer);
    report.output = Some(context.window());
    report.archive = Some(changed.transcript);
    report.undo = undo::newest_path(&context.window());
    report.done(options, report::Where::Data, output)
}

fn hold(context: &Context) -> Result<Window, CommandError> {
    Window::hold(context, &site(Durability::Always)).map_err(|error| missing(error, &context.folder))
}

fn undo_file(options: &Options, path: &Path, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let undone = undo::undo(path)?;
    report::undone(options, path, &undone, output)
}

fn undo_context(options: &Options, context: &Context, output: &mut Output<'_>) -> Result<Status, CommandError> {
    let path = context.window();
    match hold(context)?.bring_back()? {
        BroughtBack::Not(undone) => report::undone(options, &path, &undone, output),
        BroughtBack::Done(changed) => {
            changed.remarks.iter().for_each(|remark| say(remark, output));
            report::brought_back(options, &path, &changed, output)
        }
    }
}

/// Whether an undo went well.
fn status(undone: &Undone) -> Status {
    match undone {
        Undone::Restored { .. } | Undone::AsItWas => Status::Done,
        Undone::Nothing => Status::No,
        Undone::Changed | Undone::Damaged { .. } => Status::Error,
    }
}
