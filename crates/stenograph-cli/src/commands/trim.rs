//! `steno trim`: makes a transcript fit a number of tokens, and reports what was removed. The library decides what to remove.

use std::path::PathBuf;

use clap::ValueEnum;
use stenograph::edit::EditSource;
use stenograph::edit::trim::{Account, Depth, Limits, Manner, Moment, Rule, Trim, Trimmed, Trimming};
use stenograph::text::quote;
use stenograph_store::Spool;

use crate::edit_output::{self, EditTarget, EditedFile};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, grouped};
use crate::store::SessionArgs;
use crate::tokenizer;

/// Shorten a transcript to a number of tokens
///
/// The rule `pairs` first replaces large old tool results with `...snip...`, then removes whole old turns, oldest first, until
/// the target is reached. If that is not enough, it replaces tool results of the newest turn, unless --keep-newest is given. It
/// never separates a call from its result, and never changes system prompts or the newest question. The rule `cycod` works like
/// CycoD itself, with its three limits.
///
/// Tokens are those of the conversation as the model would receive it, counted with --tokenizer; steno usage sums up the tokens
/// of all model calls instead. Everything else is copied byte for byte; records that repeat removed content are removed too.
/// steno reports the changes on standard error; --dry-run and --json list every event.
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
    /// Read as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name())]
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
    let mut subject =
        EditedFile::open(&options.place, &options.input, options.from.as_deref(), &options.target, output)?;
    let rule = match options.rule {
        RuleName::Pairs => Rule::Pairs,
        RuleName::Cycod => Rule::Cycod,
    };
    let depth = if options.keep_newest { Depth::OldTurns } else { Depth::NewestTurn };
    let (name, format) = (subject.name(), subject.format());
    let how = Trim { rule, limits, depth, tokenizer: counter.tokenizer.borrowed() };
    let mut trimming = Trimming::new(Moment::Load, &how);
    let mut original = subject.read(&mut |event| trimming.add(event))?;
    let exact = counter.is_exact(original.outline.model.as_deref());
    let Trimmed { plan, account } = trimming.plan(&original.sketches);
    let mut result = Spool::new()?;
    let edited = edit_output::carry_out(&mut original, &plan, &name, &mut result)?;
    drop((original, plan));
    // Counts the result itself instead of computing the difference.
    let uncut = Trim { limits: Limits::NONE, ..how };
    let mut counting = Trimming::new(Moment::Load, &uncut);
    let left = EditSource::read(format, &mut result, &mut |event| counting.add(event))?.sketches;
    let account = Account { after: counting.plan(&left).account.before, ..account };
    drop(left);
    let written = options.target.write(&mut subject, &mut result, "trim", output)?;
    let told = TrimReport { options, name, format: format.info().name, counted: uncut.tokenizer.name(), exact };
    if options.target.json {
        let fields = edit_output::json_fields(&edited, &written);
        options.target.report(&told.json(&account, &fields), output)?;
    } else {
        told.people(&account, output)?;
        edit_output::report_differences(&edited, &written, output);
    }
    Ok(if account.is_reached() { ExitStatus::Done } else { ExitStatus::No })
}

fn limits(options: &Options) -> Result<Limits, CommandError> {
    let stated = [options.max_tokens, options.max_prompt_tokens, options.max_tool_tokens];
    let usual = match options.rule {
        RuleName::Cycod if options.tokenizer != "bytes" => {
            return Err(
                CommandError::new("the rule cycod has its own tokenizer").hint("omit --tokenizer, or use --rule pairs")
            );
        }
        RuleName::Cycod if options.keep_newest => {
            let told = CommandError::new("the rule cycod does not support --keep-newest");
            return Err(told.hint("omit it, or use --rule pairs"));
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

/// The report of a trim.
struct TrimReport<'a> {
    options: &'a Options,
    name: String,
    format: &'static str,
    counted: &'a str,
    exact: bool,
}

impl TrimReport<'_> {
    /// The name of the tokenizer, and whether its count is exact.
    fn tokenizer_note(&self) -> String {
        match (self.options.rule, self.exact) {
            (RuleName::Cycod, _) => "bytes/4 as CycoD counts, an estimate".to_owned(),
            (RuleName::Pairs, true) => format!("{}, exact for the texts", self.counted),
            (RuleName::Pairs, false) => format!("{}, an estimate", self.counted),
        }
    }

    fn people(&self, account: &Account, output: &mut Output<'_>) -> Result<(), CommandError> {
        if self.options.target.dry_run {
            for went in &account.went {
                let line = went.line.map_or(String::new(), |line| format!(" (line {line})"));
                let (event, kind, how) = (went.event + 1, went.kind.name(), went.how.name());
                output.line(&format!("event {event}{line}: {kind} {how}, {}", counted(went.tokens, "token")))?;
            }
        }
        let (before, after) = (counted(account.before, "token"), grouped(account.after));
        let counts = self.tokenizer_note();
        if account.went.is_empty() {
            let why = if account.is_reached() { "already short enough" } else { "nothing can be removed" };
            output.say(&format!("{}: {before} ({counts}); {why}", self.name));
        } else {
            output.say(&format!("{}: {before}, {after} after trimming ({counts})", self.name));
        }
        for (how, said) in [
            (Manner::Cut, "cut"),
            (Manner::Snipped, "replaced by ...snip..."),
            (Manner::Removed, "removed with whole turns"),
        ] {
            let went = account.went.iter().filter(|went| went.how == how);
            let (count, tokens) = went.fold((0, 0), |(count, tokens), went| (count + 1, tokens + went.tokens));
            if count > 0 {
                output.say(&format!("  {} {said}: {}", counted(count, "event"), counted(tokens, "token")));
            }
        }
        if !account.is_reached() {
            output.say(&format!("this rule cannot reach the target of {} tokens", grouped(account.target)));
            match (self.options.rule, self.options.keep_newest) {
                (RuleName::Cycod, _) => output.say("hint: --rule pairs also removes whole old turns"),
                (RuleName::Pairs, true) => {
                    output.say("hint: without --keep-newest, tool results of the newest turn are shortened too");
                }
                (RuleName::Pairs, false) => output.say("only system prompts and the newest turn are left"),
            }
        }
        Ok(())
    }

    fn json(&self, account: &Account, fields: &str) -> String {
        let rule = match self.options.rule {
            RuleName::Pairs => "pairs",
            RuleName::Cycod => "cycod",
        };
        let went: Vec<String> = account
            .went
            .iter()
            .map(|went| {
                let line = went.line.map_or(String::new(), |line| format!(",\"line\":{line}"));
                let (kind, how) = (quote(went.kind.name()), quote(went.how.name()));
                format!(
                    "{{\"event\":{}{line},\"kind\":{kind},\"how\":{how},\"tokens\":{}}}",
                    went.event + 1,
                    went.tokens
                )
            })
            .collect();
        let (file, format) = (quote(&self.name), quote(self.format));
        format!(
            "{{\"file\":{file},\"format\":{format},\"rule\":{},\"tokenizer\":{},\"estimate\":{},\"target\":{},\
             \"before\":{},\"after\":{},\"reached\":{},\"went\":[{}],{fields}}}",
            quote(rule),
            quote(self.counted),
            !self.exact,
            account.target,
            account.before,
            account.after,
            account.is_reached(),
            went.join(",")
        )
    }
}
