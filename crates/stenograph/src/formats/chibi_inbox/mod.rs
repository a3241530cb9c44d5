//! Chibi's inbox: messages from one context to another, one per line. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::json::{Object, number};
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format `chibi-inbox`.
#[derive(Debug)]
pub struct ChibiInbox;

const NAME: &str = "chibi-inbox";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "chibi",
    title: "Chibi's inbox of messages between contexts",
    framing: Framing::Lines,
    extension: "jsonl",
    homes: &["{CHIBI_HOME|~/.chibi}/contexts/<session>/inbox.jsonl"],
    spec: "Chibi, docs/transcript-format.md, \"Inbox Format\"",
    traits: Traits { pieces: true, carries: true, lossy: false, log: true },
    record_schema: &["*: id text, timestamp number, from text, to text, content text"],
    ..FormatInfo::BLANK
};

impl Format for ChibiInbox {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let objects = head.objects();
        // The five field names are common words, so any key of another format rules this one out.
        let others = ["entry_type", "type", "kind", "role", "v"];
        if objects.iter().any(|object| others.iter().any(|key| object.has(key))) {
            return Sniff::No;
        }
        let ours = objects.iter().filter(|object| is_message(object)).count();
        match (ours, objects.len()) {
            (0, _) => Sniff::No,
            (ours, all) if ours == all => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::InboxReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::InboxWriter::new(outline))
    }
}

/// Whether an object has the five fields of a message.
fn is_message(object: &Object<'_>) -> bool {
    let texts = ["id", "from", "to", "content"].iter().all(|key| object.peek_str(key).is_some());
    texts && object.peek("timestamp").and_then(number).is_some()
}
