//! An audit as JSON. `docs/guide/auditing.md` describes the keys, which are stable. An unknown value is missing or `null`, never made up.

use super::report::{
    Agent, Approval, Audit, AuditStep, Call, CallOutcome, Capped, Compaction, ContextSize, EventPlace, Failure, Fault,
    File, Phase, Tool,
};
use super::thread_name;
use crate::json::Draft;
use crate::ledger::Tokens;
use crate::text::quote;
use crate::turns::SessionTurn;

/// A part of an audit that can be requested alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuditPart {
    /// The tools and every call.
    Tools,
    /// The files.
    Files,
    /// The commands.
    Commands,
    /// The last message.
    Last,
    /// The failure of the run.
    Failure,
    /// The to-do list.
    Todos,
    /// Other agents.
    Agents,
}

impl AuditPart {
    /// Every part.
    pub const ALL: [AuditPart; 7] = [
        AuditPart::Tools,
        AuditPart::Files,
        AuditPart::Commands,
        AuditPart::Last,
        AuditPart::Failure,
        AuditPart::Todos,
        AuditPart::Agents,
    ];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            AuditPart::Tools => "tools",
            AuditPart::Files => "files",
            AuditPart::Commands => "commands",
            AuditPart::Last => "last",
            AuditPart::Failure => "failure",
            AuditPart::Todos => "todos",
            AuditPart::Agents => "agents",
        }
    }

    /// The part with this name.
    pub fn named(name: &str) -> Option<AuditPart> {
        AuditPart::ALL.into_iter().find(|part| part.name() == name)
    }
}

/// Which parts are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// All of them.
    #[default]
    All,
    /// This one.
    Only(AuditPart),
}

impl Parts {
    /// Whether a part is requested.
    pub fn has(self, part: AuditPart) -> bool {
        match self {
            Parts::All => true,
            Parts::Only(only) => only == part,
        }
    }
}

impl Audit {
    /// Adds the requested parts to an object.
    pub fn put(&self, parts: Parts, draft: &mut Draft<'static>) {
        self.put_head(draft);
        if parts.has(AuditPart::Tools) {
            draft.set("tools", list(&self.tools, tool));
            let calls = self.calls.items.iter().filter(|call| call.tool.is_some());
            draft.set("calls", array(calls.map(|call| self.call(call))));
            draft.set_number("calls_more", more(&self.calls));
        }
        if parts.has(AuditPart::Files) {
            draft.set("files", list(&self.files.items, file));
            draft.set_number("files_more", more(&self.files));
        }
        if parts.has(AuditPart::Commands) {
            let commands = self.calls.items.iter().filter(|call| call.command.is_some());
            draft.set("commands", array(commands.map(|call| self.command(call))));
            let listed = self.calls.items.iter().filter(|call| call.command.is_some()).count() as u64;
            let left = self.commands.saturating_sub(listed);
            draft.set_number("commands_more", Some(left).filter(|left| *left > 0));
        }
        if parts.has(AuditPart::Last) {
            draft.set(
                "last",
                self.last.as_ref().map_or_else(null, |last| {
                    let mut object = at(last.place);
                    object.set_str("text", &last.text);
                    set_true(&mut object, "cut", last.is_cut);
                    object.render(None)
                }),
            );
        }
        if parts.has(AuditPart::Todos) {
            draft.set(
                "todos",
                self.todos.as_ref().map_or_else(null, |todos| {
                    let mut object = at(todos.place);
                    object.set(
                        "items",
                        list(&todos.items, |todo| {
                            let mut object = Draft::new();
                            object.set_opt("id", todo.id.as_deref());
                            object.set_str("text", &todo.text);
                            object.set_str("status", &todo.status);
                            object.render(None)
                        }),
                    );
                    object.set_number("more", Some(todos.more).filter(|more| *more > 0));
                    object.render(None)
                }),
            );
        }
        if parts.has(AuditPart::Agents) {
            draft.set("agents", self.agents_below(None));
            draft.set_number("agents_more", more(&self.agents));
            draft.set_number("jobs_more", Some(self.jobs_more).filter(|more| *more > 0));
        }
        if parts == Parts::All {
            self.put_run(draft);
        }
        if parts.has(AuditPart::Failure) {
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

    fn put_run(&self, draft: &mut Draft<'static>) {
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
        let mut object = at(call.place);
        object.set_opt("thread", thread_name(self, call.thread));
        object.set_opt("tool", call.tool.and_then(|tool| self.tools.get(tool)).map(|tool| tool.name.as_str()));
        object.set("input", fields(&call.keys));
        set_true(&mut object, "cut", call.is_cut);
        object.set_str("outcome", call.outcome.name());
        object.set_str("rule", call.rule.name());
        object.set("exit_code", call.exit.map_or_else(null, |exit| exit.to_string()));
        object.set("took_ms", call.took_ms.map_or_else(null, |took| took.to_string()));
        set_true(&mut object, "retry", call.is_retry);
        object.set_number("answer", call.answer.map(|answer| answer.event));
        object.set_number("asks_after", call.asks_after);
        object.set_opt("error_text", call.error_text.as_deref());
        object.render(None)
    }

    fn command(&self, call: &Call) -> String {
        let mut object = at(call.place);
        object.set_opt("thread", thread_name(self, call.thread));
        object.set_opt("tool", call.tool.and_then(|tool| self.tools.get(tool)).map(|tool| tool.name.as_str()));
        object.set_str("command", call.command.as_deref().unwrap_or_default());
        object.set("exit_code", call.exit.map_or_else(null, |exit| exit.to_string()));
        object.set_str("outcome", call.outcome.name());
        object.set("took_ms", call.took_ms.map_or_else(null, |took| took.to_string()));
        object.render(None)
    }

    fn agents_below(&self, parent: Option<usize>) -> String {
        // Each level is a list within its parent. The parents have no cycle, and the depth is limited.
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
        let mut object = agent.place.map(at).unwrap_or_default();
        object.set_opt("id", agent.id.as_deref());
        object.set_opt("type", agent.kind.as_deref());
        object.set_opt("title", agent.title.as_deref());
        object.set_opt("task", agent.task.as_deref());
        object.set_str("status", agent.state.name());
        object.set_number("calls", Some(agent.calls));
        object.set_number("failed", Some(agent.failed));
        object.set("later", list(&agent.later.items, |place| place.event.to_string()));
        object.set_number("later_more", more(&agent.later));
        object.set_opt("answer", agent.answer.as_deref());
        object.set_number(
            "context_max",
            agent.thread.and_then(|at| self.threads.get(at)).map(|thread| thread.context.max),
        );
        object.set("agents", below);
        object.render(None)
    }

    fn fault(&self, fault: &Fault) -> Draft<'static> {
        let mut object = at(fault.place);
        object.set_opt("thread", thread_name(self, fault.thread));
        object.set_str("kind", fault.kind.name());
        object.set_opt("name", fault.name.as_deref());
        object.set_str("text", &fault.text);
        object.set("recovered", fault.recovered_by.is_some().to_string());
        object
    }

    fn approval(&self, approval: &Approval) -> String {
        let mut object = at(approval.place);
        object.set_opt("thread", thread_name(self, approval.thread));
        object.set_str("verdict", approval.verdict.map_or("mode", |verdict| verdict.name()));
        object.set_opt("tool", approval.tool.as_deref());
        object.set_str("about", &approval.about);
        object.set_str("reason", &approval.reason);
        object.render(None)
    }

    fn phase(&self, phase: &Phase) -> String {
        let mut object = Draft::new();
        object.set_str("kind", phase.kind.name());
        object.set_opt("thread", thread_name(self, phase.thread));
        object.set_number("from", Some(phase.from.event));
        object.set_number("to", Some(phase.to.event));
        object.set_opt("from_time", moment(phase.from.time_ms).as_deref());
        object.set_opt("to_time", moment(phase.to.time_ms).as_deref());
        object.set_number("count", Some(phase.count));
        object.set_str("tool", &phase.tool);
        object.set_str("about", &phase.about);
        object.render(None)
    }

    fn compaction(&self, compaction: &Compaction) -> String {
        let mut object = at(compaction.place);
        object.set_opt("thread", thread_name(self, compaction.thread));
        object.set_number("events", Some(compaction.events));
        object.set_number("messages", Some(compaction.messages));
        object.set_number("calls", Some(compaction.calls));
        object.set_number("kept_messages", Some(compaction.kept_messages));
        object.set_number("kept_calls", Some(compaction.kept_calls));
        object.set("tokens_before", compaction.tokens_before.map_or_else(null, |tokens| tokens.to_string()));
        object.set("tokens_after", compaction.tokens_after.map_or_else(null, |tokens| tokens.to_string()));
        object.set_number("summary_length", Some(compaction.summary_length));
        object.set("files", list(&compaction.files.items, |path| quote(path)));
        object.set_number("files_more", more(&compaction.files));
        object.set("commands", list(&compaction.commands.items, |command| quote(command)));
        object.set_number("commands_more", more(&compaction.commands));
        object.render(None)
    }

    fn failed(&self, failure: &Failure) -> String {
        let mut object = self.fault(&failure.fault);
        object.set("input", fields(&failure.input));
        if let Some(call) = &failure.call {
            object.set("call", step(call));
        }
        object.set_number("times", Some(failure.times));
        object.set("before", list(&failure.before, step));
        object.set("after", list(&failure.after.items, step));
        object.set_number("after_more", more(&failure.after));
        object.set_number("others", Some(failure.others));
        object.render(None)
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

fn more<T>(list: &Capped<T>) -> Option<u64> {
    Some(list.more).filter(|more| *more > 0)
}

fn set_true(draft: &mut Draft<'static>, key: &'static str, value: bool) {
    if value {
        draft.set(key, "true");
    }
}

fn moment(millis: Option<i64>) -> Option<String> {
    jiff::Timestamp::from_millisecond(millis?).ok().map(|time| time.to_string())
}

/// An object that begins with the place of an event.
pub(super) fn at(place: EventPlace) -> Draft<'static> {
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
    let mut object = Draft::new();
    object.set_str("name", &tool.name);
    for (key, number) in [
        ("calls", tool.calls),
        ("failed", tool.failed),
        ("denied", tool.denied),
        ("unanswered", tool.unanswered),
        ("retries", tool.retries),
    ] {
        object.set_number(key, Some(number));
    }
    object.set("time_ms", if tool.timed > 0 { tool.time_ms.to_string() } else { null() });
    object.set("longest_ms", if tool.timed > 0 { tool.longest_ms.to_string() } else { null() });
    object.render(None)
}

fn file(file: &File) -> String {
    let mut object = Draft::new();
    object.set_str("path", &file.path);
    object.set_str("change", file.change.name());
    for (key, number) in [
        ("reads", file.reads),
        ("writes", file.writes),
        ("edits", file.edits),
        ("deletes", file.deletes),
        ("failed", file.failed),
        ("first", file.first.event),
        ("last", file.last.event),
    ] {
        object.set_number(key, Some(number));
    }
    object.render(None)
}

fn turn(turn: &SessionTurn) -> String {
    let mut object = at(turn.from);
    object.set_number("to", Some(turn.to.event));
    object.set_str("asked", &turn.asked);
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
        object.set_number(key, Some(number));
    }
    object.render(None)
}

fn step(step: &AuditStep) -> String {
    let mut object = at(step.place);
    object.set_opt("tool", step.tool.as_deref());
    object.set_str("text", &step.text);
    object.set_opt("outcome", step.outcome.map(CallOutcome::name));
    if let Some(exit) = step.exit {
        object.set("exit_code", exit.to_string());
    }
    object.render(None)
}

fn context(context: &ContextSize) -> String {
    if context.calls == 0 {
        return null();
    }
    let mut object = Draft::new();
    object.set_number("first", Some(context.first));
    object.set_number("max", Some(context.max));
    object.set_number("last", Some(context.last));
    object.set_number("calls", Some(context.calls));
    object.set(
        "series",
        list(&context.series, |(event, time, tokens)| {
            let time = moment(*time).map_or_else(null, |time| quote(&time));
            format!("[{event},{time},{tokens}]")
        }),
    );
    let mut parts = Draft::new();
    context.parts.named().into_iter().for_each(|(name, size)| parts.set_number(name, Some(size)));
    parts.set_number("tools", Some(context.parts.tools));
    object.set("bytes", parts.render(None));
    object.render(None)
}
