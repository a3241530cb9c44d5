//! `steno redact`: copies a transcript with its secrets masked, or cleans a session wherever steno keeps it. The library finds
//! secrets; this file opens, writes and reports.

mod everywhere;

use std::io::Write;
use std::path::PathBuf;

use stenograph_store::Passes;
use stenograph_store::redaction::redact_into;

use crate::error::{CommandError, ExitStatus};
use crate::input;
use crate::output::{Output, harmless_json};
use crate::output_file::OutputFile;
use crate::redaction::{self, Redaction};
use crate::store::SessionArgs;

/// Copy a transcript with secrets and personal data masked
///
/// Finds API keys, tokens, passwords, private keys and connection strings by the rules of gitleaks and by rules of its own, and masks
/// them with home folders, user names and e-mail addresses. It looks into escaped strings, nested JSON and base64. Everything else
/// stays byte for byte, so ids, calls and results still fit together. The same secret gets the same mask everywhere:
/// [redacted:github-pat:7f3a2c19]. Images are not checked.
///
/// No tool finds every secret. Read the result before you publish it, and replace credentials that have leaked.
///
/// --everywhere cleans a session in place: its files, their journals and undo files, all archived versions and the index. That cannot
/// be undone. Run it again if it was interrupted. Settings: steno config set Redact.Patterns, Redact.Allow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno redact session.jsonl -o shared.jsonl
  steno redact latest --dry-run                what would be masked
  steno redact latest --dry-run --json
  steno redact 0198f2c4 --everywhere           clean the session on this machine
  steno export latest --to markdown --redact -o session.md

Exit codes: 0 success, 1 nothing to mask (--dry-run), 2 error")]
pub struct Options {
    /// File or session to redact; - is standard input
    #[arg(value_name = "FILE|SESSION", add = crate::completion::transcript())]
    input: PathBuf,
    #[command(flatten)]
    place: SessionArgs,
    #[command(flatten)]
    output: OutputFile,
    /// Write nothing and print what would be masked
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Clean the session's files, the archive and the index, in place and for good
    #[arg(long, conflicts_with_all = ["output", "from"])]
    everywhere: bool,
    /// Read as this format instead of detecting it (steno formats lists them)
    #[arg(long, value_name = "FORMAT", value_parser = crate::args::format_name(), hide_possible_values = true)]
    from: Option<String>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    if options.everywhere {
        return everywhere::run(options, output);
    }
    let mut input = input::open_named(&options.place, &options.input, options.from.as_deref(), Passes::Many, output)?;
    let mut redaction = Redaction::new(&options.place)?;
    redaction.search(&mut input, &mut |_, _| {})?;
    if options.dry_run {
        let report = redact_into(&mut input.source, input.format, redaction.redactor(), &mut std::io::sink())?;
        match options.json {
            true => output.line(&harmless_json(&report.to_json()))?,
            false => redaction::say(&report, "would be masked", output),
        }
        return Ok(if report.total() > 0 { ExitStatus::Done } else { ExitStatus::No });
    }
    options.output.must_not_fill_terminal(output)?;
    let mut file = options.output.create(&[&input.source])?;
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => output.transcript(),
    };
    let report = redact_into(&mut input.source, input.format, redaction.redactor(), out)?;
    redaction.add(&report);
    let is_file = file.is_some();
    match file {
        Some(file) => file.commit()?,
        None => output.flush()?,
    }
    match (options.json, is_file) {
        (true, true) => output.line(&harmless_json(&report.to_json()))?,
        (true, false) => output.say(&harmless_json(&report.to_json())),
        (false, _) => redaction.report(output),
    }
    Ok(ExitStatus::Done)
}
