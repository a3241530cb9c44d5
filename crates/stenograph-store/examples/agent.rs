//! A small agent that records itself: it calls a model, runs the tools that the model asks for, and every step is durable
//! before the next one begins. The model here is three fixed answers, so that the example runs anywhere:
//!
//! ```sh
//! cargo run -p stenograph-store --example agent -- steno run.steno.jsonl
//! ```

#![allow(clippy::print_stderr, reason = "an example may talk")]

use std::path::PathBuf;

use stenograph::model::{Body, Content, Event, Input, Role, Usage};
use stenograph_store::journal::RecordingEnd;
use stenograph_store::layouts::{Environment, Target, layout_named};
use stenograph_store::{Error, Recorder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let layout = arguments.next().unwrap_or_else(|| "steno".to_owned());
    let path = arguments.next().unwrap_or_else(|| "run.steno.jsonl".to_owned());
    let layout = layout_named(&layout).ok_or("no such layout")?;
    let target = Target { path: Some(PathBuf::from(path)), ..Target::default() };
    let recorder = Recorder::open(layout, &target, Environment::default())?;
    let end = match run(&recorder, "Which files are here?") {
        Ok(()) => RecordingEnd::Completed,
        Err(error) => RecordingEnd::Failed(error.to_string()),
    };
    let kept = recorder.finish(&end)?;
    for path in kept.files {
        eprintln!("recorded: {}", path.display());
    }
    Ok(())
}

/// The loop of every agent. When `append` returns, the event survives whatever happens next.
fn run(recorder: &Recorder, question: &str) -> Result<(), Error> {
    recorder.append(&said(Role::User, question))?;
    for turn in 0.. {
        match ask_model(turn) {
            Answer::Says(text) => {
                let usage = Usage { input: Some(120), output: Some(9), ..Usage::default() };
                return recorder.append(&Event { usage: Some(usage), ..said(Role::Assistant, text) });
            }
            Answer::Wants { call, tool, input } => {
                let body =
                    Body::ToolCall { call: Some(call.into()), name: tool.into(), input: Input::Json(input.into()) };
                // The call is recorded before the tool runs: after a crash it is known what was about to happen.
                recorder.append(&Event::new(body))?;
                let (content, error) = run_tool(tool);
                let body = Body::ToolResult {
                    call: Some(call.into()),
                    name: Some(tool.into()),
                    content: Content::text(content),
                    error: Some(error),
                };
                recorder.append(&Event::new(body))?;
            }
        }
    }
    Ok(())
}

fn said(role: Role, text: &str) -> Event<'_> {
    Event::new(Body::Message { role, content: Content::text(text) })
}

enum Answer {
    Wants { call: &'static str, tool: &'static str, input: &'static str },
    Says(&'static str),
}

/// A real agent calls a model here.
fn ask_model(turn: usize) -> Answer {
    match turn {
        0 => Answer::Wants { call: "call-1", tool: "list_files", input: r#"{"path":"."}"# },
        1 => Answer::Wants { call: "call-2", tool: "read_file", input: r#"{"path":"Cargo.toml"}"# },
        _ => Answer::Says("There is a Cargo.toml, among others."),
    }
}

fn run_tool(tool: &str) -> (String, bool) {
    match tool {
        "list_files" => match std::fs::read_dir(".") {
            Ok(entries) => {
                let names: Vec<String> =
                    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
                (names.join("\n"), false)
            }
            Err(error) => (error.to_string(), true),
        },
        _ => (format!("there is no tool called {tool}"), true),
    }
}
