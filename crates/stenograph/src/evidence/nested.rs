//! Nested records: whole records inside other records, by which an agent forwards the conversation of a sub-agent. Their bytes
//! stay in `extra` of the outer event, so that writers and losses see them once. This module reads them for search, display and
//! audit. It reads one level; no agent writes more.

use std::borrow::Cow;

use crate::frame::{Record, RecordPlace};
use crate::model::{Body, Event, FormatInfo, Sink, Span, Wanted};

/// A record inside another one.
#[derive(Clone, Debug, Default)]
pub struct NestedRecord {
    /// The side conversation it belongs to.
    pub thread: Option<String>,
    /// The call that started the side conversation.
    pub call: Option<String>,
    /// Its events. They have the same id, time and part numbers as in a file of their own, and the position of the outer
    /// record.
    pub events: Vec<Event<'static>>,
}

/// The most events of one nested record that are read. Real ones have a few dozen at most.
const PARTS_MAX: usize = 4_096;

/// Whether the record only forwards records of a side conversation to whoever watches. It states nothing about its own conversation.
pub fn is_progress(event: &Event<'_>) -> bool {
    let Body::Fact { fact: name, .. } = &event.body else { return false };
    event.restates && event.extra.known().any(|(info, _)| info.calls.nested.is_some_and(|nested| *name == nested.fact))
}

/// The record inside the record of this event.
pub fn nested(event: &Event<'_>) -> Option<NestedRecord> {
    nested_as(event, Wanted::All)
}

/// The events of the nested record that state usage of model calls.
pub(super) fn nested_usage(event: &Event<'_>) -> Vec<Event<'static>> {
    nested_as(event, Wanted::Usage).map(|nested| nested.events).unwrap_or_default()
}

/// The bytes of the record inside the record of this event.
pub(crate) fn nested_source<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    let Body::Fact { fact: name, .. } = &event.body else { return None };
    let place = |info: &FormatInfo| info.calls.nested.filter(|nested| *name == nested.fact);
    event.extra.known().find_map(|(info, extra)| extra.at(place(info)?.record))
}

fn nested_as(event: &Event<'_>, want: Wanted) -> Option<NestedRecord> {
    let Body::Fact { fact: name, .. } = &event.body else { return None };
    event.extra.known().find_map(|(info, extra)| {
        let place = info.calls.nested.filter(|nested| *name == nested.fact)?;
        let raw = extra.at(place.record)?;
        let thread = extra.word_at(place.thread).map(Cow::into_owned);
        let mut events = events_of(info, &[raw], want);
        events.retain(|event| !matches!(&event.body, Body::Fact { fact: name, .. } if name == place.fact));
        for inner in &mut events {
            let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
            inner.at = event.at;
            inner.thread = thread.as_deref().map(|thread| Cow::Owned(thread.to_owned())).or(inner.thread.take());
            inner.session = inner.session.take().or_else(|| own(&event.session));
            inner.cwd = inner.cwd.take().or_else(|| own(&event.cwd));
            inner.branch = inner.branch.take().or_else(|| own(&event.branch));
            inner.version = inner.version.take().or_else(|| own(&event.version));
        }
        let call = extra.word_at(place.call).map(Cow::into_owned);
        (!events.is_empty()).then_some(NestedRecord { thread, call, events })
    })
}

/// The events of the nested record of this event; most events have none.
pub fn nested_events(event: &Event<'_>) -> Vec<Event<'static>> {
    nested(event).map(|nested| nested.events).unwrap_or_default()
}

/// The events of records that are inside another record of this format.
pub(super) fn events_of(info: &FormatInfo, records: &[&str], want: Wanted) -> Vec<Event<'static>> {
    let mut collected = Collected(Vec::new());
    let Some(reader) = info.calls.nested_reader.filter(|_| !records.is_empty()) else { return collected.0 };
    let mut reader = reader(want);
    for record in records {
        let at = Span { offset: 0, length: record.len() as u64, line: 1 };
        let record = Record { at, bytes: record.as_bytes(), place: RecordPlace::Line, terminated: true };
        reader.record(record, &mut collected);
    }
    reader.finish(&mut collected);
    collected.0
}

/// Collects at most [`PARTS_MAX`] events.
struct Collected(Vec<Event<'static>>);

impl Sink for Collected {
    fn event(&mut self, event: &Event<'_>) {
        if self.0.len() < PARTS_MAX {
            self.0.push(event.clone().into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::claude_code::ClaudeCode;
    use crate::model::Kind;
    use crate::read::all;

    const MESSAGE: &str = r#""message":{"role":"assistant","id":"m1","model":"m","content":[{"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/w/a"}}]},"uuid":"5b0c7f4e-0000-4000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z""#;

    fn outer() -> String {
        format!(
            r#"{{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"s","type":"progress","data":{{"message":{{"type":"assistant",{MESSAGE}}},"type":"agent_progress","agentId":"a1"}},"parentToolUseID":"t0","uuid":"u0","timestamp":"2026-01-01T00:00:01.000Z"}}"#
        )
    }

    #[test]
    fn a_nested_record_is_read_like_any_other() {
        let outer = all(&ClaudeCode, outer().as_bytes()).events;
        assert_eq!(outer.len(), 1);
        let found = nested(&outer[0]).unwrap();
        assert_eq!((found.thread.as_deref(), found.call.as_deref()), (Some("a1"), Some("t0")));
        let kinds: Vec<Kind> = found.events.iter().map(Event::kind).collect();
        assert_eq!(kinds, [Kind::Message, Kind::ToolCall]);
        for event in &found.events {
            assert_eq!(event.thread.as_deref(), Some("a1"));
            assert_eq!((event.session.as_deref(), event.cwd.as_deref()), (Some("s"), Some("/w")));
            assert_eq!(event.at, outer[0].at);
            assert!(!event.restates && event.part.of == 2);
        }
        assert!(nested(&found.events[0]).is_none());
    }
}
