//! Makes Claude Code's records from the events of other systems, so that Claude Code can resume from them. It makes one record
//! per event, as Claude Code does, linked by `parentUuid`. Events without a Claude Code record are left out.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::answer::{AnswerWriter, PendingAnswer};
use super::record::UNNAMED_THREAD;
use super::write::nested;
use crate::formats::anthropic::{block_of, content_value, is_sayable_content};
use crate::json::Draft;
use crate::model::{Body, Content, Event, Outline, Role, is_uuid};
use crate::synthesizer::Synthesizer;
use crate::text::{Text, quote};
use crate::write::Ownership;
use crate::write::WriterOutput;

/// Writes the records of another system's session.
#[derive(Debug)]
pub struct ForeignWriter {
    synthesizer: Synthesizer,
    session: String,
    /// The id of the last record of each thread, by the fingerprint of the thread's name.
    last: HashMap<u64, String>,
    /// The id of the last record written for each source record, by the fingerprint of the source record's id; `None` if they
    /// are equal.
    written_ids: HashMap<u64, Option<Box<str>>>,
    answers: AnswerWriter,
    /// Whether the last record was a compaction boundary.
    at_boundary: bool,
}

impl ForeignWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> ForeignWriter {
        let stated = outline.session.clone().filter(|id| is_uuid(id));
        ForeignWriter {
            synthesizer: Synthesizer::new(outline),
            session: stated.unwrap_or_else(|| outline.invent_uuid("session", 0)),
            last: HashMap::new(),
            written_ids: HashMap::new(),
            answers: AnswerWriter::default(),
            at_boundary: false,
        }
    }

    /// Writes the pending answer.
    pub fn release(&mut self, out: &mut WriterOutput) {
        self.answers.release(out);
    }

    /// Registers a record that is written unchanged, so that later records follow it.
    pub fn follow(&mut self, events: &[Event<'_>]) {
        for event in events {
            match &event.body {
                Body::ToolCall { call, name, .. } => drop(self.synthesizer.pairing.call(call.as_deref(), name)),
                Body::ToolResult { call, .. } => drop(self.synthesizer.pairing.result(call.as_deref())),
                Body::Fact { .. }
                | Body::Message { .. }
                | Body::Thinking { .. }
                | Body::Compaction { .. }
                | Body::Failure { .. }
                | Body::Stop { .. }
                | Body::Other { .. } => {}
            }
        }
        let Some(first) = events.first() else { return };
        self.at_boundary = matches!(first.body, Body::Compaction { summary: None });
        self.synthesizer.time(first);
        if let Some(session) = &first.session {
            self.session = session.to_string();
        }
        if let Some(id) = &first.id {
            self.remember(first, id);
        }
    }

    fn remember(&mut self, event: &Event<'_>, uuid: &str) {
        self.last.insert(thread_key(event), uuid.to_owned());
        if let Some(id) = &event.id {
            let written_id = if id == uuid { None } else { Some(uuid.into()) };
            self.written_ids.insert(xxh3_64(id.as_bytes()), written_id);
        }
    }

    /// Writes the events of one record.
    pub fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let mut skipped: Option<&Event<'_>> = None;
        for event in events {
            if self.answers.count(event) {
                continue;
            }
            if !has_record(&event.body) {
                skipped = skipped.or(Some(event));
                continue;
            }
            // An event without a record gives its place in the tree and its tokens to the next part.
            match skipped.take().filter(|skipped| skipped.part.index == 0) {
                Some(Event { part, usage, .. }) => {
                    let event = Event { part: *part, usage: event.usage.or(*usage), ..event.clone() };
                    self.event(&event, out);
                }
                None => self.event(event, out),
            }
        }
    }

    /// Writes one event.
    fn event(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let at_boundary = std::mem::take(&mut self.at_boundary);
        match &event.body {
            Body::Message { role: Role::Assistant, content } => {
                let content = match content {
                    Content::Text(text) => one_text(text),
                    Content::Pieces(_) => content_value(content, Ownership::Foreign),
                };
                self.answer(event, content, "end_turn", out);
            }
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                self.user(event, content_value(content, Ownership::Foreign), UserRecord::Message, out);
            }
            Body::Message { role: Role::System | Role::Developer, .. } => {}
            Body::Thinking { .. } => {
                let block = block_of(&event.body, None, None).unwrap_or_default();
                self.answer(event, format!("[{block}]"), "end_turn", out);
            }
            Body::ToolCall { call, name, .. } => {
                let call = self.synthesizer.pairing.call(call.as_deref(), name);
                let block = block_of(&event.body, Some(&call), None).unwrap_or_default();
                self.answer(event, format!("[{block}]"), "tool_use", out);
            }
            Body::ToolResult { call, .. } => {
                let pair = self.synthesizer.pairing.result(call.as_deref()).map(|(id, _)| id);
                let call = call.as_deref().map(str::to_owned).or(pair);
                let call = call.unwrap_or_else(|| self.synthesizer.pairing.orphan());
                let block = block_of(&event.body, Some(&call), None).unwrap_or_default();
                self.user(event, format!("[{block}]"), UserRecord::Result, out);
            }
            // Claude Code ignores everything before a boundary, so a compaction without a summary must not become one.
            Body::Compaction { summary: None } => {}
            Body::Compaction { summary: Some(summary) } => {
                if !at_boundary {
                    self.boundary(event, out);
                }
                if is_sayable_content(summary) {
                    self.user(event, content_value(summary, Ownership::Foreign), UserRecord::Summary, out);
                }
            }
            Body::Failure { name, content } => {
                let content = content.as_ref().map(Content::joined);
                self.failure(event, name.as_deref(), content.as_ref(), out);
            }
            Body::Fact { fact: name, content: Some(content) } if name == "title" => {
                self.release(out);
                let mut draft = Draft::new();
                draft.set_str("type", "custom-title");
                draft.set_text("customTitle", &content.joined());
                draft.set_str("sessionId", &self.session);
                out.line(draft.render(None));
            }
            Body::Stop { reason: Some(reason), .. } if STOPS.contains(&reason.as_ref()) => {
                self.answers.stop(reason);
            }
            Body::Stop { .. } => {
                self.answers.end();
                self.at_boundary = at_boundary;
            }
            Body::Fact { .. } | Body::Other { .. } => self.at_boundary = at_boundary,
        }
    }

    /// The id of the event's record, if Claude Code accepts it: it accepts only UUIDs, and only one record for each.
    fn uuid(&mut self, event: &Event<'_>) -> String {
        let fits = |id: &&str| is_uuid(id) && !self.written_ids.contains_key(&xxh3_64(id.as_bytes()));
        let stated = event.id.as_deref().filter(fits).map(str::to_owned);
        stated.unwrap_or_else(|| self.synthesizer.uuid())
    }

    /// The beginning of a record, in Claude Code's key order.
    fn head(&mut self, event: &Event<'_>, uuid: &str, link: Link) -> Draft<'static> {
        let linked = event.parent.as_deref().and_then(|parent| {
            let written_id = self.written_ids.get(&xxh3_64(parent.as_bytes()))?;
            Some(written_id.as_deref().unwrap_or(parent))
        });
        let last = self.last.get(&thread_key(event)).map(String::as_str);
        let before = match (link, event.part.index) {
            (Link::Parent | Link::Root, 0) => linked.or(last),
            (Link::Last, _) | (Link::Parent | Link::Root, _) => last,
        };
        let before = before.map_or("null".to_owned(), quote);
        let outline = self.synthesizer.outline();
        let mut draft = Draft::new();
        match link {
            Link::Parent | Link::Last => draft.set("parentUuid", before),
            Link::Root => {
                draft.set("parentUuid", "null");
                draft.set("logicalParentUuid", before);
            }
        }
        draft.set("isSidechain", event.thread.is_some().to_string());
        draft.set_opt("agentId", event.thread.as_deref().filter(|thread| *thread != UNNAMED_THREAD));
        draft.set_str("userType", "external");
        let or_outline = |own: Option<&str>, known: &Option<String>| {
            own.map(str::to_owned).or_else(|| known.clone()).unwrap_or_default()
        };
        draft.set_str("cwd", &or_outline(event.cwd.as_deref(), &outline.header.cwd));
        draft.set_str("sessionId", &self.session);
        draft.set_str("version", &or_outline(event.version.as_deref(), &outline.first_version));
        draft.set_opt("requestId", event.request_id.as_deref());
        draft.set_str("gitBranch", &or_outline(event.branch.as_deref(), &outline.first_branch));
        self.remember(event, uuid);
        draft
    }

    fn tail(&mut self, event: &Event<'_>, uuid: &str, draft: &mut Draft<'static>) {
        draft.set_str("uuid", uuid);
        draft.set_str("timestamp", &self.synthesizer.time(event).to_iso_exact());
    }

    /// Writes a record that ends the response before it.
    fn line(&mut self, draft: &Draft<'static>, out: &mut WriterOutput) {
        self.answers.end();
        self.release(out);
        out.line(draft.render(None));
    }

    /// Writes a user message, or a result, which Claude Code writes in the same form.
    fn user(&mut self, event: &Event<'_>, content: String, kind: UserRecord, out: &mut WriterOutput) {
        let uuid = self.uuid(event);
        let link = match kind {
            UserRecord::Message | UserRecord::Result => Link::Parent,
            // It follows the boundary, whatever the parent of its event.
            UserRecord::Summary => Link::Last,
        };
        let mut draft = self.head(event, &uuid, link);
        draft.set_str("type", "user");
        let mut message = Draft::new();
        message.set_str("role", "user");
        message.set("content", content);
        draft.nest("message", message);
        if kind == UserRecord::Summary {
            draft.set("isVisibleInTranscriptOnly", "true");
            draft.set("isCompactSummary", "true");
        }
        self.tail(event, &uuid, &mut draft);
        match kind {
            UserRecord::Result => self.answers.result(draft.render(None), out),
            UserRecord::Message | UserRecord::Summary => self.line(&draft, out),
        }
    }

    /// Holds back an answer of the model, because the next event may state its token count.
    fn answer(&mut self, event: &Event<'_>, content: String, stop: &str, out: &mut WriterOutput) {
        let id = self.answers.response(event, thread_key(event), self.synthesizer.outline());
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Parent);
        draft.set_str("type", "assistant");
        let time = self.synthesizer.time(event).to_iso_exact();
        let model =
            event.model.as_deref().map(str::to_owned).or_else(|| self.synthesizer.outline().first_model.clone());
        let mut message = Draft::new();
        message.set_str("id", &id);
        message.set_str("type", "message");
        message.set_str("role", "assistant");
        message.set_str("model", model.as_deref().unwrap_or("unknown"));
        message.set("content", content);
        let stated = event.stop_reason.as_deref().filter(|reason| STOPS.contains(reason));
        let stop = Some(stated.unwrap_or(stop).to_owned());
        let usage = event.usage;
        let is_response_stated = event.group.is_some();
        let answer =
            PendingAnswer { record: draft, message, response: id, is_response_stated, stop, uuid, time, usage };
        self.answers.hold(answer, out);
    }

    fn boundary(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Root);
        draft.set_str("type", "system");
        draft.set_str("subtype", "compact_boundary");
        draft.set_str("content", "Conversation compacted");
        draft.set_str("level", "info");
        draft.set("compactMetadata", "{\"trigger\":\"auto\",\"preTokens\":0}");
        self.tail(event, &uuid, &mut draft);
        self.line(&draft, out);
    }

    fn failure(&mut self, event: &Event<'_>, name: Option<&str>, content: Option<&Text<'_>>, out: &mut WriterOutput) {
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Parent);
        draft.set_str("type", "system");
        draft.set_str("subtype", "api_error");
        draft.set_str("level", "error");
        let mut inner = Draft::new();
        inner.set_opt("type", name);
        if let Some(content) = content {
            inner.set_text("message", content);
        }
        draft.nest("error", nested(nested(inner)));
        draft.set("retryInMs", "0");
        draft.set("retryAttempt", "0");
        draft.set("maxRetries", "0");
        self.tail(event, &uuid, &mut draft);
        self.line(&draft, out);
    }
}

/// The stop reasons of the Messages API.
const STOPS: [&str; 6] = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"];

/// Which record a record follows.
#[derive(Clone, Copy)]
enum Link {
    /// The record of its event's parent.
    Parent,
    /// The last record, whatever its event's parent.
    Last,
    /// None: it is the root of the remaining conversation, and only names the record before it.
    Root,
}

/// The kind of a user record.
#[derive(Clone, Copy, PartialEq)]
enum UserRecord {
    Message,
    /// A result: the token count of the answer before it may come after it.
    Result,
    Summary,
}

/// Whether Claude Code has a record for a body, with content.
fn has_record(body: &Body<'_>) -> bool {
    match body {
        // Claude Code does not store its system prompt, and would treat another one as a user message.
        Body::Message { role: Role::System | Role::Developer, .. } => false,
        Body::Message { role: Role::User | Role::Assistant | Role::Tool | Role::Unknown, content } => {
            is_sayable_content(content)
        }
        // A thought without readable text is encrypted by another vendor, so nothing of it fits here.
        Body::Thinking { content } => !content.is_empty(),
        Body::Fact { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Failure { .. }
        | Body::Stop { .. }
        | Body::Other { .. } => true,
    }
}

fn thread_key(event: &Event<'_>) -> u64 {
    event.thread.as_deref().map_or(0, |thread| xxh3_64(thread.as_bytes()))
}

/// The content of an answer, which is always a list of blocks.
fn one_text(text: &Text<'_>) -> String {
    format!("[{{\"type\":\"text\",\"text\":{}}}]", text.to_json())
}
