//! Redacts a whole source that arrives in chunks, line by line. A JSON string has no raw newline, so a line never begins inside
//! one. Two kinds of sources are handled in blocks of lines: texts for people, because their secrets may have several lines, and
//! indented JSON documents, because a thought and its signature are on different lines.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::check::{is_common_word, is_random, is_user_name};
use super::detect::is_name_rule;
use super::literals::is_json;
use super::own_rules::{PRIVATE_KEY, USER_NAME};
use super::{Finding, FindingClass, RecordSyntax, RedactionReport, Redactor};
use crate::frame::{LinePiece, LineSplitter, RECORD_SIZE_MAX};

/// Receives the results of a redaction.
pub trait RedactionSink {
    /// The next bytes of the redacted source.
    fn bytes(&mut self, bytes: &[u8]);
    /// A finding and its line.
    fn finding(&mut self, _line: u64, _finding: &Finding) {}
}

/// Discards everything.
impl RedactionSink for () {
    fn bytes(&mut self, _bytes: &[u8]) {}
}

/// Redacts a source.
#[derive(Debug)]
pub struct SourceRedactor<'r> {
    splitter: LineSplitter,
    lines: Lines<'r>,
}

#[derive(Debug)]
struct Lines<'r> {
    redactor: &'r Redactor,
    syntax: RecordSyntax,
    /// Lines that are handled together, and the number of the first.
    block: Vec<u8>,
    block_line: u64,
    report: RedactionReport,
    known: KnownSecrets,
}

/// A block of a text ends at the first blank line after this many bytes. Any block ends at a line after twice as many.
const BLOCK_SIZE: usize = 1 << 20;

/// A block of a document ends where an object ends after this many bytes.
const DOCUMENT_BLOCK_SIZE: usize = 64 << 10;

impl<'r> SourceRedactor<'r> {
    /// Begins with a source whose records have this syntax.
    pub fn new(redactor: &'r Redactor, syntax: RecordSyntax) -> SourceRedactor<'r> {
        let (report, known) = (RedactionReport::default(), KnownSecrets::default());
        let lines = Lines { redactor, syntax, block: Vec::new(), block_line: 1, report, known };
        SourceRedactor { splitter: LineSplitter::new(RECORD_SIZE_MAX), lines }
    }

    /// Takes the next chunk of the source.
    pub fn feed(&mut self, chunk: &[u8], sink: &mut dyn RedactionSink) {
        let SourceRedactor { splitter, lines } = self;
        splitter.feed(chunk, &mut |piece| lines.piece(&piece, sink));
    }

    /// Handles what is left at the end of the source. Returns the counts, and the secrets that were found.
    pub fn end(mut self, sink: &mut dyn RedactionSink) -> (RedactionReport, KnownSecrets) {
        let SourceRedactor { splitter, lines } = &mut self;
        splitter.end(&mut |piece| lines.piece(&piece, sink));
        lines.flush(sink);
        (self.lines.report, self.lines.known)
    }
}

impl Lines<'_> {
    fn piece(&mut self, piece: &LinePiece<'_>, sink: &mut dyn RedactionSink) {
        self.report.oversize += u64::from(piece.is_cut && piece.begins_line);
        let text = piece.text().trim_ascii();
        let is_in_block = match self.syntax {
            RecordSyntax::Json => !piece.is_cut && is_part_of_document(text),
            RecordSyntax::Text => true,
        };
        if !is_in_block {
            self.flush(sink);
            let (record, newline) = piece.bytes.split_at(piece.text().len());
            self.record(record, piece.at.line, sink);
            sink.bytes(newline);
            return;
        }
        if self.block.is_empty() {
            self.block_line = piece.at.line;
        }
        self.block.extend_from_slice(piece.bytes);
        let is_end = match self.syntax {
            RecordSyntax::Json => matches!(text, [b'}' | b']', ..]) && self.block.len() > DOCUMENT_BLOCK_SIZE,
            RecordSyntax::Text => text.is_empty() && self.block.len() > BLOCK_SIZE,
        };
        if is_end || self.block.len() > 2 * BLOCK_SIZE {
            self.flush(sink);
        }
    }

    fn flush(&mut self, sink: &mut dyn RedactionSink) {
        let mut block = std::mem::take(&mut self.block);
        if !block.is_empty() {
            self.record(&block, self.block_line, sink);
        }
        block.clear();
        self.block = block;
    }

    fn record(&mut self, record: &[u8], line: u64, sink: &mut dyn RedactionSink) {
        let redacted = self.redactor.record(record, self.syntax);
        self.report.add(&redacted);
        // The findings are in order, so each newline is counted once.
        let (mut line, mut counted) = (line, 0);
        for finding in &redacted.findings {
            self.known.add(finding);
            let before = record.get(counted..finding.at.start).unwrap_or_default();
            line += memchr::memchr_iter(b'\n', before).count() as u64;
            counted = counted.max(finding.at.start);
            sink.finding(line, finding);
        }
        sink.bytes(&redacted.bytes);
    }
}

/// Whether a line is a part of an indented document: it is JSON, and no whole record.
fn is_part_of_document(line: &[u8]) -> bool {
    let is_whole = matches!(line, [b'{', .., b'}'] | [b'[', .., b']']);
    is_json(line) && !is_whole
}

/// Secrets and user names that were found, to mask them where no rule would find them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KnownSecrets {
    texts: BTreeMap<Vec<u8>, (Cow<'static, str>, FindingClass)>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secrets themselves must not reach a log.
        formatter.debug_struct("KnownSecrets").field("count", &self.texts.len()).finish_non_exhaustive()
    }
}

/// How many secrets are remembered, and how long they are: a source may consist of nothing else.
const KNOWN_MAX: usize = 10_000;
const KNOWN_SIZE_MIN: usize = 8;
const KNOWN_SIZE_MAX: usize = 512;

/// The shortest line of a private key that is masked wherever it occurs.
const KEY_LINE_MIN: usize = 32;

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The shortest user name that is masked as a word: shorter ones are words of their own.
const USER_NAME_MIN: usize = 4;

impl KnownSecrets {
    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn has_all(&self, other: &KnownSecrets) -> bool {
        other.texts.keys().all(|text| self.texts.contains_key(text))
    }

    /// The secrets themselves, without the names of users. They must not be printed.
    pub fn secrets(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().filter(|(_, _, class)| *class == FindingClass::Secret).map(|(text, ..)| text)
    }

    fn add(&mut self, finding: &Finding) {
        if is_name_rule(&finding.rule) {
            self.add_user_name(&String::from_utf8_lossy(&finding.secret));
        } else if finding.rule == PRIVATE_KEY {
            // A copy of the key may have anything between its lines.
            let lines = finding.secret.split(|byte| !is_base64(*byte)).filter(|line| line.len() >= KEY_LINE_MIN);
            lines.filter(|line| line.len() <= KNOWN_SIZE_MAX && is_random(line)).for_each(|line| {
                self.insert(line.to_vec(), finding.rule.clone(), finding.class);
            });
        } else if finding.class == FindingClass::Secret
            && (KNOWN_SIZE_MIN..=KNOWN_SIZE_MAX).contains(&finding.secret.len())
            && is_random(&finding.secret)
        {
            self.insert(finding.secret.clone(), finding.rule.clone(), finding.class);
        }
    }

    pub(super) fn add_user_name(&mut self, name: &str) {
        if name.len() >= USER_NAME_MIN && is_user_name(name.as_bytes()) && !is_common_word(name) {
            self.insert(name.as_bytes().to_vec(), Cow::Borrowed(USER_NAME), FindingClass::Personal);
        }
    }

    fn insert(&mut self, text: Vec<u8>, rule: Cow<'static, str>, class: FindingClass) {
        let is_full = self.texts.len() >= KNOWN_MAX;
        match self.texts.get_mut(&text) {
            // The same rule whatever was read first.
            Some(known) if (class, &rule) < (known.1, &known.0) => *known = (rule, class),
            Some(_) => {}
            None if is_full => {}
            None => _ = self.texts.insert(text, (rule, class)),
        }
    }

    /// Adds those of another source.
    pub fn extend(&mut self, other: KnownSecrets) {
        other.texts.into_iter().for_each(|(text, (rule, class))| self.insert(text, rule, class));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Cow<'static, str>, FindingClass)> {
        self.texts.iter().map(|(text, (rule, class))| (text.as_slice(), rule, *class))
    }
}
