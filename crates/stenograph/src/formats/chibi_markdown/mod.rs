//! Chibi's `transcript.md`: the messages of user and assistant, for people. See `README.md` beside this file.

mod read;
mod write;

use super::blocks::{BLANK, Blocks, SPELLED};
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{Outline, Role};
use crate::read::Reader;
use crate::write::Writer;

/// The format `chibi-markdown`.
#[derive(Debug)]
pub struct ChibiMarkdown;

const NAME: &str = "chibi-markdown";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "chibi",
    title: "Chibi's readable archive, transcript.md",
    framing: Framing::Lines,
    extension: "md",
    homes: &["{CHIBI_HOME|~/.chibi}/contexts/<session>/transcript.md"],
    spec: "Chibi, docs/transcript-format.md",
    traits: Traits { pieces: false, carries: false, lossy: true, log: false },
    spelling: &[SPELLED, BLANK],
    ..FormatInfo::BLANK
};

/// The marker at the beginning of a message, by role.
const MARKERS: [(Role, &str); 2] = [(Role::User, "[USER]: "), (Role::Assistant, "[ASSISTANT]: ")];

/// The role of a line's marker, and the text after the marker.
fn marker(line: &[u8]) -> Option<(Role, &[u8])> {
    MARKERS.iter().find_map(|(role, marker)| Some((*role, line.strip_prefix(marker.as_bytes())?)))
}

impl Format for ChibiMarkdown {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let mut roles = Vec::new();
        let mut before = "";
        for line in head.text().trim_start().lines() {
            if before.trim().is_empty() {
                roles.extend(marker(line.as_bytes()).map(|(role, _)| role));
            }
            if roles.is_empty() {
                // A file that begins otherwise only mentions such lines.
                return Sniff::No;
            }
            before = line;
        }
        let both = MARKERS.iter().all(|(role, _)| roles.contains(role));
        match roles.as_slice() {
            [] => Sniff::No,
            _ if both => Sniff::Certain,
            _ => Sniff::Likely,
        }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Blocks::new(read::ChibiMarkdownReader))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::ChibiMarkdownWriter::new(outline))
    }
}
