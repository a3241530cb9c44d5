//! The excerpt of an entry that shows best why it matches: one line of whole words, with the matches marked. It adds no
//! colour and does not make the text safe for a terminal or a page: the caller does.

use std::borrow::Cow;
use std::ops::Range;

use super::entry::Entry;
use super::expr::{Query, Sought};
use super::words::{is_pairwise, is_word_char};

/// An excerpt of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The excerpt on one line: white space and control characters become single spaces.
    pub text: String,
    /// The matches, as ranges of bytes in `text`, in order and without overlaps.
    pub marks: Vec<Range<usize>>,
    /// Whether the text continues before it.
    pub is_cut_before: bool,
    /// Whether the text continues after it.
    pub is_cut_after: bool,
}

/// The most matches of one text that are compared: the best ones are rarely after a thousand others.
const MARKS_MAX: usize = 1024;

/// How many characters may be dropped to avoid cutting a word.
const WORD_REACH: usize = 24;

impl Query {
    /// The excerpt of an entry that shows best why it matches, of about `length_max` characters: around the rarest match,
    /// with as many others as fit. If the query looks for nothing in the texts, it is their beginning. `counts` says how
    /// common each part of [`Query::sought`] is; without it, the number of matches in the entry decides.
    pub fn snippet(&self, entry: &Entry<'_>, length_max: usize, counts: Option<&[u64]>) -> Snippet {
        let length_max = length_max.max(1);
        let sought = self.sought();
        let marked: Vec<(&str, Vec<Mark>)> = entry.texts.iter().map(|text| (&**text, marks(&sought, text))).collect();
        let ranks = ranks(sought.len(), &marked, counts);
        let mut best: Option<(Score, &str, Vec<Range<usize>>)> = None;
        for (text, marks) in marked {
            if let Some((score, within)) = window(text, &marks, &ranks, length_max)
                && best.as_ref().is_none_or(|(most, _, _)| score > *most)
            {
                best = Some((score, text, within));
            }
        }
        match best {
            Some((_, text, marks)) => cut(text, &merged(marks), length_max),
            None => cut(&beginning(&entry.texts, length_max), &[], length_max),
        }
    }
}

/// A match, and the number of the part of the query that it matches.
type Mark = (Range<usize>, usize);

/// The rank of the rarest visible part, the number of different visible parts, and the number of visible matches.
type Score = (usize, u32, usize);

/// The rank of each part of the query: the rarest has the highest rank, and equally rare ones share a rank.
fn ranks(sought: usize, marked: &[(&str, Vec<Mark>)], counts: Option<&[u64]>) -> Vec<usize> {
    let mut here = vec![0_u64; sought];
    for (_, number) in marked.iter().flat_map(|(_, marks)| marks) {
        if let Some(count) = here.get_mut(*number) {
            *count += 1;
        }
    }
    let counts = counts.filter(|counts| counts.len() == sought).unwrap_or(&here);
    counts.iter().map(|count| counts.iter().filter(|other| *other > count).count()).collect()
}

/// The matches in a text, with the number of the part they match.
fn marks(sought: &[Sought<'_>], text: &str) -> Vec<Mark> {
    let mut found: Vec<Mark> = Vec::new();
    for (number, sought) in sought.iter().enumerate() {
        let limit = found.len() + MARKS_MAX;
        match sought {
            Sought::Phrase(words) => words.each_in(text, &mut |at| {
                if found.len() < limit {
                    found.push((at, number));
                }
            }),
            Sought::Pattern(pattern) => {
                let places = pattern.regex().find_iter(text).filter(|place| !place.is_empty());
                found.extend(places.take(MARKS_MAX).map(|place| (place.range(), number)));
            }
        }
    }
    found.sort_by_key(|(at, number)| (at.start, at.end, *number));
    found
}

/// The best run of matches within the given number of characters; the earliest if several are equal.
fn window(text: &str, marks: &[Mark], ranks: &[usize], length_max: usize) -> Option<(Score, Vec<Range<usize>>)> {
    let mut best: Option<(Score, &[Mark])> = None;
    for (at, (first, _)) in marks.iter().enumerate() {
        let end = forward(text, first.start, length_max);
        let from = marks.get(at..).unwrap_or_default();
        let count = from.iter().take_while(|(place, _)| place.start < end).count();
        let within = from.get(..count).unwrap_or_default();
        // A match that is longer than the excerpt is cut, and counts alone.
        let seen = within.iter().filter(|(place, _)| place.end <= end);
        let kinds = seen.clone().fold(0_u64, |kinds, (_, number)| kinds | 1 << (*number).min(63));
        let rarest = seen.clone().filter_map(|(_, number)| ranks.get(*number)).max().copied().unwrap_or(0);
        let score = (rarest, kinds.count_ones(), seen.count());
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, within));
        }
    }
    best.map(|(score, within)| (score, within.iter().map(|(place, _)| place.clone()).collect()))
}

fn merged(marks: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut apart: Vec<Range<usize>> = Vec::with_capacity(marks.len());
    for mark in marks {
        match apart.last_mut() {
            Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
            _ => apart.push(mark),
        }
    }
    apart
}

/// The texts joined, as far as they are needed.
fn beginning(texts: &[Cow<'_, str>], length_max: usize) -> String {
    let mut out = String::new();
    for text in texts {
        if !out.is_empty() {
            out.push(' ');
        }
        // One more character than is shown, to detect that the text continues.
        let end = forward(text, 0, length_max.saturating_add(1));
        out.push_str(text.get(..end).unwrap_or_default());
        if out.len() > length_max.saturating_mul(4) {
            break;
        }
    }
    out
}

/// Cuts the excerpt around these matches.
fn cut(text: &str, marks: &[Range<usize>], length_max: usize) -> Snippet {
    let first = marks.first().map_or(0, |mark| mark.start);
    let last = marks.last().map_or(0, |mark| mark.end);
    let spare = length_max.saturating_sub(length(text.get(first..last).unwrap_or_default()));
    // A third of the remaining length goes before the matches, or more if the text ends soon.
    let behind = length(text.get(last..forward(text, last, spare)).unwrap_or_default());
    let ahead = (spare / 3).max(spare.saturating_sub(behind));
    let start = whole_start(text, backward(text, first, ahead), first);
    let end = whole_end(text, forward(text, start, length_max), last.max(start));
    let mut snippet = Snippet {
        is_cut_before: text.get(..start).is_some_and(|before| !before.trim().is_empty()),
        is_cut_after: text.get(end..).is_some_and(|after| !after.trim().is_empty()),
        ..Snippet::default()
    };
    let mut marks = marks.iter().filter(|mark| mark.start < end).peekable();
    let mut open: Option<usize> = None;
    let mut is_blank_before = true;
    for (offset, char) in text.get(start..end).unwrap_or_default().char_indices() {
        let at = start + offset;
        if let Some(mark) = marks.next_if(|mark| open.is_some() && at >= mark.end) {
            close(&mut snippet, &mut open);
            debug_assert!(mark.end <= at);
        }
        if open.is_none() && marks.peek().is_some_and(|mark| at >= mark.start) {
            open = Some(snippet.text.len());
        }
        let is_blank = is_blank(char);
        match (is_blank, is_blank_before) {
            (true, true) => {}
            (true, false) => snippet.text.push(' '),
            (false, _) => snippet.text.push(char),
        }
        is_blank_before = is_blank;
    }
    close(&mut snippet, &mut open);
    let trimmed = snippet.text.trim_end().len();
    snippet.text.truncate(trimmed);
    snippet.marks.retain_mut(|mark| {
        mark.end = mark.end.min(trimmed);
        mark.start < mark.end
    });
    snippet
}

fn close(snippet: &mut Snippet, open: &mut Option<usize>) {
    if let Some(from) = open.take() {
        snippet.marks.push(from..snippet.text.len());
    }
}

fn is_blank(char: char) -> bool {
    char.is_whitespace() || char.is_control()
}

/// The number of characters that a text shows, where a run of white space counts as one.
fn length(text: &str) -> usize {
    let mut is_blank_before = false;
    let shows = |char: char| {
        let shows = !(is_blank(char) && is_blank_before);
        is_blank_before = is_blank(char);
        shows
    };
    text.chars().map(shows).filter(|shows| *shows).count()
}

/// The position that is the given number of shown characters after another.
fn forward(text: &str, from: usize, count: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + walk(rest.char_indices().map(|(offset, char)| (offset + char.len_utf8(), char)), count).unwrap_or(0)
}

/// The position that is the given number of shown characters before another.
fn backward(text: &str, from: usize, count: usize) -> usize {
    let before = text.get(..from).unwrap_or_default();
    walk(before.char_indices().rev(), count).unwrap_or(from)
}

fn walk(chars: impl Iterator<Item = (usize, char)>, count: usize) -> Option<usize> {
    let (mut left, mut is_blank_before, mut place) = (count, false, None);
    for (offset, char) in chars {
        let shows = !(is_blank(char) && is_blank_before);
        if shows && left == 0 {
            break;
        }
        left -= usize::from(shows);
        is_blank_before = is_blank(char);
        place = Some(offset);
    }
    place
}

/// Whether a cut at this position splits no word.
fn is_between_words(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    let after = text.get(at..).and_then(|after| after.chars().next());
    match (before, after) {
        (Some(before), Some(after)) => !(is_word_char(before) && is_word_char(after)) || is_pairwise(after),
        _ => true,
    }
}

/// The first position from here that splits no word, unless it is far away or after `limit`.
fn whole_start(text: &str, at: usize, limit: usize) -> usize {
    let places = text.get(at..limit).unwrap_or_default().char_indices().map(|(offset, _)| at + offset);
    places.take(WORD_REACH).find(|place| is_between_words(text, *place)).unwrap_or(at)
}

/// The last position up to here that splits no word, unless it is far away or before `limit`.
fn whole_end(text: &str, at: usize, limit: usize) -> usize {
    if is_between_words(text, at) {
        return at;
    }
    let places = text.get(limit..at).unwrap_or_default().char_indices().rev().map(|(offset, _)| limit + offset);
    places.take(WORD_REACH).find(|place| is_between_words(text, *place)).unwrap_or(at)
}

#[cfg(test)]
mod tests;
