//! Leslie's transcripts: plain text for people, one conversation unit per file. See `README.md` beside this file.

mod limits;
mod name;
mod read;
mod write;

pub use name::{QUERY_LENGTH_MAX, file_name, is_file_name};

use super::blocks::{BLANK, Blocks, SPELLED};
use crate::format::{Format, FormatInfo, Head, Sniff, Traits, Wanted};
use crate::frame::Framing;
use crate::model::{Kind, Outline};
use crate::read::Reader;
use crate::write::Writer;

/// The format `leslie`.
#[derive(Debug)]
pub struct Leslie;

const NAME: &str = "leslie";

static INFO: FormatInfo = FormatInfo {
    name: NAME,
    agent: "leslie",
    title: "Leslie's plain text transcripts",
    framing: Framing::Lines,
    extension: "txt",
    homes: &[
        ".leslie/threads/<session>/.meta/transcripts/*.txt",
        "~/.leslie/threads/<session>/.meta/transcripts/*.txt",
    ],
    spec: "Leslie, decision D04: transcript format and generation",
    traits: Traits { pieces: false, carries: false, lossy: true, log: false },
    // A separate event states the stop reason.
    spelling: &[SPELLED, BLANK, STOP_REASON],
    counts: &[(TOOL_CALLS, Kind::ToolCall)],
    ..FormatInfo::BLANK
};

const THREAD_ID: &str = "Thread ID";
const CHAT_ID: &str = "Chat ID";
const TIME_RANGE: &str = "Time Range";
const AGENT_MODE: &str = "Agent Mode";
const STOP_REASON: &str = "Stop Reason";
const TOOL_CALLS: &str = "Tool Calls";

/// The keys of the header, in writing order.
const KEYS: [&str; 6] = [THREAD_ID, CHAT_ID, TIME_RANGE, AGENT_MODE, STOP_REASON, TOOL_CALLS];

/// The line that ends the header.
const HEADER_END: &str = "---";

const OPENS_QUERY: &str = "<user_query>";
const CLOSES_QUERY: &str = "</user_query>";

impl Format for Leslie {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn sniff(&self, head: &Head<'_>) -> Sniff {
        let mut keys = Vec::new();
        for line in head.text().trim_start().lines().take(32) {
            match read::field(line.trim_end().as_bytes()) {
                Some((key, _)) => keys.push(key),
                None if line.trim_end() == HEADER_END => {
                    let known = KEYS.iter().filter(|key| keys.contains(key)).count();
                    let ours = keys.first() == Some(&THREAD_ID) && known >= 3;
                    return if ours { Sniff::Certain } else { Sniff::No };
                }
                None => return Sniff::No,
            }
        }
        Sniff::No
    }

    fn reader(&self, _want: Wanted) -> Box<dyn Reader> {
        Box::new(Blocks::new(read::LeslieReader::default()))
    }

    fn writer(&self, outline: &Outline) -> Box<dyn Writer> {
        Box::new(write::LeslieWriter::new(outline))
    }
}
