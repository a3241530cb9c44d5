//! Counts what is on this machine as another program would: the files that are there, line by line in the order of their paths, and
//! never the index or the archive, which that program does not know. What a line counts for is in [`stenograph::ledger::Rule`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use stenograph::format::{Format, Head};
use stenograph::frame::RECORD_SIZE_MAX;
use stenograph::ledger::{Ledger, LedgerBuilder, Rule, Tally};

use crate::discover::{Found, Named, Places, discover};
use crate::index::{Progress, Watch};
use crate::source_file::recognize_after;
use crate::tail::Warning;
use crate::usage::said;

/// What came of it.
#[derive(Debug, Default)]
pub struct Tallied {
    /// The calls that the program counts.
    pub ledger: Ledger,
    /// Agents that it counts, whether it found calls of them or not.
    pub agents: Vec<&'static str>,
    /// Agents that it does not know, and how many of their files there are.
    pub unknown: BTreeMap<&'static str, u64>,
    /// Files of agents that it counts, which it does not read because of how their names end.
    pub unread: u64,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
    /// Whether somebody ended it early.
    pub stopped: bool,
}

/// How the names of files end that such programs read.
const ENDING: &str = ".jsonl";

/// How much is read at a time.
const CHUNK_SIZE: usize = 256 << 10;

/// After how many bytes whoever watches is told.
const BEAT_SIZE: u64 = 4 << 20;

/// Counts as a rule says what is found in places, and these files.
pub fn tally(rule: Rule, places: Option<&Places>, files: &[PathBuf], watch: &mut dyn Watch) -> Tallied {
    let mut tallied = Tallied::default();
    let mut sources: Vec<Source> = files.iter().map(|path| Source::asked_for(path)).collect();
    if let Some(places) = places {
        tallied.warnings = discover(places, &mut |found: Found| sources.push(Source::found(found)));
    }
    // As text, not by the names in it: that is how those programs sort.
    sources.sort_by(|one, other| one.text.cmp(&other.text));
    sources.dedup_by(|one, other| one.text == other.text);
    let mut counters = Counters { rule, list: Vec::new() };
    let mut progress = Progress {
        files: sources.len() as u64,
        bytes: sources.iter().map(|source| source.size).sum(),
        ..Progress::default()
    };
    let mut last = None;
    for source in &sources {
        match source.count(&mut counters, &mut last, &mut progress, watch) {
            Ok(Outcome::Counted(warning)) => tallied.warnings.extend(warning),
            Ok(Outcome::Unread) => tallied.unread += 1,
            Ok(Outcome::Unknown(agent)) => *tallied.unknown.entry(agent).or_default() += 1,
            Ok(Outcome::Nothing) => {}
            Err(error) => tallied.warnings.push(Warning::new(&source.path, said(&source.path, &error))),
        }
        progress.files_done += 1;
        if watch.is_stopped() {
            tallied.stopped = true;
            break;
        }
    }
    let mut book = LedgerBuilder::default();
    for Counter { agent, tally, sources, .. } in counters.list {
        let mut counted = tally.close();
        tallied.notes.append(&mut counted.warnings);
        tallied.agents.push(agent);
        book.add_tallied(&sources, counted);
    }
    tallied.ledger = book.finish();
    tallied
}

/// A file that may be a source.
struct Source {
    path: PathBuf,
    /// Its path as text, with `/` between the names.
    text: String,
    size: u64,
    named: Named,
    choice: Choice,
}

/// Who chose a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// It was found.
    Found,
    /// Somebody named it, so that it is read whatever its name is.
    Asked,
}

/// What came of a file.
enum Outcome {
    /// Its lines were counted; there may be something to say.
    Counted(Option<Warning>),
    /// The program does not read files with such names.
    Unread,
    /// The program does not know the agent.
    Unknown(&'static str),
    /// It is no transcript.
    Nothing,
}

/// What counts the sources of each format.
struct Counters {
    rule: Rule,
    list: Vec<Counter>,
}

struct Counter {
    format: &'static str,
    agent: &'static str,
    tally: Box<dyn Tally>,
    sources: Vec<String>,
}

impl Counters {
    fn of(&mut self, format: &'static dyn Format) -> Option<&mut Counter> {
        let name = format.info().name;
        match self.list.iter().position(|counter| counter.format == name) {
            Some(at) => self.list.get_mut(at),
            None => {
                let tally = format.tally(self.rule)?;
                self.list.push(Counter { format: name, agent: format.info().agent, tally, sources: Vec::new() });
                self.list.last_mut()
            }
        }
    }
}

impl Source {
    fn asked_for(path: &Path) -> Source {
        let size = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
        Source { path: path.to_owned(), text: text(path), size, named: Named::default(), choice: Choice::Asked }
    }

    fn found(found: Found) -> Source {
        let text = text(&found.path);
        Source { path: found.path, text, size: found.stat.size, named: found.named, choice: Choice::Found }
    }

    fn count(
        &self,
        counters: &mut Counters,
        last: &mut Option<&'static dyn Format>,
        progress: &mut Progress,
        watch: &mut dyn Watch,
    ) -> io::Result<Outcome> {
        let mut file = File::open(&self.path)?;
        if !file.metadata()?.is_file() {
            return Ok(Outcome::Nothing);
        }
        let mut head = Vec::new();
        Head::read(&mut file, &mut head)?;
        // Where a file stands says to such programs what it is, whatever is in it.
        let recognized = || recognize_after(*last, &head, &self.named).map(|recognized| recognized.format);
        let format = self.named.format.or_else(recognized);
        let Some(format) = format else { return Ok(Outcome::Nothing) };
        *last = Some(format);
        let Some(counter) = counters.of(format) else { return Ok(Outcome::Unknown(format.info().agent)) };
        if self.choice == Choice::Found && !self.text.ends_with(ENDING) {
            return Ok(Outcome::Unread);
        }
        counter.sources.push(self.text.clone());
        counter.tally.source(&self.text);
        let stream = BufReader::with_capacity(CHUNK_SIZE, head.as_slice().chain(file));
        let mut lines = Lines { stream, line: Vec::new(), number: 0, too_long: None };
        let mut told = 0;
        while let Some(length) = lines.next()? {
            if !lines.line.is_empty() {
                counter.tally.line(lines.number, &lines.line);
            }
            (progress.bytes_done, told) = (progress.bytes_done + length, told + length);
            if told >= BEAT_SIZE {
                told = 0;
                watch.progress(progress);
                if watch.is_stopped() {
                    break;
                }
            }
        }
        watch.progress(progress);
        let warning = |line: u64| Warning::new(&self.path, format!("line {line} is too long, and left out"));
        Ok(Outcome::Counted(lines.too_long.map(warning)))
    }
}

fn text(path: &Path) -> String {
    let text = path.to_string_lossy().into_owned();
    if std::path::MAIN_SEPARATOR == '/' { text } else { text.replace(std::path::MAIN_SEPARATOR, "/") }
}

/// The lines of a file, one at a time.
struct Lines<S> {
    stream: S,
    line: Vec<u8>,
    number: u64,
    /// A line that is longer than any record may be: nobody holds it in memory.
    too_long: Option<u64>,
}

impl<S: BufRead> Lines<S> {
    /// Reads the next line, without its end, and says how many bytes it has with it; nothing at the end of the file.
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
