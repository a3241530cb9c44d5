//! The commands, one file each: its options and its implementation.

pub mod archive;
pub mod audit;
pub mod branches;
pub mod check;
pub mod compact;
pub mod completions;
pub mod config;
pub mod context;
pub mod r#continue;
pub mod convert;
pub mod cut;
pub mod demo;
pub mod diff;
pub mod export;
pub mod find;
pub mod formats;
pub mod inbox;
pub mod index;
pub mod list;
pub mod man;
pub mod record;
pub mod recover;
pub mod replay;
pub mod resume;
pub mod run;
pub mod show;
pub mod status;
pub mod tail;
pub mod trim;
pub mod usage;

use crate::args::Verb;
use crate::error::{CommandError, ExitStatus};
use crate::output::Output;

pub fn run(command: &Verb, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    match command {
        Verb::Formats(options) => formats::run(options, output),
        Verb::Check(options) => check::run(options, output),
        Verb::Convert(options) => convert::run(options, output),
        Verb::Index(options) => index::run(options, output),
        Verb::Find(options) => find::run(options, output),
        Verb::List(options) => list::run(options, output),
        Verb::Archive(options) => archive::run(options, output),
        Verb::Resume(options) => resume::run(options, output),
        Verb::Record(options) => record::run(options, output),
        Verb::Recover(options) => recover::run(options, output),
        Verb::Replay(options) => replay::run(options, output),
        Verb::Diff(options) => diff::run(options, output),
        Verb::Branches(options) => branches::run(options, output),
        Verb::Run(options) => run::run(options, output),
        Verb::Context(options) => context::run(options, output),
        Verb::Inbox(options) => inbox::run(options, output),
        Verb::Audit(options) => audit::run(options, output),
        Verb::Show(options) => show::run(options, output),
        Verb::Tail(options) => tail::run(options, output),
        Verb::Status(options) => status::run(options, output),
        Verb::Export(options) => export::run(options, output),
        Verb::Usage(options) => usage::run(options, output),
        Verb::Trim(options) => trim::run(options, output),
        Verb::Cut(options) => cut::run(options, output),
        Verb::Continue(options) => r#continue::run(options, output),
        Verb::Config(options) => config::run(options, output),
        Verb::Demo(options) => demo::run(options, output),
        Verb::Compact(options) => compact::run(options, output),
        Verb::Completions(options) => completions::run(options, output),
        Verb::Man(options) => man::run(options, output),
    }
}
