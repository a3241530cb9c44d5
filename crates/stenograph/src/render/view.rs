//! How people read an event: a heading and blocks of content. The terminal and the page draw this view: it decides what
//! they show, and they decide how. Texts are those of the transcript, so the drawing code must make them harmless.

use std::sync::Arc;

use crate::calls::{CallOutcome, Calls};
use crate::changes::{RequestedKind, requested_changes};
use crate::evidence::{
    CallArguments, CallKind, CompactionDetails, PlanChange, Todo, TouchHow, UserMessage, UserQuestion,
    output_without_header,
};
use crate::json::{Object, compact, items};
use crate::model::{Body, Content, Data, Event, Input, PieceKind, Role};
use crate::render::grouped;

/// An event as people read it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventView {
    /// What it is.
    pub kind: ViewKind,
    /// Its first line: the speaker, or a call as people write it.
    pub heading: String,
    /// A remark beside the heading: an exit code, a number of lines.
    pub remark: Option<String>,
    /// Its content.
    pub blocks: Vec<Block>,
    /// The number of the call that it makes or answers, from 1.
    pub call: Option<u64>,
}

/// What an event is to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// A person speaks.
    User,
    /// The agent speaks.
    Agent,
    /// The agent thinks.
    Thinking,
    /// The agent calls a tool.
    Call(CallKind),
    /// A tool answers.
    Result(CallOutcome),
    /// The context was compacted.
    Compaction,
    /// Something other than a call failed, or the run ended without success.
    Failure,
    /// A notice: an interruption, the end of a run, a report about a job.
    Notice,
    /// Text that the agent adds to the conversation: instructions, the state of the folder.
    Injected,
    /// A bookkeeping record: settings, counts, snapshots.
    Bookkeeping,
}

impl ViewKind {
    /// The kind of an event, and its speaker if it is a message.
    pub fn of(event: &Event<'_>, context: &EventContext) -> (ViewKind, Option<String>) {
        let kind = match &event.body {
            Body::Message { role, .. } => {
                let (kind, name) = speaker(event, *role);
                return (kind, Some(name));
            }
            Body::Thinking { .. } => ViewKind::Thinking,
            Body::ToolCall { .. } => ViewKind::Call(CallArguments::of(event).map_or(CallKind::Other, |(kind, _)| kind)),
            Body::ToolResult { .. } => ViewKind::Result(context.outcome.unwrap_or(CallOutcome::Unknown)),
            Body::Compaction { .. } => ViewKind::Compaction,
            Body::Failure { .. } | Body::Stop { success: Some(false), .. } => ViewKind::Failure,
            Body::Stop { .. } => ViewKind::Notice,
            // A record of an unknown type is the agent's own business; a line that is not a record is damage.
            Body::Fact { .. } | Body::Other { name: Some(_), .. } => ViewKind::Bookkeeping,
            Body::Other { name: None, .. } => ViewKind::Notice,
        };
        (kind, None)
    }

    /// Whether it is hidden unless the reader asks for everything.
    pub fn is_hidden(self) -> bool {
        matches!(self, ViewKind::Injected | ViewKind::Bookkeeping)
    }
}

/// A piece of an event's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Markdown, as people and models write it.
    Markdown(String),
    /// Code in a language; the language may be empty.
    Code {
        /// The name of the language, or the extension of its files.
        language: String,
        /// The code.
        text: String,
    },
    /// The hunks of a unified diff of one file.
    Diff {
        /// The file.
        path: String,
        /// The hunks.
        hunks: String,
    },
    /// Output of a tool, which may contain escape sequences of a terminal.
    Output(String),
    /// Items of a plan.
    Plan(Vec<Todo>),
    /// An image, a document or a sound.
    Blob {
        /// The media type, if it is stated.
        media: Option<String>,
        /// The number of bytes, if the data is in the transcript.
        size: Option<u64>,
        /// The place of the data, if it is elsewhere.
        place: Option<String>,
        /// The data in base64, if it is in the transcript.
        data: Option<String>,
    },
}

/// What the records before an event say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventContext {
    /// The number of the call that it makes or answers, from 1.
    pub call: Option<u64>,
    /// The tool that was called, or that answered.
    pub tool: Option<Arc<str>>,
    /// What came of the call that it answers or reports on.
    pub outcome: Option<CallOutcome>,
    /// The exit code of that call, where one is stated.
    pub exit: Option<i64>,
    /// The working folder.
    pub cwd: Option<Arc<str>>,
}

/// Turns events into views. Give it the events of a conversation in order, so that results know their calls.
#[derive(Clone, Debug, Default)]
pub struct EventViewer {
    calls: Calls,
    cwd: Option<Arc<str>>,
}

impl EventViewer {
    /// What is known about the next event.
    pub fn context(&mut self, event: &Event<'_>) -> EventContext {
        let step = self.calls.add(event);
        if let Some(cwd) = event.cwd.as_deref().filter(|cwd| self.cwd.as_deref() != Some(*cwd)) {
            self.cwd = Some(Arc::from(cwd));
        }
        let decision = step.decision.or(step.later);
        EventContext {
            call: step.call,
            tool: step.tool,
            outcome: decision.map(|decision| decision.outcome),
            exit: decision.and_then(|decision| decision.exit),
            cwd: self.cwd.clone(),
        }
    }

    /// The view of the next event.
    pub fn view(&mut self, event: &Event<'_>) -> EventView {
        let context = self.context(event);
        EventView::of(event, &context)
    }
}

impl EventView {
    /// The view of an event with a known context.
    pub fn of(event: &Event<'_>, context: &EventContext) -> EventView {
        // The kind of a call depends on its input, which is read once.
        if let Body::ToolCall { name, input, .. } = &event.body {
            return context.call(event, name, input);
        }
        let (kind, speaker) = ViewKind::of(event, context);
        match &event.body {
            Body::ToolCall { name, .. } => view(kind, name),
            Body::Message { content, .. } => {
                // An interruption has no content beyond its heading.
                let is_said = UserMessage::of(event) != Some(UserMessage::Interruption);
                let typed = UserQuestion::typed_command(event).or_else(|| UserQuestion::wrapped_words(event));
                let blocks = match typed {
                    Some(words) => vec![Block::Markdown(words)],
                    None if is_said => blocks(content, Block::Markdown),
                    None => Vec::new(),
                };
                EventView { blocks, ..view(kind, &speaker.unwrap_or_default()) }
            }
            Body::Thinking { content } => {
                EventView { blocks: blocks(content, Block::Markdown), ..view(kind, "thinking") }
            }
            Body::ToolResult { content, .. } => result(event, kind, context, content),
            Body::Compaction { summary } => compaction(event, summary.as_ref()),
            Body::Failure { name, content } => {
                let heading = name.as_deref().filter(|name| !name.is_empty()).unwrap_or("error");
                let content = content.as_ref().map(|content| blocks(content, Block::Output));
                EventView { blocks: content.unwrap_or_default(), ..view(kind, heading) }
            }
            Body::Stop { reason, success, content } => {
                let reason = reason.as_deref().filter(|reason| !reason.is_empty());
                let heading =
                    reason.map_or_else(|| "end of the run".to_owned(), |reason| format!("end of the run: {reason}"));
                // The last message of a successful run was already shown, unless this is a log of runs without their messages.
                let is_log = event.extra.iter().any(|(origin, _)| origin.info().is_some_and(|info| info.traits.log));
                let content = content.as_ref().filter(|_| *success == Some(false) || is_log);
                let blocks = content.map(|content| blocks(content, Block::Markdown)).unwrap_or_default();
                EventView { blocks, ..view(kind, &heading) }
            }
            Body::Fact { fact: name, content } => {
                let content = content.as_ref().map(|content| blocks(content, Block::Output));
                EventView { blocks: content.unwrap_or_default(), ..view(kind, name) }
            }
            Body::Other { name, bytes } => {
                let text = bytes.as_ref().map(|bytes| Block::Output(bytes.decode().into_owned()));
                let heading = name.as_deref().unwrap_or("a line that is not a record");
                EventView { blocks: text.into_iter().collect(), ..view(kind, heading) }
            }
        }
    }

    /// Whether there is nothing to read: the agent's words or thoughts are empty, or encrypted.
    pub fn is_blank(&self) -> bool {
        let is_empty = |block: &Block| matches!(block, Block::Markdown(text) if text.trim().is_empty());
        matches!(self.kind, ViewKind::Thinking | ViewKind::Agent) && self.blocks.iter().all(is_empty)
    }
}

impl EventContext {
    fn call(&self, event: &Event<'_>, tool: &str, input: &Input<'_>) -> EventView {
        let Some((kind, arguments)) = CallArguments::of(event) else {
            return EventView { call: self.call, ..view(ViewKind::Call(CallKind::Other), tool) };
        };
        let mut blocks = Vec::new();
        let mut remark = None;
        let first_path = || arguments.files.first().map(|touch| self.short(&touch.path));
        let heading = match kind {
            CallKind::Command => {
                let command = arguments.command.unwrap_or_default();
                let (first, rest) = command.trim().split_once('\n').unwrap_or((command.trim(), ""));
                if !rest.is_empty() {
                    blocks.push(Block::Code { language: "sh".to_owned(), text: rest.to_owned() });
                }
                format!("$ {first}")
            }
            CallKind::Edit => {
                let changes = requested_changes(event);
                for change in &changes {
                    blocks.push(Block::Diff { path: self.short(&change.path), hunks: change.diff.clone() });
                }
                blocks.retain(|block| !matches!(block, Block::Diff { hunks, .. } if hunks.is_empty()));
                let lines = changes.iter().fold((0, 0), |sum, change| (sum.0 + change.added, sum.1 + change.removed));
                remark = (lines != (0, 0)).then(|| format!("+{} -{}", grouped(lines.0), grouped(lines.1)));
                self.edit_heading(&arguments, &changes, tool)
            }
            CallKind::Read => {
                let range = line_range(input).map(|range| format!(" {range}")).unwrap_or_default();
                let verb = if arguments.files.iter().all(|touch| touch.how == TouchHow::Read) { "Read" } else { tool };
                first_path().map_or_else(|| tool.to_owned(), |path| format!("{verb} {path}{range}"))
            }
            CallKind::Search => {
                let pattern = arguments.pattern.unwrap_or_default();
                let place = first_path().map(|path| format!(" in {path}")).unwrap_or_default();
                format!("{tool} {pattern}{place}").trim_end().to_owned()
            }
            CallKind::Fetch => {
                let url = arguments.url.or_else(|| arguments.pattern.clone()).unwrap_or_default();
                format!("{tool} {url}").trim_end().to_owned()
            }
            CallKind::Plan => match arguments.plan {
                Some(PlanChange::All(todos, _)) => {
                    blocks.push(Block::Plan(todos));
                    "Plan".to_owned()
                }
                Some(PlanChange::Added(text)) => format!("Plan: add {text}"),
                Some(PlanChange::Changed { id, status, text }) => {
                    let change: Vec<String> = [text, status].into_iter().flatten().collect();
                    format!("Plan: {id} {}", change.join(", ")).trim_end().to_owned()
                }
                None => tool.to_owned(),
            },
            CallKind::Question => {
                blocks.extend(arguments.question.map(Block::Markdown));
                "Ask the user".to_owned()
            }
            CallKind::SubAgent => {
                let task = arguments.task.unwrap_or_default();
                let about = task.title.or(task.name).unwrap_or_default();
                let kind = task.kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
                if !task.prompt.is_empty() {
                    blocks.push(Block::Markdown(task.prompt));
                }
                format!("Sub-agent{kind} {about}").trim_end().to_owned()
            }
            CallKind::Other => {
                blocks.extend(input_block(input));
                tool.to_owned()
            }
        };
        EventView { remark, blocks, call: self.call, ..view(ViewKind::Call(kind), &heading) }
    }

    fn edit_heading(
        &self,
        arguments: &CallArguments,
        changes: &[crate::changes::RequestedChange],
        tool: &str,
    ) -> String {
        match changes {
            [] => {
                let path = arguments.files.first().map(|touch| self.short(&touch.path));
                path.map_or_else(|| tool.to_owned(), |path| format!("{tool} {path}"))
            }
            [one] => {
                let path = self.short(&one.path);
                match &one.kind {
                    RequestedKind::Edit => format!("Edit {path}"),
                    RequestedKind::Write => format!("Write {path}"),
                    RequestedKind::Delete => format!("Delete {path}"),
                    RequestedKind::Move(to) => format!("Move {path} to {}", self.short(to)),
                }
            }
            several => {
                let mut paths: Vec<String> = several.iter().map(|change| self.short(&change.path)).collect();
                paths.dedup();
                format!("Edit {}", paths.join(", "))
            }
        }
    }

    /// A path as people write it: below the working folder, without the folder.
    fn short(&self, path: &str) -> String {
        let below = self.cwd.as_deref().and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
        below.filter(|below| !below.is_empty()).unwrap_or(path).to_owned()
    }
}

fn view(kind: ViewKind, heading: &str) -> EventView {
    EventView { kind, heading: heading.to_owned(), remark: None, blocks: Vec::new(), call: None }
}

/// Who speaks, and whether a person typed it.
fn speaker(event: &Event<'_>, role: Role) -> (ViewKind, String) {
    let name = |usual: &str| event.from.as_deref().filter(|from| *from != role.name()).unwrap_or(usual).to_owned();
    match role {
        Role::User => match UserMessage::of(event) {
            // The agent writes markup around a command that a person typed.
            Some(UserMessage::Injected) if UserQuestion::typed_command(event).is_some() => {
                (ViewKind::User, name("You"))
            }
            Some(UserMessage::Injected) => (ViewKind::Injected, "added by the agent".to_owned()),
            Some(UserMessage::JobNotice) => (ViewKind::Notice, "report about a job".to_owned()),
            Some(UserMessage::Interruption) => (ViewKind::Notice, "interrupted by the user".to_owned()),
            // The main agent gives a sub-agent its task.
            Some(UserMessage::Typed) | None if event.thread.is_some() => (ViewKind::User, name("Main agent")),
            Some(UserMessage::Typed) | None => (ViewKind::User, name("You")),
        },
        Role::Assistant => {
            let model = event.model.as_deref().filter(|model| !model.is_empty());
            (ViewKind::Agent, name(model.unwrap_or("Agent")))
        }
        Role::System | Role::Developer => (ViewKind::Injected, name(role.name())),
        Role::Tool => (ViewKind::Result(CallOutcome::Unknown), name("an unknown call")),
        Role::Unknown => (ViewKind::Notice, name("message")),
    }
}

/// The heading of a result whose call is unknown.
pub(super) const UNKNOWN_TOOL: &str = "result";

fn result(event: &Event<'_>, kind: ViewKind, context: &EventContext, content: &Content<'_>) -> EventView {
    let failure = context.outcome.filter(|outcome| outcome.is_failure()).map(|outcome| outcome.name().to_owned());
    let exit = context.exit.filter(|exit| *exit != 0).map(|exit| format!("exit {exit}"));
    let words: Vec<String> = [failure, exit].into_iter().flatten().collect();
    let heading = context.tool.as_deref().unwrap_or(UNKNOWN_TOOL);
    let remark = (!words.is_empty()).then(|| words.join(", "));
    let mut blocks = blocks(content, Block::Output);
    if let Some(Block::Output(text)) = blocks.first_mut() {
        *text = output_without_header(event, text).to_owned();
    }
    EventView { remark, blocks, call: context.call, ..view(kind, heading) }
}

fn compaction(event: &Event<'_>, summary: Option<&Content<'_>>) -> EventView {
    let details = CompactionDetails::of(event);
    let remark = match (details.tokens_before.filter(|tokens| *tokens > 0), details.tokens_after) {
        (Some(before), Some(after)) if after <= before => {
            Some(format!("dropped {} of {} tokens", grouped(before - after), grouped(before)))
        }
        (Some(before), Some(after)) => Some(format!("{} to {} tokens", grouped(before), grouped(after))),
        (Some(before), None) => Some(format!("{} tokens before it", grouped(before))),
        _ => None,
    };
    let blocks = summary.map(|summary| blocks(summary, Block::Markdown)).unwrap_or_default();
    EventView { remark, blocks, ..view(ViewKind::Compaction, "compaction") }
}

/// The blocks of a content; `text` makes a block of a text.
fn blocks(content: &Content<'_>, text: fn(String) -> Block) -> Vec<Block> {
    let pieces = match content {
        Content::Text(one) => {
            return Vec::from_iter(Some(one.decode().into_owned()).filter(|one| !one.is_empty()).map(text));
        }
        Content::Pieces(pieces) => pieces,
    };
    let mut out = Vec::new();
    for piece in pieces {
        out.push(match &piece.kind {
            PieceKind::Text(one) => text(one.decode().into_owned()),
            PieceKind::Blob { media, data } => blob(media.as_deref(), data),
            PieceKind::Other(raw) => Block::Code { language: "json".to_owned(), text: compact(raw).into_owned() },
        });
    }
    out
}

fn blob(media: Option<&str>, data: &Data<'_>) -> Block {
    let inline = |media: Option<&str>, base64: &str| {
        let size = Some(base64.len() as u64 / 4 * 3);
        Block::Blob { media: media.map(str::to_owned), size, place: None, data: Some(base64.to_owned()) }
    };
    match data {
        Data::Inline(base64) => inline(media, &base64.decode()),
        Data::Url(place) | Data::File(place) => {
            let place = place.decode();
            // A URL may contain the data itself.
            if let Some((stated, base64)) = place.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
                return inline(Some(stated), base64);
            }
            Block::Blob { media: media.map(str::to_owned), size: None, place: Some(place.into_owned()), data: None }
        }
    }
}

/// The input of a call of an unknown kind: its fields, or its text.
fn input_block(input: &Input<'_>) -> Option<Block> {
    match input {
        Input::Json(raw) if matches!(raw.trim(), "{}" | "null" | "\"\"") => None,
        Input::Json(raw) => Some(Block::Code { language: "json".to_owned(), text: compact(raw).into_owned() }),
        Input::Text(text) => Some(Block::Code { language: String::new(), text: text.decode().into_owned() }),
    }
}

/// The lines that a call reads: `10-40`, `from 10`.
fn line_range(input: &Input<'_>) -> Option<String> {
    let Input::Json(raw) = input else { return None };
    let object = Object::parse(raw)?;
    let number = |keys: [&str; 3]| -> Option<u64> {
        keys.iter().find_map(|key| object.peek(key)?.trim_matches('"').parse().ok())
    };
    if let Some(range) = object.peek("view_range").and_then(items) {
        let ends: Vec<u64> = range.iter().filter_map(|end| end.parse().ok()).collect();
        return match ends.as_slice() {
            [from, to] => Some(format!("{from}-{to}")),
            [from] => Some(format!("from {from}")),
            _ => None,
        };
    }
    let (from, to) = (number(["start_line", "startLine", "line_start"]), number(["end_line", "endLine", "line_end"]));
    let (offset, limit) = (number(["offset", "offset", "offset"]), number(["limit", "limit", "limit"]));
    match (from.or(offset), to, limit) {
        (Some(from), Some(to), _) => Some(format!("{from}-{to}")),
        (Some(from), None, Some(limit)) => Some(format!("{from}-{}", from.saturating_add(limit).saturating_sub(1))),
        (Some(from), None, None) => Some(format!("from {from}")),
        (None, None, Some(limit)) => Some(format!("1-{limit}")),
        (None, Some(to), _) => Some(format!("1-{to}")),
        (None, None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &'static str, input: &'static str) -> EventView {
        let body = Body::ToolCall { call: Some("c1".into()), name: tool.into(), input: Input::Json(input.into()) };
        EventViewer::default().view(&Event { cwd: Some("/w".into()), ..Event::new(body) })
    }

    #[test]
    fn calls_read_as_people_write_them() {
        for (tool, input, heading) in [
            ("Bash", r#"{"command":"git diff\nls"}"#, "$ git diff"),
            ("shell", r#"{"command":["bash","-lc","ls -a"]}"#, "$ ls -a"),
            ("Edit", r#"{"file_path":"/w/src/a.rs","old_string":"a","new_string":"b"}"#, "Edit src/a.rs"),
            ("Write", r#"{"file_path":"/w/b.txt","content":"x"}"#, "Write b.txt"),
            ("Read", r#"{"file_path":"/w/src/a.rs","offset":10,"limit":31}"#, "Read src/a.rs 10-40"),
            ("Read", r#"{"file_path":"/etc/hosts"}"#, "Read /etc/hosts"),
            ("Grep", r#"{"pattern":"fn main","path":"/w/src"}"#, "Grep fn main in src"),
            ("WebFetch", r#"{"url":"https://a.example"}"#, "WebFetch https://a.example"),
            ("Task", r#"{"subagent_type":"Explore","description":"Look","prompt":"p"}"#, "Sub-agent (Explore) Look"),
            ("TodoWrite", r#"{"todos":[{"content":"a","status":"pending"}]}"#, "Plan"),
            ("mcp__x__y", r#"{"a":1}"#, "mcp__x__y"),
        ] {
            assert_eq!(call(tool, input).heading, heading);
        }
        assert_eq!(
            call("Edit", r#"{"file_path":"/w/a","old_string":"a\n","new_string":"b\n"}"#).remark.as_deref(),
            Some("+1 -1")
        );
    }

    #[test]
    fn a_result_knows_its_tool_and_how_it_failed() {
        let mut viewer = EventViewer::default();
        let input = Input::Json(r#"{"command":"false"}"#.into());
        viewer.view(&Event::new(Body::ToolCall { call: Some("call-1".into()), name: "Bash".into(), input }));
        let content = Content::text("boom");
        let result = Body::ToolResult { call: Some("call-1".into()), name: None, content, error: Some(true) };
        let seen = viewer.view(&Event::new(result));
        assert_eq!((seen.heading.as_str(), seen.remark.as_deref()), ("Bash", Some("failed")));
        assert_eq!(seen.blocks, [Block::Output("boom".to_owned())]);
    }
}
