//! `steno compact`: replaces the old part of a conversation with a summary. The library plans the edit of a file, the store the
//! edit of a context. `compact/summary.rs` and `compact/summariser.rs` obtain the summary; `compact/report.rs` reports the
//! result.

mod report;
mod summariser;
mod summary;

use std::path::{Path, PathBuf};

use stenograph::edit::Sketched;
use stenograph::edit::compact::{self, Compacting, Keep, Stamp, can_store_summary};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::model::Event;
use stenograph_store::layouts::chibi::Context;
use stenograph_store::log::Durability;
use stenograph_store::systems::chibi::Window;
use stenograph_store::undo::EditCommand;
use stenograph_store::{Spool, random_id};

use super::record::{environment, print_warning};
use crate::context::{ContextName, missing};
use crate::edit_output::{self, EditTarget, EditedFile};
use crate::edit_report::EditResult;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;
use crate::store::SessionArgs;
use crate::tokenizer;
use report::CompactionReport;
use summary::{EventsToSummarise, SummaryArgs};

/// Replace the old part of a conversation with a summary
///
/// Keeps the newest turns and replaces everything before them with a summary, so that the agent can continue from there. System
/// prompts stay, and a call is never separated from its result. The summary comes from --summary, or from the command in
/// --summarise, which reads the old part, including an earlier summary, and prints the new one. The format must have a record
/// for summaries (steno, chibi, claude-code and codex have one).
///
/// --in-place changes the file and keeps an undo file beside it for steno undo. --context changes a context of Chibi in place:
/// the old entries move to its archive with their ids, and the messages are appended to transcript.md unless a full transcript
/// (transcript/ or transcript.jsonl) exists.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno compact session.jsonl --summary 'We fixed the parser.' --in-place
  steno compact session.jsonl --keep-tokens 20000 --summarise my-model -o out.jsonl
  steno compact session.jsonl --keep 2 --dry-run
  steno compact --context research --drop-percent 50 --summary @summary.txt
  steno undo session.jsonl                         restore the file

Exit codes: 0 success, 1 nothing to compact, or no such context, 2 error")]
pub struct Options {
    /// A file, or the folder of a context; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript(), required_unless_present = "context", conflicts_with = "context")]
    input: Option<PathBuf>,
    #[command(flatten)]
    named: ContextName,
    /// Only sessions of this project; . is the project of this folder
    #[arg(long, value_name = "NAME", conflicts_with = "context", add = crate::completion::project())]
    project: Option<String>,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Keep the newest N turns [default: 4]
    #[arg(long, value_name = "N", conflicts_with_all = ["keep_tokens", "drop_percent"])]
    keep: Option<usize>,
    /// Keep at most N tokens, not counting system prompts
    #[arg(long, value_name = "N", conflicts_with = "drop_percent")]
    keep_tokens: Option<u64>,
    /// Replace the oldest P percent of the messages
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=100))]
    drop_percent: Option<u8>,
    /// Tokenizer: bytes (four per token), o200k, cl100k, or an OpenAI model
    #[arg(long, value_name = "NAME", default_value = "bytes")]
    tokenizer: String,
    #[command(flatten)]
    summary: SummaryArgs,
    #[command(flatten)]
    target: EditTarget,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match (options.context()?, options.input.as_deref()) {
        (Some(context), _) => compact_context(options, &context, output),
        (None, Some(path)) => compact_file(options, path, output),
        (None, None) => Err(CommandError::new("no file given").hint("name a file, or a context with --context NAME")),
    }
}

impl Options {
    /// The context to compact, if any. A path to `context.jsonl` means the whole context, unless `-o` or `--from` is given.
    fn context(&self) -> Result<Option<Context>, CommandError> {
        let Some(path) = &self.input else { return self.named.context() };
        if path.is_dir() {
            return Ok(Some(Context::at(path)));
        }
        Ok(Context::of_window(path).filter(|_| self.target.output.output.is_none() && self.from.is_none()))
    }

    fn place(&self) -> SessionArgs {
        SessionArgs::new(self.named.root(), self.project.clone())
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

fn compact_file(options: &Options, path: &Path, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let target = &options.target;
    target.check()?;
    let mut file = EditedFile::open(&options.place(), path, options.from.as_deref(), target, output)?;
    let (name, format) = (file.name(), file.format());
    if !can_store_summary(format) {
        return Err(cannot_store_summary(&name, format));
    }
    let tokenizer = tokenizer::named(&options.tokenizer)?.tokenizer;
    let mut report = CompactionReport::new(&name, format.info().name, &tokenizer);
    let mut compacting = Compacting::new(&tokenizer);
    let mut source = file.read(&mut |event| compacting.add(event))?;
    let Some(old) = compacting.old_part(&source.sketches, options.keep()) else {
        return report.nothing(target, output);
    };
    report.add(&source.sketches, &compacting, &old, target);
    drop(compacting);
    if target.dry_run {
        return report.done(None, target, output);
    }
    let mut each = |each: &mut dyn FnMut(&Event<'_>)| source.each_of(&old.summarized, &mut |_, event| each(event));
    let summary = EventsToSummarise { each: &mut each, origin: format.info().name }.make(&options.summary)?;
    let stamp = Stamp { id: random_id(), time: crate::clock::now() };
    let plan =
        compact::plan(&mut source, &old, &summary, &stamp)?.ok_or_else(|| cannot_store_summary(&name, format))?;
    drop(old);
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut source, &plan, &name, &mut result)?;
    drop((source, plan));
    report.summary(&summary, &tokenizer);
    let written = target.write(&mut file, &mut result, EditCommand::Compact, output)?;
    report.done(Some(EditResult::new(&edited, written)), target, output)
}

fn cannot_store_summary(name: &str, format: &dyn Format) -> CommandError {
    let places = FORMATS.iter().filter(|format| can_store_summary(**format)).map(|format| format.info().name);
    let places: Vec<&str> = places.collect();
    let this = format.info().name;
    CommandError::new(format!("{name}: {this} cannot store a summary"))
        .hint(format!("convert it with steno convert to one of: {}", places.join(", ")))
}

fn compact_context(options: &Options, context: &Context, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if options.target.output.output.is_some() || options.from.is_some() {
        return Err(CommandError::new("a context is always compacted in place")
            .hint("omit -o and --from, or name its context.jsonl to write a compacted copy"));
    }
    let target = &EditTarget { in_place: true, ..options.target.clone() };
    let window = lock_window(context)?;
    let tokenizer = tokenizer::named(&options.tokenizer)?.tokenizer;
    let name = context.folder.display().to_string();
    let mut report = CompactionReport::new(&name, window.format(), &tokenizer);
    let Some(choice) = window.choose(options.keep(), &tokenizer) else {
        return report.nothing(target, output);
    };
    let mut compacting = Compacting::new(&tokenizer);
    choice.events.iter().for_each(|event| compacting.add(event));
    report.add(&choice.events.sketches(), &compacting, &choice.old, target);
    if target.dry_run {
        return report.done(None, target, output);
    }
    let mut each = |each: &mut dyn FnMut(&Event<'_>)| {
        choice.old.summarized.iter().filter_map(|number| choice.events.get(*number)).for_each(each);
        Ok(())
    };
    let summary = EventsToSummarise { each: &mut each, origin: window.format() }.make(&options.summary)?;
    let changed = window.compact(&choice, &summary)?;
    changed.warnings.iter().for_each(|warning| print_warning(warning, output));
    report.summary(&summary, &tokenizer);
    report.archived(context.window(), changed.transcript);
    report.done(None, target, output)
}

fn lock_window(context: &Context) -> Result<Window, CommandError> {
    Window::lock(context, &environment(Durability::Always)).map_err(|error| missing(error, &context.folder))
}

/// Undoes the last compaction of a context.
pub fn undo_context(context: &Context, json: bool, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let Some(changed) = lock_window(context)?.undo_compaction()? else {
        if json {
            output.line(&edit_output::nothing_undone(&context.folder))?;
        }
        return Err(CommandError::not_found(format!("{}: no compaction to undo", context.folder.display()))
            .hint("only compactions since the context was last cleared can be undone"));
    };
    changed.warnings.iter().for_each(|warning| print_warning(warning, output));
    report::report_undo(json, context, &changed, output)
}
