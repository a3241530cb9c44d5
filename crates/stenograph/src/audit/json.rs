//! An audit as JSON, with names that stay as they are. `docs/guide/auditing.md` describes them. What is not known is left out or `null`, never
//! made up.

use super::report::{
    Agent, Approval, Audit, Call, CallOutcome, Capped, Compaction, Context, Failure, Fault, File, Phase, Place, Step,
    Tool,
};
use super::thread_name;
use crate::json::Draft;
use crate::ledger::Tokens;
use crate::text::quote;
use crate::turns::SessionTurn;

/// A part of an audit that can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The tools and every call.
    Tools,
    /// The files.
    Files,
    /// The commands.
    Commands,
    /// What was said last.
    Last,
    /// Why it failed.
    Failure,
    /// What is to do.
    Todos,
    /// Other agents.
    Agents,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 7] =
        [Part::Tools, Part::Files, Part::Commands, Part::Last, Part::Failure, Part::Todos, Part::Agents];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Part::Tools => "tools",
            Part::Files => "files",
            Part::Commands => "commands",
            Part::Last => "last",
            Part::Failure => "failure",
            Part::Todos => "todos",
            Part::Agents => "agents",
        }
    }

    /// The part of that name.
    pub fn named(name: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Which parts are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// All of them.
    #[default]
    All,
    /// This one.
    Only(Part),
}

impl Parts {
    /// Whether a part is among them.
    pub fn has(self, part: Part) -> bool {
        match self {
            Parts::All => true,
            Parts::Only(only) => only == part,
        }
    }
}

impl Audit {
    /// Puts all that is told, or one part of it, into an object.
    pub fn put(&self, parts: Parts, draft: &mut Draft<'static>) {
        self.put_head(draft);
        if parts.has(Part::Tools) {
            draft.set("tools", list(&self.tools, tool));
            let calls = self.calls.items.iter().filter(|call| call.tool.is_some());
            draft.set("calls", array(calls.map(|call| self.call(call))));
            draft.set_number("calls_more", more(&self.calls));
        }
        if parts.has(Part::Files) {
            draft.set("files", list(&self.files.items, file));
            draft.set_number("files_more", more(&self.files));
        }
        if parts.has(Part::Commands) {
            let commands = self.calls.items.iter().filter(|call| call.command.is_some());
            draft.set("commands", array(commands.map(|call| self.command(call))));
            let kept = self.calls.items.iter().filter(|call| call.command.is_some()).count() as u64;
            let left = self.commands.saturating_sub(kept);
            draft.set_number("commands_more", Some(left).filter(|left| *left > 0));
        }
        if parts.has(Part::Last) {
            draft.set(
                "last",
                self.last.as_ref().map_or_else(null, |last| {
                    let mut told = at(last.place);
                    told.set_str("text", &last.text);
                    set_true(&mut told, "cut", last.is_cut);
                    told.render(None)
                }),
            );
        }
        if parts.has(Part::Todos) {
            draft.set(
                "todos",
                self.todos.as_ref().map_or_else(null, |todos| {
                    let mut told = at(todos.place);
                    told.set(
                        "items",
                        list(&todos.items, |todo| {
                            let mut told = Draft::new();
                            told.set_opt("id", todo.id.as_deref());
                            told.set_str("text", &todo.text);
                            told.set_str("status", &todo.status);
                            told.render(None)
                        }),
                    );
                    told.set_number("more", Some(todos.more).filter(|more| *more > 0));
                    told.render(None)
                }),
            );
        }
        if parts.has(Part::Agents) {
            draft.set("agents", self.agents_below(None));
            draft.set_number("agents_more", more(&self.agents));
            draft.set_number("jobs_more", Some(self.jobs_more).filter(|more| *more > 0));
        }
        if parts == Parts::All {
            self.put_course(draft);
        }
        if parts.has(Part::Failure) {
            draft.set("failure", self.failure.as_ref().map_or_else(null, |failure| self.failed(failure)));
        }
    }

    fn put_head(&self, draft: &mut Draft<'static>) {
        draft.set_opt("session", self.session.as_deref());
        draft.set_opt("title", self.title.as_deref());
        draft.set_opt("cwd", self.cwd.as_deref());
        draft.set_opt("branch", self.branch.as_deref());
        draft.set("models", list(&self.models, |model| quote(model)));
        draft.set_opt("started", moment(self.started_ms).as_deref());
        draft.set_opt("ended", moment(self.ended_ms).as_deref());
        draft.set_number("events", Some(self.events));
        draft.set_number("asked", Some(self.asked));
        draft.set_number("answered", Some(self.answered));
        draft.set_str("state", self.end.state.name());
        draft.set_str("why", self.end.why.name());
        draft.set_opt("reason", self.end.word.as_deref());
    }

    fn put_course(&self, draft: &mut Draft<'static>) {
        draft.set("turns", list(&self.turns.items, turn));
        draft.set_number("turns_more", more(&self.turns));
        draft.set("errors", list(&self.errors.items, |error| self.fault(error).render(None)));
        draft.set_number("errors_more", more(&self.errors));
        draft.set("approvals", list(&self.approvals.items, |approval| self.approval(approval)));
        draft.set_number("approvals_more", more(&self.approvals));
        draft.set("phases", list(&self.phases.items, |phase| self.phase(phase)));
        draft.set_number("phases_more", more(&self.phases));
        draft.set("compactions", list(&self.compactions.items, |compaction| self.compaction(compaction)));
        draft.set_number("compactions_more", more(&self.compactions));
        draft.set("context", context(&self.context));
    }

    fn call(&self, call: &Call) -> String {
        let mut told = at(call.place);
        told.set_opt("thread", thread_name(self, call.thread));
        told.set_opt("tool", call.tool.and_then(|tool| self.tools.get(tool)).map(|tool| tool.name.as_str()));
        told.set("input", fields(&call.keys));
        set_true(&mut told, "cut", call.is_cut);
        told.set_str("outcome", call.outcome.name());
        told.set_str("rule", call.rule.name());
        told.set("exit_code", call.exit.map_or_else(null, |exit| exit.to_string()));
        told.set("took_ms", call.took_ms.map_or_else(null, |took| took.to_string()));
        set_true(&mut told, "retry", call.is_retry);
        told.set_number("answer", call.answer.map(|answer| answer.event));
        told.set_number("asks_after", call.asks_after);
        told.set_opt("said", call.said.as_deref());
        told.render(None)
    }

    fn command(&self, call: &Call) -> String {
        let mut told = at(call.place);
        told.set_opt("thread", thread_name(self, call.thread));
        told.set_opt("tool", call.tool.and_then(|tool| self.tools.get(tool)).map(|tool| tool.name.as_str()));
        told.set_str("command", call.command.as_deref().unwrap_or_default());
        told.set("exit_code", call.exit.map_or_else(null, |exit| exit.to_string()));
        told.set_str("outcome", call.outcome.name());
        told.set("took_ms", call.took_ms.map_or_else(null, |took| took.to_string()));
        told.render(None)
    }

    fn agents_below(&self, parent: Option<usize>) -> String {
        // Each level is a list within its parent; the parents are no ring, and how deep they go is limited here.
        self.agents_at(parent, 0)
    }

    fn agents_at(&self, parent: Option<usize>, depth: usize) -> String {
        const DEPTH_MAX: usize = 16;
        if depth > DEPTH_MAX {
            return "[]".to_owned();
        }
        let below = self.agents.items.iter().enumerate().filter(|(_, agent)| agent.parent == parent);
        array(below.map(|(index, agent)| self.agent(agent, self.agents_at(Some(index), depth + 1))))
    }

    fn agent(&self, agent: &Agent, below: String) -> String {
        let mut told = agent.place.map(at).unwrap_or_default();
        told.set_opt("id", agent.id.as_deref());
        told.set_opt("type", agent.kind.as_deref());
        told.set_opt("title", agent.title.as_deref());
        told.set_opt("task", agent.task.as_deref());
        told.set_str("status", agent.state.name());
        told.set_number("calls", Some(agent.calls));
        told.set_number("failed", Some(agent.failed));
        told.set("later", list(&agent.later.items, |place| place.event.to_string()));
        told.set_number("later_more", more(&agent.later));
        told.set_opt("answer", agent.answer.as_deref());
        told.set_number(
            "context_max",
            agent.thread.and_then(|at| self.threads.get(at)).map(|thread| thread.context.max),
        );
        told.set("agents", below);
        told.render(None)
    }

    fn fault(&self, fault: &Fault) -> Draft<'static> {
        let mut told = at(fault.place);
        told.set_opt("thread", thread_name(self, fault.thread));
        told.set_str("kind", fault.kind.name());
        told.set_opt("name", fault.name.as_deref());
        told.set_str("text", &fault.text);
        told.set("recovered", fault.recovered_by.is_some().to_string());
        told
    }

    fn approval(&self, approval: &Approval) -> String {
        let mut told = at(approval.place);
        told.set_opt("thread", thread_name(self, approval.thread));
        told.set_str("verdict", approval.verdict.map_or("mode", |verdict| verdict.name()));
        told.set_opt("tool", approval.tool.as_deref());
        told.set_str("about", &approval.about);
        told.set_str("reason", &approval.reason);
        told.render(None)
    }

    fn phase(&self, phase: &Phase) -> String {
        let mut told = Draft::new();
        told.set_str("kind", phase.kind.name());
        told.set_opt("thread", thread_name(self, phase.thread));
        told.set_number("from", Some(phase.from.event));
        told.set_number("to", Some(phase.to.event));
        told.set_opt("from_time", moment(phase.from.time_ms).as_deref());
        told.set_opt("to_time", moment(phase.to.time_ms).as_deref());
        told.set_number("count", Some(phase.count));
        told.set_str("tool", &phase.tool);
        told.set_str("about", &phase.about);
        told.render(None)
    }

    fn compaction(&self, compaction: &Compaction) -> String {
        let mut told = at(compaction.place);
        told.set_opt("thread", thread_name(self, compaction.thread));
        told.set_number("events", Some(compaction.events));
        told.set_number("messages", Some(compaction.messages));
        told.set_number("calls", Some(compaction.calls));
        told.set_number("kept_messages", Some(compaction.kept_messages));
        told.set_number("kept_calls", Some(compaction.kept_calls));
        told.set("tokens_before", compaction.tokens_before.map_or_else(null, |tokens| tokens.to_string()));
        told.set("tokens_after", compaction.tokens_after.map_or_else(null, |tokens| tokens.to_string()));
        told.set_number("summary_length", Some(compaction.summary_length));
        told.set("files", list(&compaction.files.items, |path| quote(path)));
        told.set_number("files_more", more(&compaction.files));
        told.set("commands", list(&compaction.commands.items, |command| quote(command)));
        told.set_number("commands_more", more(&compaction.commands));
        told.render(None)
    }

    fn failed(&self, failure: &Failure) -> String {
        let mut told = self.fault(&failure.fault);
        told.set("input", fields(&failure.input));
        if let Some(call) = &failure.call {
            told.set("call", step(call));
        }
        told.set_number("times", Some(failure.times));
        told.set("before", list(&failure.before, step));
        told.set("after", list(&failure.after.items, step));
        told.set_number("after_more", more(&failure.after));
        told.set_number("others", Some(failure.others));
        told.render(None)
    }
}

fn null() -> String {
    "null".to_owned()
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn list<T>(items: &[T], each: impl Fn(&T) -> String) -> String {
    array(items.iter().map(each))
}

fn more<T>(kept: &Capped<T>) -> Option<u64> {
    Some(kept.more).filter(|more| *more > 0)
}

fn set_true(draft: &mut Draft<'static>, key: &'static str, value: bool) {
    if value {
        draft.set(key, "true");
    }
}

fn moment(millis: Option<i64>) -> Option<String> {
    jiff::Timestamp::from_millisecond(millis?).ok().map(|time| time.to_string())
}

/// An object that begins with where something stands.
pub(super) fn at(place: Place) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_number("source", Some(place.source as u64).filter(|source| *source > 0));
    draft.set_number("event", Some(place.event));
    draft.set_number("line", Some(place.line).filter(|line| *line > 0));
    draft.set_opt("time", moment(place.time_ms).as_deref());
    draft
}

fn fields(keys: &[(String, String)]) -> String {
    let mut draft = Draft::new();
    for (key, value) in keys {
        draft.set_str(key.clone(), value);
    }
    draft.render(None)
}

fn tool(tool: &Tool) -> String {
    let mut told = Draft::new();
    told.set_str("name", &tool.name);
    for (key, number) in [
        ("calls", tool.calls),
        ("failed", tool.failed),
        ("denied", tool.denied),
        ("unanswered", tool.unanswered),
        ("retries", tool.retries),
    ] {
        told.set_number(key, Some(number));
    }
    told.set("time_ms", if tool.timed > 0 { tool.time_ms.to_string() } else { null() });
    told.set("longest_ms", if tool.timed > 0 { tool.longest_ms.to_string() } else { null() });
    told.render(None)
}

fn file(file: &File) -> String {
    let mut told = Draft::new();
    told.set_str("path", &file.path);
    told.set_str("change", file.change.name());
    for (key, number) in [
        ("reads", file.reads),
        ("writes", file.writes),
        ("edits", file.edits),
        ("deletes", file.deletes),
        ("failed", file.failed),
        ("first", file.first.event),
        ("last", file.last.event),
    ] {
        told.set_number(key, Some(number));
    }
    told.render(None)
}

fn turn(turn: &SessionTurn) -> String {
    let mut told = at(turn.from);
    told.set_number("to", Some(turn.to.event));
    told.set_str("asked", &turn.asked);
    let Tokens { input, output, cache_read, cache_write, .. } = turn.tokens;
    for (key, number) in [
        ("answers", turn.answers),
        ("calls", turn.calls),
        ("failed", turn.failed),
        ("input", input),
        ("output", output),
        ("cache_read", cache_read),
        ("cache_write", cache_write),
    ] {
        told.set_number(key, Some(number));
    }
    told.render(None)
}

fn step(step: &Step) -> String {
    let mut told = at(step.place);
    told.set_opt("tool", step.tool.as_deref());
    told.set_str("text", &step.text);
    told.set_opt("outcome", step.outcome.map(CallOutcome::name));
    if let Some(exit) = step.exit {
        told.set("exit_code", exit.to_string());
    }
    told.render(None)
}

fn context(context: &Context) -> String {
    if context.calls == 0 {
        return null();
    }
    let mut told = Draft::new();
    told.set_number("first", Some(context.first));
    told.set_number("max", Some(context.max));
    told.set_number("last", Some(context.last));
    told.set_number("calls", Some(context.calls));
    told.set(
        "series",
        list(&context.series, |(event, time, tokens)| {
            let time = moment(*time).map_or_else(null, |time| quote(&time));
            format!("[{event},{time},{tokens}]")
        }),
    );
    told.render(None)
}
