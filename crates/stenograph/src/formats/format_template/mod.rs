//! format-template: one record a line. See `README.md` beside this file.

mod read;
mod write;

use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::{JsonLines, Reader};
use crate::write::Writer;

/// The format.
#[derive(Debug)]
pub struct FormatTemplate;

const NAME: &str = "format-template";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "format-template: say in one line what it is",
    framing: Framing::Lines,
    extension: "jsonl",
    spec: "say where it is specified",
    traits: Traits { pieces: true, carries: true, lossy: false, log: false },
    spelling: &["format"],
    ..FormatInfo::BLANK
};

impl Format for FormatTemplate {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        // Look for what only this format has; be `Certain` only then.
        let objects = head.objects();
        match objects.iter().any(|object| object.peek_str("format").as_deref() == Some(NAME)) {
            true => Sniff::Certain,
            false => Sniff::No,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(JsonLines(read::Records))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::Records::new(outline))
    }
}

#[cfg(test)]
mod tests;
