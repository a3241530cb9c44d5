//! CycoD's trajectories: Markdown for people, with calls and results as XML. See `README.md` beside this file.

mod calls;
mod read;
mod write;

use super::blocks::{Blocks, SPELLED};
use super::openai_chat::{TITLE_LOCKED, WORDS};
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::Outline;
use crate::read::Reader;
use crate::write::Writer;

/// The format `cycod-trajectory`.
#[derive(Debug)]
pub struct CycodTrajectory;

const NAME: &str = "cycod-trajectory";

/// The key of the carriage returns at the end of a plain text, which are not part of it.
const AFTER: &str = "after";

/// The key of the blank lines before a block, if they are not the usual ones.
const BEFORE: &str = "before";

/// The key of the header's status, if it is neither of CycoD's two.
const STATUS: &str = "status";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "cycod",
    title: "CycoD's readable trajectories",
    framing: Framing::Lines,
    extension: "md",
    homes: &[
        "~/.cycod/history/trajectory-<session>.md",
        "~/.cycod/history/trajectory-<session>.jsonl",
        "~/.cycod/exceptions/exception-trajectory-<session>.md",
        ".cycod/history/trajectory-<session>.md",
        "trajectory-<session>.md",
        "exception-trajectory-<session>.md",
    ],
    spec: "CycoD, docs/chat-history.md",
    traits: Traits { pieces: false, carries: false, lossy: true, log: false },
    spelling: &[SPELLED, BEFORE, AFTER],
    calls: WORDS,
    ..FormatInfo::BLANK
};

const TITLE_OPENS: &str = "# Title: \"";
/// What CycoD writes for a conversation without a title.
const UNTITLED: &str = "Untitled";
const STATUS_OPENS: &str = "**Status:** ";
const LOCKED: &str = "Locked";
const UNLOCKED: &str = "Unlocked";
const RULE: &str = "---";

const OPENS_CALLS: &str = "<function_calls>";
const CLOSES_CALLS: &str = "</function_calls>";
const OPENS_RESULTS: &str = "<function_results>";
const CLOSES_RESULTS: &str = "</function_results>";

/// The number of backticks, if the line opens a fence of XML.
fn fence(line: &[u8]) -> Option<usize> {
    let ticks = line.iter().take_while(|byte| **byte == b'`').count();
    (ticks >= 3 && line.get(ticks..) == Some(b"xml")).then_some(ticks)
}

impl Format for CycodTrajectory {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let text = head.text().trim_start();
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first.starts_with(TITLE_OPENS) && lines.next().is_some_and(|line| line.starts_with(STATUS_OPENS)) {
            return Sniff::Certain;
        }
        let (mut fenced, mut bare, mut in_fence) = (0, Vec::new(), false);
        let mut before = "";
        for line in text.lines() {
            let ticks = line.starts_with("```");
            if !in_fence && line.starts_with('#') {
                // A document about trajectories has headings; a trajectory without a header has none before its first call.
                break;
            }
            if line == OPENS_CALLS && fence(before.as_bytes()).is_some() {
                fenced += 1;
            }
            if !in_fence && [OPENS_CALLS, CLOSES_CALLS, OPENS_RESULTS, CLOSES_RESULTS].contains(&line) {
                bare.push(line);
            }
            in_fence ^= ticks;
            before = line;
        }
        let whole = bare.starts_with(&[OPENS_CALLS, CLOSES_CALLS, OPENS_RESULTS, CLOSES_RESULTS]);
        if whole || (fenced > 0 && first.starts_with('>')) { Sniff::Likely } else { Sniff::No }
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Blocks::new(read::TrajectoryReader::default()))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::TrajectoryWriter::new(outline))
    }
}
