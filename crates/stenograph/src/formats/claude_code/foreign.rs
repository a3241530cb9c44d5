//! Makes Claude Code's records from the events of other systems, so that Claude Code can go on from them. It makes one record an
//! event, as Claude Code does, chained by `parentUuid`. What Claude Code has no record for is left out.

use std::collections::HashMap;

use xxhash_rust::xxh3::xxh3_64;

use super::record::NAMELESS;
use super::write::{nested, put_cost, usage_draft};
use crate::formats::anthropic::{Origin, block_of, content_value, is_sayable_content};
use crate::json::Draft;
use crate::model::{Body, Content, Event, Kind, Outline, Role, Usage};
use crate::standin::StandIns;
use crate::text::{Text, quote};
use crate::time::Time;
use crate::write::Output;

/// Makes records.
#[derive(Debug)]
pub struct Foreign {
    stand_ins: StandIns,
    session: String,
    /// The last record of each conversation, by the fingerprint of the conversation's name.
    last: HashMap<u64, String>,
    /// The last record made of each source record, by the fingerprint of the source record's id; `None` where it has that id.
    made: HashMap<u64, Option<Box<str>>>,
    /// The last answer, kept back until it is known whether a count of its tokens follows.
    held: Option<Answer>,
    /// The results that follow the answer that is kept back.
    after: Vec<String>,
    /// Whether the last record put the conversation so far aside.
    at_boundary: bool,
    /// The response that the next answer goes on with, where its source does not say: its conversation and its id.
    open: Option<(u64, String)>,
    answers: u64,
}

/// A record with an answer of the model, not yet written.
#[derive(Debug)]
struct Answer {
    record: Draft<'static>,
    message: Draft<'static>,
    /// The id of the response it is a part of.
    response: String,
    /// Why the model stopped; not known before its response is at an end.
    stop: Option<String>,
    uuid: String,
    time: String,
    usage: Option<Usage>,
}

impl Foreign {
    /// Makes the records of a session.
    pub fn new(outline: &Outline) -> Foreign {
        let stated = outline.session.clone().filter(|id| is_uuid(id));
        Foreign {
            stand_ins: StandIns::new(outline),
            session: stated.unwrap_or_else(|| outline.invent_uuid("session", 0)),
            last: HashMap::new(),
            made: HashMap::new(),
            held: None,
            after: Vec::new(),
            at_boundary: false,
            open: None,
            answers: 0,
        }
    }

    /// Writes what is kept back.
    pub fn release(&mut self, out: &mut Output) {
        if let Some(Answer { mut record, mut message, stop, uuid, time, usage, .. }) = self.held.take() {
            message.set("stop_reason", stop.as_deref().map_or_else(|| "null".to_owned(), quote));
            message.set("stop_sequence", "null");
            // Claude Code adds up the usage of every answer, and expects one.
            let usage = usage.unwrap_or_default();
            let (input, output) = (usage.input.or(Some(0)), usage.output.or(Some(0)));
            message.nest("usage", usage_draft(&Usage { input, output, ..usage }));
            put_cost(&usage, &mut record);
            record.nest("message", message);
            record.set_str("uuid", &uuid);
            record.set_str("timestamp", &time);
            out.line(record.render(None));
        }
        self.after.drain(..).for_each(|line| out.line(line));
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
            if self.count(event) {
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

    /// Puts a count of tokens on the answer it follows; `false` when the event is none, or there is no answer to put it on.
    fn count(&mut self, event: &Event<'_>) -> bool {
        let (Body::Fact { name, .. }, Some(usage)) = (&event.body, event.usage) else { return false };
        if name != "usage" {
            return false;
        }
        self.open = None;
        let Some(answer) = self.held.as_mut().filter(|answer| answer.usage.is_none()) else { return false };
        answer.usage = Some(usage);
        true
    }

    /// Writes one event.
    fn event(&mut self, event: &Event<'_>, out: &mut Output) {
        let at_boundary = std::mem::take(&mut self.at_boundary);
        match &event.body {
            Body::Message { role: Role::Assistant, content } => {
                let content = match content {
                    Content::Text(text) => one_text(text),
                    Content::Pieces(_) => content_value(content, Origin::Foreign),
                };
                self.answer(event, content, "end_turn", out);
            }
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                self.user(event, content_value(content, Origin::Foreign), Mark::None, out);
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
                    self.user(event, content_value(summary, Origin::Foreign), Mark::Summary, out);
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
                // There is no record of an end, but the answer before it says why the model stopped.
                if let Some(answer) = &mut self.held {
                    answer.stop = Some(reason.to_string());
                }
            }
            Body::Fact { .. } | Body::Stop { .. } | Body::Other { .. } => self.at_boundary = at_boundary,
        }
        if !matches!(event.kind(), Kind::Message | Kind::Thinking | Kind::ToolCall | Kind::Fact | Kind::Other) {
            self.open = None;
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
        draft.set_str("gitBranch", &or_outline(event.branch.as_deref(), &outline.branch));
        self.remember(event, uuid);
        draft
    }

    fn tail(&mut self, event: &Event<'_>, uuid: &str, draft: &mut Draft<'static>) {
        draft.set_str("uuid", uuid);
        draft.set_str("timestamp", &timestamp(&self.stand_ins.time(event)));
    }

    /// A record of something the user said, or of a result, which Claude Code writes alike.
    fn user(&mut self, event: &Event<'_>, content: String, mark: Mark, out: &mut Output) {
        self.open = None;
        let waits = mark == Mark::Result && self.held.as_ref().is_some_and(|answer| answer.usage.is_none());
        if !waits {
            self.release(out);
        }
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
        if waits {
            self.after.push(draft.render(None));
        } else {
            out.line(draft.render(None));
        }
    }

    /// The id of the response that an answer is a part of. Where the source does not say, all that a model says up to a
    /// result, a message or a count of tokens is one response.
    fn response(&mut self, event: &Event<'_>) -> String {
        if let Some(group) = &event.group {
            self.open = None;
            return group.to_string();
        }
        let thread = thread_key(event);
        let counted = event.part.index == 0 && self.held.as_ref().is_some_and(|held| held.usage.is_some());
        if let Some((_, id)) = self.open.as_ref().filter(|(of, _)| *of == thread && !counted) {
            return id.clone();
        }
        self.answers += 1;
        let id = format!("msg_{:032x}", self.stand_ins.outline().invent("answer", self.answers));
        self.open = Some((thread, id.clone()));
        id
    }

    /// A record of something the model said. It is kept back, for its tokens may be counted in the next event.
    fn answer(&mut self, event: &Event<'_>, content: String, stop: &str, out: &mut Output) {
        let id = self.response(event);
        let mut usage = event.usage;
        if let Some(held) = self.held.as_mut().filter(|held| held.response == id) {
            // Of the records of one response the last one says why it stopped and what it cost.
            held.stop = None;
            usage = usage.or_else(|| held.usage.take());
        }
        self.release(out);
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
        let stop = Some(stop.to_owned());
        self.held = Some(Answer { record: draft, message, response: id, stop, uuid, time, usage });
    }

    fn boundary(&mut self, event: &Event<'_>, out: &mut Output) {
        self.release(out);
        let uuid = self.uuid(event);
        let mut draft = self.head(event, &uuid, Link::Anew);
        draft.set_str("type", "system");
        draft.set_str("subtype", "compact_boundary");
        draft.set_str("content", "Conversation compacted");
        draft.set_str("level", "info");
        draft.set("compactMetadata", "{\"trigger\":\"auto\",\"preTokens\":0}");
        self.tail(event, &uuid, &mut draft);
        out.line(draft.render(None));
    }

    fn failure(&mut self, event: &Event<'_>, name: Option<&str>, content: Option<&Text<'_>>, out: &mut Output) {
        self.release(out);
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
        out.line(draft.render(None));
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

fn is_uuid(id: &str) -> bool {
    let fits =
        |(at, byte): (usize, u8)| if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    id.len() == 36 && id.bytes().enumerate().all(fits)
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
