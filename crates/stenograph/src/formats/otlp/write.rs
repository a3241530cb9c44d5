//! Writes exports back as they were: the facts of a line say where each of its spans belongs.

use super::attributes::Attributes;
use super::messages::{self, CONTENTS, Spelling};
use super::read::{TOOL_ARGUMENTS, TOOL_RESULT};
use super::{EXPORT, NAME, RESOURCE, SCOPE, SIGNALS, Signal, flat};
use crate::json::Draft;
use crate::model::{Body, Event, ExtraFields, Held, Outline};
use crate::write::{Writer, WriterOutput};

/// Writes one line per export.
#[derive(Debug)]
pub struct OtlpWriter {
    /// Whether the session comes from this format.
    is_own: bool,
}

impl OtlpWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> OtlpWriter {
        OtlpWriter { is_own: outline.origin == NAME }
    }
}

impl Writer for OtlpWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        let Some(first) = events.first().filter(|_| self.is_own) else { return };
        match (&first.body, first.extra.get(NAME)) {
            (Body::Other { bytes: Some(bytes), .. }, _) => out.line(bytes.bytes().into_owned()),
            (Body::Fact { .. }, Some(_)) => out.line(export(events)),
            (_, Some(extra)) => out.line(Draft::new().render(Some(extra))),
            (_, None) => {}
        }
    }
}

fn is_fact(event: &Event<'_>, name: &str) -> bool {
    matches!(&event.body, Body::Fact { fact, .. } if fact == name)
}

/// The events after the first of each group: a group begins with a fact of this name.
fn groups<'e, 'a>(events: &'e [Event<'a>], name: &str) -> Vec<&'e [Event<'a>]> {
    let starts: Vec<usize> =
        (0..events.len()).filter(|at| events.get(*at).is_some_and(|event| is_fact(event, name))).collect();
    let ends = starts.iter().skip(1).copied().chain([events.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| events.get(*start..end)).collect()
}

fn export(events: &[Event<'_>]) -> String {
    let has = |signal: &&Signal| events.iter().any(|event| is_fact(event, signal.fact));
    let stated = |signal: &&Signal| {
        let extra = events.first().and_then(|first| first.extra.get(NAME));
        extra.is_some_and(|extra| extra.has(signal.resources))
    };
    let signal = SIGNALS.iter().find(has).or_else(|| SIGNALS.iter().find(stated)).unwrap_or(&SIGNALS[0]);
    let item = |events: &[Event<'_>]| item_json(events);
    let scope = |events: &[Event<'_>]| with_list(events, signal.items, groups(events, signal.fact), &item);
    let resource = |events: &[Event<'_>]| with_list(events, signal.scopes, groups(events, SCOPE), &scope);
    match events.first() {
        Some(first) if is_fact(first, EXPORT) => {
            with_list(events, signal.resources, groups(events, RESOURCE), &resource)
        }
        _ => String::new(),
    }
}

/// The object of the first event with a list of these groups.
fn with_list(
    events: &[Event<'_>],
    key: &'static str,
    groups: Vec<&[Event<'_>]>,
    json: &dyn Fn(&[Event<'_>]) -> String,
) -> String {
    let mut draft = Draft::new();
    if !groups.is_empty() {
        draft.set_list(key, groups.into_iter().map(json));
    }
    draft.render(events.first().and_then(|first| first.extra.get(NAME)))
}

fn item_json(events: &[Event<'_>]) -> String {
    let Some((head, said)) = events.split_first() else { return String::new() };
    let mut extra: ExtraFields<'_> = head.extra.get(NAME).cloned().unwrap_or_default();
    if let Some(raw) = extra.raw("attributes") {
        let list = attributes_json(&Attributes::list(raw), said);
        if let Some(held) = extra.held_mut("attributes") {
            *held = Held::Raw(list.into());
        }
    }
    Draft::new().render(Some(&extra))
}

fn attributes_json(attributes: &Attributes<'_>, said: &[Event<'_>]) -> String {
    let mut texts: Vec<(String, String)> = Vec::new();
    let mut rest = said;
    while let Some(first) = rest.first() {
        let length = 1 + rest.iter().skip(1).take_while(|event| start(event).is_none()).count();
        let (group, after) = rest.split_at(length);
        match start(first) {
            Some(Start::Messages(at)) => {
                let Some((key, said)) = CONTENTS.get(at) else { break };
                // All messages of an attribute.
                let is_same = |event: &Event<'_>| !matches!(start(event), Some(other) if other != Start::Messages(at));
                let (group, after) = rest.split_at(rest.iter().take_while(|event| is_same(event)).count());
                let blank = attributes.text(key).and_then(|text| Spelling::of_blank(&text.decode()));
                if let (Some(json), Some(spelling)) = (messages::json(key, *said, group), blank) {
                    texts.push(((*key).to_owned(), spelling.of_json(json)));
                }
                rest = after;
                continue;
            }
            Some(Start::Flat(name)) => texts.extend(flat::texts(&name, group, attributes)),
            None => {
                for event in group {
                    match &event.body {
                        Body::ToolCall { input, .. } => {
                            texts.push((TOOL_ARGUMENTS.to_owned(), input.to_text().decode().into_owned()));
                        }
                        Body::ToolResult { content, .. } => {
                            texts.push((TOOL_RESULT.to_owned(), content.joined().decode().into_owned()));
                        }
                        _ => {}
                    }
                }
            }
        }
        rest = after;
    }
    attributes.with_texts(&|key, _| texts.iter().find(|(name, _)| name == key).map(|(_, text)| text.clone()))
}

/// What begins with an event.
#[derive(PartialEq)]
enum Start {
    /// A message of the attribute with this number.
    Messages(usize),
    Flat(String),
}

fn start(event: &Event<'_>) -> Option<Start> {
    let extra = event.extra.get(NAME)?;
    let content = CONTENTS.iter().position(|(key, _)| extra.has(key)).map(Start::Messages);
    content.or_else(|| flat::begins(event).map(Start::Flat))
}
