//! What one agent does, and whether `steno` reads and writes it. A fault is a sentence; it does not end the trial.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::machine::{Answer, Machine};
use super::table::{Agent, CLAUDE, PROVIDER};
use crate::Failure;

/// The questions. Their words tell the scripted model what to do.
const FIRST: &str = "List the files here with two tools";
const SECOND: &str = "Now a failing command please";
const LAST: &str = "Thank you, no tools now";

/// How long a session may look as if its agent still worked on it.
const WORKING_MAX: Duration = Duration::from_secs(60);

/// What the scripted model says at the end of a turn.
const FINAL: &str = "nothing else was changed";

/// A trial of one agent.
#[derive(Debug)]
pub struct Trial<'t> {
    machine: &'t Machine,
    agent: &'t Agent,
}

/// What a trial found.
#[derive(Debug, Default)]
pub struct Findings {
    read: u64,
    answered: u64,
    is_usage_equal: bool,
    laws_hold: bool,
    came: Option<Sent>,
    went: Option<Sent>,
    /// The sentences about what went wrong.
    pub faults: Vec<String>,
}

/// How much of a session a request contains.
#[derive(Clone, Copy, Debug)]
struct Sent {
    of: usize,
    found: usize,
}

impl Findings {
    /// A summary in one line.
    pub fn line(&self) -> String {
        let [calls, usage, laws, came, went] = self.cells();
        format!("calls {calls}, tokens {usage}, laws {laws}, came {came}, went {went}, {} faults", self.faults.len())
    }

    /// A row of the report.
    pub fn row(&self, agent: &Agent) -> String {
        format!("| {} | {} | {} |\n", agent.title, agent.package, self.cells().join(" | "))
    }

    fn cells(&self) -> [String; 5] {
        let sent = |sent: Option<Sent>| sent.map_or("-".to_owned(), |sent| format!("{} / {}", sent.of, sent.found));
        let said = |holds: bool| if holds { "yes" } else { "no" }.to_owned();
        [
            format!("{} / {}", self.read, self.answered),
            said(self.is_usage_equal),
            said(self.laws_hold),
            sent(self.came),
            sent(self.went),
        ]
    }

    fn expect(&mut self, holds: bool, fault: impl FnOnce() -> String) -> bool {
        if !holds {
            self.faults.push(fault());
        }
        holds
    }
}

impl<'t> Trial<'t> {
    /// A trial of an agent.
    pub fn new(machine: &'t Machine, agent: &'t Agent) -> Trial<'t> {
        Trial { machine, agent }
    }

    /// Drives the agent.
    pub fn run(&self) -> Result<Findings, Failure> {
        let mut findings = Findings::default();
        self.own_session(&mut findings)?;
        if let Err(error) = self.foreign_session(&mut findings) {
            findings.faults.push(format!("a session of Claude Code: {error}"));
        }
        Ok(findings)
    }

    /// The agent writes a session and continues it.
    fn own_session(&self, findings: &mut Findings) -> Result<(), Failure> {
        let (machine, agent, home) = (self.machine, self.agent, self.agent.tool);
        machine.new_home(home)?;
        let (said, mut answers) = machine.ask(agent, home, FIRST, None)?;
        if answers.is_empty() {
            return Err(format!("it asked the model nothing: {}", end_of(&said)).into());
        }
        let session = self.session(home)?;
        if agent.resumes {
            let (said, more) = machine.ask(agent, home, SECOND, session["session"].as_str())?;
            findings.expect(without_spaces(&said).contains(&without_spaces(FINAL)), || {
                format!("resuming failed: {}", end_of(&said))
            });
            answers.extend(more);
        }
        let session = self.session(home)?;
        let (id, path) = (text(&session["session"]), text(&session["path"]));
        let events = machine.steno(home, &["show", "--json", &id])?;
        let prompts = if agent.resumes { &[FIRST, SECOND][..] } else { &[FIRST] };
        for prompt in prompts {
            findings
                .expect(events.iter().any(|event| event["role"] == "user" && strings(event).contains(prompt)), || {
                    format!("the question \"{prompt}\" is not in the session")
                });
        }
        findings.expect(
            events.iter().any(|event| event["kind"] == "tool_result" && strings(event).contains("hello.py")),
            || "the result of the command is not in the session".to_owned(),
        );
        findings
            .expect(events.iter().any(|event| event["role"] == "assistant" && strings(event).contains(FINAL)), || {
                "the last answer is not in the session".to_owned()
            });
        let laws = machine.steno(home, &["check", "--laws", "--json", &path]);
        findings.laws_hold = laws.is_ok();
        findings.expect(laws.is_ok(), || {
            format!("the laws: {}", laws.as_ref().err().map(ToString::to_string).unwrap_or_default())
        });
        self.usage(home, &answers, findings)?;
        if agent.tool != CLAUDE.tool {
            match self.resumed_by(&CLAUDE, home, &id) {
                Ok((sent, missing)) => {
                    findings.went = Some(sent);
                    findings.expect(missing.is_empty(), || format!("Claude Code did not send {missing:?}"));
                }
                Err(error) => findings.faults.push(format!("moving to Claude Code: {error}")),
            }
        }
        Ok(())
    }

    /// The agent resumes a session of Claude Code, if `steno` can write one for it, and the session goes back.
    fn foreign_session(&self, findings: &mut Findings) -> Result<(), Failure> {
        let (machine, agent) = (self.machine, self.agent);
        let home = format!("{}-from-claude", agent.tool);
        if agent.tool == CLAUDE.tool || !agent.resumes {
            return Ok(());
        }
        machine.new_home(&home)?;
        let (_, mut answers) = machine.ask(&CLAUDE, &home, FIRST, None)?;
        let source = machine.steno(&home, &["list", "--json"]).or_else(|_| self.listed(&home))?;
        let id = source.first().map(|session| text(&session["session"])).ok_or("Claude Code wrote no session")?;
        let dry_run = || machine.steno(&home, &["move", &id, "--to", agent.name, "--dry-run", "--json"]);
        match dry_run().map_err(|error| error.to_string()) {
            Ok(_) => {}
            Err(error) if error.contains("cannot write one that it resumes") => return Ok(()),
            // Only the agent can name its folder of the sessions there.
            Err(error) if error.contains("has no folder yet") => {
                answers.extend(machine.ask(agent, &home, LAST, None)?.1);
                dry_run()?;
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(settings) = agent.settings {
            machine.write_in_work(&home, settings, PROVIDER)?;
        }
        let (_, more) = machine.ask(&CLAUDE, &home, SECOND, Some(&id))?;
        answers.extend(more);
        let (sent, missing, more) = self.moved(agent, &home, &id)?;
        findings.came = Some(sent);
        findings.expect(missing.is_empty(), || format!("it did not send {missing:?} of a session of Claude Code"));
        answers.extend(more);
        self.usage(&home, &answers, findings)
    }

    fn resumed_by(&self, agent: &Agent, home: &str, id: &str) -> Result<(Sent, Vec<String>), Failure> {
        let (sent, missing, _) = self.moved(agent, home, id)?;
        Ok((sent, missing))
    }

    /// Moves a session to an agent, which resumes it. Returns what the next request contains and what it lacks.
    fn moved(&self, to: &Agent, home: &str, id: &str) -> Result<(Sent, Vec<String>, Vec<Answer>), Failure> {
        let machine = self.machine;
        self.listed(home)?;
        let start = Instant::now();
        let moved = loop {
            let moved = machine.steno(home, &["move", id, "--to", to.name, "--json"]);
            let is_working = moved.as_ref().is_err_and(|error| error.to_string().contains("still working"));
            match is_working && start.elapsed() < WORKING_MAX {
                true => std::thread::sleep(Duration::from_secs(1)),
                false => break moved?,
            }
        };
        let moved = moved.first().ok_or("steno move printed nothing")?;
        let id = text(&moved["session"]);
        self.listed(home)?;
        let events = machine.steno(home, &["show", "--json", &id])?;
        let (said, answers) = machine.ask(to, home, LAST, Some(&id))?;
        let asked = answers.iter().filter(|answer| strings(&answer.body).contains(LAST));
        let request = asked
            .max_by_key(|answer| answer.input)
            .ok_or_else(|| format!("{} did not resume it: {}", to.title, end_of(&said)))?;
        let request = strings(&request.body);
        let claims: Vec<String> = events.iter().flat_map(claims).collect();
        let missing: Vec<String> = claims.iter().filter(|claim| !request.contains(claim.as_str())).cloned().collect();
        let sent = Sent { of: claims.len(), found: claims.len() - missing.len() };
        Ok((sent, missing, answers))
    }

    /// Compares the sums with those of the model.
    fn usage(&self, home: &str, answers: &[Answer], findings: &mut Findings) -> Result<(), Failure> {
        self.listed(home)?;
        let usage = self.machine.steno(home, &["usage", "--json"])?;
        let total = usage.first().map(|usage| &usage["total"]).ok_or("steno usage printed nothing")?;
        let figure = |name: &str| total[name].as_u64().unwrap_or_default();
        let input = figure("input") + figure("cache_read") + figure("cache_write");
        let calls = figure("calls").max(if self.agent.is_sum_only { answers.len() as u64 } else { 0 });
        let read = (calls, input, figure("output"));
        let is_equal = are_some(answers, read);
        if findings.answered == 0 {
            (findings.read, findings.answered, findings.is_usage_equal) =
                (figure("calls"), answers.len() as u64, is_equal);
        }
        findings.expect(is_equal, || {
            let sent: Vec<(u64, u64)> = answers.iter().map(|answer| (answer.input, answer.output)).collect();
            format!("steno counts (calls, input, output) {read:?} in {home}, which are none of the model's {sent:?}")
        });
        Ok(())
    }

    /// The agent's newest session.
    fn session(&self, home: &str) -> Result<Value, Failure> {
        let sessions = self.listed(home)?;
        let mut own = sessions.into_iter().filter(|session| session["agent"] == self.agent.name);
        own.next().ok_or_else(|| format!("no session of {} is listed", self.agent.name).into())
    }

    fn listed(&self, home: &str) -> Result<Vec<Value>, Failure> {
        self.machine.steno(home, &["index"])?;
        self.machine.steno(home, &["list", "--json"])
    }
}

/// Whether some of the answers have this number and these sums of input and output: agents ask for titles and the like and
/// record nothing.
fn are_some(answers: &[Answer], (calls, input, output): (u64, u64, u64)) -> bool {
    let Some((first, rest)) = answers.split_first() else { return (calls, input, output) == (0, 0, 0) };
    let with_first =
        || Some((calls.checked_sub(1)?, input.checked_sub(first.input)?, output.checked_sub(first.output)?));
    with_first().is_some_and(|less| are_some(rest, less)) || are_some(rest, (calls, input, output))
}

/// What the request of a resumed session must contain for an event: its texts, and the values of its input.
fn claims(event: &Value) -> Vec<String> {
    let of = match event["kind"].as_str() {
        Some("message") if event["role"] != "system" => &event["content"],
        Some("tool_result") => &event["content"],
        Some("tool_call") => &event["input"],
        _ => return Vec::new(),
    };
    let mut found = leaves(of);
    found.retain(|claim| !claim.trim().is_empty());
    found.iter().map(|claim| claim.trim().to_owned()).collect()
}

/// All texts in a value; a text that is a JSON object itself has those of the object.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => leaves(&inner),
            _ => vec![text.clone()],
        },
        Value::Array(values) => values.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        _ => Vec::new(),
    }
}

fn strings(value: &Value) -> String {
    leaves(value).join("\n")
}

/// A terminal wraps lines anywhere.
fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The end of what a program printed, in one line.
fn end_of(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    words.get(words.len().saturating_sub(40)..).unwrap_or_default().join(" ")
}
