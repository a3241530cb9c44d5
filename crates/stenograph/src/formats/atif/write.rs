//! Writes the sessions of other agents as trajectories of version 1.8. A step waits for the results of its calls, and the
//! trajectories of sub-agents wait for the end of the document. `step.rs` collects the steps.

use super::NAME;
use super::step::{Metrics, Steps};
use crate::evidence::{CallReport, Evidence};
use crate::formats::document::{DocumentPart, closed};
use crate::formats::record_map::{MappedFormat, MappedWriter};
use crate::json::{Draft, indent};
use crate::model::{Body, Event, Outline};
use crate::synthesizer::{CallIds, Synthesizer};
use crate::write::{Writer, WriterOutput};

/// The version of the format that is written.
const VERSION: &str = "ATIF-v1.8";

/// What is written as the version of an agent if its session does not state one. The format requires a version.
const VERSION_UNKNOWN: &str = "unknown";

/// The most calls whose sub-agents are remembered. The calls of a session that start agents are far fewer.
const STARTED_MAX: usize = 4096;

/// A writer for a session.
pub fn writer(format: MappedFormat, outline: &Outline) -> Box<dyn Writer> {
    Box::new(AtifWriter {
        own: MappedWriter::of_records(format),
        synthesizer: Synthesizer::new(outline),
        agent: None,
        main: Steps::default(),
        subagents: Vec::new(),
        started: Vec::new(),
    })
}

#[derive(Debug)]
struct AtifWriter {
    /// Writes records that were read from this format.
    own: MappedWriter,
    synthesizer: Synthesizer,
    /// The agent of the first record.
    agent: Option<String>,
    main: Steps,
    subagents: Vec<Subagent>,
    /// Calls and the sub-agents that they started.
    started: Vec<(String, String)>,
}

/// The conversation of a sub-agent.
#[derive(Debug)]
struct Subagent {
    name: String,
    version: Option<String>,
    calls: CallIds,
    steps: Steps,
    written: Vec<String>,
}

impl AtifWriter {
    fn is_own(&self) -> bool {
        self.synthesizer.outline().origin == NAME
    }

    fn add(&mut self, event: &Event<'_>) {
        if let Some(agent) =
            CallReport::of(event).and_then(|report| Some((report.call()?.into_owned(), report.agent()?)))
            && self.started.len() < STARTED_MAX
        {
            self.started.push((agent.0, agent.1.thread));
        }
        let Some(thread) = event.thread.as_deref() else {
            let subagents = self.subagents_of(event);
            return self.main.add(event, &mut self.synthesizer.pairing, &subagents);
        };
        let at = self.subagents.iter().position(|subagent| subagent.name == thread).unwrap_or_else(|| {
            self.subagents.push(Subagent {
                name: thread.to_owned(),
                version: event.version.as_deref().map(str::to_owned),
                calls: CallIds::default(),
                steps: Steps::default(),
                written: Vec::new(),
            });
            self.subagents.len() - 1
        });
        if let Some(Subagent { calls, steps, written, .. }) = self.subagents.get_mut(at) {
            steps.add(event, calls, &[]);
            written.extend(steps.finished());
        }
    }

    /// The sub-agents with a trajectory whose call this result answers.
    fn subagents_of(&self, event: &Event<'_>) -> Vec<String> {
        let Body::ToolResult { call, .. } = &event.body else { return Vec::new() };
        let started = self.started.iter().filter(|(of, _)| Some(of.as_str()) == call.as_deref());
        let mut names: Vec<String> = started.map(|(_, thread)| thread.clone()).collect();
        names.extend(Evidence::of(event).handles);
        names.retain(|name| self.subagents.iter().any(|subagent| subagent.name == *name));
        names.dedup();
        names
    }

    fn put(&mut self, steps: Vec<String>, out: &mut WriterOutput) {
        if steps.is_empty() {
            return;
        }
        let head = self.head(None);
        let Some(document) = &mut self.own.document else { return };
        if document.part == DocumentPart::Start {
            let indented = indent(&head, 0);
            let open = indented.strip_suffix('}').map(str::trim_end).and_then(|head| head.strip_suffix("[]"));
            // Half a document is no record.
            out.glue(format!("{}[", open.unwrap_or(&indented)));
            document.part = DocumentPart::Items;
        }
        for step in steps {
            document.item(indent(&step, 2), out);
        }
    }

    /// The fields of a trajectory, with an empty list of steps. The main one has no name.
    fn head(&self, subagent: Option<&Subagent>) -> String {
        let outline = self.synthesizer.outline();
        let mut agent = Draft::new();
        agent.set_str("name", self.agent.as_deref().unwrap_or(outline.origin));
        let version = subagent.and_then(|subagent| subagent.version.as_deref());
        agent.set_str("version", version.or(outline.first_version.as_deref()).unwrap_or(VERSION_UNKNOWN));
        let mut draft = Draft::new();
        draft.set_str("schema_version", VERSION);
        match subagent {
            Some(subagent) => draft.set_str("trajectory_id", &subagent.name),
            None => {
                draft.set_str("session_id", &self.synthesizer.session());
                agent.set_opt("model_name", outline.first_model.as_deref());
                if let Some(cwd) = &outline.header.cwd {
                    let mut extra = Draft::new();
                    extra.set_str("cwd", cwd);
                    agent.nest("extra", extra);
                }
            }
        }
        draft.nest("agent", agent);
        draft.set("steps", "[]");
        draft.render(None)
    }

    /// The fields after the steps.
    fn tail(&mut self) -> String {
        let mut metrics = self.main.metrics;
        let costs = self.subagents.iter().filter_map(|subagent| subagent.steps.metrics.cost);
        // The total of the tokens is that of the steps; the cost includes sub-agents.
        metrics.cost = metrics.cost.into_iter().chain(costs).reduce(|sum, cost| sum + cost);
        if metrics == Metrics::default() {
            metrics.add(&self.synthesizer.outline().total);
        }
        let mut draft = Draft::new();
        draft.nest("final_metrics", metrics.totals(self.main.count));
        let subagents = std::mem::take(&mut self.subagents);
        let trajectories: Vec<String> = subagents.iter().filter_map(|subagent| self.trajectory(subagent)).collect();
        if !trajectories.is_empty() {
            draft.set_list("subagent_trajectories", trajectories);
        }
        draft.render(None)
    }

    /// The trajectory of a sub-agent, if it has steps.
    fn trajectory(&self, subagent: &Subagent) -> Option<String> {
        let head = self.head(Some(subagent));
        let open = head.strip_suffix("[]}").filter(|_| !subagent.written.is_empty())?;
        Some(format!("{open}[{}]}}", subagent.written.join(",")))
    }

    fn flush(&mut self, out: &mut WriterOutput) {
        let steps = self.main.all();
        self.put(steps, out);
    }
}

impl Writer for AtifWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first() else { return };
        if first.extra.get(NAME).is_some()
            || (self.is_own() && matches!(first.body, Body::Other { bytes: Some(_), .. }))
        {
            self.flush(out);
            return self.own.record(events, out);
        }
        if self.agent.is_none() {
            self.agent = first.extra.known().next().map(|(info, _)| info.agent.to_owned());
        }
        events.iter().for_each(|event| self.add(event));
        let steps = self.main.finished();
        self.put(steps, out);
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.flush(out);
        for subagent in &mut self.subagents {
            subagent.written.extend(subagent.steps.all());
        }
        if self.is_own() {
            return self.own.finish(out);
        }
        if self.main.count == 0
            && self.own.document.as_ref().is_some_and(|document| document.part == DocumentPart::Start)
        {
            // A source that is the conversation of a sub-agent is a trajectory of its own.
            if self.subagents.is_empty() {
                return;
            }
            let only = self.subagents.remove(0);
            self.main = only.steps;
            self.put(only.written, out);
        }
        let tail = self.tail();
        if let Some(document) = self.own.document.as_mut().filter(|document| document.part == DocumentPart::Items) {
            document.end(out);
            out.glue(closed(&indent(&tail, 0)));
        }
    }
}
