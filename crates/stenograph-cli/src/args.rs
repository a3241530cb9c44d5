//! The arguments of `steno`: the list of its commands. Each command declares its options in its own file.

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use crate::output::ColourChoice;

use crate::commands::{
    archive, audit, branches, check, compact, completions, config, context, r#continue, convert, cut, demo, diff,
    export, find, formats, inbox, index, list, man, record, recover, replay, resume, run, show, status, tail, trim,
    usage,
};

/// Keep the record of what AI agents did
///
/// steno reads the transcripts of AI agents without losing a byte, converts them between formats, and says what a conversion
/// could not keep. Formats are recognised by content; gzip and zstd are opened on the way; `-` is standard input or output.
#[derive(Debug, Parser)]
#[command(name = "steno", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Args {
    /// Show times in UTC instead of the local time zone
    #[arg(long, global = true)]
    pub utc: bool,
    /// Whether to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, hide_possible_values = true)]
    pub color: ColourChoice,
    /// Print directly instead of through a pager (PAGER, else less)
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Verb,
}

const EXAMPLES: &str = "\
Examples:
  steno demo                                see what it can do, on a small conversation of its own
  steno check session.jsonl                 is this file whole?
  steno show session.jsonl --last 5         what happened last?
  steno tail -f                             what happens now?
  steno convert in.jsonl --to steno -o out.steno.jsonl

Exit codes: 0 done, 1 no (there are notes, or nothing was found), 2 error";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Formats(formats::Options),
    Check(check::Options),
    Convert(convert::Options),
    Show(show::Options),
    Audit(audit::Options),
    Index(index::Options),
    Find(find::Options),
    List(list::Options),
    Resume(resume::Options),
    Archive(archive::Options),
    Usage(usage::Options),
    Replay(replay::Options),
    Export(export::Options),
    Diff(diff::Options),
    Branches(branches::Options),
    Tail(tail::Options),
    Status(status::Options),
    Record(record::Options),
    Recover(recover::Options),
    Trim(trim::Options),
    Cut(cut::Options),
    Compact(compact::Options),
    Context(context::Options),
    Inbox(inbox::Options),
    Run(run::Options),
    Continue(r#continue::Options),
    Config(config::Options),
    Demo(demo::Options),
    Completions(completions::Options),
    Man(man::Options),
}

/// Parses the name of a format; help and completions list all of them.
pub fn format_name() -> PossibleValuesParser {
    PossibleValuesParser::new(stenograph::formats::FORMATS.iter().map(|format| format.info().name))
}
