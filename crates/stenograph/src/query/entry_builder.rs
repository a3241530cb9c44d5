//! The fold that turns events into entries: it remembers what later events do not repeat. It can be saved between two
//! events, so that an index that continues sees the same as a scan from the start.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::entry::{self, Entry};
use crate::calls::Calls;
use crate::evidence::nested_events;
use crate::format::Format;
use crate::model::{Body, Content, Event, Kind, Role, StopReason, fingerprint, is_lasting_id, speaker};
use crate::text::keep_last;
use crate::time::Time;

/// Creates the search entries of one source from its events, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "SavedBuilder", into = "SavedBuilder")]
pub struct EntryBuilder {
    model: Option<Arc<str>>,
    branch: Option<Arc<str>>,
    cwd: Option<Arc<str>>,
    calls: Calls,
    /// A fingerprint of the records so far that have neither id nor time, and of the sessions that they name. A copy has the same
    /// up to where it differs; another session that begins with the same words has not.
    chain: u64,
    /// Whether its source is a text for people, next to which an exact source may have the same content.
    is_for_people: bool,
    /// The start of the session according to the header of the source: the time of every event without one.
    header_time: Option<i64>,
}

impl EntryBuilder {
    /// The same builder, for a source of this format.
    pub fn through(self, format: &dyn Format) -> EntryBuilder {
        EntryBuilder { is_for_people: format.info().traits.lossy, ..self }
    }

    /// Adds the next event and returns its entry; `None` if it has nothing to find.
    pub fn entry<'e>(&mut self, event: &'e Event<'_>) -> Option<Entry<'e>> {
        keep_last(&mut self.model, event.model.as_deref());
        keep_last(&mut self.branch, event.branch_name());
        keep_last(&mut self.cwd, event.cwd.as_deref());
        let step = self.calls.add(event);
        let tool: Option<Cow<'e, str>> = match &event.body {
            Body::ToolCall { name, .. } | Body::ToolResult { name: Some(name), .. } => Some(Cow::Borrowed(name)),
            _ => step.tool.as_deref().map(|tool| Cow::Owned(tool.to_owned())),
        };
        let error = step.has_failed() || is_error(event);
        let time = event.time.as_ref().and_then(Time::to_millis);
        if matches!(event.body, Body::Fact { fact: crate::model::Fact::Session, .. }) {
            self.header_time = self.header_time.or(time);
        }
        let texts = match entry::texts_of(event) {
            Some(texts) => texts,
            // A failure is found by its kind, even if its record has no text.
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

    /// Adds the next event and returns all entries under its number: its own, then those of the record nested in its
    /// record. All searches use this function, so that they find the same.
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

    /// The same for an event of a nested record. Its fields do not apply to later events.
    pub fn nested<'e>(&mut self, event: &'e Event<'_>) -> Option<Entry<'e>> {
        let before = (self.model.clone(), self.branch.clone(), self.cwd.clone());
        let entry = self.entry(event);
        (self.model, self.branch, self.cwd) = before;
        entry
    }

    /// The key that copies of a record share: its id, otherwise its time, with its part number and its content.
    fn key(&mut self, event: &Event<'_>, said: u64) -> u64 {
        let id = event.id.as_deref().filter(|id| !id.is_empty());
        let time = event.time.as_ref().map(|time| time.text.as_ref());
        let record = match (id, time) {
            (Some(id), Some(time)) if !is_lasting_id(id) => mixed([fingerprint(0, id), fingerprint(0, time), 0]),
            (Some(id), _) => fingerprint(1, id),
            (None, Some(time)) => fingerprint(2, time),
            (None, None) => {
                let session = event.session.as_deref().map_or(1, |session| fingerprint(3, session));
                self.chain = mixed([self.chain, said, session]);
                self.chain
            }
        };
        mixed([record, said, u64::from(event.part.index) << 8 | event.kind() as u64])
    }

    /// The state, for continuing later.
    pub fn save(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// A builder that continues from a saved state. An unreadable state gives a new builder.
    pub fn restore(saved: &str) -> EntryBuilder {
        serde_json::from_str(saved).unwrap_or_default()
    }
}

/// The state of a builder as it is saved.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedBuilder {
    model: Option<String>,
    branch: Option<String>,
    cwd: Option<String>,
    chain: u64,
    time: Option<i64>,
    calls: Calls,
}

impl From<EntryBuilder> for SavedBuilder {
    fn from(builder: EntryBuilder) -> SavedBuilder {
        let EntryBuilder { model, branch, cwd, calls, chain, header_time, is_for_people: _ } = builder;
        let text = |text: Option<Arc<str>>| text.as_deref().map(str::to_owned);
        SavedBuilder { model: text(model), branch: text(branch), cwd: text(cwd), chain, time: header_time, calls }
    }
}

impl From<SavedBuilder> for EntryBuilder {
    fn from(saved: SavedBuilder) -> EntryBuilder {
        let SavedBuilder { model, branch, cwd, chain, time, calls } = saved;
        let text = |text: Option<String>| text.map(Arc::from);
        let (model, branch, cwd) = (text(model), text(branch), text(cwd));
        EntryBuilder { model, branch, cwd, calls, chain, is_for_people: false, header_time: time }
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

/// Whether the run itself failed here. The fold [`Calls`] decides the outcome of calls.
fn is_error(event: &Event<'_>) -> bool {
    match &event.body {
        Body::Stop { reason, success, .. } => StopReason::is_failure(reason.as_deref(), *success),
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

/// Whether an event without a mark may repeat another: a final message repeats an answer, and a title or a queued prompt is
/// recorded many times. Failures are always shown.
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

/// The speaker of an event's text, as a number for fingerprints: facts with text repeat what the user asked, and final
/// messages repeat what the assistant answered.
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

/// A fingerprint of an event's content, and one that all repetitions share. Calls and results are repeated in other words,
/// but with their id.
fn fingerprints(event: &Event<'_>, texts: &[Cow<'_, str>]) -> (u64, u64) {
    let joined = match texts {
        [] => Cow::Borrowed(""),
        [one] => Cow::Borrowed(one.as_ref()),
        many => Cow::Owned(many.join("\n\n")),
    };
    let kind = event.kind() as u64;
    let said = fingerprint(voice(event).unwrap_or(kind << 8), &joined);
    let twin = match event.call() {
        Some(call) => fingerprint(kind << 16, call),
        None => said,
    };
    (said, twin)
}

/// The most texts of one event that may be repeated alone.
const PIECES_MAX: usize = 64;

/// The fingerprints of the texts of an event that has several, because each may be repeated alone; and of the content of a
/// call or a result, because a text for people repeats it without the id.
fn piece_twins(event: &Event<'_>, said: u64, texts: &[Cow<'_, str>]) -> Vec<u64> {
    // A text for people states a failure without its name.
    let failure = (event.kind() == Kind::Failure).then_some((Kind::Failure as u64) << 8);
    match (speaker(&event.body).or(failure), texts) {
        _ if event.call().is_some() => vec![said],
        (Some(speaker), [_, _, ..]) => texts.iter().take(PIECES_MAX).map(|text| fingerprint(speaker, text)).collect(),
        _ => Vec::new(),
    }
}

fn mixed(parts: [u64; 3]) -> u64 {
    xxh3_64_with_seed(parts.map(u64::to_le_bytes).as_flattened(), 0)
}

#[cfg(test)]
mod tests;
