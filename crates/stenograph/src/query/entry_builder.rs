//! The fold that makes entries of events: it remembers what later events do not say again. It can be saved between two events, so
//! that an index that goes on where it stopped sees what a scan from the beginning sees.

use std::borrow::Cow;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::entry::{self, Entry};
use crate::calls::Calls;
use crate::evidence::nested_events;
use crate::format::Format;
use crate::json::Object;
use crate::model::{Body, Content, Event, Kind, Role, is_lasting_id, print, speaker};
use crate::text::{keep_last, quote};
use crate::time::Time;

/// Makes the search entries of one source from its events, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntryBuilder {
    model: Option<Arc<str>>,
    branch: Option<Arc<str>>,
    cwd: Option<Arc<str>>,
    calls: Calls,
    /// What was said so far by records that have neither id nor time: a copy says the same up to where it parts.
    chain: u64,
    /// Whether its source is a text for people, beside which another one may say the same exactly.
    is_for_people: bool,
    /// When the header of the source says that its session began: the time of every event that states none.
    header_time: Option<i64>,
}

impl EntryBuilder {
    /// The same builder, for a source of this format.
    pub fn through(self, format: &dyn Format) -> EntryBuilder {
        EntryBuilder { is_for_people: format.info().traits.lossy, ..self }
    }

    /// Takes notice of the next event, and gives what of it can be found: `None` when nothing can.
    pub fn entry<'e>(&mut self, event: &'e Event<'_>) -> Option<Entry<'e>> {
        keep_last(&mut self.model, event.model.as_deref());
        keep_last(&mut self.branch, event.branch.as_deref());
        keep_last(&mut self.cwd, event.cwd.as_deref());
        let step = self.calls.add(event);
        let tool: Option<Cow<'e, str>> = match &event.body {
            Body::ToolCall { name, .. } | Body::ToolResult { name: Some(name), .. } => Some(Cow::Borrowed(name)),
            _ => step.tool.as_deref().map(|tool| Cow::Owned(tool.to_owned())),
        };
        let error = step.has_failed() || is_error(event);
        let time = event.time.as_ref().and_then(Time::to_millis);
        if matches!(event.body, Body::Fact { name: crate::model::Fact::Session, .. }) {
            self.header_time = self.header_time.or(time);
        }
        let texts = match entry::texts_of(event) {
            Some(texts) => texts,
            // A failure is found by what it is, also where its record has no words.
            None if error => Vec::new(),
            None => return None,
        };
        let files = match &event.body {
            Body::ToolCall { name, input, .. } => super::touches(name, input, self.cwd.as_deref()),
            _ => Vec::new(),
        };
        let (said, twin) = fingerprints(event, &texts);
        Some(Entry {
            kind: event.kind(),
            role: role(event),
            tool: tool.filter(|tool| !tool.is_empty()),
            model: self.model.clone(),
            branch: self.branch.clone(),
            cwd: self.cwd.clone(),
            files,
            error,
            attachment: event.content().is_some_and(entry::has_attachment),
            time: time.or(self.header_time),
            key: self.key(event, said),
            twin,
            piece_twins: piece_twins(event, said, &texts),
            restates: self.is_for_people || event.restates && !error || may_restate(event, error),
            texts,
        })
    }

    /// Takes notice of the next event, and gives everything that can be found under its number: its own entry, then the entries of the
    /// record that stands inside its record. Whoever searches goes through here, so that all find the same.
    pub fn entries(&mut self, event: &Event<'_>, each: &mut dyn FnMut(&Event<'_>, &Entry<'_>)) {
        if let Some(entry) = self.entry(event) {
            each(event, &entry);
        }
        for inner in nested_events(event) {
            if let Some(entry) = self.nested(&inner) {
                each(&inner, &entry);
            }
        }
    }

    /// The same for an event of a record that stands inside another one. What it says of itself holds for nothing that comes later.
    pub fn nested<'e>(&mut self, event: &'e Event<'_>) -> Option<Entry<'e>> {
        let before = (self.model.clone(), self.branch.clone(), self.cwd.clone());
        let entry = self.entry(event);
        (self.model, self.branch, self.cwd) = before;
        entry
    }

    /// The same for copies of a record: its id, else its time, with its part and what it says.
    fn key(&mut self, event: &Event<'_>, said: u64) -> u64 {
        let id = event.id.as_deref().filter(|id| !id.is_empty());
        let time = event.time.as_ref().map(|time| time.text.as_ref());
        let record = match (id, time) {
            (Some(id), Some(time)) if !is_lasting_id(id) => mixed([print(0, id), print(0, time), 0]),
            (Some(id), _) => print(1, id),
            (None, Some(time)) => print(2, time),
            (None, None) => {
                self.chain = mixed([self.chain, said, 1]);
                self.chain
            }
        };
        mixed([record, said, u64::from(event.part.index) << 8 | event.kind() as u64])
    }

    /// What it remembers, to go on later.
    pub fn save(&self) -> String {
        let text = |text: &Option<Arc<str>>| text.as_deref().map_or_else(|| "null".to_owned(), quote);
        format!(
            r#"{{"model":{},"branch":{},"cwd":{},"chain":"{:x}","time":{},"calls":{}}}"#,
            text(&self.model),
            text(&self.branch),
            text(&self.cwd),
            self.chain,
            self.header_time.map_or_else(|| "null".to_owned(), |time| time.to_string()),
            self.calls.save(),
        )
    }

    /// A builder that goes on from what was saved. What cannot be read gives a new builder.
    pub fn restore(saved: &str) -> EntryBuilder {
        let Some(object) = Object::parse(saved) else { return EntryBuilder::default() };
        let text = |key: &str| object.peek_str(key).map(|text| Arc::from(text.as_ref()));
        let chain = object.peek_str("chain").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        EntryBuilder {
            model: text("model"),
            branch: text("branch"),
            cwd: text("cwd"),
            calls: object.peek("calls").map(Calls::restore).unwrap_or_default(),
            chain: chain.unwrap_or(0),
            is_for_people: false,
            header_time: object.peek("time").and_then(|raw| raw.parse().ok()),
        }
    }
}

fn role(event: &Event<'_>) -> Option<Role> {
    match event.kind() {
        Kind::Message => event.role(),
        Kind::Thinking | Kind::ToolCall => Some(Role::Assistant),
        Kind::ToolResult => Some(Role::Tool),
        Kind::Fact | Kind::Compaction | Kind::Failure | Kind::Stop | Kind::Other => None,
    }
}

/// Whether the run itself failed here. What came of calls the fold [`Calls`] decides.
fn is_error(event: &Event<'_>) -> bool {
    match &event.body {
        Body::Stop { success, .. } => *success == Some(false),
        Body::Failure { .. } => true,
        Body::Fact { .. }
        | Body::Message { .. }
        | Body::Thinking { .. }
        | Body::ToolCall { .. }
        | Body::ToolResult { .. }
        | Body::Compaction { .. }
        | Body::Other { .. } => false,
    }
}

/// Whether an event that does not say so may say again what another says: a last word repeats an answer, a title or a queued
/// prompt is written down many times. What failed is told every time.
fn may_restate(event: &Event<'_>, error: bool) -> bool {
    match event.kind() {
        Kind::Fact | Kind::Stop => !error,
        Kind::Message
        | Kind::Thinking
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Compaction
        | Kind::Failure
        | Kind::Other => false,
    }
}

/// Whose words an event has, as a number for fingerprints: facts that say something say again what the user asked, last words
/// what the assistant answered.
fn voice(event: &Event<'_>) -> Option<u64> {
    let said_by = |role| speaker(&Body::Message { role, content: Content::text("") });
    match event.kind() {
        Kind::Fact => said_by(Role::User),
        Kind::Stop => said_by(Role::Assistant),
        Kind::Message
        | Kind::Thinking
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Compaction
        | Kind::Failure
        | Kind::Other => speaker(&event.body),
    }
}

/// A fingerprint of what an event says, and one that is the same for whatever says it again. Calls and results are said again in
/// other words, but with their id.
fn fingerprints(event: &Event<'_>, texts: &[Cow<'_, str>]) -> (u64, u64) {
    let joined = match texts {
        [] => Cow::Borrowed(""),
        [one] => Cow::Borrowed(one.as_ref()),
        many => Cow::Owned(many.join("\n\n")),
    };
    let kind = event.kind() as u64;
    let said = print(voice(event).unwrap_or(kind << 8), &joined);
    let twin = match event.call() {
        Some(call) => print(kind << 16, call),
        None => said,
    };
    (said, twin)
}

/// How many texts of one event may be said again alone.
const PIECES_MAX: usize = 64;

/// The fingerprints of the texts of an event that has several, for each may be said again alone; and of what a call or a result says,
/// for a text for people says it again without the id.
fn piece_twins(event: &Event<'_>, said: u64, texts: &[Cow<'_, str>]) -> Vec<u64> {
    // A text for people states a failure without its name.
    let failure = (event.kind() == Kind::Failure).then_some((Kind::Failure as u64) << 8);
    match (speaker(&event.body).or(failure), texts) {
        _ if event.call().is_some() => vec![said],
        (Some(speaker), [_, _, ..]) => texts.iter().take(PIECES_MAX).map(|text| print(speaker, text)).collect(),
        _ => Vec::new(),
    }
}

fn mixed(parts: [u64; 3]) -> u64 {
    xxh3_64_with_seed(parts.map(u64::to_le_bytes).as_flattened(), 0)
}

#[cfg(test)]
mod tests;
