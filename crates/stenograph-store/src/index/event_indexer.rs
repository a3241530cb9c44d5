//! Indexes the events of one source: writes a document for each, and collects what the catalogue records about all of them. It
//! does not choose the source or where reading starts.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use stenograph::format::Format;
use stenograph::ledger::{CallCounter, CallDetail, CountingState, SourceUsage};
use stenograph::model::{Body, Event, Note, Role};
use stenograph::query::{Entry, EntryBuilder, Has, Is, Touch};
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatCheck};
use stenograph::text::one_line;

use super::assign_session::SessionClaims;
use super::catalogue::{SourceRow, SourceSummary};
use super::saved_status::StatusCollector;
use super::text::{TextWriter, twin};
use crate::Error;

/// How many types of unknown records of a source are counted separately.
const UNKNOWN_MAX: usize = 64;

/// How many calls one page of the ledger holds, which bounds the memory for counting a source of any length.
const ROWS_MAX: usize = 4096;

/// How many characters of the type of an unknown record are stored: real types are words.
const UNKNOWN_LENGTH_MAX: usize = 200;

/// How many texts of a source are remembered to detect repetitions. They are saved with the state for the next run.
const STATED_MAX: usize = 64;

/// How many sub-agents of a source are counted separately.
const NESTED_MAX: usize = 256;

/// What the sub-agents did whose records are inside records of a source, by sub-agent: calls and failures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct NestedCounts(BTreeMap<String, (u64, u64)>);

impl NestedCounts {
    /// Counts an event of a nested record.
    fn add(&mut self, event: &Event<'_>, entry: &Entry<'_>) {
        let is_call = matches!(event.body, Body::ToolCall { .. }) && !event.restates;
        let is_error = entry.error && !entry.restates;
        if !is_call && !is_error {
            return;
        }
        let thread = event.thread.as_deref().unwrap_or_default();
        // No file has the empty name, so what does not fit always counts.
        let thread = if self.0.len() < NESTED_MAX || self.0.contains_key(thread) { thread } else { "" };
        let (calls, errors) = self.0.entry(thread.to_owned()).or_default();
        *calls += u64::from(is_call);
        *errors += u64::from(is_error);
    }

    /// Each sub-agent with its calls and failures.
    pub fn by_thread(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.0.iter().map(|(thread, (calls, errors))| (thread.as_str(), *calls, *errors))
    }
}

pub(super) struct EventIndexer<'w> {
    writer: &'w TextWriter,
    batch: u64,
    /// The group of the documents.
    pub doc_group: u64,
    /// The number of the next event.
    pub event: u64,
    /// The state of reading after the events so far.
    pub entry_builder: EntryBuilder,
    /// A summary of the events so far.
    pub summary: SourceSummary,
    /// Detects records that only repeat others. A log's claims are trusted, because it repeats the whole conversation again and
    /// again.
    repeats: Option<RepeatCheck>,
    /// Files touched, not yet saved: group, event, file, time.
    pub touches: Vec<(u64, u64, Touch, Option<i64>)>,
    /// Unknown records, not yet saved, by type: how many, and the line of the first.
    pub unknown: BTreeMap<String, (u64, u64)>,
    /// What the events so far say about their session.
    pub claims: SessionClaims,
    /// Calls and failures in nested records.
    pub nested: NestedCounts,
    /// What the events of earlier runs say about their session.
    pub claims_before: SessionClaims,
    /// The key of the user's first message.
    pub first_key: Option<u64>,
    /// Collects the status of the run.
    pub status: Option<StatusCollector>,
    /// The keys of all events, if the caller needs them to find removed events.
    pub keys: Option<HashSet<u64>>,
    /// Usage of model calls since the last full page.
    counting: CallCounter,
    /// The first error. A sink cannot stop its reader.
    pub failed: Option<Error>,
}

impl<'w> EventIndexer<'w> {
    fn new(
        writer: &'w TextWriter,
        agent: &'static str,
        batch: u64,
        doc_group: u64,
        ledger: CountingState,
    ) -> EventIndexer<'w> {
        EventIndexer {
            writer,
            batch,
            doc_group,
            counting: CallCounter::resumed(agent, CallDetail::Tools, ledger),
            event: 0,
            entry_builder: EntryBuilder::default(),
            summary: SourceSummary::default(),
            repeats: None,
            touches: Vec::new(),
            unknown: BTreeMap::new(),
            nested: NestedCounts::default(),
            claims: SessionClaims::default(),
            claims_before: SessionClaims::default(),
            first_key: None,
            status: None,
            keys: None,
            failed: None,
        }
    }

    /// Whether an event only repeats another. An undecided one counts until it is decided.
    fn is_repeat(&mut self, event: &Event<'_>) -> IsRepeat {
        let mut proved = 0;
        let is_repeat = match &mut self.repeats {
            Some(repeats) => repeats.is_repeat(event, &mut |_| proved += 1),
            None if event.restates => IsRepeat::Yes,
            None => IsRepeat::No,
        };
        self.summary.messages = self.summary.messages.saturating_sub(proved);
        is_repeat
    }

    fn notice(&mut self, event: &Event<'_>, is_repeat: IsRepeat) {
        self.claims.add(self.event, event);
        if is_repeat == IsRepeat::Yes {
            return;
        }
        let summary = &mut self.summary;
        // A message that claims to repeat one that is not there is all there is of it, so its words are the session's.
        summary.header.add(event);
        self.claims.is_query_aside = summary.header.is_query_aside;
        match &event.body {
            Body::Message { role: Role::User | Role::Assistant, .. } => summary.messages += 1,
            Body::ToolCall { .. } => summary.calls += 1,
            Body::Other { name: Some(name), .. } if !event.is_oversize() => {
                let (name, line) = (one_line(name, UNKNOWN_LENGTH_MAX), event.at.map_or(0, |at| at.line));
                if let Some((count, _)) = self.unknown.get_mut(&name) {
                    *count += 1;
                } else if self.unknown.len() < UNKNOWN_MAX {
                    self.unknown.insert(name, (1, line));
                }
            }
            _ => {}
        }
    }

    /// Makes an entry searchable.
    fn index_entry(&mut self, event: &Event<'_>, entry: &Entry<'_>) {
        let touched = entry.files.iter().map(|touch| (self.doc_group, self.event, touch.clone(), entry.time));
        self.touches.extend(touched);
        if self.failed.is_none() {
            self.failed = self.put(event, entry).err();
        }
    }

    pub(super) fn put(&mut self, event: &Event<'_>, entry: &Entry<'_>) -> Result<(), Error> {
        let mut document = self.writer.document();
        entry.texts(&mut |text| document.text(|fields| fields.text, text));
        let mut words = |field: fn(&super::text::Fields) -> tantivy::schema::Field, text: Option<&str>| {
            if let Some(text) = text {
                document.text(field, text);
            }
        };
        words(|fields| fields.tool, entry.tool.as_deref());
        words(|fields| fields.tool_name, entry.tool.as_deref());
        words(|fields| fields.model, entry.model.as_deref());
        words(|fields| fields.branch, entry.branch.as_deref());
        entry.files.iter().for_each(|touch| words(|fields| fields.file, Some(&touch.path)));
        let mut tag = |tag: String| document.text(|fields| fields.tag, &tag);
        tag(format!("is:{}", Is::Kind(entry.kind).name()));
        if entry.error {
            tag(format!("is:{}", Is::Error.name()));
        }
        if let Some(role) = entry.role {
            tag(format!("role:{}", role.name()));
        }
        Has::ALL.iter().filter(|has| has.is_in(entry)).for_each(|has| tag(format!("has:{}", has.name())));
        let at = event.at.unwrap_or_default();
        document.number(|fields| fields.failed, u64::from(entry.error));
        document.number(|fields| fields.doc_group, self.doc_group);
        document.number(|fields| fields.batch, self.batch);
        document.number(|fields| fields.event, self.event);
        document.number(|fields| fields.offset, at.offset);
        document.number(|fields| fields.length, at.length);
        document.number(|fields| fields.line, at.line);
        document.number(|fields| fields.part, u64::from(event.part.index));
        document.number(|fields| fields.key, entry.key);
        let twin = if entry.restates { twin::restated(entry.twin) } else { twin::stated(entry.twin) };
        document.number(|fields| fields.twin, twin);
        for twin in &entry.piece_twins {
            document.number(|fields| fields.twin, twin::piece(*twin));
        }
        if let Some(time) = entry.time {
            document.time(time);
        }
        self.writer.add(document)
    }
}

impl<'w> EventIndexer<'w> {
    /// Resumes at the saved state of a source.
    pub(super) fn resumed(
        writer: &'w TextWriter,
        format: &dyn Format,
        batch: u64,
        row: &SourceRow,
        ledger: CountingState,
    ) -> EventIndexer<'w> {
        let saved: SavedReading = serde_json::from_str(&row.reading_state).unwrap_or_default();
        let SavedReading { messages, calls, errors, notes, repeats, claims, nested, entries } = saved;
        let mut summary = SourceSummary { messages, calls, errors, notes, ..row.summary.clone() };
        summary.header.is_query_aside = claims.is_query_aside;
        EventIndexer {
            event: row.doc_group_events,
            entry_builder: entries.through(format),
            summary,
            repeats: RepeatCheck::for_format(format).map(|_| RepeatCheck::remembering(STATED_MAX).restore(&repeats)),
            first_key: row.first_key,
            nested,
            claims_before: claims.clone(),
            claims,
            ..EventIndexer::new(writer, format.info().agent, batch, row.doc_group, ledger)
        }
    }

    /// Whether the current ledger page is full.
    pub(super) fn is_page_full(&self) -> bool {
        self.counting.rows() >= ROWS_MAX
    }

    /// Takes the current ledger page. Later events start a new one.
    pub(super) fn turn_page(&mut self) -> SourceUsage {
        self.counting.take_part()
    }

    /// The state that the next run needs to resume here. Counts that later events change are saved as they are now.
    pub(super) fn state(&self) -> String {
        let SourceSummary { messages, calls, errors, notes, .. } = self.summary;
        let saved = SavedReading {
            messages,
            calls,
            errors,
            notes,
            repeats: self.repeats.as_ref().map(RepeatCheck::save).unwrap_or_default(),
            claims: self.claims.clone(),
            nested: self.nested.clone(),
            entries: self.entry_builder.clone(),
        };
        serde_json::to_string(&saved).unwrap_or_default()
    }
}

/// The state of reading a source, as it is saved for the next run.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedReading {
    messages: u64,
    calls: u64,
    errors: u64,
    notes: u64,
    repeats: String,
    claims: SessionClaims,
    nested: NestedCounts,
    entries: EntryBuilder,
}

impl Sink for EventIndexer<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let is_repeat = self.is_repeat(event);
        self.notice(event, is_repeat);
        if let Some(time) = &event.time {
            self.counting.begin(time);
        }
        self.counting.add(event);
        if let Some(status) = &mut self.status {
            status.add(event);
        }
        let mut entry_builder = std::mem::take(&mut self.entry_builder);
        entry_builder.entries(event, &mut |found, entry| {
            if let Some(keys) = &mut self.keys {
                keys.insert(entry.key);
            }
            if std::ptr::eq(found, event) {
                self.summary.errors += u64::from(entry.error);
                let is_said = is_repeat == IsRepeat::No && !event.restates && entry.role == Some(Role::User);
                if is_said && self.first_key.is_none() {
                    self.first_key = Some(entry.key);
                }
            } else {
                // A nested record is found under this record's number. It counts unless its sub-agent has a file of its own.
                self.nested.add(found, entry);
            }
            self.index_entry(found, entry);
        });
        self.entry_builder = entry_builder;
        self.event += 1;
    }

    fn note(&mut self, _note: Note) {
        self.summary.notes += 1;
    }
}
