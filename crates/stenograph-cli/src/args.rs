//! The arguments of `steno`: the list of its commands, in groups. Each command declares its options in its own file.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    archive, audit, cassette, check, chibi, compact, completions, config, convert, cut, cycod, demo, devflow, diff,
    export, find, formats, index, list, man, mark, r#move, pick, record, recover, redact, replay, resume, serve, show,
    status, tail, trim, undo, usage,
};
use crate::output::ColourChoice;
use crate::store::StoreArgs;

/// Keep, search, convert and record transcripts of AI agents
///
/// A session is one conversation with an agent; a transcript is its file. A transcript consists of records (usually one per line), and
/// steno reads each record as one or more events: messages, tool calls, results. Name a transcript by its path, by a session id or the
/// beginning of one, or as latest; - is standard input. steno detects formats by content and reads gzip and zstd files directly.
#[derive(Debug, Parser)]
#[command(name = "steno", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Args {
    /// Show times in UTC instead of the local time zone
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub utc: bool,
    /// Show times in this time zone (Europe/Berlin)
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "ZONE", value_parser = time_zone, conflicts_with = "utc")]
    pub timezone: Option<jiff::tz::TimeZone>,
    /// When to use color: auto, always or never
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub color: ColourChoice,
    /// Print directly instead of through a pager
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub no_pager: bool,
    #[command(flatten)]
    pub place: StoreArgs,
    /// The command to run.
    #[command(subcommand)]
    pub command: Option<Verb>,
}

/// The heading of the options that every command takes.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  steno demo                       create a sample conversation and a short tour
  steno index                      find, keep and index all transcripts
  steno find 'flaky test'          find the session that mentions it
  steno show latest                read the newest session
  steno usage --by model           show tokens and cost per model

Exit codes: 0 success, 1 nothing found or notes reported, 2 error";

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub enum Verb {
    List(list::Options),
    Find(find::Options),
    Show(show::Options),
    Tail(tail::Options),
    Status(status::Options),
    Audit(audit::Options),
    Diff(diff::Options),
    Usage(usage::Options),
    Replay(replay::Options),
    Resume(resume::Options),
    Pick(pick::Options),
    Export(export::Options),
    Redact(redact::Options),
    Check(check::Options),
    Convert(convert::Options),
    Move(r#move::Options),
    Trim(trim::Options),
    Cut(cut::Options),
    Compact(compact::Options),
    Undo(undo::Options),
    Index(index::Options),
    Archive(archive::Options),
    Mark(mark::Options),
    Record(record::Options),
    Recover(recover::Options),
    Cassette(cassette::Options),
    Serve(serve::Options),
    Chibi(chibi::Options),
    Devflow(devflow::Options),
    Cycod(cycod::Options),
    Formats(formats::Options),
    Config(config::Options),
    Demo(demo::Options),
    Completions(completions::Options),
    Man(man::Options),
}

/// The groups of the help, with their commands.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Look", &["list", "find", "show", "tail", "status", "audit", "diff", "usage", "replay", "resume", "pick"]),
    ("Share", &["export", "redact", "serve"]),
    ("Files", &["check", "convert", "move"]),
    ("Edit", &["trim", "cut", "compact", "undo"]),
    ("Store", &["index", "archive", "mark"]),
    ("Record", &["record", "recover", "cassette"]),
    ("Systems", &["chibi", "devflow", "cycod"]),
    ("Setup", &["formats", "config", "demo", "completions", "man"]),
];

/// The command line with its help in groups.
pub fn command() -> clap::Command {
    let command = Args::command();
    let about = |name: &str| {
        let found = command.get_subcommands().find(|command| command.get_name() == name);
        found.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let mut listing = String::new();
    for (group, names) in GROUPS {
        listing.push_str(&format!("\n{group}:\n"));
        for name in names {
            listing.push_str(&format!("  {name:<12} {}\n", about(name)));
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{listing}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn time_zone(name: &str) -> Result<jiff::tz::TimeZone, String> {
    jiff::tz::TimeZone::get(name)
        .map_err(|_| "unknown time zone: use a name such as Europe/Berlin, America/New_York or UTC".to_owned())
}

/// Parses the name of a format; completions list all of them.
pub fn format_name() -> PossibleValuesParser {
    PossibleValuesParser::new(stenograph::formats::FORMATS.iter().map(|format| format.info().name))
}

/// Parses the name of a format to write. Help and completions list only those that can be written; the others have an error of
/// their own.
pub fn target_format_name() -> PossibleValuesParser {
    let formats = stenograph::formats::FORMATS.iter().map(|format| format.info());
    PossibleValuesParser::new(formats.map(|info| PossibleValue::new(info.name).hide(info.own_only)))
}

/// Parses the name of a line format.
pub fn line_format_name() -> PossibleValuesParser {
    let formats = stenograph::formats::FORMATS.iter().map(|format| format.info());
    PossibleValuesParser::new(formats.filter(|info| info.framing.allows_lines()).map(|info| info.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.sort_unstable();
        let command = Args::command();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn all_help_fits_eighty_columns() {
        let mut commands = vec![command().term_width(80)];
        while let Some(mut command) = commands.pop() {
            command.build();
            for help in [command.render_help(), command.render_long_help()] {
                let help = help.to_string();
                let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
                assert_eq!(long, Vec::<&str>::new(), "{}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned().map(|command| command.term_width(80)));
        }
    }
}
