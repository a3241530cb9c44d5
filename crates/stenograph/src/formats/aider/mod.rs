//! Aider's `.aider.chat.history.md`: Markdown for people. See `README.md` beside this file.

mod read;
mod write;

use super::blocks::{BLANK, Blocks, SPELLED};
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::Reader;
use crate::write::Writer;

/// The format `aider`.
#[derive(Debug)]
pub struct Aider;

const NAME: &str = "aider";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: NAME,
    title: "Aider's chat history",
    framing: Framing::Lines,
    extension: "md",
    homes: &[".aider.chat.history.md"],
    resume: Some("aider --restore-chat-history"),
    spec: "what Aider 0.86 writes; Aider-AI/aider, aider/io.py",
    traits: Traits { pieces: false, carries: false, lossy: true, log: false },
    own_only: true,
    spelling: &[SPELLED, BLANK],
    ..FormatInfo::BLANK
};

/// The beginning of the line with which a chat starts.
const STARTED: &str = "# aider chat started at ";

/// What Aider writes before each line of its user.
const USER: &str = "#### ";

/// What Aider writes before each line of its own output.
const OUTPUT: &str = "> ";

/// What Aider writes after each line of its user and of its own output: a line break of Markdown.
const BREAK: &str = "  ";

/// The name of the fact that holds lines of Aider's own output.
const OUTPUT_FACT: &str = "output";

impl Format for Aider {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        match head.text().trim_start().starts_with(STARTED) {
            true => Sniff::Certain,
            false => Sniff::No,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Blocks::new(read::AiderReader::default()))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::AiderWriter::new(outline))
    }
}
