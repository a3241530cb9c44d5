//! Chibi's log of requests to a model: one whole request per line. See `README.md` beside this file.

mod align;
mod read;
mod write;

use super::chat;
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `chibi-requests`.
#[derive(Debug)]
pub struct ChibiRequests;

const NAME: &str = "chibi-requests";

/// The name of the fact for the request itself.
const REQUEST: &str = "request";

/// The name of the fact that holds the tools of a request.
const TOOLS: &str = "tools";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "chibi",
    title: "Chibi's log of requests (requests.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{CHIBI_HOME|~/.chibi}/contexts/<session>/requests.jsonl"],
    spec: "Chibi, docs/transcript-format.md, debug files",
    traits: Traits { pieces: false, carries: true, lossy: false, log: true },
    spelling: &["role", "tool_calls.type", "tool_calls.function.arguments", "function_call.arguments"],
    record_schema: &["*: timestamp number, request object, request.messages list, request.messages[].role text"],
    ..FormatInfo::BLANK
};

impl Format for ChibiRequests {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let ours = objects.iter().filter(|object| {
            let known = object.keys().all(|key| ["timestamp", REQUEST, crate::carry::KEY].contains(&key));
            let request = object.peek(REQUEST).and_then(crate::json::Object::parse);
            known && object.has("timestamp") && request.is_some_and(|request| request.has("messages"))
        });
        match (ours.count(), objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::RequestsReader::new(want)))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::RequestsWriter::new(outline))
    }
}
