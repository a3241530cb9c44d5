//! Copies a source of lines and replaces some of its records. It holds only the part of the source that is not decided yet.

use std::collections::VecDeque;
use std::io::{self, Write};

use super::splice::{Splice, SpliceOperation};
use crate::frame::{RECORD_SIZE_MAX, after_boms};

/// The limit of spaces held at the beginning of a line; a line that begins with more does not count as blank.
const BLANKS_MAX: usize = 1 << 20;

/// The copy of a source of lines.
pub(super) struct LineCopy<'o> {
    out: &'o mut dyn Write,
    /// Bytes of the source that are not copied yet.
    window: Vec<u8>,
    /// How much of the window is copied, and the offset of that place in the source.
    used: usize,
    at: u64,
    /// The last newline, which is written when something follows it.
    newline: &'static [u8],
    /// The spaces at the beginning of the current line, as long as nothing else is on it.
    blanks: Vec<u8>,
    /// Whether the current line has only spaces so far.
    is_blank: bool,
    /// Whether the last line of the source, which has no newline, was removed.
    has_lost_end: bool,
    /// The last byte of the source so far.
    last: Option<u8>,
}

impl<'o> LineCopy<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> LineCopy<'o> {
        let (window, blanks) = (Vec::new(), Vec::new());
        LineCopy { out, window, used: 0, at: 0, newline: b"", blanks, is_blank: true, has_lost_end: false, last: None }
    }

    /// Adds the next bytes of the source.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.window.drain(..self.used);
        self.used = 0;
        self.window.extend_from_slice(chunk);
        self.last = chunk.last().copied().or(self.last);
    }

    /// The offset of the end of the window.
    pub(super) fn end_of_window(&self) -> u64 {
        self.at + (self.window.len() - self.used) as u64
    }

    /// Applies these splices and copies everything before `until`: no later splice is before it. Returns `false` if a splice is at a
    /// place that was already copied.
    pub(super) fn carry_out(&mut self, splices: &mut VecDeque<Splice>, until: u64) -> io::Result<bool> {
        Ok(match self.splice(splices, Rest::Comes)? {
            Spliced::All => {
                self.copy_to(until)?;
                true
            }
            Spliced::Waits => true,
            Spliced::TooLate => false,
        })
    }

    /// Applies the last splices after the end of the source.
    pub(super) fn end(mut self, splices: &mut VecDeque<Splice>) -> io::Result<bool> {
        let at_end = match splices.pop_back() {
            Some(Splice { operation: SpliceOperation::Append(new), .. }) => Some(new),
            Some(other) => {
                splices.push_back(other);
                None
            }
            None => None,
        };
        if !matches!(self.splice(splices, Rest::Ended)?, Spliced::All) {
            return Ok(false);
        }
        self.copy_to(u64::MAX)?;
        if let Some(new) = at_end {
            self.write_held()?;
            let lines = new.join(b"\n".as_slice());
            // The file ends with a newline only if it did before.
            let needs_newline = self.last.is_some_and(|last| last != b'\n');
            let (before, after): (&[u8], &[u8]) = if needs_newline { (b"\n", b"") } else { (b"", b"\n") };
            for part in [before, &lines, after] {
                self.out.write_all(part)?;
            }
        } else if self.has_lost_end {
            // The newline before the last line is removed with it.
            self.newline = b"";
        }
        self.write_held()?;
        Ok(true)
    }

    fn splice(&mut self, splices: &mut VecDeque<Splice>, rest: Rest) -> io::Result<Spliced> {
        while let Some(Splice { at, operation }) = splices.front() {
            let at = *at;
            if at.offset < self.at {
                return Ok(Spliced::TooLate);
            }
            self.copy_to(at.offset)?;
            match operation {
                SpliceOperation::InsertBefore(new) => {
                    self.write_held()?;
                    // Another record may be before this one on its line.
                    if !self.is_blank {
                        self.out.write_all(b"\n")?;
                    }
                    self.out.write_all(&new.join(b"\n".as_slice()))?;
                    self.out.write_all(b"\n")?;
                }
                SpliceOperation::Replace(with) => {
                    self.write_held()?;
                    self.out.write_all(with)?;
                    self.skip(at.length);
                    self.is_blank = false;
                }
                SpliceOperation::Remove => match self.line_end(at.length, rest) {
                    LineEnd::Unknown => return Ok(Spliced::Waits),
                    LineEnd::After(length) if self.is_blank => self.drop_line(length),
                    LineEnd::After(_) | LineEnd::Taken => {
                        self.write_held()?;
                        self.skip(at.length);
                        self.is_blank = false;
                    }
                },
                SpliceOperation::Append(_) => return Ok(Spliced::TooLate),
            }
            splices.pop_front();
        }
        Ok(Spliced::All)
    }

    /// Drops the current line, of which this many bytes are not copied yet.
    fn drop_line(&mut self, length: u64) {
        let end = self.used.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        self.has_lost_end = self.window.get(self.used..end).is_some_and(|line| !line.ends_with(b"\n"));
        self.blanks.clear();
        self.skip(length);
    }

    /// The end of the line of a record that begins here and has this length.
    fn line_end(&self, length: u64, rest: Rest) -> LineEnd {
        let from = self.used.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        let after = self.window.get(from..).unwrap_or_default();
        let newline = memchr::memchr(b'\n', after);
        let line = after.get(..newline.unwrap_or(after.len())).unwrap_or_default();
        match (line.iter().all(u8::is_ascii_whitespace), newline, rest) {
            (false, _, _) => LineEnd::Taken,
            (true, Some(newline), _) => LineEnd::After(length + newline as u64 + 1),
            (true, None, Rest::Ended) => LineEnd::After(length + after.len() as u64),
            (true, None, Rest::Comes) if after.len() > RECORD_SIZE_MAX => LineEnd::Taken,
            (true, None, Rest::Comes) => LineEnd::Unknown,
        }
    }

    fn skip(&mut self, length: u64) {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.window.len() - self.used);
        self.used += length;
        self.at += length as u64;
    }

    /// Copies everything before this offset.
    fn copy_to(&mut self, offset: u64) -> io::Result<()> {
        let length = usize::try_from(offset.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let end = self.used.saturating_add(length).min(self.window.len());
        if end <= self.used {
            return Ok(());
        }
        let window = std::mem::take(&mut self.window);
        let copied = self.copy(window.get(self.used..end).unwrap_or_default());
        self.window = window;
        self.at += (end - self.used) as u64;
        self.used = end;
        copied
    }

    fn copy(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        if self.at == 0 {
            // A byte order mark is not part of the first line: it stays.
            let after = after_boms(rest);
            self.out.write_all(rest.get(..rest.len() - after.len()).unwrap_or_default())?;
            rest = after;
        }
        if let Some(newline) = memchr::memrchr(b'\n', rest) {
            let (lines, line) = rest.split_at(newline + 1);
            let (lines, ending): (&[u8], &'static [u8]) = match lines.strip_suffix(b"\r\n") {
                Some(lines) => (lines, b"\r\n"),
                None => (lines.strip_suffix(b"\n").unwrap_or(lines), b"\n"),
            };
            self.write_held()?;
            self.out.write_all(lines)?;
            self.newline = ending;
            self.is_blank = true;
            rest = line;
        }
        let is_blank = self.is_blank && rest.iter().all(u8::is_ascii_whitespace);
        if is_blank && self.blanks.len() + rest.len() <= BLANKS_MAX {
            self.blanks.extend_from_slice(rest);
            return Ok(());
        }
        self.is_blank = false;
        self.write_held()?;
        self.out.write_all(rest)
    }

    fn write_held(&mut self) -> io::Result<()> {
        self.out.write_all(std::mem::take(&mut self.newline))?;
        self.out.write_all(&self.blanks)?;
        self.blanks.clear();
        Ok(())
    }
}

/// Whether the source has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Comes,
    Ended,
}

/// Whether all splices were applied.
enum Spliced {
    All,
    /// More of the source is needed.
    Waits,
    /// A splice is at a place that was already copied.
    TooLate,
}

/// The end of the line of a record.
enum LineEnd {
    /// After this many bytes.
    After(u64),
    /// Something else is on the line.
    Taken,
    /// It is not in the window yet.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Span;

    fn at(source: &str, word: &str) -> Span {
        Span { offset: source.find(word).unwrap() as u64, length: word.len() as u64, line: 1 }
    }

    fn remove(source: &str, word: &str) -> Splice {
        Splice { at: at(source, word), operation: SpliceOperation::Remove }
    }

    /// The source with these splices, which must not depend on the sizes of the chunks.
    fn copied(source: &str, splices: impl Fn() -> Vec<Splice>) -> String {
        let mut results = Vec::new();
        for size in [1, 2, 3, 5, 1000] {
            let mut out = Vec::new();
            let mut copy = LineCopy::new(&mut out);
            let (mut offset, mut pending) = (0, VecDeque::from(splices()));
            let mut found = VecDeque::new();
            for chunk in source.as_bytes().chunks(size) {
                copy.feed(chunk);
                offset += chunk.len() as u64;
                // The splice of a record is known when its line is complete.
                while pending.front().is_some_and(|splice| splice.at.end() < offset) {
                    found.extend(pending.pop_front());
                }
                let until = pending.front().map_or(offset, |splice| splice.at.offset.min(offset));
                let before = &source.as_bytes()[..until as usize];
                let until = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
                assert!(copy.carry_out(&mut found, until).unwrap());
            }
            found.extend(pending);
            assert!(copy.end(&mut found).unwrap());
            results.push(String::from_utf8(out).unwrap());
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
        results.remove(0)
    }

    #[test]
    fn a_record_is_removed_with_its_line() {
        for (source, word, left) in [
            ("a\nb\nc\n", "b", "a\nc\n"),
            ("a\n  b \t\nc\n", "b", "a\nc\n"),
            ("a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n"),
            ("a\nb\nc\n", "a", "b\nc\n"),
            // Two records on one line.
            ("a b\nc\n", "b", "a \nc\n"),
            ("a b\nc\n", "a", " b\nc\n"),
            // A byte order mark stays.
            ("\u{feff}a\nb\n", "a", "\u{feff}b\n"),
        ] {
            assert_eq!(copied(source, || vec![remove(source, word)]), left, "{source:?} without {word}");
        }
    }

    #[test]
    fn a_file_without_a_final_newline_has_none_after_its_last_record_is_removed() {
        for (source, left) in [("a\nb", "a"), ("a\r\nb", "a"), ("a\n\n  b ", "a\n"), ("a\nb\n", "a\n")] {
            assert_eq!(copied(source, || vec![remove(source, "b")]), left, "{source:?}");
        }
        let source = "a\nb\nc";
        assert_eq!(copied(source, || vec![remove(source, "b"), remove(source, "c")]), "a");
    }

    #[test]
    fn replaced_and_inserted_records_are_on_lines_of_their_own() {
        let source = "a\n b\nc";
        let put = |word| Splice {
            at: at(source, word),
            operation: SpliceOperation::InsertBefore(vec![b"x".to_vec(), b"y".to_vec()]),
        };
        let replace = |word| Splice { at: at(source, word), operation: SpliceOperation::Replace(b"z".to_vec()) };
        assert_eq!(copied(source, || vec![replace("b")]), "a\n z\nc");
        assert_eq!(copied(source, || vec![put("c"), replace("c")]), "a\n b\nx\ny\nz");
        let end = || Splice { at: Span::default(), operation: SpliceOperation::Append(vec![b"x".to_vec()]) };
        let mut out = Vec::new();
        let mut copy = LineCopy::new(&mut out);
        copy.feed(source.as_bytes());
        assert!(copy.end(&mut VecDeque::from([end()])).unwrap());
        assert_eq!(out, b"a\n b\nc\nx");
    }

    #[test]
    fn a_place_that_was_copied_cannot_be_changed() {
        let mut out = Vec::new();
        let mut copy = LineCopy::new(&mut out);
        copy.feed(b"a\nb\n");
        assert!(copy.carry_out(&mut VecDeque::new(), 4).unwrap());
        assert!(!copy.carry_out(&mut VecDeque::from([remove("a\nb\n", "a")]), 4).unwrap());
    }
}
