//! Chibi's log of the model server's metadata for each response. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{Outline, UsageWords};
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `chibi-responses`.
#[derive(Debug)]
pub struct ChibiResponses;

const NAME: &str = "chibi-responses";

/// The key of the response in a line, and the name of the fact for a response without usage.
const RESPONSE: &str = "response";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "chibi",
    title: "Chibi's log of responses (response_meta.jsonl)",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{CHIBI_HOME|~/.chibi}/contexts/<session>/response_meta.jsonl"],
    spec: "Chibi, docs/transcript-format.md, debug files",
    traits: Traits { pieces: true, carries: true, lossy: false, log: true },
    // The total is a sum, which the writer computes.
    spelling: &["response.usage.total_tokens"],
    record_schema: &["*: timestamp number, response object, response.usage.prompt_tokens number?, \
         response.usage.completion_tokens number?"],
    usage: UsageWords {
        counters: &[("response.usage", &["prompt_tokens", "completion_tokens"])],
        // Some servers number their responses from 1 in every session.
        do_groups_repeat: true,
        ..UsageWords::NONE
    },
    ..FormatInfo::BLANK
};

impl Format for ChibiResponses {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        let ours = objects.iter().filter(|object| {
            let known = object.keys().all(|key| ["timestamp", RESPONSE, crate::carry::KEY].contains(&key));
            let response = object.peek(RESPONSE).and_then(crate::json::Object::parse);
            let states = response.is_some_and(|response| ["usage", "id", "model"].iter().any(|key| response.has(key)));
            known && object.has("timestamp") && states
        });
        match (ours.count(), objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::ResponsesReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ResponsesWriter::new(outline))
    }
}
