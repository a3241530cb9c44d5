//! Makes Claude Code's records from the events of other systems, so that Claude Code can go on from them. It makes one record an
//! event, as Claude Code does, chained by `parentUuid`. What Claude Code has no record for is left out.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::answer::{Answer, Answers};
use super::record::NAMELESS;
use super::write::nested;
use crate::formats::anthropic::{block_of, content_value, is_sayable_content};
use crate::json::Draft;
use crate::model::{Body, Content, Event, Outline, Role, is_uuid};
use crate::synthesizer::Synthesizer;
use crate::text::{Text, quote};
use crate::time::Time;
use crate::write::Output;
use crate::write::Ownership;

/// Makes records.
#[derive(Debug)]
pub struct Foreign {
    stand_ins: Synthesizer,
    session: String,
    /// The last record of each conversation, by the fingerprint of the conversation's name.
    last: HashMap<u64, String>,
    /// The last record made of each source record, by the fingerprint of the source record's id; `None` where it has that id.
    made: HashMap<u64, Option<Box<str>>>,
    answers: Answers,
    /// Whether the last record put the conversation so far aside.
    at_boundary: bool,
}

impl Foreign {
    /// Makes the records of a session.
    pub fn new(outline: &Outline) -> Foreign {
        let stated = outline.session.clone().filter(|id| is_uuid(id));
        Foreign {
            stand_ins: Synthesizer::new(outline),
            session: stated.unwrap_or_else(|| outline.invent_uuid("session", 0)),
            last: HashMap::new(),
            made: HashMap::new(),
            answers: Answers::default(),
            at_boundary: false,
        }
    }

    /// Writes what is kept back.
    pub fn release(&mut self, out: &mut Output) {
        self.answers.release(out);
    }

    /// Takes notice of a record that is written as it is, so that what is made later follows it.
    pub fn follow(&mut self, events: &[Event<'_>]) {
        for event in events {
            match &event.body {
                Body::ToolCall { call, name, .. } => drop(self.stand_ins.pairing.call(call.as_deref(), name)),
                Body::ToolResult { call, .. } => drop(self.stand_ins.pairing.result(call.as_deref())),
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
        self.stand_ins.time(first);
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
            let made = if id == uuid { None } else { Some(uuid.into()) };
            self.made.insert(xxh3_64(id.as_bytes()), made);
        }
    }

    /// Writes the events of one record.
    pub fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        let mut passed_over: Option<&Event<'_>> = None;
        for event in events {
            if self.answers.count(event) {
                continue;
            }
            if !is_sayable(&event.body) {
                passed_over = passed_over.or(Some(event));
                continue;
            }
            // What cannot be said leaves its place in the tree and its tokens to the part after it.
            match passed_over.take().filter(|passed| passed.part.index == 0) {
                Some(Event { part, usage, .. }) => {
                    let event = Event { part: *part, usage: event.usage.or(*usage), ..event.clone() };
                    self.event(&event, out);
                }
                None => self.event(event, out),
            }
        }
    }

    /// Writes one event.
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
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
                self.user(event, content_value(content, Ownership::Foreign), Mark::None, out);
            }
            Body::Message { role: Role::System | Role::Developer, .. } => {}
            Body::Thinking { .. } => {
                let block = block_of(&event.body, None, None).unwrap_or_default();
                self.answer(event, format!("[{block}]"), "end_turn", out);
            }
            Body::ToolCall { call, name, .. } => {
                let call = self.stand_ins.pairing.call(call.as_deref(), name);
                let block = block_of(&event.body, Some(&call), None).unwrap_or_default();
                self.answer(event, format!("[{block}]"), "tool_use", out);
            }
            Body::ToolResult { call, .. } => {
                let pair = self.stand_ins.pairing.result(call.as_deref()).map(|(id, _)| id);
                let call = call.as_deref().map(str::to_owned).or(pair);
                let call = call.unwrap_or_else(|| self.stand_ins.pairing.orphan());
                let block = block_of(&event.body, Some(&call), None).unwrap_or_default();
                self.user(event, format!("[{block}]"), Mark::Result, out);
            }
            // Claude Code forgets what stands before a boundary: without a summary in its place, there must be none.
            Body::Compaction { summary: None } => {}
            Body::Compaction { summary: Some(summary) } => {
                if !at_boundary {
                    self.boundary(event, out);
                }
                if is_sayable_content(summary) {
                    self.user(event, content_value(summary, Ownership::Foreign), Mark::Summary, out);
                }
            }
            Body::Failure { name, content } => {
                let content = content.as_ref().map(Content::joined);
                self.failure(event, name.as_deref(), content.as_ref(), out);
            }
            Body::Fact { name, content: Some(content) } if name == "title" => {
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

    /// The id of the event's record where Claude Code can take it: it goes on only from UUIDs, and from one record for each.
    fn uuid(&mut self, event: &Event<'_>) -> String {
        let fits = |id: &&str| is_uuid(id) && !self.made.contains_key(&xxh3_64(id.as_bytes()));
        let stated = event.id.as_deref().filter(fits).map(str::to_owned);
        stated.unwrap_or_else(|| self.stand_ins.uuid())
    }

    /// The beginning of a record, in the order Claude Code writes it.
    fn head(&mut self, event: &Event<'_>, uuid: &str, link: Link) -> Draft<'static> {
        let linked = event.parent.as_deref().and_then(|parent| {
            let made = self.made.get(&xxh3_64(parent.as_bytes()))?;
            Some(made.as_deref().unwrap_or(parent))
        });
        let last = self.last.get(&thread_key(event)).map(String::as_str);
        let before = match (link, event.part.index) {
            (Link::Parent | Link::Anew, 0) => linked.or(last),
            (Link::Last, _) | (Link::Parent | Link::Anew, _) => last,
        };
        let before = before.map_or("null".to_owned(), quote);
        let outline = self.stand_ins.outline();
        let mut draft = Draft::new();
        match link {
            Link::Parent | Link::Last => draft.set("parentUuid", before),
            Link::Anew => {
                draft.set("parentUuid", "null");
                draft.set("logicalParentUuid", before);
            }
        }
        draft.set("isSidechain", event.thread.is_some().to_string());
        draft.set_opt("agentId", event.thread.as_deref().filter(|thread| *thread != NAMELESS));
        draft.set_str("userType", "external");
        let or_outline = |own: Option<&str>, known: &Option<String>| {
            own.map(str::to_owned).or_else(|| known.clone()).unwrap_or_default()
        };
        draft.set_str("cwd", &or_outline(event.cwd.as_deref(), &outline.cwd));
        draft.set_str("sessionId", &self.session);
        draft.set_str("version", &or_outline(event.version.as_deref(), &outline.version));
        draft.set_opt("requestId", event.request_id.as_deref());
        draft.set_str("gitBranch", &or_outline(event.branch.as_deref(), &outline.branch));
        self.remember(event, uuid);
        draft
    }

    fn tail(&mut self, event: &Event<'_>, uuid: &str, draft: &mut Draft<'static>) {
        draft.set_str("uuid", uuid);
        draft.set_str("timestamp", &timestamp(&self.stand_ins.time(event)));
    }

    /// Writes a record that ends the response before it.
    fn line(&mut self, draft: &Draft<'static>, out: &mut Output) {
        self.answers.end();
        self.release(out);
        out.line(draft.render(None));
    }

    /// A record of something the user said, or of a result, which Claude Code writes alike.
    fn user(&mut self, event: &Event<'_>, content: String, mark: Mark, out: &mut Output) {
        let uuid = self.uuid(event);
        let link = match mark {
            Mark::None | Mark::Result => Link::Parent,
            // It follows the boundary, whatever its event follows.
            Mark::Summary => Link::Last,
        };
        let mut draft = self.head(event, &uuid, link);
        draft.set_str("type", "user");
        let mut message = Draft::new();
        message.set_str("role", "user");
        message.set("content", content);
        draft.nest("message", message);
        if mark == Mark::Summary {
            draft.set("isVisibleInTranscriptOnly", "true");
            draft.set("isCompactSummary", "true");
        }
        self.tail(event, &uuid, &mut draft);
        match mark {
            Mark::Result => self.answers.result(draft.render(None), out),
            Mark::None | Mark::Summary => self.line(&draft, out),
        }
    }

    /// A record of something the model said. It is kept back, for its tokens may be counted in the next event.
    fn answer(&mut self, event: &Event<'_>, content: String, stop: &str, out: &mut Output) {
        let id = self.answers.response(event, thread_key(event), self.stand_ins.outline());
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Parent);
        draft.set_str("type", "assistant");
        let time = timestamp(&self.stand_ins.time(event));
        let model = event.model.as_deref().map(str::to_owned).or_else(|| self.stand_ins.outline().model.clone());
        let mut message = Draft::new();
        message.set_str("id", &id);
        message.set_str("type", "message");
        message.set_str("role", "assistant");
        message.set_str("model", model.as_deref().unwrap_or("unknown"));
        message.set("content", content);
        let stated = event.stop_reason.as_deref().filter(|reason| STOPS.contains(reason));
        let stop = Some(stated.unwrap_or(stop).to_owned());
        let usage = event.usage;
        self.answers.hold(Answer { record: draft, message, response: id, stop, uuid, time, usage }, out);
    }

    fn boundary(&mut self, event: &Event<'_>, out: &mut Output) {
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Anew);
        draft.set_str("type", "system");
        draft.set_str("subtype", "compact_boundary");
        draft.set_str("content", "Conversation compacted");
        draft.set_str("level", "info");
        draft.set("compactMetadata", "{\"trigger\":\"auto\",\"preTokens\":0}");
        self.tail(event, &uuid, &mut draft);
        self.line(&draft, out);
    }

    fn failure(&mut self, event: &Event<'_>, name: Option<&str>, content: Option<&Text<'_>>, out: &mut Output) {
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

/// Why a model stops, in the words of the Messages form.
const STOPS: [&str; 6] = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"];

/// How a record hangs on the ones before it.
#[derive(Clone, Copy)]
enum Link {
    /// It follows the record that its event follows.
    Parent,
    /// It follows the last record, whatever its event follows.
    Last,
    /// It is the root of what is still told, and only names what it would follow.
    Anew,
}

/// What makes a user's record more than that.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    /// A result: the count of tokens of the answer before it may come after it.
    Result,
    Summary,
}

/// Whether Claude Code has a record for it that says something.
fn is_sayable(body: &Body<'_>) -> bool {
    match body {
        // Claude Code keeps its system prompt to itself and would take another one for something the user said.
        Body::Message { role: Role::System | Role::Developer, .. } => false,
        Body::Message { role: Role::User | Role::Assistant | Role::Tool | Role::Unknown, content } => {
            is_sayable_content(content)
        }
        // What cannot be read of a thought is sealed by another vendor: nothing is left of it here.
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

/// An answer's content is always a list of blocks.
fn one_text(text: &Text<'_>) -> String {
    format!("[{{\"type\":\"text\",\"text\":{}}}]", text.to_json())
}

/// RFC 3339 in UTC with milliseconds, or with more digits where the moment has more.
fn timestamp(time: &Time<'_>) -> String {
    let millis = time.to_iso_millis().unwrap_or_default();
    let exact = crate::time::Time::iso(millis.as_str().into()).is_some_and(|short| short == *time);
    if exact { millis } else { time.instant().map_or(millis, |instant| instant.to_string()) }
}
