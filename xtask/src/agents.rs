//! Drives real agents against a scripted model: each writes a session and continues it, `steno` reads it, and sessions that
//! `steno` moved to an agent are resumed there. It judges only what the programs wrote and what they sent, and writes the result
//! to `docs/agents.md`. The scripts that install and start the agents are not part of this repository.
#![allow(clippy::indexing_slicing, reason = "a JSON value has null under every key that it lacks")]

mod machine;
mod table;
mod trial;

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::{Failure, tree};
use machine::Machine;
use table::{AGENTS, Agent};
use trial::{Findings, Trial};

/// The options of `cargo xtask agents`.
#[derive(Args, Debug)]
pub struct Options {
    /// Only these agents, by their names in the table
    agents: Vec<String>,
    /// The folder in which agents are installed, and in which they work
    #[arg(long, default_value = "target/agents")]
    folder: PathBuf,
    /// The folder of the scripts `install` and `drive`, as a path from the repository
    #[arg(long, default_value = "../shared/tools/real-agents")]
    tools: PathBuf,
    /// The command to test
    #[arg(long, default_value = "target/debug/steno")]
    steno: PathBuf,
    /// Write docs/agents.md
    #[arg(long)]
    write: bool,
}

/// Drives the agents and prints what they did.
pub fn agents(options: &Options) -> Result<(), Failure> {
    if let Some(unknown) = options.agents.iter().find(|name| AGENTS.iter().all(|agent| agent.tool != name.as_str())) {
        let known: Vec<&str> = AGENTS.iter().map(|agent| agent.tool).collect();
        return Err(format!("no agent is called {unknown}; there are {}", known.join(", ")).into());
    }
    let root = tree::root();
    let (folder, tools, steno) = (root.join(&options.folder), root.join(&options.tools), root.join(&options.steno));
    let machine = Machine::start(&folder, &tools, steno)?;
    let mut results: Vec<(&Agent, Result<Findings, Failure>)> = Vec::new();
    for agent in
        AGENTS.iter().filter(|agent| options.agents.is_empty() || options.agents.iter().any(|name| name == agent.tool))
    {
        let result = machine.install(agent).and_then(|()| Trial::new(&machine, agent).run());
        match &result {
            Ok(findings) => {
                println!("{:<10} {}", agent.tool, findings.line());
                findings.faults.iter().for_each(|fault| println!("{:<10} {fault}", ""));
            }
            Err(error) => println!("{:<10} skipped: {error}", agent.tool),
        }
        results.push((agent, result));
    }
    let driven = results.iter().filter(|(_, result)| result.is_ok()).count();
    let faults: usize =
        results.iter().filter_map(|(_, result)| result.as_ref().ok()).map(|findings| findings.faults.len()).sum();
    println!("{driven} of {} agents ran, {faults} faults", results.len());
    if options.write {
        std::fs::write(root.join("docs/agents.md"), page(&results, &version(&machine)?))?;
    }
    match faults {
        0 => Ok(()),
        _ => Err("faults were found".into()),
    }
}

fn version(machine: &Machine) -> Result<String, Failure> {
    let output = Command::new(&machine.steno).arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The report.
fn page(results: &[(&Agent, Result<Findings, Failure>)], version: &str) -> String {
    let mut rows = String::new();
    let mut faults = String::new();
    for (agent, result) in results {
        match result {
            Ok(findings) => {
                rows.push_str(&findings.row(agent));
                for fault in &findings.faults {
                    faults.push_str(&format!("- {}: {fault}\n", agent.title));
                }
            }
            Err(error) => {
                rows.push_str(&format!("| {} | {} | not run: {error} | | | | |\n", agent.title, agent.package));
            }
        }
    }
    if faults.is_empty() {
        faults.push_str("None.\n");
    }
    let driven = results.iter().filter(|(_, result)| result.is_ok()).count();
    format!(
        "<!-- Written by `cargo xtask agents --write`: do not edit. -->\n\n# Real agents\n\n{TEXT}\n\
         {driven} of {} programs ran, with {version}.\n\n\
         | agent | package | calls: read / answered | tokens equal | laws | came from Claude Code: read / sent | went to Claude Code: sent |\n\
         |---|---|---|---|---|---|---|\n{rows}\n## Faults\n\n{faults}",
        results.len()
    )
}

const TEXT: &str = "\
`cargo xtask agents` starts each agent from an empty home folder, with a scripted model that runs beside it in a network without a
way out. The agent gets a question, calls a command, and answers; then it resumes the session, and the command fails. `steno`
reads what the agent wrote.

- *calls*: model calls that `steno usage` counts, and answers that the model sent. Agents also ask for titles and the like, and
  record nothing of that. Factory droid records only a sum, and not of how many calls.
- *tokens equal*: whether some of the answers have exactly this number and these sums of input and output.
- *laws*: whether `steno check --laws` holds on every file.
- *came from Claude Code*: `steno move` brings a session of Claude Code to the agent, and the agent resumes it. Of all messages, calls
  and results in the moved session, how many the next request to the model contains. `-`: `steno` writes nothing for this
  agent.
- *went to Claude Code*: the same for the agent's own session, resumed by Claude Code.
";
