//! Counts the files of this machine as another program does: line by line in the order of their paths. It reads neither the index nor
//! the archive, which that program does not know. [`stenograph::formats::peers`] holds the rules.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use stenograph::format::{Format, Head};
use stenograph::formats::peers::{PeerCounter, PeerRule, peer_counter};
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::ledger::{Ledger, LedgerBuilder};

use crate::databases;
use crate::discover::{FoundFile, PathHints, Places, discover};
use crate::index::{IndexProgress, RunObserver};
use crate::source_file::recognize_after;
use crate::tail::Warning;
use crate::usage::error_text;

/// What another program counts.
#[derive(Debug, Default)]
pub struct PeerUsage {
    /// The calls that the program counts.
    pub ledger: Ledger,
    /// Agents that the program counts, with or without calls.
    pub agents: Vec<&'static str>,
    /// Agents that the program does not know, each with its number of files.
    pub unknown: BTreeMap<&'static str, u64>,
    /// Files of counted agents that the program skips because of their extension.
    pub unread: u64,
    /// Remarks of the counting rules.
    pub notes: Vec<String>,
    /// Files that could not be read.
    pub warnings: Vec<Warning>,
    /// Whether the user interrupted the count.
    pub stopped: bool,
}

/// The extension of the files that such programs read.
const EXTENSION: &str = ".jsonl";

/// Bytes per read.
const CHUNK_SIZE: usize = 256 << 10;

/// Bytes between two reports of progress.
const PROGRESS_SIZE: u64 = 4 << 20;

/// Counts by a rule the sources found in `places`, and `files`.
pub fn peer_usage(
    rule: PeerRule,
    places: Option<&Places>,
    files: &[PathBuf],
    watch: &mut dyn RunObserver,
) -> PeerUsage {
    let mut usage = PeerUsage::default();
    let mut sources: Vec<Source> = files.iter().map(|path| Source::asked_for(path)).collect();
    if let Some(places) = places {
        usage.warnings = discover(places, &mut |found: FoundFile| {
            // No peer whose rules are known reads databases.
            if !databases::may_be(&found.path) {
                sources.push(Source::found(found));
            }
        });
    }
    // Those programs sort whole paths as text, not name by name.
    sources.sort_by(|one, other| one.text.cmp(&other.text));
    sources.dedup_by(|one, other| one.text == other.text);
    let mut counters = Counters { rule, list: Vec::new() };
    let mut progress = IndexProgress {
        files: sources.len() as u64,
        bytes: sources.iter().map(|source| source.size).sum(),
        ..IndexProgress::default()
    };
    let mut last = None;
    for source in &sources {
        match source.count(&mut counters, &mut last, &mut progress, watch) {
            Ok(Outcome::Counted(warning)) => usage.warnings.extend(warning),
            Ok(Outcome::Unread) => usage.unread += 1,
            Ok(Outcome::Unknown(agent)) => *usage.unknown.entry(agent).or_default() += 1,
            Ok(Outcome::Nothing) => {}
            Err(error) => usage.warnings.push(Warning::new(&source.path, error_text(&source.path, &error))),
        }
        progress.files_done += 1;
        if watch.is_stopped() {
            usage.stopped = true;
            break;
        }
    }
    let mut ledger = LedgerBuilder::default();
    for FormatCounter { agent, counter, sources, .. } in counters.list {
        let mut counted = counter.finish();
        usage.notes.append(&mut counted.warnings);
        usage.agents.push(agent);
        ledger.add_peer_rows(&sources, counted);
    }
    usage.ledger = ledger.finish();
    usage
}

/// A file that may be a source.
struct Source {
    path: PathBuf,
    /// Its path as text, with `/` as the separator.
    text: String,
    size: u64,
    named: PathHints,
    choice: Choice,
}

/// How a file was chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Discovery found it.
    Found,
    /// The user named it, so its extension does not matter.
    Asked,
}

/// The result for one file.
enum Outcome {
    /// Its lines are counted, perhaps with a warning.
    Counted(Option<Warning>),
    /// The program does not read files with this extension.
    Unread,
    /// The program does not know the agent.
    Unknown(&'static str),
    /// It is not a transcript.
    Nothing,
}

/// The counters of one rule, one per format.
struct Counters {
    rule: PeerRule,
    list: Vec<FormatCounter>,
}

struct FormatCounter {
    format: &'static str,
    agent: &'static str,
    counter: Box<dyn PeerCounter>,
    sources: Vec<String>,
}

impl Counters {
    fn of(&mut self, format: &'static dyn Format) -> Option<&mut FormatCounter> {
        let name = format.info().name;
        match self.list.iter().position(|counter| counter.format == name) {
            Some(at) => self.list.get_mut(at),
            None => {
                let counter = peer_counter(self.rule, name)?;
                let agent = format.info().agent;
                self.list.push(FormatCounter { format: name, agent, counter, sources: Vec::new() });
                self.list.last_mut()
            }
        }
    }
}

impl Source {
    fn asked_for(path: &Path) -> Source {
        let size = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
        Source { path: path.to_owned(), text: text(path), size, named: PathHints::default(), choice: Choice::Asked }
    }

    fn found(found: FoundFile) -> Source {
        let text = text(&found.path);
        Source { path: found.path, text, size: found.stat.size, named: found.hints, choice: Choice::Found }
    }

    fn count(
        &self,
        counters: &mut Counters,
        last: &mut Option<&'static dyn Format>,
        progress: &mut IndexProgress,
        watch: &mut dyn RunObserver,
    ) -> io::Result<Outcome> {
        let mut file = File::open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Ok(Outcome::Nothing);
        }
        let mut head = Vec::new();
        Head::read(&mut file, &mut head)?;
        // Such programs go by the folder of a file, not by its content.
        let recognized = || recognize_after(*last, &head, &self.named).map(|recognized| recognized.format);
        let format = self.named.format.or_else(recognized);
        let Some(format) = format else { return Ok(Outcome::Nothing) };
        *last = Some(format);
        let Some(counter) = counters.of(format) else { return Ok(Outcome::Unknown(format.info().agent)) };
        if self.choice == Choice::Found && !self.text.ends_with(EXTENSION) {
            return Ok(Outcome::Unread);
        }
        counter.sources.push(self.text.clone());
        counter.counter.source(&self.text);
        let stream = BufReader::with_capacity(CHUNK_SIZE, head.as_slice().chain(file));
        let mut lines = Lines { stream, line: Vec::new(), number: 0, too_long: None };
        let mut unreported = 0;
        while let Some(length) = lines.next()? {
            if !lines.line.is_empty() {
                counter.counter.line(lines.number, &lines.line);
            }
            (progress.bytes_done, unreported) = (progress.bytes_done + length, unreported + length);
            if unreported >= PROGRESS_SIZE {
                unreported = 0;
                watch.progress(progress);
                if watch.is_stopped() {
                    break;
                }
            }
        }
        watch.progress(progress);
        let warning = |line: u64| Warning::new(&self.path, format!("line {line} is too long: skipped"));
        Ok(Outcome::Counted(lines.too_long.map(warning)))
    }
}

fn text(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    if std::path::MAIN_SEPARATOR == '/' { text } else { text.replace(std::path::MAIN_SEPARATOR, "/") }
}

/// Reads a file line by line.
struct Lines<S> {
    stream: S,
    line: Vec<u8>,
    number: u64,
    /// The first line longer than any record may be; such a line is never held in memory.
    too_long: Option<u64>,
}

impl<S: BufRead> Lines<S> {
    /// Reads the next line without its end. Returns its length with the end; `None` at the end of the file.
    fn next(&mut self) -> io::Result<Option<u64>> {
        self.line.clear();
        self.number += 1;
        let limit = RECORD_SIZE_MAX as u64;
        let (mut length, mut is_long) = (0, false);
        loop {
            let read = (&mut self.stream).take(limit).read_until(b'\n', &mut self.line)? as u64;
            length += read;
            let is_whole = self.line.last() == Some(&b'\n');
            if is_whole || read < limit {
                if is_long {
                    self.too_long.get_or_insert(self.number);
                    self.line.clear();
                } else if is_whole {
                    self.line.pop();
                }
                return Ok((length > 0).then_some(length));
            }
            is_long = true;
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_no_record_can_be_is_left_out_and_the_next_one_counts() {
        let mut bytes = b"one\n".to_vec();
        bytes.resize(bytes.len() + 2 * RECORD_SIZE_MAX + 5, b'x');
        bytes.extend_from_slice(b"\n\nlast");
        let mut lines = Lines { stream: bytes.as_slice(), line: Vec::new(), number: 0, too_long: None };
        let mut found = Vec::new();
        while lines.next().unwrap().is_some() {
            found.push((lines.number, String::from_utf8(lines.line.clone()).unwrap()));
        }
        let told = |number: u64, text: &str| (number, text.to_owned());
        assert_eq!(found, [told(1, "one"), told(2, ""), told(3, ""), told(4, "last")]);
        assert_eq!(lines.too_long, Some(2));
    }
}
