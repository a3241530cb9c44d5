//! Events of one source on their way into the index: a document each, and what the catalogue wants to know of all of them. It
//! decides nothing about which source is read or from where.

use std::collections::{BTreeMap, HashSet};

use stenograph::evidence::nested_events;
use stenograph::format::Format;
use stenograph::ledger::{CallDetail, Counting, CountingState, SourceUsage};
use stenograph::model::{Body, Event, Kind, Note, Role};
use stenograph::query::{Entry, EntryBuilder, Has, Is, Touch};
use stenograph::read::Sink;
use stenograph::repeat::{IsRepeat, RepeatCheck, RepeatVerdict, SpokenWords};

use super::catalogue::{SourceRow, Tally};
use super::text::{TextWriter, twin};
use crate::Error;
use crate::journal::Header;

/// How many session ids of a source are remembered.
const SESSIONS_MAX: usize = 8;

/// How many types of unknown records of a source are told apart.
const UNKNOWN_MAX: usize = 64;

/// How many calls stand on one page of the ledger: a source of any length is counted in as much memory as these take.
const ROWS_MAX: usize = 4096;

/// How many characters of a title or a query are kept.
const TITLE_LENGTH_MAX: usize = 200;

/// How many texts of a source are remembered to know what is said again. They are saved with what the next run needs.
const STATED_MAX: usize = 64;

/// Takes events.
pub(super) struct Intake<'w> {
    writer: &'w TextWriter,
    batch: u64,
    /// Marks the documents.
    pub lot: u64,
    /// The number of the next event.
    pub event: u64,
    /// What is known from the events so far.
    pub trail: EntryBuilder,
    /// What was counted.
    pub tally: Tally,
    /// Which records only repeat others. The claims of a log are trusted: it has the whole conversation again and again.
    repeats: Option<RepeatCheck>,
    /// Files touched since this was last emptied: lot, event, file, time.
    pub touches: Vec<(u64, u64, Touch, Option<i64>)>,
    /// Records nobody understands since this was last emptied, by type: how many, and the line of the first.
    pub unknown: BTreeMap<String, (u64, u64)>,
    /// The ids of sessions that events name.
    pub sessions: Vec<String>,
    /// The side conversation of every event so far, if it is one and the same.
    pub thread: Option<Option<String>>,
    /// What a journal says of the recording that it is.
    pub recording: Option<Header>,
    /// The key of the first thing a user said.
    pub first_key: Option<u64>,
    /// The keys of all events, where somebody wants to know what is said no more.
    pub keys: Option<HashSet<u64>>,
    /// What model calls took since the last page was turned.
    counting: Counting,
    /// What went wrong first. Readers cannot be stopped by an error.
    pub failed: Option<Error>,
}

impl<'w> Intake<'w> {
    fn new(writer: &'w TextWriter, agent: &'static str, batch: u64, lot: u64, ledger: CountingState) -> Intake<'w> {
        Intake {
            writer,
            batch,
            lot,
            counting: Counting::resumed(agent, CallDetail::Tools, ledger),
            event: 0,
            trail: EntryBuilder::default(),
            tally: Tally::default(),
            repeats: None,
            touches: Vec::new(),
            unknown: BTreeMap::new(),
            sessions: Vec::new(),
            thread: None,
            recording: None,
            first_key: None,
            keys: None,
            failed: None,
        }
    }

    /// Whether an event only repeats another. What may still turn out to be repeated counts until then.
    fn is_repeat(&mut self, event: &Event<'_>) -> IsRepeat {
        let claimed = if event.restates { IsRepeat::Yes } else { IsRepeat::No };
        let Some(repeats) = &mut self.repeats else { return claimed };
        if !matches!(&event.body, Body::Message { role: Role::User | Role::Assistant, .. }) {
            return claimed;
        }
        let mut proved = 0;
        let verdict = repeats.add(SpokenWords::of(event), &mut |_| proved += 1);
        self.tally.messages = self.tally.messages.saturating_sub(proved);
        if verdict == RepeatVerdict::Repeats { IsRepeat::Yes } else { IsRepeat::No }
    }

    fn notice(&mut self, event: &Event<'_>, is_repeat: IsRepeat) {
        let tally = &mut self.tally;
        let last = |slot: &mut Option<String>, value: &Option<std::borrow::Cow<'_, str>>| {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty() && slot.as_deref() != Some(value)) {
                *slot = Some(value.to_owned());
            }
        };
        last(&mut tally.branch, &event.branch);
        last(&mut tally.version, &event.version);
        if !event.model.as_deref().is_some_and(|model| model.starts_with('<')) {
            last(&mut tally.model, &event.model);
        }
        if tally.cwd.is_none() {
            last(&mut tally.cwd, &event.cwd);
        }
        if let Some(session) = event.session.as_deref().filter(|session| !session.is_empty())
            && self.sessions.len() < SESSIONS_MAX
            && !self.sessions.iter().any(|known| known == session)
        {
            self.sessions.push(session.to_owned());
        }
        let talks = !matches!(event.kind(), Kind::Fact | Kind::Other);
        match &self.thread {
            _ if !talks => {}
            None => self.thread = Some(event.thread.as_deref().map(str::to_owned)),
            Some(thread) if thread.as_deref() != event.thread.as_deref() => self.thread = Some(None),
            Some(_) => {}
        }
        if self.recording.is_none() && self.event == 0 {
            self.recording = Header::of(event);
        }
        if is_repeat == IsRepeat::Yes {
            return;
        }
        match &event.body {
            Body::Message { role: Role::User | Role::Assistant, .. } => tally.messages += 1,
            Body::ToolCall { .. } => tally.calls += 1,
            Body::Fact { name, content: Some(content) } if name == "title" || name == "summary" => {
                tally.title = Some(beginning(&content.joined().decode()));
            }
            Body::Other { name: Some(name), .. } if !event.is_oversize() => {
                let line = event.at.map_or(0, |at| at.line);
                if let Some((count, _)) = self.unknown.get_mut(name.as_ref()) {
                    *count += 1;
                } else if self.unknown.len() < UNKNOWN_MAX {
                    self.unknown.insert(beginning(name), (1, line));
                }
            }
            _ => {}
        }
    }

    /// Makes an entry findable.
    fn keep(&mut self, event: &Event<'_>, entry: &Entry<'_>) {
        let touched = entry.files.iter().map(|touch| (self.lot, self.event, touch.clone(), entry.time));
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
        document.number(|fields| fields.lot, self.lot);
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

impl<'w> Intake<'w> {
    /// Goes on where a source was left.
    pub(super) fn resumed(
        writer: &'w TextWriter,
        format: &dyn Format,
        batch: u64,
        row: &SourceRow,
        ledger: CountingState,
    ) -> Intake<'w> {
        let (counts, trail) = row.trail.split_once('\n').unwrap_or_default();
        let mut saved = counts.splitn(5, ' ');
        let mut counts = saved.by_ref().take(4).map(|count| count.parse().unwrap_or(0));
        let mut tally = row.tally.clone();
        let repeats = (!format.info().traits.log).then(|| RepeatCheck::remembering(STATED_MAX));
        for slot in [&mut tally.messages, &mut tally.calls, &mut tally.errors, &mut tally.notes] {
            *slot = counts.next().unwrap_or(0);
        }
        Intake {
            event: row.lot_events,
            trail: EntryBuilder::restore(trail).through(format),
            tally,
            repeats: repeats.map(|check| check.restore(saved.next().unwrap_or_default())),
            first_key: row.first_key,
            ..Intake::new(writer, format.info().agent, batch, row.lot, ledger)
        }
    }

    /// Whether there is so much on the page of the ledger that it should be turned.
    pub(super) fn is_page_full(&self) -> bool {
        self.counting.rows() >= ROWS_MAX
    }

    /// The page of the ledger that the events so far have filled. The next ones begin another.
    pub(super) fn turn_page(&mut self) -> SourceUsage {
        self.counting.take_part()
    }

    /// What the next run needs to go on from here. Counts that events after it change are kept as they are now.
    pub(super) fn state(&self) -> String {
        let Tally { messages, calls, errors, notes, .. } = &self.tally;
        let repeats = self.repeats.as_ref().map(RepeatCheck::save).unwrap_or_default();
        format!("{messages} {calls} {errors} {notes} {repeats}\n{}", self.trail.save())
    }
}

impl Sink for Intake<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let is_repeat = self.is_repeat(event);
        self.notice(event, is_repeat);
        self.counting.add(event);
        let mut trail = std::mem::take(&mut self.trail);
        if let Some(entry) = trail.entry(event) {
            if let Some(keys) = &mut self.keys {
                keys.insert(entry.key);
            }
            if let Some(time) = entry.time {
                self.tally.started = Some(self.tally.started.map_or(time, |started| started.min(time)));
                self.tally.ended = Some(self.tally.ended.map_or(time, |ended| ended.max(time)));
            }
            if !entry.restates {
                self.tally.errors += u64::from(entry.error);
            }
            // A text for people says again what another file may say exactly; where there is no other, its words are the session's.
            if is_repeat == IsRepeat::No {
                if entry.role == Some(Role::User) && !event.restates && self.first_key.is_none() {
                    self.first_key = Some(entry.key);
                }
                if entry.role == Some(Role::User) && self.tally.query.is_none() {
                    let mut text = String::new();
                    entry.texts(&mut |piece| {
                        if text.is_empty() {
                            text = beginning(piece);
                        }
                    });
                    // What an agent puts in by itself is framed by tags, and nobody's question.
                    self.tally.query = Some(text).filter(|text| !text.is_empty() && !text.starts_with('<'));
                }
            }
            self.keep(event, &entry);
        }
        // A record inside this one is found under the number of this one. It is counted where it stands by itself.
        for inner in nested_events(event) {
            if let Some(entry) = trail.nested(&inner) {
                if let Some(keys) = &mut self.keys {
                    keys.insert(entry.key);
                }
                self.keep(&inner, &entry);
            }
        }
        self.trail = trail;
        self.event += 1;
    }

    fn note(&mut self, _note: Note) {
        self.tally.notes += 1;
    }
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    let mut line = String::new();
    let mut length = 0;
    for char in text.trim_start().chars() {
        let char = if char.is_whitespace() || char.is_control() { ' ' } else { char };
        if char == ' ' && line.ends_with(' ') {
            continue;
        }
        if length == TITLE_LENGTH_MAX {
            break;
        }
        line.push(char);
        length += 1;
    }
    line.truncate(line.trim_end().len());
    line
}
