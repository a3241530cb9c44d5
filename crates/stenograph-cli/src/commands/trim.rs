//! `steno trim`: makes a transcript fit a number of tokens, and reports what was removed. The library decides what to remove.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use stenograph::edit::EditSource;
use stenograph::edit::trim::{Depth, Limits, Moment, Rule, Trim, TrimAction, TrimReport, Trimmed, Trimming};
use stenograph_store::Spool;
use stenograph_store::undo::EditCommand;

use crate::edit_output::{self, EditTarget, EditedFile};
use crate::edit_report::{EditReport, EditResult, ReportCounts, ReportedEvent, signed_tokens};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped};
use crate::store::SessionArgs;
use crate::terminal::fitted_in_message;
use crate::tokenizer;

/// Shorten a transcript to a number of tokens
///
/// The rule `pairs` first replaces large old tool results with `...snip...`, then removes whole old turns, oldest first, until
/// the target is reached. If that is not enough, it replaces tool results of the newest turn, unless --keep-newest is given. It
/// never separates a call from its result, and never changes system prompts or the newest question. The rule `cycod` works like
/// CycoD itself, with its three limits.
///
/// --tokenizer counts each message once; steno usage adds up the tokens of all model calls. Everything else is copied byte for
/// byte; records that repeat removed content are removed too. steno reports the changes on standard error; --dry-run and --json
/// list every event.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno trim session.jsonl --max-tokens 100000 -o short.jsonl
  steno trim session.jsonl --max-tokens 100000 --dry-run
  steno trim session.jsonl --max-tokens 100000 --in-place
  steno trim session.jsonl --max-tokens 100000 --tokenizer gpt-4o
  steno trim chat.jsonl --rule cycod --max-tool-tokens 2000 -o short.jsonl

Exit codes: 0 success, 1 the target cannot be reached, 2 error")]
pub struct Options {
    /// File to trim; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    input: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    /// Token limit of the conversation; 0 means no limit [default for cycod: 160000]
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Trimming rule
    #[arg(long, value_name = "RULE", default_value = "pairs")]
    rule: RuleName,
    /// Token limit of a user message; longer ones are cut [default for cycod: 50000]
    #[arg(long, value_name = "N")]
    max_prompt_tokens: Option<u64>,
    /// Token limit of a tool result; longer ones are cut [default for cycod: 50000]
    #[arg(long, value_name = "N")]
    max_tool_tokens: Option<u64>,
    /// Tokenizer: bytes (four per token), o200k, cl100k, or an OpenAI model
    #[arg(long, value_name = "NAME", default_value = "bytes")]
    tokenizer: String,
    /// Never change the newest turn (by default, the rule pairs replaces its tool results as a last resort)
    #[arg(long)]
    keep_newest: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    #[command(flatten)]
    target: EditTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RuleName {
    /// Reach the target whenever possible
    Pairs,
    /// Trim exactly as CycoD does
    Cycod,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    options.target.check()?;
    let limits = limits(options)?;
    let counter = tokenizer::named(&options.tokenizer)?;
    let mut file = EditedFile::open(&options.place, &options.input, options.from.as_deref(), &options.target, output)?;
    let rule = match options.rule {
        RuleName::Pairs => Rule::Pairs,
        RuleName::Cycod => Rule::Cycod,
    };
    let depth = if options.keep_newest { Depth::OldTurns } else { Depth::NewestTurn };
    let (name, format) = (file.name(), file.format());
    let how = Trim { rule, limits, depth, tokenizer: counter.tokenizer.borrowed() };
    let mut trimming = Trimming::new(Moment::Load, &how);
    let mut original = file.read(&mut |event| trimming.add(event))?;
    let is_exact = counter.is_exact(original.outline.header.model.as_deref());
    let Trimmed { plan, report } = trimming.plan(&original.sketches);
    let removed = report
        .trimmed
        .iter()
        .filter_map(|event| ReportedEvent::of(&original.sketches, event.event, event.action.name(), Some(event.saved)));
    let (removed, count) = (removed.collect(), original.sketches.len() as u64);
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut original, &plan, &name, &mut result)?;
    drop((original, plan));
    // ReportCounts the result itself instead of computing the difference.
    let unlimited = Trim { limits: Limits::NONE, ..how };
    let mut counting = Trimming::new(Moment::Load, &unlimited);
    let sketches = EditSource::read(format, &mut result, &mut |event| counting.add(event))?.sketches;
    let report = TrimReport { after: counting.plan(&sketches).report.before, ..report };
    drop(sketches);
    let written = options.target.write(&mut file, &mut result, EditCommand::Trim, output)?;
    let removed_count = report.trimmed.iter().filter(|event| event.action == TrimAction::Removed).count() as u64;
    let details = Details {
        rule: options.rule.name(),
        tokenizer: unlimited.tokenizer.name(),
        estimate: !is_exact,
        target: report.target,
        before: report.before,
        after: report.after,
        reached: report.is_reached(),
        events: ReportCounts { removed: removed_count, kept: count - removed_count },
    };
    let sentences = sentences(options, &fitted_in_message(&name), &details, &report);
    let (dry_run, result) = (options.target.dry_run, Some(EditResult::new(&edited, written)));
    EditReport { file: &name, format: format.info().name, dry_run, details, removed, result }.print(
        &options.target,
        &sentences,
        output,
    )?;
    Ok(if report.is_reached() { ExitStatus::Done } else { ExitStatus::No })
}

fn limits(options: &Options) -> Result<Limits, CommandError> {
    let stated = [options.max_tokens, options.max_prompt_tokens, options.max_tool_tokens];
    let usual =
        match options.rule {
            RuleName::Cycod if options.tokenizer != "bytes" => {
                return Err(CommandError::new("the rule cycod has its own tokenizer")
                    .hint("omit --tokenizer, or use --rule pairs"));
            }
            RuleName::Cycod if options.keep_newest => {
                return Err(CommandError::new("the rule cycod does not support --keep-newest")
                    .hint("omit it, or use --rule pairs"));
            }
            RuleName::Cycod => Limits::CYCOD,
            RuleName::Pairs if stated.iter().all(Option::is_none) => {
                return Err(CommandError::new("no token limit given").hint("set one, such as --max-tokens 100000"));
            }
            RuleName::Pairs => Limits::NONE,
        };
    Ok(Limits {
        chat: options.max_tokens.unwrap_or(usual.chat),
        prompt: options.max_prompt_tokens.unwrap_or(usual.prompt),
        tool: options.max_tool_tokens.unwrap_or(usual.tool),
    })
}

/// The fields that only trims report.
#[derive(Serialize)]
struct Details<'a> {
    rule: &'static str,
    tokenizer: &'a str,
    /// Whether the token counts are estimates.
    estimate: bool,
    target: u64,
    before: u64,
    after: u64,
    /// Whether the result fits the target.
    reached: bool,
    events: ReportCounts,
}

impl RuleName {
    fn name(self) -> &'static str {
        match self {
            RuleName::Pairs => "pairs",
            RuleName::Cycod => "cycod",
        }
    }
}

fn sentences(options: &Options, name: &str, details: &Details<'_>, report: &TrimReport) -> Vec<String> {
    let (before, after) = (counted(report.before, "token"), grouped(report.after));
    let tokenizer = match (options.rule, details.estimate) {
        (RuleName::Cycod, _) => "bytes/4 as CycoD counts, an estimate".to_owned(),
        (RuleName::Pairs, false) => format!("{}, exact for the texts", details.tokenizer),
        (RuleName::Pairs, true) => format!("{}, an estimate", details.tokenizer),
    };
    let mut sentences = vec![match (report.trimmed.is_empty(), report.is_reached()) {
        (true, true) => format!("{name}: {before} ({tokenizer}); already short enough"),
        (true, false) => format!("{name}: {before} ({tokenizer}); nothing can be removed"),
        (false, _) => format!("{name}: {before}, {after} after trimming ({tokenizer})"),
    }];
    for (action, words) in [
        (TrimAction::Cut, "cut"),
        (TrimAction::Snipped, "replaced by ...snip..."),
        (TrimAction::Removed, "removed with whole turns"),
    ] {
        let events = report.trimmed.iter().filter(|event| event.action == action);
        let (count, saved) = events.fold((0, 0), |(count, saved), event| (count + 1, saved + event.saved));
        if count > 0 {
            sentences.push(format!("  {} {words}: {}", counted(count, "event"), signed_tokens(saved)));
        }
    }
    if !report.is_reached() {
        let rest = format!("cannot go below {}", counted(report.after, "token"));
        sentences.push(match (options.rule, options.keep_newest) {
            (RuleName::Pairs, false) => format!("{rest}: system prompts and the newest turn are never removed"),
            _ => rest,
        });
        sentences.extend(match (options.rule, options.keep_newest) {
            (RuleName::Cycod, _) => Some("hint: --rule pairs also removes whole old turns".to_owned()),
            (RuleName::Pairs, true) => {
                Some("hint: without --keep-newest, tool results of the newest turn are shortened too".to_owned())
            }
            (RuleName::Pairs, false) => None,
        });
    }
    sentences
}
