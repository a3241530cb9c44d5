//! The commands, one file each: its options and its implementation.

pub mod archive;
pub mod audit;
pub mod cassette;
pub mod check;
pub mod chibi;
pub mod compact;
pub mod completions;
pub mod config;
pub mod convert;
pub mod cut;
pub mod cycod;
pub mod demo;
pub mod devflow;
pub mod diff;
pub mod export;
pub mod find;
pub mod formats;
pub mod index;
pub mod list;
pub mod man;
pub mod mark;
pub mod r#move;
pub mod pick;
pub mod record;
pub mod recover;
pub mod redact;
pub mod replay;
pub mod resume;
pub mod serve;
pub mod show;
pub mod status;
pub mod tail;
pub mod trim;
pub mod undo;
pub mod usage;

use crate::args::Verb;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

pub fn run(command: &Verb, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match command {
        Verb::Archive(options) => archive::run(options, output),
        Verb::Audit(options) => audit::run(options, output),
        Verb::Cassette(options) => cassette::run(options, output),
        Verb::Serve(options) => serve::run(options, output),
        Verb::Check(options) => check::run(options, output),
        Verb::Chibi(options) => chibi::run(options, output),
        Verb::Compact(options) => compact::run(options, output),
        Verb::Completions(options) => completions::run(options, output),
        Verb::Config(options) => config::run(options, output),
        Verb::Convert(options) => convert::run(options, output),
        Verb::Cut(options) => cut::run(options, output),
        Verb::Cycod(options) => cycod::run(options, output),
        Verb::Demo(options) => demo::run(options, output),
        Verb::Devflow(options) => devflow::run(options, output),
        Verb::Diff(options) => diff::run(options, output),
        Verb::Export(options) => export::run(options, output),
        Verb::Find(options) => find::run(options, output),
        Verb::Formats(options) => formats::run(options, output),
        Verb::Index(options) => index::run(options, output),
        Verb::List(options) => list::run(options, output),
        Verb::Mark(options) => mark::run(options, output),
        Verb::Man(options) => man::run(options, output),
        Verb::Move(options) => r#move::run(options, output),
        Verb::Pick(options) => pick::run(options, output),
        Verb::Record(options) => record::run(options, output),
        Verb::Recover(options) => recover::run(options, output),
        Verb::Redact(options) => redact::run(options, output),
        Verb::Replay(options) => replay::run(options, output),
        Verb::Resume(options) => resume::run(options, output),
        Verb::Show(options) => show::run(options, output),
        Verb::Status(options) => status::run(options, output),
        Verb::Tail(options) => tail::run(options, output),
        Verb::Trim(options) => trim::run(options, output),
        Verb::Undo(options) => undo::run(options, output),
        Verb::Usage(options) => usage::run(options, output),
    }
}
