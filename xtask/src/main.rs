//! Development tasks that cargo does not have. Nothing here is part of the product, so only this crate may name formats and
//! start programs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task talks to the person who started it")]

mod agents;
mod allow_list;
mod api;
mod bench;
mod code;
mod corpus;
mod generate;
mod layers;
mod lines;
mod measurements;
mod names;
mod prices;
mod rules;
mod scaffold;
mod synthetic;
mod tidy;
mod tree;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The error of a task.
type Failure = Box<dyn std::error::Error>;

/// Development tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of Stenograph")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the documents that are generated from code: docs/formats.md and a page per format,
    /// docs/losses.md, docs/cli.md and others
    Gen {
        /// Write nothing, and fail if a document differs
        #[arg(long)]
        check: bool,
    },
    /// Check the style: file heads, names, layers, fixtures, lengths, documents
    Tidy {
        /// Lower the counts of the lists of exceptions to what they are now, and check nothing
        #[arg(long)]
        shrink: bool,
    },
    /// Count the lines of code of each crate
    Lines(lines::Options),
    /// Start a new format: its folder, and its line in formats/mod.rs
    NewFormat {
        /// Its name, such as `my-agent`
        name: String,
    },
    /// Make a large tree of sessions from the real files, for benchmarks
    Corpus(corpus::Options),
    /// Update the table of prices from the list that a package publishes
    Prices(prices::Options),
    /// Write the rules that find secrets, from the set that a crate publishes
    Rules(rules::Options),
    /// Print the public API of the library crates
    Api {
        /// Write it to docs/api
        #[arg(long, conflicts_with = "check")]
        write: bool,
        /// Fail when docs/api differs
        #[arg(long)]
        check: bool,
    },
    /// Drive real agents against a scripted model, and report what they wrote and sent in docs/agents.md
    Agents(agents::Options),
    /// Measure
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// Reading against building a value per line, and peak memory on a large file
    Read(bench::Options),
    /// Indexing of conversations in a database, against the same lines in files
    Database(bench::database::Options),
    /// Recording against a bare loop of write and fdatasync, at each policy
    Record(bench::record::Options),
    /// Redaction against a plain read of the same files
    Redact(bench::redact::Options),
    /// Indexing and searching a tree of sessions, against a plain scan and other programs
    Store(bench::store::Options),
    /// Counting tokens, against a plain search and other counters
    Usage(bench::usage::Options),
    /// How the cost of each command grows with the number of sessions and the size of a file
    Scale(bench::scale::Options),
    /// The first screen of commands in a terminal
    Terminal(bench::terminal::Options),
    /// Writing pages, against other programs that write them
    View(bench::view::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Gen { check: true } => generate::check(),
        Task::Gen { check: false } => generate::write(),
        Task::Api { write: true, .. } => api::write(),
        Task::Api { check: true, .. } => api::check(),
        Task::Api { .. } => api::print(),
        Task::Tidy { shrink: false } => tidy::tidy(),
        Task::Tidy { shrink: true } => names::shrink().and_then(|()| layers::shrink()),
        Task::Lines(options) => lines::lines(&options),
        Task::NewFormat { name } => scaffold::new_format(&name),
        Task::Corpus(options) => corpus::make(&options),
        Task::Prices(options) => prices::write(&options),
        Task::Rules(options) => rules::write(&options),
        Task::Agents(options) => agents::agents(&options),
        Task::Bench { what: Bench::Read(options) } => bench::read(&options),
        Task::Bench { what: Bench::Database(options) } => bench::database::database(&options),
        Task::Bench { what: Bench::Record(options) } => bench::record::record(&options),
        Task::Bench { what: Bench::Redact(options) } => bench::redact::redact(&options),
        Task::Bench { what: Bench::Store(options) } => bench::store::store(&options),
        Task::Bench { what: Bench::Usage(options) } => bench::usage::usage(&options),
        Task::Bench { what: Bench::Scale(options) } => bench::scale::scale(&options),
        Task::Bench { what: Bench::Terminal(options) } => bench::terminal::terminal(&options),
        Task::Bench { what: Bench::View(options) } => bench::view::view(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
