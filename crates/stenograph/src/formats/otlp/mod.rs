//! OTLP: the spans and logs of OpenTelemetry as JSON lines, with the attributes of GenAI or of OpenInference. See `README.md` beside
//! this file.

mod attributes;
mod flat;
mod messages;
mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `otlp`.
#[derive(Debug)]
pub struct Otlp;

const NAME: &str = "otlp";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "otel",
    title: "OpenTelemetry's spans and logs of model calls (OTLP as JSON lines; GenAI and OpenInference)",
    framing: Framing::Lines,
    extension: "jsonl",
    spec: "OpenTelemetry, OTLP 1.x and the semantic conventions for generative AI; Arize, OpenInference",
    traits: Traits { pieces: false, carries: false, lossy: false, log: false },
    own_only: true,
    is_never_edited: true,
    ..FormatInfo::BLANK
};

/// The fact for a line.
const EXPORT: &str = "export";

/// The fact for a resource: the program that exports.
const RESOURCE: &str = "resource";

/// The fact for a scope: the instrumentation.
const SCOPE: &str = "scope";

/// A kind of telemetry: the keys of its lists, and the fact for an item.
#[derive(Debug)]
struct Signal {
    resources: &'static str,
    scopes: &'static str,
    items: &'static str,
    fact: &'static str,
}

const SIGNALS: [Signal; 2] = [
    Signal { resources: "resourceSpans", scopes: "scopeSpans", items: "spans", fact: "span" },
    Signal { resources: "resourceLogs", scopes: "scopeLogs", items: "logRecords", fact: "log" },
];

/// Words of which only telemetry about models has one.
const MARKS: [&str; 3] = ["\"gen_ai.", "\"openinference.span.kind\"", "\"llm.input_messages."];

impl Format for Otlp {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let is_export = objects.first().is_some_and(|first| SIGNALS.iter().any(|signal| first.has(signal.resources)));
        let is_about_models = MARKS.iter().any(|mark| head.text().contains(mark));
        if is_export && is_about_models { Sniff::Certain } else { Sniff::No }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::OtlpReader::default()))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::OtlpWriter::new(outline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;
    use crate::model::{Body, Event};

    const DEMO: &str = include_str!("fixtures/demo.otlp.jsonl");
    const FLAT: &str = include_str!("fixtures/openinference.otlp.jsonl");

    /// What is said for the first time, each by its kind, its call and its text.
    fn said(source: &str) -> Vec<String> {
        let events = crate::read::all(&Otlp, source.as_bytes()).events;
        let is_said =
            |event: &&Event<'_>| !event.restates && !matches!(event.body, Body::Fact { .. } | Body::Other { .. });
        let show =
            |event: &Event<'_>| format!("{} {} {}", event.kind().name(), event.call().unwrap_or("-"), event.text());
        events.iter().filter(is_said).map(show).collect()
    }

    #[test]
    fn every_statement_is_new_once() {
        let expected = [
            "message - You keep a lighthouse.",
            "message - Is the lamp of the “Rotersand” lit?",
            "thinking - Ask both sensors.",
            "message - I ask both sensors.",
            "tool_call call_1 ",
            "tool_call call_2 ",
            "tool_result call_1 lit, 1200 cd",
            "tool_result call_2 no answer within 2 s",
            "message - It is lit; the door does not answer.",
            "message - And the horn?",
            "message - Silent.",
        ];
        assert_eq!(said(DEMO), expected);
        let expected = [
            "message - You keep a lighthouse.",
            "message - Is the lamp lit?\n\nLook twice.",
            "message - I look.",
            "tool_call c1 ",
            "tool_call c2 ",
            "tool_result c1 lit",
            "tool_result c2 rung",
            "message - It is lit.",
        ];
        assert_eq!(said(FLAT), expected);
    }

    #[test]
    fn only_what_is_no_json_stays_in_its_attribute() {
        let notes = crate::read::all(&Otlp, DEMO.as_bytes()).notes;
        let unread: Vec<u64> =
            notes.iter().filter(|note| note.text.contains("messages")).map(|note| note.at.line).collect();
        assert_eq!(unread, [5]);
    }

    #[test]
    fn only_model_calls_state_usage() {
        let usage = |source: &str| Session::from_bytes(source.as_bytes()).unwrap().usage().total();
        let demo = usage(DEMO);
        assert_eq!((demo.input, demo.cache_read, demo.output), (Some(275), Some(64), Some(56)));
        let flat = usage(FLAT);
        assert_eq!((flat.input, flat.cache_read, flat.output), (Some(160), Some(30), Some(17)));
    }

    #[test]
    fn a_call_fails_if_its_span_does() {
        let session = Session::from_bytes(DEMO.as_bytes()).unwrap();
        let failed: Vec<bool> = session.calls().map(|call| call.outcome().is_failure()).collect();
        assert_eq!(failed, [false, true]);
    }

    #[test]
    fn telemetry_about_anything_else_is_not_claimed() {
        let line = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"GET /","attributes":[{"key":"http.method","value":{"stringValue":"GET"}}]}]}]}]}"#;
        assert_eq!(Otlp.sniff(&Head::new(line.as_bytes())), Sniff::No);
        assert_eq!(Otlp.sniff(&Head::new(DEMO.as_bytes())), Sniff::Certain);
    }
}
