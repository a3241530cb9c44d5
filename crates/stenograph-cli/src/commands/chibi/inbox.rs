//! `steno chibi inbox`: messages between contexts. A message is removed only after it is printed, so that a crash loses nothing.

use std::io::Read;
use std::path::PathBuf;

use clap::Subcommand;
use stenograph::{read, wire};
use stenograph_store::files::Disk;
use stenograph_store::layouts::chibi::{Context, EntryStamp};
use stenograph_store::systems::chibi::inbox::{self, INBOX_FORMAT, InboxBatch, InboxMessage};

use crate::commands::record::print_warning;
use crate::context::{ContextArgs, ContextName};
use crate::error::{CommandError, ExitStatus};
use crate::output::{Output, counted, harmless_json, harmless_line};

/// Send messages to a context, or read its inbox
///
/// The contexts of Chibi send each other messages in inbox.jsonl. take prints them as Chibi puts them before a prompt, and removes them.
/// Each message reaches exactly one reader; after a crash, at least one. Lines that are not messages move to inbox.unread.jsonl.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  steno chibi inbox send --context research --from main 'Look up qubits'
  git log -1 | steno chibi inbox send --context review --from main -
  steno chibi inbox peek --context research
  steno chibi inbox take --context research

Exit codes: 0 success, 1 no messages, or no such context, 2 error"
)]
pub struct Options {
    /// The action
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Send(Send),
    /// Print the messages and keep them
    Peek(ReadArgs),
    /// Print the messages and remove them
    Take(ReadArgs),
}

/// Send a message to a context
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "steno chibi inbox send [OPTIONS] --context <NAME> <TEXT>\n       steno chibi inbox send [OPTIONS] <FOLDER> <TEXT>",
    after_help = "\
Examples:
  steno chibi inbox send --context research --from main 'Look up qubits'
  steno chibi inbox send contexts/research --from main @question.txt"
)]
struct Send {
    #[command(flatten)]
    named: ContextName,
    /// Folder of the context (unless --context is given) and the message; @FILE reads it from a file, - from standard input
    #[arg(value_name = "FOLDER> <TEXT", required = true)]
    words: Vec<String>,
    /// Sender of the message
    #[arg(long, value_name = "NAME", default_value = "user")]
    from: String,
    /// Print the sent message as JSON
    #[arg(long)]
    json: bool,
}

/// Print the messages of a context
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno chibi inbox peek --context research --json     keeps the messages
  steno chibi inbox take --context research            removes the messages")]
struct ReadArgs {
    #[command(flatten)]
    which: ContextArgs,
    /// Print one JSON event per message
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Action::Send(send) => send.run(output),
        Action::Peek(args) => args.peek(output),
        Action::Take(args) => args.take(output),
    }
}

impl Send {
    fn run(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let (context, given) = self.recipient_and_text()?;
        let new = !context.exists();
        let text = text(given)?;
        let stamp = EntryStamp::random(crate::clock::seconds());
        let warnings = inbox::send(&Disk, &context.folder, (&self.from, &context.name), &text, &stamp)?;
        warnings.iter().for_each(|warning| print_warning(warning, output));
        if new {
            output.say(&format!("note: {}: created the context", context.folder.display()));
        }
        if self.json {
            let line = inbox::line((&self.from, &context.name), &text, &stamp);
            events(&[line], output)?;
        }
        Ok(ExitStatus::Done)
    }
}

impl Send {
    fn recipient_and_text(&self) -> Result<(Context, &str), CommandError> {
        let wrong = |what: &str| {
            let hint = "steno chibi inbox send --context NAME 'TEXT', or steno chibi inbox send FOLDER 'TEXT'";
            CommandError::new(what).hint(hint)
        };
        match (self.named.context()?, self.words.as_slice()) {
            (Some(context), [text]) => Ok((context, text)),
            (None, [folder, text]) => Ok((Context::at(&PathBuf::from(folder)), text)),
            (None, _) if self.words.len() < 2 => Err(wrong("no context given")),
            (Some(_), [_, ..]) => Err(wrong("more than one message given")),
            (_, _) => Err(wrong("too many arguments: expected a folder and a message")),
        }
    }
}

/// The size limit of a message.
const TEXT_SIZE_MAX: u64 = 16 << 20;

fn text(given: &str) -> Result<String, CommandError> {
    let not_text = |name: &str| CommandError::new(format!("{name}: not UTF-8 text")).hint("send text only");
    let (name, bytes) = match given.strip_prefix('@') {
        Some(file) => {
            let mut source = stenograph_store::Source::open(&PathBuf::from(file), stenograph_store::Passes::Once)?;
            (file, source.read_whole(TEXT_SIZE_MAX)?)
        }
        None if given == "-" => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().take(TEXT_SIZE_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|error| CommandError::new(format!("cannot read standard input: {error}")))?;
            if bytes.len() as u64 > TEXT_SIZE_MAX {
                return Err(CommandError::new("standard input: too large for a message")
                    .hint("save it to a file and send the file name"));
            }
            ("standard input", bytes)
        }
        None => return Ok(given.to_owned()),
    };
    let text = String::from_utf8(bytes).map_err(|_| not_text(name))?;
    // The final newline of a program's output is not part of the message.
    Ok(text.strip_suffix('\n').map_or(text.clone(), str::to_owned))
}

impl ReadArgs {
    fn context(&self) -> Result<Context, CommandError> {
        let context = self.which.context()?;
        context.must_exist().map_err(|error| crate::context::missing(error, &context.folder))?;
        Ok(context)
    }

    fn peek(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let context = self.context()?;
        let mail = inbox::peek(&Disk, &context.folder)?;
        if !mail.messages.is_empty() {
            self.print(&mail.messages, output)?;
        }
        self.report(&mail, &context, output)
    }

    fn take(&self, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
        let context = self.context()?;
        let taken = inbox::take::<CommandError>(&Disk, &context.folder, |mail| {
            self.print(&mail.messages, output)?;
            // If the reader has gone away, it has not received them.
            output.flush()
        });
        let mail = taken.map_err(|error| match error {
            CommandError::BrokenPipe => CommandError::new("the output was closed; the messages stay in the inbox")
                .hint("run steno chibi inbox take again"),
            error => error,
        })?;
        self.report(&mail, &context, output)
    }

    fn print(&self, messages: &[InboxMessage], output: &mut Output<'_>) -> Result<(), CommandError> {
        if self.json {
            let lines: Vec<String> = messages.iter().map(|message| message.line.clone()).collect();
            return events(&lines, output);
        }
        let block = inbox::block(messages);
        Ok(output.transcript().write_all(block.as_bytes())?)
    }

    fn report(
        &self,
        mail: &InboxBatch,
        context: &Context,
        output: &mut Output<'_>,
    ) -> Result<ExitStatus, CommandError> {
        mail.warnings.iter().for_each(|warning| print_warning(warning, output));
        if mail.more {
            let many = counted(mail.messages.len() as u64, "message");
            output.say(&format!("note: printed {many}; more are waiting, so run it again"));
        }
        if mail.messages.is_empty() {
            output.say(&format!("no messages for {}", harmless_line(&context.name)));
            return Ok(ExitStatus::No);
        }
        Ok(ExitStatus::Done)
    }
}

/// Prints messages as events.
fn events(lines: &[String], output: &mut Output<'_>) -> Result<(), CommandError> {
    for line in lines {
        for event in read::all(INBOX_FORMAT, line.as_bytes()).events {
            output.line(&harmless_json(&wire::event(&event)))?;
        }
    }
    Ok(())
}
