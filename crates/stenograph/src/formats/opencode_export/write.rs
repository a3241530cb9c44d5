//! Makes the document that `opencode import` reads from the events of other systems. A message holds what one answer of the model
//! said, thought and called, with the results. Events without a place in OpenCode are left out.

use crate::formats::document::{DocumentFrame, DocumentPart};
use crate::frame::Items;
use crate::json::{Draft, indent};
use crate::model::{Body, Content, Event, Input, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::quote;
use crate::write::{Writer, WriterOutput};

/// The prefix of the ids of sessions.
const SESSION: &str = "ses_";

/// The digits of the random part of an id.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How long that part is.
const RANDOM_LENGTH: usize = 14;

/// Where the conversation worked if nothing states it.
const NO_FOLDER: &str = "/";

/// Writes the document.
#[derive(Debug)]
pub(super) struct ExportWriter {
    synthesizer: Synthesizer,
    document: DocumentFrame,
    session: String,
    /// How many ids were made. The ids of OpenCode sort by time, and its new ones come after these.
    count: u64,
    /// The time of the last message: it never runs backwards.
    last_ms: i64,
    /// The id of the last question.
    question: Option<String>,
    folder: String,
    model: String,
    pending: Option<Message>,
    has_begun: bool,
    /// The sub-agent whose conversation this is.
    thread: Option<Option<String>>,
}

/// A message that may get more parts.
#[derive(Clone, Debug)]
struct Message {
    role: Speaker,
    group: Option<String>,
    id: String,
    created_ms: i64,
    completed_ms: i64,
    model: String,
    folder: String,
    question: String,
    finish: Option<String>,
    error: Option<String>,
    is_summary: bool,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
}

/// A part of a message, with its id.
#[derive(Clone, Debug)]
struct Part {
    id: String,
    start_ms: i64,
    kind: PartKind,
}

#[derive(Clone, Debug)]
enum PartKind {
    /// A JSON string.
    Text(String),
    Reasoning(String),
    Compaction,
    Tool {
        call: String,
        name: String,
        input: String,
        answer: Option<Answer>,
    },
}

/// The result of a call.
#[derive(Clone, Debug)]
struct Answer {
    output: String,
    is_error: bool,
    end_ms: i64,
}

impl ExportWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ExportWriter {
        let stated = outline.session.clone().filter(|id| id.starts_with(SESSION));
        let session = stated.unwrap_or_else(|| format!("{SESSION}{:012x}{}", 1, random(outline, SESSION, 0)));
        ExportWriter {
            synthesizer: Synthesizer::new(outline),
            document: DocumentFrame::new(Items::Array("messages"), "\n    ", "\n  "),
            session,
            count: 0,
            last_ms: outline.header.started_ms.unwrap_or_default().max(0),
            question: None,
            folder: outline.header.cwd.clone().unwrap_or_else(|| NO_FOLDER.to_owned()),
            model: outline.first_model.clone().unwrap_or_default(),
            pending: None,
            has_begun: false,
            thread: None,
        }
    }

    /// Writes the beginning of the document.
    fn begin(&mut self, out: &mut WriterOutput) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let outline = self.synthesizer.outline();
        let header = &outline.header;
        let title = outline.stated_title.as_deref().or(header.title.as_deref()).or(header.query.as_deref());
        // All messages are older than the session: their calls were those of another one.
        let created = outline.header.ended_ms.unwrap_or_default().max(self.last_ms).saturating_add(1).to_string();
        let mut info = Draft::new();
        info.set_str("id", &self.session);
        info.set_str("slug", "steno");
        info.set_str("projectID", "global");
        info.set_str("directory", &self.folder);
        info.set_str("title", title.unwrap_or("Untitled"));
        info.set_str("version", outline.first_version.as_deref().unwrap_or("0"));
        let origin = outline.original.as_deref().or(outline.session.as_deref()).filter(|id| *id != self.session);
        if let Some(origin) = origin {
            let mut original = Draft::new();
            original.set_str("session", origin);
            original.set_str("format", outline.origin);
            let mut metadata = Draft::new();
            metadata.nest("steno", original);
            info.nest("metadata", metadata);
        }
        let mut time = Draft::new();
        time.set("created", created.clone());
        time.set("updated", created);
        info.nest("time", time);
        let mut document = Draft::new();
        document.nest("info", info);
        let head = indent(&document.render(None), 0);
        out.record(format!("{},\n  \"messages\": [", head.strip_suffix("\n}").unwrap_or(&head)));
        self.document.part = DocumentPart::Items;
    }

    fn event(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        if let Some(cwd) = &event.cwd {
            self.folder = cwd.to_string();
        }
        match &event.body {
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                self.release(out);
                let text = content.joined().to_json();
                self.message(Speaker::User, event);
                self.part(event, PartKind::Text(text));
            }
            Body::Message { role: Role::Assistant, content } => {
                self.answer(event, out);
                self.part(event, PartKind::Text(content.joined().to_json()));
            }
            Body::Thinking { content } => {
                self.answer(event, out);
                self.part(event, PartKind::Reasoning(content.joined().to_json()));
            }
            Body::ToolCall { call, name, input } => {
                self.answer(event, out);
                let call = self.synthesizer.pairing.call(call.as_deref(), name);
                let tool = PartKind::Tool { call, name: name.to_string(), input: arguments(input), answer: None };
                self.part(event, tool);
            }
            Body::ToolResult { call, content, error, .. } => {
                let pair = self.synthesizer.pairing.result(call.as_deref()).map(|(id, _)| id);
                self.result(event, call.as_deref().or(pair.as_deref()), content, *error);
            }
            Body::Compaction { summary } => {
                self.release(out);
                self.message(Speaker::User, event);
                self.part(event, PartKind::Compaction);
                if let Some(summary) = summary {
                    self.release(out);
                    self.message(Speaker::Assistant, event);
                    self.part(event, PartKind::Text(summary.joined().to_json()));
                    if let Some(message) = &mut self.pending {
                        (message.is_summary, message.finish) = (true, Some("stop".to_owned()));
                    }
                    self.release(out);
                }
            }
            Body::Failure { content, .. } => {
                self.release(out);
                self.message(Speaker::Assistant, event);
                let text = content.as_ref().map_or_else(|| quote(""), |content| content.joined().to_json());
                if let Some(message) = &mut self.pending {
                    message.error = Some(text);
                }
                self.release(out);
            }
            // A session has one title, and OpenCode writes its own system prompts.
            Body::Message { role: Role::System | Role::Developer, .. }
            | Body::Fact { .. }
            | Body::Stop { .. }
            | Body::Other { .. } => {}
        }
        if let (Some(message), Some(reason)) = (&mut self.pending, &event.stop_reason)
            && message.role == Speaker::Assistant
        {
            message.finish = Some(reason.to_string());
        }
    }

    fn millis(&mut self, event: &Event<'_>) -> i64 {
        let stated = self.synthesizer.time(event).to_millis().unwrap_or_default();
        self.last_ms = self.last_ms.max(stated);
        self.last_ms
    }

    fn id(&mut self, prefix: &str) -> String {
        self.count += 1;
        let random = random(self.synthesizer.outline(), &format!("{} {prefix}", self.session), self.count);
        format!("{prefix}{:012x}{random}", self.count)
    }

    /// Begins a message.
    fn message(&mut self, role: Speaker, event: &Event<'_>) {
        let (id, created_ms) = (self.id("msg_"), self.millis(event));
        if role == Speaker::User {
            self.question = Some(id.clone());
        }
        if let Some(model) = &event.model {
            self.model = model.to_string();
        }
        let question = self.question.clone().unwrap_or_else(|| id.clone());
        self.pending = Some(Message {
            role,
            group: event.group.as_deref().map(str::to_owned),
            id,
            created_ms,
            completed_ms: created_ms,
            model: self.model.clone(),
            folder: self.folder.clone(),
            question,
            finish: None,
            error: None,
            is_summary: false,
            parts: Vec::new(),
        });
    }

    /// Ensures that the pending message is the answer of this event.
    fn answer(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let is_same = self.pending.as_ref().is_some_and(|message| {
            let is_open = |part: &Part| matches!(&part.kind, PartKind::Tool { answer: None, .. });
            let is_answered = |part: &Part| matches!(&part.kind, PartKind::Tool { answer: Some(_), .. });
            message.role == Speaker::Assistant
                && match (&message.group, &event.group) {
                    (Some(one), Some(other)) => one == other,
                    // Without ids an answer ends with the results of its calls.
                    _ => message.parts.iter().any(is_open) || !message.parts.iter().any(is_answered),
                }
        });
        if !is_same {
            self.release(out);
            self.message(Speaker::Assistant, event);
        }
    }

    fn part(&mut self, event: &Event<'_>, kind: PartKind) {
        let (id, start_ms) = (self.id("prt_"), self.millis(event));
        if let Some(message) = &mut self.pending {
            message.completed_ms = start_ms;
            message.parts.push(Part { id, start_ms, kind });
        }
    }

    fn result(&mut self, event: &Event<'_>, id: Option<&str>, content: &Content<'_>, error: Option<bool>) {
        let end_ms = self.millis(event);
        let Some(message) = &mut self.pending else { return };
        let is_it = |part: &&mut Part| match &part.kind {
            PartKind::Tool { call, answer: None, .. } => id.is_none_or(|id| id == call),
            _ => false,
        };
        let Some(part) = message.parts.iter_mut().find(is_it) else { return };
        message.completed_ms = end_ms;
        if let PartKind::Tool { answer, .. } = &mut part.kind {
            let output = content.joined().to_json();
            *answer = Some(Answer { output, is_error: error == Some(true), end_ms });
        }
    }

    /// Writes the pending message.
    fn release(&mut self, out: &mut WriterOutput) {
        if let Some(message) = self.pending.take() {
            self.document.item(indent(&message.json(&self.session), 2), out);
        }
    }
}

impl Writer for ExportWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        self.begin(out);
        for event in events {
            let thread = event.thread.as_deref();
            let own = self.thread.get_or_insert_with(|| thread.map(str::to_owned));
            if own.as_deref() == thread {
                self.event(event, out);
            }
        }
    }

    fn held(&self, out: &mut WriterOutput) {
        if let Some(message) = &self.pending {
            let separator = if self.document.written == 0 { "" } else { "," };
            out.glue(format!("{separator}\n    "));
            out.record(indent(&message.json(&self.session), 2));
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        self.begin(out);
        self.release(out);
        self.document.end(out);
        out.glue("]\n}");
    }
}

impl Message {
    fn json(&self, session: &str) -> String {
        let mut info = Draft::new();
        info.set_str("id", &self.id);
        info.set_str("sessionID", session);
        let mut time = Draft::new();
        time.set("created", self.created_ms.to_string());
        match self.role {
            Speaker::User => {
                info.set_str("role", "user");
                info.nest("time", time);
                info.set_str("agent", "build");
                let mut model = Draft::new();
                model.set_str("providerID", provider(&self.model));
                model.set_str("modelID", &self.model);
                info.nest("model", model);
            }
            Speaker::Assistant => {
                info.set_str("role", "assistant");
                time.set("completed", self.completed_ms.to_string());
                info.nest("time", time);
                info.set_str("parentID", &self.question);
                info.set_str("modelID", &self.model);
                info.set_str("providerID", provider(&self.model));
                info.set_str("mode", "build");
                info.set_str("agent", "build");
                let mut path = Draft::new();
                path.set_str("cwd", &self.folder);
                path.set_str("root", &self.folder);
                info.nest("path", path);
                // The original counts them.
                info.set("cost", "0");
                info.set("tokens", r#"{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}"#);
                let has_calls = self.parts.iter().any(|part| matches!(part.kind, PartKind::Tool { .. }));
                let usual = if has_calls { "tool-calls" } else { "stop" };
                match &self.error {
                    Some(text) => {
                        info.set("error", format!("{{\"name\":\"UnknownError\",\"data\":{{\"message\":{text}}}}}"));
                    }
                    None => info.set_str("finish", self.finish.as_deref().unwrap_or(usual)),
                }
                if self.is_summary {
                    info.set("summary", "true");
                }
            }
        }
        let mut message = Draft::new();
        message.nest("info", info);
        message.set_list("parts", self.parts.iter().map(|part| part.json(session, &self.id)));
        message.render(None)
    }
}

impl Part {
    fn json(&self, session: &str, message: &str) -> String {
        let mut draft = Draft::new();
        draft.set_str("id", &self.id);
        draft.set_str("sessionID", session);
        draft.set_str("messageID", message);
        let start = self.start_ms.to_string();
        match &self.kind {
            PartKind::Text(text) => {
                draft.set_str("type", "text");
                draft.set("text", text.clone());
            }
            PartKind::Reasoning(text) => {
                draft.set_str("type", "reasoning");
                draft.set("text", text.clone());
                draft.set("time", format!("{{\"start\":{start},\"end\":{start}}}"));
            }
            PartKind::Compaction => {
                draft.set_str("type", "compaction");
                draft.set("auto", "false");
            }
            PartKind::Tool { call, name, input, answer } => {
                draft.set_str("type", "tool");
                draft.set_str("callID", call);
                draft.set_str("tool", name);
                let mut state = Draft::new();
                let status = match answer {
                    Some(answer) if answer.is_error => "error",
                    Some(_) => "completed",
                    None => "running",
                };
                state.set_str("status", status);
                state.set("input", input.clone());
                let mut time = Draft::new();
                time.set("start", start);
                if let Some(answer) = answer {
                    state.set(if answer.is_error { "error" } else { "output" }, answer.output.clone());
                    if !answer.is_error {
                        state.set_str("title", name);
                        state.set("metadata", "{}");
                    }
                    time.set("end", answer.end_ms.to_string());
                }
                state.nest("time", time);
                draft.nest("state", state);
            }
        }
        draft.render(None)
    }
}

/// The arguments of a call as the object that they must be.
fn arguments(input: &Input<'_>) -> String {
    let json = input.to_json();
    match crate::json::Object::parse(&json) {
        Some(_) => json.into_owned(),
        None => format!("{{\"input\":{json}}}"),
    }
}

/// How the names of models begin, by their usual provider.
const PROVIDERS: &[(&str, &[&str])] =
    &[("anthropic", &["claude"]), ("openai", &["gpt", "o1", "o3", "o4", "codex"]), ("google", &["gemini"])];

/// The usual provider of a model. OpenCode asks for another one if it has none of that name.
fn provider(model: &str) -> &'static str {
    let is_its = |(_, prefixes): &&(&str, &[&str])| prefixes.iter().any(|prefix| model.starts_with(prefix));
    PROVIDERS.iter().find(is_its).map_or("unknown", |(name, _)| name)
}

/// The random part of an id: the same for the same session and purpose.
fn random(outline: &Outline, purpose: &str, number: u64) -> String {
    let mut rest = outline.invent(purpose, number);
    let mut digit = || {
        let at = (rest % DIGITS.len() as u128) as usize;
        rest /= DIGITS.len() as u128;
        DIGITS.get(at).copied().map_or('0', char::from)
    };
    (0..RANDOM_LENGTH).map(|_| digit()).collect()
}
